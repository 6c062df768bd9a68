package history_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/test/history"
	"github.com/wlmserver/wlmserver/wlm"
)

const bucketName = "g:group"

// story makes events of one bucket from lines such as "parked 3 #1 pending", "admitted 3 #1 node" or "changed 2 0 5".
func story(t *testing.T, lines ...string) []wlm.Event {
	t.Helper()
	var events []wlm.Event
	for i, line := range lines {
		words := strings.Fields(line)
		e := wlm.Event{Kind: wlm.EventKind(words[0]), Bucket: bucketName, At: time.Unix(0, 0).Add(time.Duration(i) * time.Second)}
		if e.Kind == wlm.Changed {
			l := &wlm.Limits{Parks: true}
			if _, err := fmt.Sscan(strings.Join(words[1:4], " "), &l.Node, &l.Shared, &l.Size); err != nil {
				t.Fatal(err)
			}
			l.Parks = !slices.Contains(words, "off")
			e.Limits = l
			events = append(events, e)
			continue
		}
		if _, err := fmt.Sscan(words[1], &e.Search); err != nil {
			t.Fatal(err)
		}
		for _, w := range words[2:] {
			switch w {
			case "pending":
				e.Pending = true
			case "node", "shared":
				e.Tier = wlm.Tier(w)
			default:
				if _, err := fmt.Sscanf(w, "#%d", &e.Seq); err != nil {
					t.Fatal(err)
				}
			}
		}
		events = append(events, e)
	}
	return events
}

// good is a history in which everything happens and nothing is wrong.
var good = []string{
	"changed 2 0 2",
	"admitted 1 node", "admitted 2 node", "parked 3 #1", "parked 4 #2", "refused 5", "denied 6",
	"closed 1 node", "admitted 3 #1 node",
	"evicted 4 #2",
	"parked 7 #3",
	"changed 3 0 2", "admitted 7 #3 node", // a raised limit
	"changed 1 0 1", "parked 8 #4", // a lowered one ends nobody
	"closed 2 node", "closed 3 node",
	"changed 0 0 0 off", "admitted 8 #4", "closed 8", "closed 7 node", // no limit: admitted without a permit
	"changed 0 1 1", "asked 9", "changed 0 1 3", "parked 10 #5 pending", "admitted 9 shared", "waiting 10 #5",
	"parked 11 #6 pending", "parked 12 #7 pending", "changed 0 1 2", "waiting 11 #6", "refused 12 #7",
	"closed 9 shared", "admitted 10 #5 shared", "closed 10 shared", "evicted 11 #6",
	"changed 1 1 5 off", "admitted 13 node", "admitted 14", "tracked 14 shared", "admitted 15", // watched only
	"closed 15", "closed 14 shared", "closed 13 node",
}

func TestGoodHistory(t *testing.T) {
	c, err := history.Check(story(t, good...))
	if err != nil {
		t.Fatal(err)
	}
	want := history.Tally{Parked: 7, Admitted: 10, Refused: 2, Denied: 1, Evicted: 2, Closed: 10, MostTracked: 3, MostWaiting: 2}
	if got := c.Buckets(); len(got) != 1 || got[bucketName] != want {
		t.Errorf("tallies %+v, want %+v", got, want)
	}
}

