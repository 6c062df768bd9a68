package peer

import (
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"google.golang.org/grpc/peer"
)

// refusalsTold is how far apart, at least, the log hears of calls that were refused: a stranger calls again and again.
const refusalsTold = time.Minute

// refusals tells the log of them. It is safe for concurrent use.
type refusals struct {
	log zerolog.Logger

	mu     sync.Mutex
	next   time.Time
	untold int
}

func (r *refusals) tell(ctx context.Context, why error) {
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
	from := "unknown"
	if p, ok := peer.FromContext(ctx); ok {
		from = p.Addr.String()
	}
	r.log.Warn().Str("from", from).Int("calls", untold).Err(why).Msg("calls of another node are refused")
}
