package load

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// WriteText prints the result for people; with colours, what is wrong stands out.
func (r *Result) WriteText(w io.Writer, colours bool) error {
	out := bufio.NewWriter(w)
	p := printer{out, r, colours}
	p.head()
	p.answers()
	p.latency()
	p.groups()
	p.users()
	p.fairness()
	p.rest()
	p.conservation()
	for _, n := range r.Notes {
		fmt.Fprintf(out, "\nnote: %s\n", n)
	}
	return out.Flush()
}

type printer struct {
	out     *bufio.Writer
	r       *Result
	colours bool
}

const (
	bold  = "\x1b[1m"
	red   = "\x1b[31m"
	green = "\x1b[32m"
	plain = "\x1b[0m"
)

func (p *printer) paint(colour, s string) string {
	if !p.colours {
		return s
	}
	return colour + s + plain
}

// table prints rows as columns: the first of them to the left, the others to the right.
func (p *printer) table(rows [][]string) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	width := 0
	for _, row := range rows {
		width = max(width, len([]rune(row[0])))
	}
	for _, row := range rows {
		fmt.Fprintf(w, "%-*s\t%s\t\n", width, row[0], strings.Join(row[1:], "\t"))
	}
	w.Flush()
	head, rest, _ := strings.Cut(b.String(), "\n")
	fmt.Fprintf(p.out, "\n%s\n", p.paint(bold, strings.TrimRight(head, " ")))
	for line := range strings.Lines(rest) {
		fmt.Fprintln(p.out, strings.TrimRight(line, " \n"))
	}
}

func (p *printer) head() {
	r := p.r
	loop := fmt.Sprintf("closed loop, %d clients", r.Clients)
	if r.Loop == "open" {
		loop = fmt.Sprintf("open loop, %s requests/s", figure(r.Rate))
	}
	fmt.Fprintf(p.out, "%s %s%s\n%s, %.2f s, seed %d\n", r.Method, r.URL, r.Path, loop, r.Seconds, r.Seed)
	fmt.Fprintf(p.out, "\nsent %d, answered %d, %s answers/s", r.Sent, r.Answered, figure(r.PerSecond))
	for _, f := range []struct {
		what  string
		count int64
	}{{"left by their client", r.Disconnected}, {"lost", r.Lost}, {"given up at the end", r.Unanswered}, {"not sent for want of room", r.Unsent}} {
		if f.count > 0 {
			fmt.Fprintf(p.out, ", %s %d", f.what, f.count)
		}
	}
	fmt.Fprintln(p.out)
}

func (p *printer) answers() {
	rows := [][]string{{"answer", "count", "share"}}
	for _, a := range p.r.Answers {
		rows = append(rows, []string{strings.TrimSpace(fmt.Sprint(a.Status, " ", a.Type)), fmt.Sprint(a.Count), percent(a.Count, p.r.Sent)})
	}
	for _, l := range p.r.Losses {
		rows = append(rows, []string{"none: " + l.Reason, fmt.Sprint(l.Count), percent(l.Count, p.r.Sent)})
	}
	p.table(rows)
}

func (p *printer) latency() {
	title := "latency ms"
	if p.r.Loop == "open" {
		title = "latency ms, since due"
	}
	rows := [][]string{{title, "count", "mean", "p50", "p90", "p99", "p99.9", "max"}}
	add := func(name string, l Latency) {
		if l.Count > 0 {
			rows = append(rows, []string{name, fmt.Sprint(l.Count), ms(l.Mean), ms(l.P50), ms(l.P90), ms(l.P99), ms(l.P999), ms(l.Max)})
		}
	}
	add("completed", p.r.Latency)
	if len(p.r.Groups) > 1 {
		for _, g := range p.r.Groups {
			add("  "+g.Name, g.Latency)
		}
	}
	add("refused (429)", p.r.Refusals)
	if len(rows) > 1 {
		p.table(rows)
	}
}

