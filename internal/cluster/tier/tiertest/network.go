package tiertest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/internal/cluster/tier"
	"github.com/wlmserver/wlmserver/internal/sharedtier"
)

// Server takes in the sessions that others open.
type Server interface {
	Serve(from ring.Member, epoch uint64, s tier.Stream) error
}

// Network connects members in memory. It is safe for concurrent use.
type Network struct {
	served sync.WaitGroup

	mu      sync.Mutex
	changed chan struct{} // closed and made anew when a dial may go on
	servers map[ring.Member]Server
	faults  map[direct]Faults
	cut     map[direct]bool
	links   map[*Link]between
}

// direct is one direction, between ids of members: whatever their incarnation.
type direct struct{ from, to string }

// between are the two sides of a link: the one that dialled is side 0.
type between struct{ dialer, server ring.Member }

// NewNetwork returns one without members and faults.
func NewNetwork() *Network {
	return &Network{
		changed: make(chan struct{}),
		servers: make(map[ring.Member]Server),
		faults:  make(map[direct]Faults),
		cut:     make(map[direct]bool),
		links:   make(map[*Link]between),
	}
}

// Attach has a member be reached, and its sessions served.
func (n *Network) Attach(m ring.Member, s Server) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.servers[m] = s
	n.changedLocked()
}

// Detach is the end of a member's process: its streams break.
func (n *Network) Detach(m ring.Member) {
	n.mu.Lock()
	delete(n.servers, m)
	broken := n.linksLocked(func(b between) bool { return b.dialer == m || b.server == m })
	n.mu.Unlock()
	for _, l := range broken {
		l.Cut()
	}
}

// Set changes the faults of what is sent from one member to another, over the streams that there are and those to come.
func (n *Network) Set(from, to string, f Faults) {
	n.mu.Lock()
	n.faults[direct{from, to}] = f
	n.changedLocked()
	ahead := n.linksLocked(func(b between) bool { return b.dialer.ID == from && b.server.ID == to })
	back := n.linksLocked(func(b between) bool { return b.dialer.ID == to && b.server.ID == from })
	n.mu.Unlock()
	for _, l := range ahead {
		l.Set(0, f)
	}
	for _, l := range back {
		l.Set(1, f)
	}
}

// Cut breaks all streams between two members; new ones are refused until Heal.
func (n *Network) Cut(a, b string) {
	n.mu.Lock()
	n.cut[direct{a, b}], n.cut[direct{b, a}] = true, true
	n.mu.Unlock()
	n.Break(a, b)
}

// Break breaks all streams between two members. New ones can be opened at once.
func (n *Network) Break(a, b string) {
	n.mu.Lock()
	broken := n.linksLocked(func(x between) bool {
		return x.dialer.ID == a && x.server.ID == b || x.dialer.ID == b && x.server.ID == a
	})
	n.mu.Unlock()
	for _, l := range broken {
		l.Cut()
	}
}

// Heal ends a Cut and all faults between two members.
func (n *Network) Heal(a, b string) {
	n.mu.Lock()
	delete(n.cut, direct{a, b})
	delete(n.cut, direct{b, a})
	n.mu.Unlock()
	n.Set(a, b, Faults{})
	n.Set(b, a, Faults{})
}

// Close breaks all streams and returns when no session is served any more. Nothing may be dialled after it.
func (n *Network) Close() {
	n.mu.Lock()
	clear(n.servers)
	all := n.linksLocked(func(between) bool { return true })
	n.mu.Unlock()
	for _, l := range all {
		l.Cut()
	}
	n.served.Wait()
}

// Streams is the number of streams that are open.
func (n *Network) Streams() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.links)
}

// Dialer opens sessions as a member.
func (n *Network) Dialer(from ring.Member) tier.Dialer { return &dialer{n, from} }

func (n *Network) changedLocked() {
	close(n.changed)
	n.changed = make(chan struct{})
}

func (n *Network) linksLocked(which func(between) bool) []*Link {
	var found []*Link
	for l, b := range n.links {
		if which(b) {
			found = append(found, l)
		}
	}
	return found
}

// way is what a dial meets now.
func (n *Network) way(from, to ring.Member) (ahead, back Faults, changed <-chan struct{}, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, there := n.servers[to]; !there || n.cut[direct{from.ID, to.ID}] {
		return ahead, back, nil, fmt.Errorf("%s cannot be reached from %s", to.ID, from.ID)
	}
	return n.faults[direct{from.ID, to.ID}], n.faults[direct{to.ID, from.ID}], n.changed, nil
}

type dialer struct {
	network *Network
	from    ring.Member
}

// Session takes the time that one message each way takes.
func (d *dialer) Session(ctx context.Context, to ring.Member, epoch uint64) (tier.Stream, error) {
	n := d.network
	for {
		ahead, back, changed, err := n.way(d.from, to)
		if err != nil {
			return nil, err
		}
		if !ahead.Hold && !back.Hold {
			if err := pause(ctx, ahead.Delay); err != nil {
				return nil, err
			}
			s, err := n.open(ctx, d.from, to, epoch)
			if err != nil {
				return nil, err
			}
			if err := pause(ctx, back.Delay); err != nil {
				s.Close()
				return nil, err
			}
			return s, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// open makes the link and has it served.
func (n *Network) open(ctx context.Context, from, to ring.Member, epoch uint64) (tier.Stream, error) {
	ahead, back, _, err := n.way(from, to)
	if err != nil {
		return nil, err
	}
	l := NewLink()
	l.Set(0, ahead)
	l.Set(1, back)
	n.mu.Lock()
	server, there := n.servers[to]
	if !there {
		n.mu.Unlock()
		return nil, fmt.Errorf("%s is gone", to.ID)
	}
	n.links[l] = between{from, to}
	n.served.Add(1)
	n.mu.Unlock()
	unwatch := context.AfterFunc(ctx, l.End(0).Close)
	go func() {
		defer n.served.Done()
		_ = server.Serve(from, epoch, l.End(1))
		l.End(1).Close()
		unwatch()
		n.mu.Lock()
		delete(n.links, l)
		n.mu.Unlock()
	}()
	return l.End(0), nil
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// LoseOne is for [Faults]: it has the first message of a kind be lost, and only that one, over however many streams.
func LoseOne(k sharedtier.Kind) func(tier.Envelope) bool {
	var lost atomic.Bool
	return func(e tier.Envelope) bool { return e.Message.Kind == k && lost.CompareAndSwap(false, true) }
}
