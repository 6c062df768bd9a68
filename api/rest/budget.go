package rest

import (
	"fmt"
	"sync/atomic"
)

// budget is what all request bodies in flight may hold together. It is safe for concurrent use.
type budget struct {
	limit int64 // bytes; 0 is no limit
	used  atomic.Int64
}

// take reserves n bytes, or nothing when that would pass the limit: then the error is a *breakerError.
func (b *budget) take(n int64) error {
	used := b.used.Add(n)
	if b.limit > 0 && used > b.limit {
		b.used.Add(-n)
		return &breakerError{wanted: used, limit: b.limit}
	}
	return nil
}

// release gives n reserved bytes back.
func (b *budget) release(n int64) { b.used.Add(-n) }

// breakerError refuses a body for which the budget has no room.
type breakerError struct {
	wanted, limit int64 // bytes in all
}

func (e *breakerError) Error() string {
	return fmt.Sprintf("request bodies in flight would hold [%d] bytes, above the limit of [%d] bytes; retry later, send smaller bodies, or raise http.max_in_flight_bytes",
		e.wanted, e.limit)
}
