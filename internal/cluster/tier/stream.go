package tier

import (
	"context"

	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/internal/sharedtier"
	"github.com/wlmserver/wlmserver/wlm"
)

// Envelope is one message and the bucket that it is about; Done and Beat are about none.
type Envelope struct {
	Bucket  wlm.BucketKey
	Message sharedtier.Message
}

// Batch is what one side of a session says at once.
type Batch struct {
	Revision  uint64 // of the metadata that the sender has applied
	Envelopes []Envelope
}

// Stream is one session's two directions. Send and Receive may be called beside one another, each by one goroutine. Messages arrive in
// the order in which they were sent, or the stream ends.
type Stream interface {
	Send(Batch) error
	Receive() (Batch, error)
	// Close ends both directions, here at once and at the other side as that reads. It may be called more than once, by anyone.
	Close()
}

// Dialer opens sessions.
type Dialer interface {
	// Session returns when the stream is open. The end of ctx ends the stream too.
	Session(ctx context.Context, to ring.Member, epoch uint64) (Stream, error)
}
