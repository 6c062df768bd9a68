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

// frameLines is the least height of a terminal that frames are drawn on.
const frameLines = 12

// newScreen looks at where out leads. Colours are for terminals only, and not with NO_COLOR.
func newScreen(out io.Writer, every time.Duration) *screen {
	s := &screen{out: out, columns: 100, every: every}
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return s
	}
	s.colours = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if columns, lines, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
		s.columns = columns
		s.live = lines >= frameLines && os.Getenv("TERM") != "dumb"
	}
	return s
}

const (
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	clearLine  = "\x1b[2K"
	upLines    = "\x1b[%dA"
)

// show draws the picture over the one before. Without a terminal it writes a line now and then, and always the final one.
func (s *screen) show(p picture) {
	if !s.live {
		if now := time.Now(); p.done() || now.Sub(s.last) >= s.every {
			s.last = now
			fmt.Fprintln(s.out, progress(p))
		}
		return
	}
	lines := frame(p)
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
