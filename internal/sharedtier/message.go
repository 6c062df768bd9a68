package sharedtier

import "fmt"

// Kind says what a message means.
type Kind uint8

// Messages of a coordinator to an owner.
const (
	// Acquire asks for one slot; denied, the owner remembers that the coordinator has Depth waiters.
	Acquire Kind = iota + 1
	// Try asks for one slot or nothing.
	Try
	// Want says that the coordinator has Depth waiters; 0 takes back what was said before.
	Want
	// Release gives back the permit of a search that ended.
	Release
	// Unused gives back a permit that found nobody to run; the owner forgets the coordinator's depth.
	Unused
	// Announce begins a bucket's part of a session: all permits that the coordinator holds of the bucket, and its Depth. It replaces
	// all that the owner knew of the two.
	Announce
	// Done ends the announcements of a session: the coordinator holds nothing that it has not announced. It is of no bucket.
	Done
	// Beat keeps a session alive. The owner sends it back as it is. It is of no bucket.
	Beat
)

// Messages of an owner to a coordinator.
const (
	// Granted answers an Acquire or a Try: the permit is the coordinator's.
	Granted Kind = iota + 16
	// Denied answers an Acquire (its Depth is remembered) or a Try.
	Denied
	// Unavailable answers a Try that no owner could decide.
	Unavailable
	// Grant pushes a permit that freed to a coordinator that the owner remembers.
	Grant
)

func (k Kind) String() string {
	switch k {
	case Acquire:
		return "acquire"
	case Try:
		return "try"
	case Want:
		return "want"
	case Release:
		return "release"
	case Unused:
		return "unused"
	case Announce:
		return "announce"
	case Done:
		return "done"
	case Beat:
		return "beat"
	case Granted:
		return "granted"
	case Denied:
		return "denied"
	case Unavailable:
		return "unavailable"
	case Grant:
		return "grant"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// PermitID names one permit. A bucket has one owner in an epoch, and an owner gives no number twice, so that an id of the past hits
// nothing. The zero value names none.
type PermitID struct {
	Epoch uint64 // in which it was granted
	Seq   uint64 // among its owner's
}

func (p PermitID) String() string { return fmt.Sprintf("%d.%d", p.Epoch, p.Seq) }

// Message is one message of the protocol. Which fields count depends on the kind.
type Message struct {
	Kind   Kind
	Permit PermitID // Release, Unused, Granted, Grant
	Depth  int      // Acquire, Want, Announce, Denied: waiters of the coordinator
	// Generation of an Acquire, echoed by its Denied: a denial from before the owner was told to forget us is recognised by it.
	Generation uint32
	// Try is not zero in a Try and in its answer: which search tried.
	Try uint64
	// Held are the permits of an Announce. Nobody changes them.
	Held []PermitID
	// Sent is when a Beat was sent, by the clock of the coordinator.
	Sent int64
}

func (m Message) String() string {
	switch m.Kind {
	case Announce:
		return fmt.Sprintf("%v(held %v, depth %d)", m.Kind, m.Held, m.Depth)
	case Beat:
		return fmt.Sprintf("%v(sent %d)", m.Kind, m.Sent)
	}
	return fmt.Sprintf("%v(permit %v, depth %d, generation %d, try %d)", m.Kind, m.Permit, m.Depth, m.Generation, m.Try)
}
