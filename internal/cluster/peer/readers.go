package peer

import (
	"sync"
	"time"

	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/internal/shard"
)

// readers are the states of shards that other nodes will ask about again, by the numbers that these know them by. A reader ends when
// its caller closes it, when the caller is no member any more, or when it was not used for as long as was agreed. It is safe for
// concurrent use.
type readers struct {
	mu   sync.Mutex
	last uint64
	open map[uint64]*openReader
}

type openReader struct {
	caller identity
	shard  shard.ID
	reader shard.Reader
	keep   time.Duration
	expiry *time.Timer
}

func newReaders() *readers { return &readers{open: make(map[uint64]*openReader)} }

// add keeps a reader for a caller and returns its number, which is never 0.
func (r *readers) add(caller identity, id shard.ID, reader shard.Reader, keep time.Duration) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	number := r.last
	r.open[number] = &openReader{
		caller: caller, shard: id, reader: reader, keep: keep,
		expiry: time.AfterFunc(keep, func() { r.expire(number) }),
	}
	return number
}

// use returns a caller's reader and begins its time anew, which is keep if that is not 0.
func (r *readers) use(caller identity, number uint64, id shard.ID, keep time.Duration) (shard.Reader, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.open[number]
	if o == nil || o.caller != caller || o.shard != id {
		return nil, false
	}
	if keep > 0 {
		o.keep = keep
	}
	o.expiry.Reset(o.keep)
	return o.reader, true
}

// close ends a caller's readers. Those that there are not are passed over.
func (r *readers) close(caller identity, numbers []uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range numbers {
		if o := r.open[n]; o != nil && o.caller == caller {
			r.removeLocked(n, o)
		}
	}
}

// expire ends a reader whose time is over.
func (r *readers) expire(number uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o := r.open[number]; o != nil {
		r.removeLocked(number, o)
	}
}

// only ends the readers of all but the members.
func (r *readers) only(members []ring.Member) {
	there := make(map[identity]bool, len(members))
	for _, m := range members {
		there[identityOf(m)] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for n, o := range r.open {
		if !there[o.caller] {
			r.removeLocked(n, o)
		}
	}
}

func (r *readers) removeLocked(number uint64, o *openReader) {
	o.expiry.Stop()
	delete(r.open, number)
}

// Readers is how many states of shards are kept for other nodes.
func (s *Server) Readers() int {
	s.readers.mu.Lock()
	defer s.readers.mu.Unlock()
	return len(s.readers.open)
}
