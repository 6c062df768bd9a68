package node

import (
	"bytes"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/term"
)

// newLogger builds the logger of a node.
func newLogger(c LogConfig) zerolog.Logger {
	out := c.Output
	if out == nil {
		out = os.Stderr
	}
	terminal := isTerminal(out)
	if c.Format == "console" || c.Format == "" && terminal {
		out = zerolog.ConsoleWriter{
			Out:        out,
			NoColor:    !terminal || os.Getenv("NO_COLOR") != "",
			TimeFormat: time.TimeOnly,
		}
	}
	return zerolog.New(zerolog.SyncWriter(out)).Level(c.Level).With().Timestamp().Logger()
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// httpErrorLog takes the lines that net/http writes about connections and puts them into l.
func httpErrorLog(l zerolog.Logger) *log.Logger { return log.New(httpErrorWriter{l}, "", 0) }

type httpErrorWriter struct{ log zerolog.Logger }

// Write logs one line. A handshake that fails is the client's affair, and anyone can have as many fail as they like.
func (w httpErrorWriter) Write(line []byte) (int, error) {
	level := zerolog.WarnLevel
	if bytes.Contains(line, []byte("TLS handshake error")) {
		level = zerolog.DebugLevel
	}
	w.log.WithLevel(level).Msg(strings.TrimSpace(string(line)))
	return len(line), nil
}
