package demo

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// colour is the number of an ANSI foreground colour; 0 is the terminal's own.
type colour uint8

const (
	plain  colour = 0
	bold   colour = 1
	faint  colour = 2
	red    colour = 31
	green  colour = 32
	yellow colour = 33
	blue   colour = 34
)

// span is a piece of a line in one colour. Each of its runes takes one column.
type span struct {
	text   string
	colour colour
}

type line []span

// render writes the line for a terminal of so many columns, cutting what does not fit.
func (l line) render(columns int, colours bool) string {
	var b strings.Builder
	for _, s := range l {
		r := []rune(s.text)
		r = r[:min(len(r), columns)]
		columns -= len(r)
		if colours && s.colour != plain && len(r) > 0 {
			fmt.Fprintf(&b, "\x1b[%dm%s\x1b[0m", s.colour, string(r))
		} else {
			b.WriteString(string(r))
		}
	}
	return b.String()
}

// look is how a state is drawn.
type look struct {
	glyph  string
	colour colour
}

func (s state) look() look {
	return [...]look{
		planned:   {"·", faint},
		sent:      {"·", plain},
		waiting:   {"▒", yellow},
		running:   {"█", blue},
		answered:  {"✓", green},
		refused:   {"✗", red},
		cancelled: {"○", faint},
		lost:      {"†", red},
		failed:    {"!", red},
	}[s]
}

// frameLines is the height of a frame.
const frameLines = 10

// frame draws a picture: one cell for each search, and one bar for each of what happens to them.
func (p picture) frame() []line {
	return []line{
		heading(p),
		{},
		cells(p.states),
		{},
		bar("running", fmt.Sprintf("of %d permits (node_limit)", p.plan.nodeLimit), pile{p.count[running], running}),
		bar("waiting", waitingNote(p), pile{p.count[waiting], waiting}),
		bar("admitted", fmt.Sprintf("%d answered with 200", p.count[answered]),
			pile{p.count[answered], answered}, pile{p.count[running], running}, pile{p.ran, cancelled}),
		bar("refused", refusedNote(p), pile{p.count[refused], refused}),
		bar("cancelled", cancelledNote(p), pile{p.count[cancelled], cancelled}),
		{},
	}
}

// cells draws one cell for each search, neighbours of one colour in one span.
func cells(states []state) line {
	l := line{{"  ", plain}}
	for _, s := range states {
		look, last := s.look(), &l[len(l)-1]
		if look.colour == last.colour {
			last.text += look.glyph
		} else {
			l = append(l, span{look.glyph, look.colour})
		}
	}
	return l
}

func heading(p picture) line {
	return line{
		{"  wlmserver demo", bold},
		{fmt.Sprintf("   group %s   %d searches of %v", p.plan.group, p.plan.searches, p.plan.takes), plain},
		{fmt.Sprintf("   %5.1f s", p.elapsed.Seconds()), faint},
	}
}

// pile is so many searches in one state.
type pile struct {
	n     int
	state state
}

// barWidth holds what the limit and the queue do, one column for each search.
const barWidth = 28

// bar draws piles of searches with the marks that their cells have, and what they come to.
func bar(name, note string, piles ...pile) line {
	sum := 0
	for _, p := range piles {
		sum += p.n
	}
	l := line{{fmt.Sprintf("  %-10s", name), plain}, {fmt.Sprintf("%4d  ", sum), bold}}
	room := barWidth
	for _, p := range piles {
		n := min(p.n, room)
		room -= n
		look := p.state.look()
		l = append(l, span{strings.Repeat(look.glyph, n), look.colour})
	}
	return append(l, span{strings.Repeat(" ", room) + "  " + note, faint})
}

func waitingNote(p picture) string {
	note := fmt.Sprintf("of %d (size_per_bucket)", p.plan.queueSize)
	if p.next != nil {
		note = fmt.Sprintf("next: #%d, waits %s", p.next.search+1, seconds(p.next.waiting))
		if p.next.estimated > 0 {
			note += ", ~" + seconds(p.next.estimated) + " to go"
		}
	}
	return note
}

func refusedNote(p picture) string {
	if p.retryAfter == "" {
		return ""
	}
	return "429, Retry-After: " + p.retryAfter
}

func cancelledNote(p picture) string {
	var parts []string
	if p.impatient > 0 {
		parts = append(parts, fmt.Sprintf("%d cancel_after", p.impatient))
	}
	if p.byHand > 0 {
		parts = append(parts, fmt.Sprintf("%d _tasks/_cancel", p.byHand))
	}
	return strings.Join(parts, ", ")
}

// progress is a picture as one plain line, for where there is no terminal.
func (p picture) progress() string {
	return fmt.Sprintf("%5.1fs  running %2d  waiting %2d  admitted %2d  refused %2d  cancelled %2d",
		p.elapsed.Seconds(), p.count[running], p.count[waiting], p.admitted(), p.count[refused], p.count[cancelled])
}

// table lays out the group's counters with what each means.
func table(s groupStats) []line {
	row := func(name string, value int64, meaning string) line {
		return line{{fmt.Sprintf("  %-24s", name), plain}, {fmt.Sprintf("%8d", value), bold}, {"   " + meaning, faint}}
	}
	lines := []line{
		row("total_queued", s.Queued, "had to wait"),
		row("queue_peak", s.QueuePeak, "waited at once, at most"),
		row("queue_wait_count", s.QueueWaits, "were admitted after waiting"),
		row("total_queue_wait_millis", s.QueueWaitMillis, mean(s)),
		row("max_queue_wait_millis", s.LongestWaitMilli, "the longest of these waits"),
		row("total_throttled", s.Throttled, "were refused with 429"),
		row("total_queue_rejections", s.QueueRejections, "of them because the queue was full"),
		row("queued_current", s.QueuedCurrent, "wait now"),
		row("total_completions", s.Completions, "tasks ended: one per search that ran, one per shard and phase"),
	}
	return lines
}

func mean(s groupStats) string {
	if s.QueueWaits == 0 {
		return "nobody waited"
	}
	return "that is " + strconv.FormatInt(s.QueueWaitMillis/s.QueueWaits, 10) + " ms each"
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