func (p *printer) groups() {
	if gs := p.r.Groups; len(gs) == 1 && gs[0].Server == nil {
		return // it is all that was said
	}
	rows := [][]string{{"group", "sent", "completed", "throttled", "waited", "mean wait ms", "longest", "queue peak"}}
	for _, g := range p.r.Groups {
		row := []string{g.Name, fmt.Sprint(g.Sent), fmt.Sprint(g.Completed), fmt.Sprint(g.Throttled)}
		switch s := g.Server; {
		case s == nil:
			row = append(row, "-", "-", "-", "-")
		case s.Waits == 0:
			row = append(row, "0", "-", "-", fmt.Sprint(s.Peak))
		default:
			row = append(row, fmt.Sprint(s.Waits), ms(s.MeanWait), ms(s.LongestWait), fmt.Sprint(s.Peak))
		}
		rows = append(rows, row)
	}
	p.table(rows)
}

func (p *printer) users() {
	if len(p.r.Users) == 0 {
		return
	}
	rows := [][]string{{"user", "sent", "completed", "throttled"}}
	for _, u := range p.r.Users {
		rows = append(rows, []string{u.Name, fmt.Sprint(u.Sent), fmt.Sprint(u.Completed), fmt.Sprint(u.Throttled)})
	}
	p.table(rows)
}

func (p *printer) fairness() {
	if len(p.r.Fairness) == 0 {
		return
	}
	rows := [][]string{{"fairness", "clients", "Jain", "least completed", "most"}}
	for _, f := range p.r.Fairness {
		rows = append(rows, []string{f.Among, fmt.Sprint(f.Clients), fmt.Sprintf("%.4f", f.Jain), fmt.Sprint(f.Least), fmt.Sprint(f.Most)})
	}
	p.table(rows)
}

func (p *printer) rest() {
	r := p.r
	fmt.Fprintf(p.out, "\nmost in flight, as the client saw it: %d\n", r.InFlightPeak)
	if r.CancelsAsked > 0 {
		fmt.Fprintf(p.out, "cancelled by _tasks/_cancel: %d of %d, %d had ended by then\n", r.CancelsDone, r.CancelsAsked, r.CancelsLate)
	}
	if r.Loop == "open" {
		fmt.Fprintf(p.out, "latest start after its time: %s ms\n", ms(r.LagMax))
	}
	if r.DriverCPU > 0 {
		fmt.Fprintf(p.out, "the driver's own CPU: %.1f µs a request\n", r.DriverCPU)
	}
}

func (p *printer) conservation() {
	if len(p.r.Conservation) == 0 {
		return
	}
	title := "client against _wlm/stats"
	if p.r.Shared {
		title += " (others may be at work: the server may count more)"
	}
	fmt.Fprintf(p.out, "\n%s\n", p.paint(bold, title))
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	for _, c := range p.r.Conservation {
		mark := p.paint(green, "ok     ")
		if !c.OK {
			mark = p.paint(red, "DIFFERS")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", mark, c.Group, c.Law, c.Told)
	}
	w.Flush()
}

// figure prints a number with the digits that say something.
func figure(f float64) string {
	if f >= 100 || f == float64(int64(f)) {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.3g", f)
}

func ms(f float64) string {
	switch {
	case f >= 100:
		return fmt.Sprintf("%.0f", f)
	case f >= 10:
		return fmt.Sprintf("%.1f", f)
	}
	return fmt.Sprintf("%.2f", f)
}

func percent(n, of int64) string {
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(max(of, 1)))
}

// String is the state in one line.
func (p Progress) String() string {
	s := fmt.Sprintf("%4.0f s  sent %d  in flight %d  ok %d (%s/s)  429 %d", p.Elapsed.Seconds(), p.Sent, p.InFlight,
		p.Completed, figure(float64(p.Completed)/max(p.Elapsed.Seconds(), 0.001)), p.Refused)
	if p.Others > 0 {
		s += fmt.Sprintf("  other %d", p.Others)
	}
	if p.Unsent > 0 {
		s += fmt.Sprintf("  not sent %d", p.Unsent)
	}
	return s + fmt.Sprintf("  p50 %s p99 %s ms", ms(float64(p.P50)/float64(time.Millisecond)), ms(float64(p.P99)/float64(time.Millisecond)))
}