// TestPlantedFaults plants one fault in each history. It must be found as what it is, and the message must show the event.
func TestPlantedFaults(t *testing.T) {
	for _, c := range []struct {
		name, rule, text string
		history          []string
	}{
		{"overtaking", "order", "search 3 is admitted before search 2",
			[]string{"changed 1 0 5", "admitted 1 node", "parked 2 #1", "parked 3 #2", "closed 1 node", "admitted 3 #2 node", "closed 3 node", "admitted 2 #1 node", "closed 2 node"}},
		{"a newcomer overtakes", "order", "search 3, which has just come, is admitted before search 2",
			[]string{"changed 1 0 5", "admitted 1 node", "parked 2 #1", "admitted 3 node", "closed 1 node", "closed 3 node", "admitted 2 #1 node", "closed 2 node"}},
		{"a question past the parked", "order", "search 3 asks the owner past 1 parked",
			[]string{"changed 0 1 5", "parked 2 #1 pending", "asked 3", "admitted 2 #1 shared", "denied 3", "closed 2 shared"}},
		{"numbers that fall", "order", "search 3 parks as number 1, behind number 2",
			[]string{"changed 1 0 5", "admitted 1 node", "parked 2 #2", "parked 3 #1", "evicted 2 #2", "evicted 3 #1", "closed 1 node"}},
		{"the wrong one begins to wait", "order", "search 3 begins to wait before search 2",
			[]string{"changed 0 1 5", "parked 2 #1 pending", "parked 3 #2 pending", "waiting 3 #2", "evicted 2 #1", "evicted 3 #2"}},
		{"the wrong one is refused", "order", "search 2 is refused before search 3",
			[]string{"changed 0 1 1", "parked 1 #1 pending", "waiting 1 #1", "parked 2 #2 pending", "parked 3 #3 pending", "refused 2 #2", "refused 3 #3", "evicted 1 #1"}},
		{"over the node limit", "limit", "search 2 is the 2. to run, the node limit is 1",
			[]string{"changed 1 0 5", "admitted 1 node", "admitted 2 node", "closed 1 node", "closed 2 node"}},
		{"over a lowered limit", "limit", "search 4 is the 2. to run, the node limit is 1",
			[]string{"changed 3 0 5", "admitted 1 node", "admitted 2 node", "admitted 3 node", "parked 4 #1", "changed 1 0 5", "closed 1 node", "closed 2 node", "admitted 4 #1 node", "closed 3 node", "closed 4 node"}},
		{"over the shared limit", "limit", "2 run under shared permits, the shared limit was 1 at most",
			[]string{"changed 0 1 5", "asked 1", "admitted 1 shared", "asked 2", "admitted 2 shared", "closed 1 shared", "closed 2 shared"}},
		{"watched past the shared limit", "limit", "2 run under shared permits",
			[]string{"changed 0 1 5 off", "admitted 1", "admitted 2", "tracked 1 shared", "tracked 2 shared", "closed 1 shared", "closed 2 shared"}},
		{"a shared permit from nowhere", "limit", "without having asked",
			[]string{"changed 0 1 5", "admitted 1 shared", "closed 1 shared"}},
		{"no permit at all", "limit", "search 1 is admitted without a permit",
			[]string{"changed 1 0 5", "admitted 1", "closed 1"}},
		{"a queue too long", "bound", "search 3 parks beside 1 that wait, the size is 1",
			[]string{"changed 1 0 1", "admitted 1 node", "parked 2 #1", "parked 3 #2", "evicted 2 #1", "evicted 3 #2", "closed 1 node"}},
		{"a queue that grows too long", "bound", "2 searches wait, the size is 1",
			[]string{"changed 0 1 1", "parked 1 #1 pending", "waiting 1 #1", "parked 2 #2 pending", "waiting 2 #2", "evicted 1 #1", "evicted 2 #2"}},
		{"a lost wake-up", "idle", "1 searches are parked while 1 of 1 node permits are free when the next step begins",
			[]string{"changed 1 0 5", "admitted 1 node", "parked 2 #1", "closed 1 node", "parked 3 #2", "admitted 2 #1 node", "closed 2 node", "admitted 3 #2 node", "closed 3 node"}},
		{"a lost wake-up at the end", "idle", "1 searches are parked while 1 of 1 node permits are free at the end",
			[]string{"changed 1 0 5", "admitted 1 node", "parked 2 #1", "closed 1 node"}},
		{"a raised limit that wakes nobody", "idle", "when the next step begins",
			[]string{"changed 1 0 5", "admitted 1 node", "parked 2 #1", "changed 2 0 5", "closed 1 node", "admitted 2 #1 node", "closed 2 node"}},
		{"parked for nothing", "idle", "1 searches are parked with nothing to wait for",
			[]string{"changed 1 0 5", "admitted 1 node", "parked 2 #1", "changed 0 0 0 off", "closed 1 node", "evicted 2 #1"}},
		{"refused beside a free permit", "idle", "search 1 is refused, although 0 of 1 node permits are out",
			[]string{"changed 1 0 5", "refused 1"}},
		{"denied beside a free permit", "idle", "search 1 is refused, although 0 of 1 node permits are out",
			[]string{"changed 1 0 5", "denied 1"}},
		{"refused beside an empty place", "idle", "search 2 is refused, although 0 wait and the size is 5",
			[]string{"changed 1 0 5", "admitted 1 node", "refused 2", "closed 1 node"}},
		{"a pending one refused beside an empty place", "idle", "search 2 is refused, although 0 wait and the size is 1",
			[]string{"changed 0 1 1", "parked 2 #1 pending", "refused 2 #1"}},
		{"a leaked permit", "once", "at the end search 1 runs",
			[]string{"changed 1 0 5", "admitted 1 node"}},
		{"a search nobody decides", "once", "at the end search 2 is parked",
			[]string{"changed 1 0 5", "admitted 1 node", "parked 2 #1", "changed 0 1 5", "closed 1 node"}},
		{"decided twice", "once", "search 2 is admitted, but it is not there",
			[]string{"changed 1 0 5", "admitted 1 node", "parked 2 #1", "evicted 2 #1", "closed 1 node", "admitted 2 #1 node"}},
		{"admitted twice", "once", "search 1 is admitted, but it runs",
			[]string{"changed 2 0 5", "admitted 1 node", "admitted 1 node", "closed 1 node"}},
		{"closed twice", "once", "search 1 is closed, but it is not there",
			[]string{"changed 1 0 5", "admitted 1 node", "closed 1 node", "closed 1 node"}},
		{"given a second permit", "once", "search 1 has a permit of the node tier already",
			[]string{"changed 1 1 5 off", "admitted 1 node", "tracked 1 shared", "closed 1 shared"}},
		{"a running one evicted", "once", "search 1 is evicted, but it runs",
			[]string{"changed 1 0 5", "admitted 1 node", "evicted 1", "closed 1 node"}},
		{"a waiting one refused", "once", "search 2 is refused, but it is parked",
			[]string{"changed 1 0 5", "admitted 1 node", "parked 2 #1", "refused 2 #1", "closed 1 node", "admitted 2 #1 node", "closed 2 node"}},
		{"parked twice", "once", "search 2 is parked, but it is parked",
			[]string{"changed 1 0 5", "admitted 1 node", "parked 2 #1", "parked 2 #2", "evicted 2 #1", "closed 1 node"}},
		{"another permit closed", "once", `search 1 closes a permit of tier "shared", it was given one of "node"`,
			[]string{"changed 1 0 5", "admitted 1 node", "closed 1 shared"}},
		{"nothing that is known", "once", "search 1 is dancing",
			[]string{"changed 1 0 5", "dancing 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			checker, err := history.Check(story(t, c.history...))
			if err == nil {
				t.Fatal("not found")
			}
			v := checker.Violations()[0]
			if v.Rule != c.rule || !strings.Contains(v.Text, c.text) || v.Bucket != bucketName || len(v.Window) == 0 {
				t.Errorf("found as %v", v)
			}
			if !strings.Contains(err.Error(), "changed  node") {
				t.Errorf("the message does not show what happened: %v", err)
			}
		})
	}
}

