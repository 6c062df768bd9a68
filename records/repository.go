package records

import (
	"context"
	"fmt"
)

// A Set is all records of one kind at one revision. It is not to be changed.
type Set struct {
	// Revision tells states of the set apart; a later one is larger.
	Revision uint64
	Records  map[string][]byte // by id
}

// A Change is what is to become of some records. An id is in one of its parts at most.
type Change struct {
	Put    map[string][]byte // by id; in the place of the record with that id if there is one
	Delete []string          // ids; that there is no such record is no error
}

// A Repository keeps one set durably. It is safe for concurrent use, also beside other
// repositories of the same set. Neither side changes what it has been given.
type Repository interface {
	// Load returns the set; what others have changed may come a moment late. After Commit has returned a *StaleError it is newer than what
	// that change was based on, or was refused for.
	Load(ctx context.Context) (Set, error)

	// Commit makes a change, all of it, on the set at the revision base, and returns the
	// revision that it leads to. When it returns nil the change outlives a crash; else
	// nothing has changed, unless an *UnavailableError says that this is not known.
	//
	// Errors: *StaleError when the set is not at base any more, *UnavailableError, the cause
	// of ctx's end, and the implementation's own.
	Commit(ctx context.Context, base uint64, change Change) (uint64, error)
}

// A StaleError says that a set has changed since the revision that a change was based on.
// It was not made; it is to be decided anew on what the set holds now.
type StaleError struct {
	Base uint64 // what the change was based on
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("the set has changed since revision %d; read it again", e.Base)
}

// An UnavailableError says that a set cannot be changed now. The same request may succeed
// later.
type UnavailableError struct {
	// Unknown is true where the change may have been made all the same.
	Unknown bool
	Cause   error
}

func (e *UnavailableError) Error() string {
	outcome := "nothing was changed"
	if e.Unknown {
		outcome = "whether the change was made is not known"
	}
	return fmt.Sprintf("the cluster's metadata cannot be changed now (%v); %s, try again", e.Cause, outcome)
}

// Unwrap gives the cause.
func (e *UnavailableError) Unwrap() error { return e.Cause }
