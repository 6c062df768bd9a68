package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
)

// answerText is what the servers of this file answer: what wlmserver answers to a search that finds nothing.
const answerText = `{"took":0,"timed_out":false,"_shards":{"total":1,"successful":1,"skipped":0,"failed":0},` +
	`"hits":{"total":{"value":0,"relation":"eq"},"max_score":null,"hits":[]}}`

// fullText is the gate's refusal.
const fullText = `{"error":{"type":"rejected_execution_exception","reason":"the gate lets 1 through and 1 wait, and both are there"},"status":429}`

// serve runs one of the servers that wlmserver is measured beside, until the process is ended. It prints its address.
func serve(args []string) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	var (
		kind  = flags.String("kind", "bare", "bare: a handler; chi: the same behind a router; gate: the same behind a FIFO semaphore")
		work  = flags.Duration("work", 0, "how long a search takes")
		limit = flags.Int("limit", 1, "how many the gate lets through")
		queue = flags.Int("queue", 1, "how many may wait for it")
	)
	if err := flags.Parse(args); err != nil {
		return err
	}
	s := &bare{work: *work, released: make(chan struct{})}
	if *kind == "gate" {
		s.gate = &gate{free: *limit, room: *queue}
	}
	var handler http.Handler
	switch *kind {
	case "bare", "gate":
		handler = http.HandlerFunc(s.search)
	case "chi":
		r := chi.NewRouter()
		for i := range 25 { // about as many as wlmserver has
			r.Get(fmt.Sprintf("/_route/%d/{name}", i), http.NotFound)
		}
		r.Post("/{index}/_search", s.search)
		handler = r
	default:
		return fmt.Errorf("unknown kind %q", *kind)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	return (&http.Server{Handler: s.control(handler), ReadHeaderTimeout: time.Minute}).Serve(l)
}

// bare is a server without anything that it could do without.
type bare struct {
	work time.Duration
	gate *gate

	running, most, parked atomic.Int64
	release               sync.Once
	released              chan struct{}
}

// control serves the paths by which the benchmark looks in and lets parked requests go; all else is next's.
func (s *bare) control(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/park":
			s.park(w, r)
		case "/control/parked":
			fmt.Fprint(w, s.parked.Load())
		case "/control/most": // since it was last asked
			fmt.Fprint(w, s.most.Swap(0))
		case "/control/release":
			s.release.Do(func() { close(s.released) })
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func (s *bare) search(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return
	}
	if s.gate != nil {
		switch s.gate.enter(r.Context()) {
		case full:
			answer(w, http.StatusTooManyRequests, fullText)
			return
		case gone:
			return
		}
		defer s.gate.leave()
	}
	if s.work > 0 {
		n := s.running.Add(1)
		for most := s.most.Load(); n > most && !s.most.CompareAndSwap(most, n); most = s.most.Load() {
		}
		select {
		case <-time.After(s.work):
		case <-r.Context().Done():
		}
		s.running.Add(-1)
	}
	answer(w, http.StatusOK, answerText)
}

// park blocks until all are let go at once, or the client has gone.
func (s *bare) park(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return
	}
	s.parked.Add(1)
	defer s.parked.Add(-1)
	select {
	case <-s.released:
		answer(w, http.StatusOK, answerText)
	case <-r.Context().Done():
	}
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // the client may have gone
}

// gate lets a number of requests through, first in, first out. It is the least that an admission control can be.
type gate struct {
	mu      sync.Mutex
	free    int
	room    int // in the queue
	waiting []chan struct{}
}

type entry int

const (
	entered entry = iota
	full
	gone
)

func (g *gate) enter(ctx context.Context) entry {
	g.mu.Lock()
	if g.free > 0 {
		g.free--
		g.mu.Unlock()
		return entered
	}
	if len(g.waiting) >= g.room {
		g.mu.Unlock()
		return full
	}
	turn := make(chan struct{}, 1)
	g.waiting = append(g.waiting, turn)
	g.mu.Unlock()
	select {
	case <-turn:
		return entered
	case <-ctx.Done():
		go func() { // its turn comes all the same; it passes it on
			<-turn
			g.leave()
		}()
		return gone
	}
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		g.free++
		return
	}
	g.waiting[0] <- struct{}{} // has room for one
	g.waiting = g.waiting[1:]
}
