package sharedtier_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/internal/sharedtier"
)

const lease = 15 * time.Second

// hall is a tenure whose members speak to it by name.
type hall struct {
	*sharedtier.Tenure[string]
	sessions map[sharedtier.Member]uint64
	last     uint64
	now      time.Duration
}

func newHall(members ...sharedtier.Member) *hall {
	return &hall{Tenure: sharedtier.NewTenure[string](7, members, lease, 0), sessions: map[sharedtier.Member]uint64{}}
}

func (h *hall) open(m sharedtier.Member) {
	h.last++
	h.sessions[m] = h.last
	h.Open(m, h.last, h.now)
}

// hear has the tenure read a message about a bucket with a limit of 2, and lists what it says.
func (h *hall) hear(m sharedtier.Member, bucket string, msg sharedtier.Message) []string {
	return told(h.Receive(m, h.sessions[m], bucket, msg, 2, h.now, nil))
}

func (h *hall) done(m sharedtier.Member) []string {
	return h.hear(m, "", sharedtier.Message{Kind: sharedtier.Done})
}

func (h *hall) tick(after time.Duration) (posts []string, ended []sharedtier.Member) {
	h.now += after
	p, ended := h.Tick(h.now, nil)
	return told(p), ended
}

func told(posts []sharedtier.Post[string]) (out []string) {
	for _, p := range posts {
		out = append(out, fmt.Sprint(p.To, " ", p.Bucket, " ", p.Message.Kind))
	}
	slices.Sort(out) // the order of buckets is nobody's business
	return out
}

func expect(t *testing.T, what string, got any, want string) {
	t.Helper()
	if fmt.Sprint(got) != want {
		t.Errorf("%s: %v, want %s", what, got, want)
	}
}

// TestTenureWaitsForAll: nothing is granted before every member has said what it holds, also one that only says that it holds nothing.
func TestTenureWaitsForAll(t *testing.T) {
	h := newHall("a", "b", "c")
	for _, m := range []sharedtier.Member{"a", "b", "c"} {
		h.open(m)
	}
	old := sharedtier.PermitID{Epoch: 6, Seq: 9}
	expect(t, "an announcement", h.hear("a", "x", sharedtier.Message{Kind: sharedtier.Announce, Held: []sharedtier.PermitID{old}, Depth: 2}), "[]")
	expect(t, "a question", h.hear("b", "x", sharedtier.Message{Kind: sharedtier.Acquire, Depth: 1}), "[]")
	expect(t, "a's end", h.done("a"), "[]")
	expect(t, "b's end", h.done("b"), "[]")
	expect(t, "missing", h.Missing(), "[c]")
	expect(t, "c's end", h.done("c"), "[a x grant b x denied]")
	expect(t, "permits", len(h.Permits()), "2")
	expect(t, "a release of the old permit", h.hear("a", "x", sharedtier.Message{Kind: sharedtier.Release, Permit: old}), "[a x grant]")
}

// TestTenureKeepsWhatABrokenStreamHeld: until the member has said what it still has.
func TestTenureKeepsWhatABrokenStreamHeld(t *testing.T) {
	h := newHall("a", "b")
	h.open("a")
	h.open("b")
	h.done("a")
	h.done("b")
	for _, bucket := range []string{"x", "y"} {
		for range 2 {
			h.hear("a", bucket, sharedtier.Message{Kind: sharedtier.Acquire, Depth: 1})
		}
	}
	h.Broken("a", h.sessions["a"])
	expect(t, "b asks", h.hear("b", "x", sharedtier.Message{Kind: sharedtier.Acquire, Depth: 1}), "[b x denied]")
	h.hear("b", "y", sharedtier.Message{Kind: sharedtier.Want, Depth: 5})
	expect(t, "the old session", h.hear("a", "x", sharedtier.Message{Kind: sharedtier.Release}), "[]")
	h.open("a")
	held := []sharedtier.PermitID{{Epoch: 7, Seq: 2}}
	expect(t, "a announces one of x", h.hear("a", "x", sharedtier.Message{Kind: sharedtier.Announce, Held: held}), "[b x grant]")
	expect(t, "a has none of y", h.done("a"), "[b y grant b y grant]")
	expect(t, "permits", len(h.Permits()), "4")
}

// TestTenureHearsABucketBeforeTheEnd: what a member is granted in a session before its announcements have ended stays, when what it held
// before is freed.
func TestTenureHearsABucketBeforeTheEnd(t *testing.T) {
	h := newHall("a")
	h.open("a")
	h.done("a")
	ask := sharedtier.Message{Kind: sharedtier.Acquire, Depth: 1}
	expect(t, "a permit", h.hear("a", "x", ask), "[a x granted]")
	h.Broken("a", h.sessions["a"])
	h.open("a") // the search has ended meanwhile: the bucket has nothing to announce
	expect(t, "one search", h.hear("a", "x", ask), "[a x granted]")
	expect(t, "another", h.hear("a", "x", ask), "[a x granted]")
	h.done("a")
	expect(t, "permits", len(h.Permits()), "2")
	expect(t, "one more", h.hear("a", "x", ask), "[a x denied]")
}

