package shard

// Failure is an error of a shard in a form that travels.
type Failure struct {
	Kind         string // which of the engine's errors it is; empty: one that it does not know
	Type, Reason string // as a client reads them
	Status       int    // of HTTP
	Detail       []byte // what else the kind needs
}

// Failures is an engine's knowledge of its errors, on both sides of a transport between nodes. Implementations are safe for concurrent
// use.
type Failures interface {
	// Describe puts an error into the form that travels. The error is not nil.
	Describe(err error) Failure
	// Restore makes an error of it again. Of a kind that a newer node may have sent there remain type, reason and status.
	Restore(f Failure) error
}
