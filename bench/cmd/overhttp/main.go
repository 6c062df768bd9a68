// Command overhttp measures the server over HTTP beside servers that do less: each is a process of its own, and one light client
// drives them in rounds in which each has its turn. It needs Linux, whose /proc tells what a process uses.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/wlmserver/wlmserver/bench/internal/report"
)

type options struct {
	rounds int
	few    int           // rounds of what takes long
	warm   time.Duration // before a measurement
	counted,
	long time.Duration // of a measurement

	haproxy, nginx, opensearch string

	begun time.Time
}

func main() {
	var err error
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		err = serve(os.Args[2:])
	} else {
		err = run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "overhttp:", err)
		os.Exit(1)
	}
}

func run() error {
	var (
		o        = options{few: 3, warm: 300 * time.Millisecond, counted: 2 * time.Second, long: 5 * time.Second, begun: time.Now()}
		binary   = flag.String("wlmserver", "", "the server's `binary`; built from the tree around this module when empty")
		quick    = flag.Bool("quick", false, "few rounds and short: to see that it runs, not to believe its figures")
		markdown = flag.Bool("markdown", false, "print Markdown")
		file     = flag.String("json", "", "write the sample of every round to this `file`")
		only     = flag.String("only", "", "measure what these `names` say: search, fresh, refusal, queue, park, requests; comma-separated")
	)
	flag.IntVar(&o.rounds, "rounds", 5, "how often everything is measured; fresh, queue and requests 3 times at most")
	flag.StringVar(&o.haproxy, "haproxy", "", "HAProxy's `binary`, to have it in the rounds")
	flag.StringVar(&o.nginx, "nginx", "", "nginx's `binary`")
	flag.StringVar(&o.opensearch, "opensearch", "", "a `script` that starts an OpenSearch node when called with: start FOLDER PORT")
	flag.Parse()
	if *quick {
		o.rounds, o.few, o.warm, o.counted, o.long = min(o.rounds, 2), 1, 100*time.Millisecond, 500*time.Millisecond, time.Second
	}
	o.few = min(o.few, o.rounds)
	if runtime.GOOS != "linux" {
		return errors.New("what a process uses is read from /proc, which only Linux has")
	}
	debug.SetGCPercent(400) // the client is to disturb as little as it can

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	b := &bench{Context: ctx, binary: *binary}
	var err error
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	if b.folder, err = os.MkdirTemp("", "wlmserver-bench"); err != nil {
		return err
	}
	defer os.RemoveAll(b.folder)
	if b.binary == "" {
		if err := b.build(); err != nil {
			return fmt.Errorf("building the server: %w", err)
		}
	}

	r := report.New("overhttp", o.rounds)
	for _, e := range []struct {
		name string
		run  func(*bench) ([]*report.Table, error)
	}{{"search", o.searches}, {"fresh", o.fresh}, {"refusal", o.refusals}, {"queue", o.queue}, {"park", o.park}, {"requests", o.requests}} {
		if *only != "" && !strings.Contains(","+*only+",", ","+e.name+",") {
			continue
		}
		tables, err := e.run(b)
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, errors.Join(err, context.Cause(ctx)))
		}
		r.Tables = append(r.Tables, tables...)
	}
	if *markdown {
		r.Markdown(os.Stdout)
	} else {
		r.Text(os.Stdout)
	}
	if *file != "" {
		return r.Write(*file)
	}
	return nil
}

// rotate measures every subject in every round and says where it is.
func rotate[S any](o options, name string, subjects []S, say func(S) string, run func(S) error) error {
	return report.Rotate(o.rounds, subjects, func(round int, s S) error {
		fmt.Fprintf(os.Stderr, "%4.0f s  %-8s  round %d of %d  %s\n", time.Since(o.begun).Seconds(), name, round+1, o.rounds, say(s))
		return run(s)
	})
}