// TestTenureOfANumberThatWasUsed: when etcd's data are replaced by earlier ones, an epoch's number comes again. A permit of the first one
// is another than all of the second.
func TestTenureOfANumberThatWasUsed(t *testing.T) {
	h := newHall("a")
	h.open("a")
	old := sharedtier.PermitID{Epoch: h.Epoch(), Seq: 1}
	h.hear("a", "x", sharedtier.Message{Kind: sharedtier.Announce, Held: []sharedtier.PermitID{old}})
	h.done("a")
	ask := sharedtier.Message{Kind: sharedtier.Acquire, Depth: 1}
	expect(t, "one beside it", h.hear("a", "x", ask), "[a x granted]")
	expect(t, "another", h.hear("a", "x", ask), "[a x denied]")
	expect(t, "permits", len(h.Permits()), "2")
}

// TestTenureEndsSilentSessions: a member that is silent for longer than the lease loses its permits; one that beats keeps them however
// long its search runs.
func TestTenureEndsSilentSessions(t *testing.T) {
	h := newHall("a", "b")
	h.open("a")
	h.open("b")
	h.done("a")
	h.done("b")
	h.hear("a", "x", sharedtier.Message{Kind: sharedtier.Acquire, Depth: 1})
	h.hear("a", "x", sharedtier.Message{Kind: sharedtier.Acquire, Depth: 1})
	h.hear("b", "x", sharedtier.Message{Kind: sharedtier.Acquire, Depth: 1})
	for range 10 {
		expect(t, "the echo", h.hear("a", "", sharedtier.Message{Kind: sharedtier.Beat, Sent: 5}), "[a  beat]")
		h.hear("b", "", sharedtier.Message{Kind: sharedtier.Beat})
		posts, ended := h.tick(lease / 3)
		expect(t, "a beats", fmt.Sprint(posts, ended), "[] []")
	}
	for range 2 {
		h.hear("b", "", sharedtier.Message{Kind: sharedtier.Beat})
		posts, ended := h.tick(lease / 3) // the third since its last beat ends just on the lease
		expect(t, "a is silent", fmt.Sprint(posts, ended), "[] []")
	}
	h.hear("b", "", sharedtier.Message{Kind: sharedtier.Beat})
	posts, ended := h.tick(time.Second)
	expect(t, "the lease is over", fmt.Sprint(posts, ended), "[b x grant] [a]")
	expect(t, "what a says in the session that is over", h.hear("a", "x", sharedtier.Message{Kind: sharedtier.Want, Depth: 1}), "[]")
}

// TestTenureThatStoodStill: who did not run did not hear; nobody loses its permits for that.
func TestTenureThatStoodStill(t *testing.T) {
	h := newHall("a")
	h.open("a")
	h.done("a")
	h.hear("a", "x", sharedtier.Message{Kind: sharedtier.Acquire, Depth: 1})
	posts, ended := h.tick(10 * lease)
	expect(t, "the late tick", fmt.Sprint(posts, ended), "[] []")
	for range 3 {
		_, ended = h.tick(lease / 3)
		expect(t, "the lease goes on", ended, "[]")
	}
	_, ended = h.tick(lease / 3)
	expect(t, "and ends", ended, "[a]")
}

// TestTryOfATenureThatIsNotReady: it is told so after a while, and then not again when the tenure is ready.
func TestTryOfATenureThatIsNotReady(t *testing.T) {
	h := newHall("a", "b")
	h.open("a")
	h.open("b")
	h.done("a")
	h.hear("a", "x", sharedtier.Message{Kind: sharedtier.Try, Try: 3})
	posts, _ := h.tick(0)
	expect(t, "at first", posts, "[]")
	posts, _ = h.tick(0)
	expect(t, "then", posts, "[a x unavailable]")
	h.hear("a", "x", sharedtier.Message{Kind: sharedtier.Try, Try: 4})
	expect(t, "ready", h.done("b"), "[a x granted]")
}

// TestTenureLimits: a limit that rises grants at once, one that falls takes nothing back.
func TestTenureLimits(t *testing.T) {
	h := newHall("a")
	h.open("a")
	h.done("a")
	h.hear("a", "x", sharedtier.Message{Kind: sharedtier.Want, Depth: 5})
	expect(t, "raised", told(h.SetLimit("x", 4, nil)), "[a x grant a x grant]")
	expect(t, "lowered", told(h.SetLimit("x", 1, nil)), "[]")
	expect(t, "permits", len(h.Permits()), "4")
	expect(t, "of a bucket that nobody uses", told(h.SetLimit("y", 1, nil)), "[]")
	expect(t, "buckets", h.Buckets(), "[x]")
	expect(t, "a stranger", h.Open("z", 99, 0), "false")
}

// TestTenureForgetsAStorm: what very many buckets took is free when they are gone: a map keeps its room else.
func TestTenureForgetsAStorm(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	h := newHall("a")
	h.open("a")
	h.done("a")
	before := heap()
	const buckets = 20_000
	for i := range buckets {
		h.hear("a", fmt.Sprint(i), sharedtier.Message{Kind: sharedtier.Acquire, Depth: 1})
	}
	for _, p := range h.Permits() {
		h.hear("a", p.Bucket, sharedtier.Message{Kind: sharedtier.Release, Permit: p.Permit})
	}
	if n := len(h.Buckets()); n != 0 {
		t.Fatalf("%d buckets are left", n)
	}
	// The empty map of so many keeps more than half a megabyte.
	if after := heap(); after > before+256<<10 {
		t.Errorf("the heap has grown from %d to %d bytes", before, after)
	}
	runtime.KeepAlive(h)
}