// TestBucketsDoNotMix: what would be wrong within one bucket is right between two.
func TestBucketsDoNotMix(t *testing.T) {
	one := story(t, "changed 1 0 1", "admitted 1 node", "parked 3 #2", "closed 1 node", "admitted 3 #2 node", "closed 3 node")
	two := story(t, "changed 1 0 1", "admitted 2 node", "parked 4 #1", "closed 2 node", "admitted 4 #1 node", "closed 4 node")
	var both []wlm.Event
	for i := range one {
		two[i].Bucket = "g:username:bob"
		both = append(both, one[i], two[i])
	}
	c, err := history.Check(both)
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range c.Buckets() {
		if got.Admitted != 2 || got.MostTracked != 1 {
			t.Errorf("bucket %s: tally %+v", name, got)
		}
	}
}

func TestManyViolationsAreCut(t *testing.T) {
	lines := []string{"changed 1 0 5"}
	for range 100 {
		lines = append(lines, "closed 1 node")
	}
	c, err := history.Check(story(t, lines...))
	if err == nil || len(c.Violations()) != 20 || !strings.HasSuffix(err.Error(), "and 80 more") || len(c.Violations()[19].Window) != 16 {
		t.Errorf("%d are kept: %v", len(c.Violations()), err)
	}
}

// TestRealHistory checks what a real admission does under races, and that a real history with any one event of a search left out,
// or told twice, is found to be wrong.
func TestRealHistory(t *testing.T) {
	events := race(t, 16, 100)
	c, err := history.Check(events)
	if err != nil {
		t.Fatal(err)
	}
	var sum history.Tally
	for _, b := range c.Buckets() {
		sum.Admitted += b.Admitted
		sum.Parked += b.Parked
		sum.Evicted += b.Evicted
	}
	if sum.Admitted == 0 || sum.Parked == 0 || sum.Evicted == 0 {
		t.Errorf("the race was none: %+v", sum)
	}
	// These say all that there is to say of their search, or nothing that another event does not say too.
	mayBeMissed := func(e wlm.Event) bool {
		return e.Kind == wlm.Changed || e.Kind == wlm.Asked || e.Kind == wlm.Waiting || mayBeRepeated(e)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		i := r.IntN(len(events))
		if _, err := history.Check(slices.Delete(slices.Clone(events), i, i+1)); err == nil && !mayBeMissed(events[i]) {
			t.Errorf("event %d left out is not found: %+v", i, events[i])
		}
		if _, err := history.Check(slices.Insert(slices.Clone(events), i, events[i])); err == nil && !mayBeRepeated(events[i]) {
			t.Errorf("event %d told twice is not found: %+v", i, events[i])
		}
	}
}

// mayBeRepeated reports whether an event can be all that happens, so that a second one is another search's for all one can see.
func mayBeRepeated(e wlm.Event) bool {
	return e.Kind == wlm.Changed || e.Kind == wlm.Denied || e.Kind == wlm.Refused && e.Seq == 0
}
