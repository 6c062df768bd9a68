package demo

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// screen shows pictures one over the other on a terminal, and as lines of progress elsewhere.
type screen struct {
	out     io.Writer
	live    bool // redraw in place
	colours bool
	columns int
	drawn   int       // lines of the frame that stands
	last    time.Time // of the last progress line
	every   time.Duration
}

// drawing is what a screen shows at one moment: as a frame of always the same height, or as one line.
type drawing interface {
	frame() []line
	progress() string
	done() bool // the last one
}

// newScreen looks at where out leads: frames of so many lines are drawn on a terminal that is higher. Colours are for terminals
// only, and not with NO_COLOR. Elsewhere there is a line of progress as often as every.
func newScreen(out io.Writer, height int, every time.Duration) *screen {
	s := &screen{out: out, columns: 100, every: every}
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return s
	}
	s.colours = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if columns, lines, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
		s.columns = columns
		s.live = lines > height && os.Getenv("TERM") != "dumb"
	}
	return s
}

const (
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	clearLine  = "\x1b[2K"
	upLines    = "\x1b[%dA"
)

// show draws over what it drew before. Without a terminal it writes a line now and then, and always the final one.
func (s *screen) show(d drawing) {
	if !s.live {
		if now := time.Now(); d.done() || now.Sub(s.last) >= s.every {
			s.last = now
			fmt.Fprintln(s.out, d.progress())
		}
		return
	}
	lines := d.frame()
	if s.drawn > 0 {
		fmt.Fprintf(s.out, upLines, s.drawn)
	} else {
		fmt.Fprint(s.out, hideCursor)
	}
	for _, l := range lines {
		fmt.Fprint(s.out, clearLine, l.render(s.columns-1, s.colours), "\n")
	}
	s.drawn = len(lines)
}

func (s *screen) print(lines ...line) {
	for _, l := range lines {
		fmt.Fprintln(s.out, l.render(s.columns, s.colours))
	}
}

// close gives the cursor back.
func (s *screen) close() {
	if s.drawn > 0 {
		fmt.Fprint(s.out, showCursor)
	}
}
