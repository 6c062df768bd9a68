package store

import "fmt"

// LockedError says that another server uses the data folder.
type LockedError struct {
	Dir string
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("the data folder [%s] is in use by another server: stop that one, or give this one a [path.data] of its own", e.Dir)
}

// VersionError says that a newer version of the server has written the data file.
type VersionError struct {
	File         string
	Found, Known int // schema versions: of the file, and the newest that this server knows
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("the data file [%s] has schema version %d, this server knows versions up to %d: start the newer server that wrote it, or give this one another [path.data]",
		e.File, e.Found, e.Known)
}

// DamagedError says that the data file cannot be read as what this package writes.
type DamagedError struct {
	File  string
	Cause error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("the data file [%s] is damaged: %v; restore it from a backup, or move it away to start without groups, rules and settings", e.File, e.Cause)
}

// Unwrap gives the cause.
func (e *DamagedError) Unwrap() error { return e.Cause }
