package demo

import (
	"context"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// named is a node that is there in name alone.
type named string

func (n named) Name() string              { return string(n) }
func (named) URL() string                 { return "" }
func (named) Kill() error                 { return nil }
func (named) Start(context.Context) error { return nil }

func someCluster() clusterPlan {
	return newClusterPlan(ClusterOptions{Nodes: []ClusterNode{named("n1"), named("n2"), named("n3")}, Lease: 2 * time.Second})
}

// someClusterPicture is of the second act: n3 was killed while one of its searches ran and two waited.
func someClusterPicture(t *testing.T) clusterPicture {
	t.Helper()
	sc := newClusterScene(someCluster())
	sc.begin(1)
	for i := range sc.plan.first(2) {
		sc.sent(i)
	}
	for i := range 39 {
		sc.ended(i, outcome{state: answered})
	}
	if err := sc.listed(listing{running: []int{38, 39, 40, 41}, waiters: []waiter{{search: 42}, {search: 43}, {search: 44}, {search: 46}, {search: 47}}}); err != nil {
		t.Fatal(err)
	}
	sc.killed(2)
	for _, i := range []int{41, 44, 47} {
		sc.ended(i, outcome{state: failed, failure: "connection refused"})
	}
	return sc.picture()
}

func TestClusterFrame(t *testing.T) {
	want := `  A cluster of three   group reports   searches of 600ms     9.0 s

  2. Again, and n3 is killed: what it held is free once its lease (2s) ends.

  n1    ✓✓✓✓✓✓✓✓✓✓✓✓✓█▒·      1 running,  1 waiting
  n2    ✓✓✓✓✓✓✓✓✓✓✓✓✓█▒▒      1 running,  2 waiting
  n3    ✓✓✓✓✓✓✓✓✓✓✓✓✓†††      killed

  running      2  ██                            of 4 permits (shared_limit)
  waiting      3  ▒▒▒                           let in node by node, in turn
  answered    39  ✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓  3 lost with their node

`
	p := someClusterPicture(t)
	p.elapsed = 9 * time.Second
	lines := p.frame()
	if len(lines) != clusterFrameLines {
		t.Errorf("a frame has %d lines, not %d", len(lines), clusterFrameLines)
	}
	var got strings.Builder
	for _, l := range lines {
		text := strings.TrimRight(l.render(200, false), " ")
		if n := utf8.RuneCountInString(text); n > 80 {
			t.Errorf("%d columns: %s", n, text)
		}
		got.WriteString(text + "\n")
	}
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
	line := "  9.0s   n1 running 1 waiting  1  n2 running 1 waiting  2  n3 killed                all: running 2 of 4  answered 39  lost 3"
	if got := p.progress(); got != line {
		t.Errorf("got\n%s\nwant\n%s", got, line)
	}
}

// A search that ends without an answer is lost where its node was killed, and a failure anywhere else.
func TestLost(t *testing.T) {
	p := someClusterPicture(t)
	if p.count[lost] != 3 || p.rows[2].count[lost] != 3 || p.count[failed] != 0 || p.failure != "" || p.done() {
		t.Errorf("%d lost, %d failed (%q), done %v", p.count[lost], p.count[failed], p.failure, p.done())
	}
	sc := newClusterScene(someCluster())
	sc.killed(2)
	sc.ended(0, outcome{state: failed, failure: "connection refused"})
	sc.started(2)
	sc.ended(2, outcome{state: failed, failure: "reset"})
	if p := sc.picture(); p.count[failed] != 2 || p.count[lost] != 0 || p.failure != "connection refused" {
		t.Errorf("%d failed, %d lost, %q", p.count[failed], p.count[lost], p.failure)
	}
}

// More searches than the limit are found out where two lists after one another name them: one list alone is made while permits move.
func TestTooManyRun(t *testing.T) {
	sc := newClusterScene(someCluster())
	for _, l := range [][]int{{0, 1, 2, 3}, {1, 2, 3, 4}, {2, 3, 4, 5, 6}, {3, 4, 5, 6, 7}} {
		if err := sc.listed(listing{running: l}); err != nil {
			t.Fatalf("%v: %v", l, err)
		}
	}
	if err := sc.listed(listing{running: []int{3, 4, 5, 6, 7}}); err == nil {
		t.Error("five at once are no error")
	}
}

func TestClusterDisagreementIsAnError(t *testing.T) {
	sc := newClusterScene(someCluster())
	sc.begin(2)
	for i := range sc.plan.size() {
		sc.ended(i, outcome{state: answered})
	}
	stats := func() map[string]groupStats {
		return map[string]groupStats{"n1": {Queued: 3, QueueWaits: 3}, "n2": {}, "n3": {Queued: 1}}
	}
	if err := compareCluster(sc.picture(), stats(), 2); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*clusterPicture, map[string]groupStats){
		"refused":        func(p *clusterPicture, _ map[string]groupStats) { p.count[refused]++ },
		"failed":         func(p *clusterPicture, _ map[string]groupStats) { p.count[failed]++ },
		"lost elsewhere": func(p *clusterPicture, _ map[string]groupStats) { p.rows[0].count[lost]++ },
		"silent":         func(_ *clusterPicture, s map[string]groupStats) { delete(s, "n2") },
		"waits":          func(_ *clusterPicture, s map[string]groupStats) { s["n3"] = groupStats{QueuedCurrent: 1} },
		"throttled":      func(_ *clusterPicture, s map[string]groupStats) { s["n1"] = groupStats{Throttled: 1} },
		"stranded":       func(_ *clusterPicture, s map[string]groupStats) { s["n1"] = groupStats{Queued: 3, QueueWaits: 2} },
	} {
		p, s := sc.picture(), stats()
		change(&p, s)
		if compareCluster(p, s, 2) == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
