package settings

import (
	"fmt"
	"strings"
)

// Names of OpenSearch's exceptions that an [InvalidError] may be answered as.
const (
	illegalArgument   = "illegal_argument_exception"
	settingsException = "settings_exception"
)

// Scopes as they are named in a request.
const (
	scopePersistent = "persistent"
	scopeTransient  = "transient"
	scopeStart      = "start"
)

// UnknownError says that no setting has this key.
type UnknownError struct {
	Scope   string // persistent, transient, or start for the configuration file
	Key     string
	Nearest string // the known key that is most like it; empty when none is
}

func (e *UnknownError) Error() string {
	hint := "GET /_cluster/settings?include_defaults&flat_settings lists the known ones"
	if e.Nearest != "" {
		hint = fmt.Sprintf("did you mean [%s]?", e.Nearest)
	}
	return fmt.Sprintf("%s setting [%s], not recognized: %s", e.Scope, e.Key, hint)
}

// NotDynamicError says that the setting can only be changed in the configuration file.
type NotDynamicError struct {
	Scope string
	Key   string
}

func (e *NotDynamicError) Error() string {
	return fmt.Sprintf("%s setting [%s], not dynamically updateable: change it in the configuration file and restart the server", e.Scope, e.Key)
}

// InvalidError says that a value is not allowed, by itself or beside the values of other settings.
type InvalidError struct {
	Key    string
	Value  string // empty for an object or an array
	Reason string
	// Type is OpenSearch's name of the exception: illegal_argument_exception, or settings_exception
	// for a value of the wrong form.
	Type string
	// NumberFormat is true where the text is no number; OpenSearch then nests a
	// number_format_exception as the cause.
	NumberFormat bool
}

func (e *InvalidError) Error() string {
	if e.Type == settingsException {
		return fmt.Sprintf("setting [%s] %s", e.Key, e.Reason)
	}
	return fmt.Sprintf("setting [%s] cannot have the value [%.200s]: %s", e.Key, e.Value, e.Reason)
}

// NothingError says that an update holds nothing to do.
type NothingError struct {
	Ignored []string // top-level keys that are neither persistent nor transient
}

func (e *NothingError) Error() string {
	s := "no settings to update: name at least one under [persistent] or [transient]"
	if len(e.Ignored) > 0 {
		s += fmt.Sprintf("; not looked at: [%s]", strings.Join(e.Ignored, ", "))
	}
	return s
}

// ClassCastError says that a scope is not an object. OpenSearch fails there with a
// class_cast_exception and status 500.
type ClassCastError struct {
	Scope string
	Found string // what stands there: number, string, boolean or array
}

func (e *ClassCastError) Error() string {
	return fmt.Sprintf("[%s] must be an object of settings, found: %s", e.Scope, e.Found)
}

// ArchivedError says that a stored setting has no effect, and why.
type ArchivedError struct {
	Scope  string // persistent or transient; start for a start value of the cluster
	Key    string // as it was set, without the prefix that it is printed with
	Value  string
	Reason error
}

func (e *ArchivedError) Error() string {
	if e.Scope == scopeStart {
		return fmt.Sprintf("the value [%s] of [%s] that the cluster was started with has no effect: %v", e.Value, e.Key, e.Reason)
	}
	return fmt.Sprintf("the %s setting [%s] with the value [%s] is kept but has no effect: %v; reset [%s%s] to remove it",
		e.Scope, e.Key, e.Value, e.Reason, archivedPrefix, e.Key)
}

// Unwrap gives the reason.
func (e *ArchivedError) Unwrap() error { return e.Reason }

// StandingError says that a start value of a dynamic setting has no effect on this server, since the
// cluster has one already.
type StandingError struct {
	Key      string
	Value    string // in the configuration file
	Standing string // in the cluster; empty where it has none that goes with this one
}

func (e *StandingError) Error() string {
	why := fmt.Sprintf("the cluster was started with [%s]", e.Standing)
	if e.Standing == "" {
		why = "the cluster was started without one that goes with it"
	}
	return fmt.Sprintf("the value [%s] of [%s] in the configuration file has no effect: %s; give all servers the same one, and change it by PUT /_cluster/settings",
		e.Value, e.Key, why)
}
