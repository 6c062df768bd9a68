package node

import "fmt"

// UnknownKeyError: a source names a key that neither the table of keys nor the catalogue of settings has.
type UnknownKeyError struct {
	Source  string // the file's path, "environment" or "-E"
	Key     string // of the environment: the variable's name
	Nearest string // the known name that it most likely means; "" when none is near
}

func (e *UnknownKeyError) Error() string {
	if e.Nearest == "" {
		return fmt.Sprintf("%s: unknown key %s (wlmserver config lists all that are known)", e.Source, e.Key)
	}
	return fmt.Sprintf("%s: unknown key %s; the nearest known one is %s (wlmserver config lists all)", e.Source, e.Key, e.Nearest)
}

// ValueError: a value does not fit its key.
type ValueError struct {
	Source string
	Key    string
	Value  string
	Reason string // what would fit
}

func (e *ValueError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("%s: %s %s", e.Source, e.Key, e.Reason)
	}
	return fmt.Sprintf("%s: %s = %q: %s", e.Source, e.Key, e.Value, e.Reason)
}
