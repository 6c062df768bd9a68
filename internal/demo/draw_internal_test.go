package demo

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func somePicture() picture {
	p := picture{plan: newPlan(false), elapsed: 2300 * time.Millisecond, retryAfter: "5", impatient: 4, byHand: 3,
		next: &waiter{search: 12, waiting: 1600 * time.Millisecond, estimated: 400 * time.Millisecond}}
	for i := range p.plan.searches {
		var s state
		switch {
		case i < 8:
			s = answered
		case i < 12:
			s = running
		case i < 21:
			s = waiting
		case i < 28:
			s = cancelled
		default:
			s = refused
		}
		p.states = append(p.states, s)
		p.count[s]++
	}
	return p
}

func TestFrame(t *testing.T) {
	want := `  wlmserver demo   group reports   40 searches of 800ms     2.3 s

  ✓✓✓✓✓✓✓✓████▒▒▒▒▒▒▒▒▒○○○○○○○✗✗✗✗✗✗✗✗✗✗✗✗

  running      4  ████                          of 4 permits (node_limit)
  waiting      9  ▒▒▒▒▒▒▒▒▒                     next: #13, waits 1.6 s, ~0.4 s to go
  admitted    12  ✓✓✓✓✓✓✓✓████                  8 answered with 200
  refused     12  ✗✗✗✗✗✗✗✗✗✗✗✗                  429, Retry-After: 5
  cancelled    7  ○○○○○○○                       4 cancel_after, 3 _tasks/_cancel

`
	var got strings.Builder
	for _, l := range somePicture().frame() {
		got.WriteString(strings.TrimRight(l.render(200, false), " ") + "\n")
	}
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}

func TestFrameFitsTheTerminal(t *testing.T) {
	for _, columns := range []int{1, 20, 60, 200} {
		for _, l := range somePicture().frame() {
			if n := utf8.RuneCountInString(l.render(columns, false)); n > columns {
				t.Errorf("%d columns on a terminal of %d", n, columns)
			}
		}
	}
	if n := len(somePicture().frame()); n != frameLines {
		t.Errorf("a frame has %d lines, not %d", n, frameLines)
	}
}

func TestColoursEnd(t *testing.T) {
	l := line{{"red", red}, {" plain ", plain}, {"cut off", green}}
	if got, want := l.render(10, true), "\x1b[31mred\x1b[0m plain "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestProgress(t *testing.T) {
	want := "  2.3s  running  4  waiting  9  admitted 12  refused 12  cancelled  7"
	if got := somePicture().progress(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestNewsInAnyOrder: a listing that was taken before an answer and read after it changes nothing.
func TestNewsInAnyOrder(t *testing.T) {
	sc := newScene(newPlan(true))
	sc.sent(0)
	sc.sent(1)
	sc.ended(0, outcome{state: answered})
	sc.listed(listing{running: []int{0}, waiters: []waiter{{search: 1, position: 1}}})
	p := sc.picture()
	if p.states[0] != answered || p.states[1] != waiting || p.next == nil || p.next.search != 1 {
		t.Errorf("got %v, next %v", p.states[:2], p.next)
	}
	sc.ended(1, outcome{state: refused, retryAfter: "2"})
	if p := sc.picture(); p.next != nil || p.retryAfter != "2" || p.count[refused] != 1 {
		t.Errorf("got next %v, Retry-After %q, %d refused", p.next, p.retryAfter, p.count[refused])
	}
}

func TestDisagreementIsAnError(t *testing.T) {
	p := somePicture()
	agreed := groupStats{Throttled: 12, QueueRejections: 12, Queued: 24, QueueWaits: 17}
	if err := compare(p, agreed); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*picture, *groupStats){
		"refused":    func(_ *picture, s *groupStats) { s.Throttled++ },
		"queue full": func(_ *picture, s *groupStats) { s.QueueRejections-- },
		"cancelled":  func(_ *picture, s *groupStats) { s.QueueWaits++ },
		"waiting":    func(_ *picture, s *groupStats) { s.QueuedCurrent++ },
		"ran":        func(p *picture, _ *groupStats) { p.ran++ },
		"failed":     func(p *picture, _ *groupStats) { p.count[failed]++ },
	} {
		p, s := p, agreed
		change(&p, &s)
		if compare(p, s) == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
