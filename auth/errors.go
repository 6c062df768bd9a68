package auth

import (
	"fmt"
	"strings"
)

// UnauthenticatedError says that it is not known who sent a request: status 401.
type UnauthenticatedError struct{ Reason string }

func (e *UnauthenticatedError) Error() string { return e.Reason }

// Challenge is the value of the header WWW-Authenticate, without which an answer 401 is not complete.
func (e *UnauthenticatedError) Challenge() string { return `Basic realm="wlmserver", charset="UTF-8"` }

// ForbiddenError says that a request claims a user in a way that it must not: status 403.
type ForbiddenError struct{ Reason string }

func (e *ForbiddenError) Error() string { return e.Reason }

// ConfigError says that a setting cannot be used as it is.
type ConfigError struct {
	Key    string // of the configuration
	Value  string // may be empty
	Reason string // with the remedy
}

func (e *ConfigError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("%s: %s", e.Key, e.Reason)
	}
	return fmt.Sprintf("%s [%s]: %s", e.Key, e.Value, e.Reason)
}

// UsersFileError says what is wrong in the users file. It never tells a hash.
type UsersFileError struct {
	Path   string
	Line   int    // 0 if it is about the whole file, or if the reason tells it
	User   string // may be empty
	Reason string // with the remedy
}

func (e *UsersFileError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "users file %s", e.Path)
	if e.Line > 0 {
		fmt.Fprintf(&b, ", line %d", e.Line)
	}
	if e.User != "" {
		fmt.Fprintf(&b, ", user %q", e.User)
	}
	return b.String() + ": " + e.Reason
}
