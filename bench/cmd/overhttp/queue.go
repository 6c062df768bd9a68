package main

import (
	"fmt"
	"net/http"
	"time"

	"github.com/wlmserver/wlmserver/bench/internal/report"
)

// queued is a server whose clients wait for one of eight places, or do not.
type queued struct {
	target
	clients int
	// most is the most searches that were under way at once since it was last asked.
	most func() (float64, error)
}

// queue is the limit 8 before searches that take 5 ms: the same server with 8 clients, who never wait, and with 256.
func (o options) queue(b *bench) ([]*report.Table, error) {
	const (
		limit = 8
		many  = 256
		work  = "5ms"
	)
	t := &report.Table{
		ID: "http-queue", Title: "A limit of 8 under 256 clients",
		Columns: []report.Column{
			{Head: "searches/s", Metric: "rps"}, {Head: "x itself with 8 clients", Metric: "x8", Digits: 2},
			{Head: "CPU µs a search", Metric: "cpu", Digits: 1}, {Head: "p50 ms", Metric: "p50", Digits: 1},
			{Head: "p99 ms", Metric: "p99", Digits: 1}, {Head: "p99/p50", Metric: "tail", Digits: 2},
			{Head: "Jain index", Metric: "jain", Digits: 4}, {Head: "most at once", Metric: "most", Most: true},
		},
		Notes: []string{
			"A search sleeps 5 ms. With 8 clients nobody waits; with 256 there are 248 in the queue all the time. The ratio is to the same server's 8 clients in the same round.",
			"The Jain index of the answers that each client got is 1 when all got as many. Client and server share the processors.",
			"Most at once is the largest of all rounds. For wlmserver it is read from /metrics 50 times a second, which is in its processor time; the others count it themselves, at the backend.",
		},
	}
	bare, err := b.startBare("bare handler", "-work="+work)
	if err != nil {
		return nil, err
	}
	defer bare.kill()
	gate, err := b.startBare("bare gate", "-kind=gate", "-limit=8", "-queue=10000", "-work="+work)
	if err != nil {
		return nil, err
	}
	defer gate.kill()
	ours, err := b.startOurs("thread_pool.search.size=16") // the limit is to bind, not the pool
	if err != nil {
		return nil, err
	}
	defer ours.kill()
	if err := ours.createIndex("docs", work); err != nil {
		return nil, err
	}
	id, err := ours.createGroup("limited", limit, 10_000)
	if err != nil {
		return nil, err
	}

	counted := func(p *process) func() (float64, error) { return func() (float64, error) { return p.control("most") } }
	servers := []queued{
		{target: target{name: "bare gate", process: gate, request: search("docs", "")}, most: counted(gate)},
		{target: target{name: "wlmserver", process: ours, request: search("docs", id)}},
	}
	if o.haproxy != "" {
		p, err := b.startHAProxy(o.haproxy, bare.address, limit, 10_000, "60s")
		if err != nil {
			return nil, err
		}
		defer p.stop()
		servers = append(servers, queued{target: target{name: p.name, process: p, request: search("docs", "")}, most: counted(bare)})
		t.Notes = append(t.Notes, "HAProxy stands before the bare handler; its processor time is its own, without the handler's.")
	}
	runs := []queued{{target: target{name: "bare handler, 8 clients", process: bare, request: search("docs", "")}, most: counted(bare), clients: limit}}
	for _, s := range servers {
		for _, n := range []int{limit, many} {
			run := s
			run.clients = n
			run.name = fmt.Sprintf("%s, %d clients", s.name, n)
			runs = append(runs, run)
		}
	}
	for _, r := range runs {
		t.Subjects = append(t.Subjects, r.name)
	}
	o.rounds = o.few
	o.counted = o.long
	err = rotate(o, "queue", runs, func(r queued) string { return r.name }, func(r queued) error { return o.queueOnce(t, r) })
	if err != nil {
		return nil, err
	}
	for _, s := range servers { // a ratio within each round
		few, lot := s.name+fmt.Sprintf(", %d clients", limit), s.name+fmt.Sprintf(", %d clients", many)
		for i, v := range t.Samples[lot]["rps"] {
			t.Add(lot, "x8", v/t.Samples[few]["rps"][i])
		}
	}
	return []*report.Table{t}, nil
}

func (o options) queueOnce(t *report.Table, r queued) error {
	l := load{address: r.process.address, request: r.request, status: http.StatusOK, clients: r.clients, warm: o.warm + 400*time.Millisecond, counted: o.long}
	var (
		cpu     [2]float64
		i       int
		sampled float64
		failed  error
	)
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		if r.most != nil {
			return
		}
		for tick := time.Tick(20 * time.Millisecond); ; {
			select {
			case <-end:
				return
			case <-tick:
				n, err := r.process.metric(`wlmserver_running{tracked="true"}`)
				if err != nil {
					failed = err
				}
				sampled = max(sampled, n)
			}
		}
	}()
	if r.most != nil {
		if _, err := r.most(); err != nil { // forget what was before
			return err
		}
	}
	out, err := l.run(func() {
		cpu[i] = r.process.cpu()
		i++
	})
	close(end)
	<-ended
	if r.most != nil && err == nil {
		sampled, failed = r.most()
	}
	if err == nil {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	t.Add(r.name, "rps", out.perSecond)
	t.Add(r.name, "cpu", (cpu[1]-cpu[0])/float64(out.requests)*1e6)
	t.Add(r.name, "p50", out.p50)
	t.Add(r.name, "p99", out.p99)
	t.Add(r.name, "tail", out.p99/out.p50)
	t.Add(r.name, "jain", out.jain)
	t.Add(r.name, "most", sampled)
	return nil
}
