package peer

import (
	"net"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// refusalsTold is how far apart, at least, the log hears of calls and connections that were refused: a stranger comes again and again.
const refusalsTold = time.Minute

// refusals tells the log of them. It is safe for concurrent use.
type refusals struct {
	log zerolog.Logger

	mu     sync.Mutex
	next   time.Time
	untold int
}

// tell is told of each one; from may be nil.
func (r *refusals) tell(from net.Addr, why error) {
	now := time.Now()
	r.mu.Lock()
	r.untold++
	untold, due := r.untold, !now.Before(r.next)
	if due {
		r.next, r.untold = now.Add(refusalsTold), 0
	}
	r.mu.Unlock()
	if !due {
		return
	}
	r.log.Warn().Stringer("from", from).Int("calls", untold).Err(why).Msg("calls of another node are refused")
}
