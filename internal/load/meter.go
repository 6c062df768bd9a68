package load

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// Meter shows progress: one line that is drawn anew on a terminal, a line a second elsewhere.
type Meter struct {
	out     io.Writer
	live    bool
	columns int
	drawn   bool
}

// NewMeter looks at where out leads.
func NewMeter(out io.Writer) *Meter {
	m := &Meter{out: out, columns: 80}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		m.live = true
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			m.columns = columns
		}
	}
	return m
}

// Every is how often Show wants to be called.
func (m *Meter) Every() time.Duration {
	if m.live {
		return 100 * time.Millisecond
	}
	return time.Second
}

// Show shows where a load stands.
func (m *Meter) Show(p Progress) {
	if !m.live {
		fmt.Fprintln(m.out, p)
		return
	}
	line := []rune(p.String())
	fmt.Fprint(m.out, "\r\x1b[2K", string(line[:min(len(line), m.columns-1)]))
	m.drawn = true
}

// Close takes the line away, so that what is printed next stands at its place.
func (m *Meter) Close() {
	if m.drawn {
		fmt.Fprint(m.out, "\r\x1b[2K")
	}
}

// Colours reports whether out shows colours and nobody asked to leave them out.
func Colours(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
