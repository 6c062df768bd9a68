package main

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wlmserver/wlmserver/bench/internal/report"
)

// fresh is what a test of a client pays for: a server is started, gets an index, and answers some searches.
func (o options) fresh(b *bench) ([]*report.Table, error) {
	const (
		searches = 10_000
		clients  = 64
		ours     = "wlmserver"
		node     = "OpenSearch"
	)
	starts := map[string]func() (*process, error){ours: func() (*process, error) { return b.startOurs() }}
	subjects := []string{ours}
	if o.opensearch != "" {
		starts[node] = func() (*process, error) { return b.startOpenSearch(o.opensearch) }
		subjects = append(subjects, node)
	}
	t := &report.Table{
		ID: "http-fresh", Title: "A server that has just been started", Subjects: subjects,
		Columns: []report.Column{
			{Head: "first answer, s", Metric: "first", Digits: 3},
			{Head: "an index and 10,000 searches, s", Metric: "all", Digits: 2}, {Head: "x OpenSearch", Metric: "all", Digits: 3, Over: node},
			{Head: "searches/s from the start", Metric: "rps"}, {Head: "x OpenSearch", Metric: "rps", Digits: 1, Over: node},
		},
		Notes: []string{fmt.Sprintf("From the start of the process until %d clients have had %d searches answered that cost nothing, as many as they can send. "+
			"It is a new process with no data each time, and nothing has been warmed up.", clients, searches)},
	}
	o.rounds = o.few
	return []*report.Table{t}, rotate(o, "fresh", subjects, func(s string) string { return s }, func(s string) error {
		p, err := starts[s]()
		if err != nil {
			return err
		}
		defer p.kill()
		begun := time.Now()
		if err := p.createIndex("docs", ""); err != nil {
			return err
		}
		if err := answered(p.address, search("docs", ""), clients, searches); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
		took := (p.started + time.Since(begun)).Seconds()
		t.Add(s, "first", p.started.Seconds())
		t.Add(s, "all", took)
		t.Add(s, "rps", searches/took)
		return nil
	})
}

// answered has that many clients send a request over and over until it has been answered that often.
func answered(address string, request []byte, clients, times int) error {
	var (
		wg   sync.WaitGroup
		sent atomic.Int64
		errs = make(chan error, clients)
	)
	for range clients {
		c, err := connect(address, "")
		if err != nil {
			return err
		}
		defer c.drop()
		wg.Go(func() {
			for sent.Add(1) <= int64(times) {
				status, err := c.do(request)
				if err == nil && status != http.StatusOK {
					err = fmt.Errorf("answered %d", status)
				}
				if err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}
