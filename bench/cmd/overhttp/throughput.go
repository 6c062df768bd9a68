package main

import (
	"fmt"
	"net/http"
	"time"

	"github.com/wlmserver/wlmserver/bench/internal/report"
)

// target is a request to a server that runs already.
type target struct {
	name    string
	process *process // whose processor time counts
	address string   // empty = the process's
	request []byte
	status  int
}

// measure drives a target once with that many clients and adds what came of it.
func (o options) measure(t *report.Table, s target, clients int, prefix string) error {
	l := load{address: s.address, request: s.request, status: s.status, clients: clients, warm: o.warm, counted: o.counted}
	if l.address == "" {
		l.address = s.process.address
	}
	var cpu [2]float64
	i := 0
	out, err := l.run(func() {
		cpu[i] = s.process.cpu()
		i++
	})
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	t.Add(s.name, prefix+"rps", out.perSecond)
	t.Add(s.name, prefix+"cpu", (cpu[1]-cpu[0])/float64(out.requests)*1e6)
	t.Add(s.name, prefix+"p50", out.p50)
	t.Add(s.name, prefix+"p99", out.p99)
	return nil
}

// throughputColumns show what measure adds, with ratios to base.
func throughputColumns(base string) []report.Column {
	return []report.Column{
		{Head: "requests/s", Metric: "rps"}, {Head: "x " + base, Metric: "rps", Digits: 2, Over: base},
		{Head: "CPU µs a request", Metric: "cpu", Digits: 1}, {Head: "x " + base, Metric: "cpu", Digits: 2, Over: base},
		{Head: "p50 ms", Metric: "p50", Digits: 2}, {Head: "p99 ms", Metric: "p99", Digits: 2},
	}
}

const shared = "Client and servers share the machine's processors, so that requests/s are of the pair; the processor time is the server's alone, user and system."

// names are the targets' names, for a table.
func names(targets []target) []string {
	var out []string
	for _, t := range targets {
		out = append(out, t.name)
	}
	return out
}

// searches are searches that cost nothing.
func (o options) searches(b *bench) ([]*report.Table, error) {
	const clients = 64
	t := &report.Table{
		ID: "http-search", Title: "A search that costs nothing", Columns: throughputColumns("bare handler"),
		Notes: []string{fmt.Sprintf("`POST /docs/_search` with the body `{}`, one empty shard, %d clients that each send the next request when the last is answered. ", clients) + shared,
			"The bare handler reads the body and writes the answer that wlmserver gives, a constant; it parses, registers, counts and runs nothing. The gate adds a mutex and a counter to it."},
	}
	var targets []target
	for _, s := range [][]string{{"bare handler", "-kind=bare"}, {"chi alone", "-kind=chi"}, {"bare gate", "-kind=gate", "-limit=1000"}} {
		p, err := b.startBare(s[0], s[1:]...)
		if err != nil {
			return nil, err
		}
		defer p.kill()
		targets = append(targets, target{name: s[0], process: p, request: search("docs", "")})
	}
	ours, err := b.startOurs()
	if err != nil {
		return nil, err
	}
	defer ours.kill()
	if err := ours.createIndex("docs", ""); err != nil {
		return nil, err
	}
	id, err := ours.createGroup("limited", 1000, 10_000)
	if err != nil {
		return nil, err
	}
	targets = append(targets,
		target{name: "wlmserver, no group", process: ours, request: search("docs", "")},
		target{name: "wlmserver, a group below its limit", process: ours, request: search("docs", id)})
	if o.opensearch != "" {
		p, err := b.startOpenSearch(o.opensearch)
		if err != nil {
			return nil, err
		}
		defer p.kill()
		if err := p.createIndex("docs", ""); err != nil {
			return nil, err
		}
		for range 5 { // the virtual machine compiles what is hot only after a while
			l := load{address: p.address, request: search("docs", ""), status: http.StatusOK, clients: clients, counted: 2 * time.Second}
			if _, err := l.run(func() {}); err != nil {
				return nil, fmt.Errorf("%s: %w", p.name, err)
			}
		}
		targets = append(targets, target{name: p.name, process: p, request: search("docs", "")})
		t.Notes = append(t.Notes, "OpenSearch 3.9.0 is a real node of one empty index with a heap of 1 GiB, warmed up for 10 s. It really searches.",
			fmt.Sprintf("It took %.1f s until its first answer and had %.0f MiB resident after the warm-up.", p.started.Seconds(), p.resident()/(1<<20)))
	}
	t.Subjects = names(targets)
	return []*report.Table{t}, rotate(o, "search", targets, func(s target) string { return s.name }, func(s target) error {
		s.status = http.StatusOK
		return o.measure(t, s, clients, "")
	})
}

// refusals are searches that find the queue full.
func (o options) refusals(b *bench) ([]*report.Table, error) {
	const clients = 64
	t := &report.Table{
		ID: "http-refusal", Title: "A refusal because the queue is full", Columns: throughputColumns("bare gate"),
		Notes: []string{fmt.Sprintf("One search runs, one waits, and %d clients are refused with 429. ", clients) + shared},
	}
	gate, err := b.startBare("bare gate", "-kind=gate", "-limit=1", "-queue=1", "-work=1h")
	if err != nil {
		return nil, err
	}
	defer gate.kill()
	ours, err := b.startOurs()
	if err != nil {
		return nil, err
	}
	defer ours.kill()
	if err := ours.createIndex("slow", "1h"); err != nil {
		return nil, err
	}
	id, err := ours.createGroup("full", 1, 1)
	if err != nil {
		return nil, err
	}
	targets := []target{
		{name: "bare gate", process: gate, request: search("docs", ""), status: http.StatusTooManyRequests},
		{name: "wlmserver", process: ours, request: search("slow", id), status: http.StatusTooManyRequests},
	}
	if o.nginx != "" || o.haproxy != "" {
		backend, err := b.startBare("backend", "-work=1h")
		if err != nil {
			return nil, err
		}
		defer backend.kill()
		if o.nginx != "" {
			p, err := b.startNginx(o.nginx, backend.address, 2)
			if err != nil {
				return nil, err
			}
			defer p.stop()
			targets = append(targets, target{name: p.name, process: p, request: search("docs", ""), status: http.StatusTooManyRequests})
		}
		if o.haproxy != "" {
			p, err := b.startHAProxy(o.haproxy, backend.address, 1, 1, "1ms")
			if err != nil {
				return nil, err
			}
			defer p.stop()
			targets = append(targets, target{name: p.name, process: p, request: search("docs", ""), status: http.StatusServiceUnavailable})
			t.Notes = append(t.Notes, "HAProxy answers 503; it refuses only who has waited for the queue's shortest timeout, 1 ms.")
		}
		if o.nginx != "" {
			t.Notes = append(t.Notes, "nginx has no queue at all: limit_conn lets two through and refuses the rest.")
		}
	}
	for _, s := range targets {
		for range 2 { // one that runs, one that waits
			c, err := connect(s.process.address, "")
			if err != nil {
				return nil, err
			}
			defer c.drop()
			if _, err := c.Write(s.request); err != nil {
				return nil, err
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	t.Subjects = names(targets)
	return []*report.Table{t}, rotate(o, "refusal", targets, func(s target) string { return s.name }, func(s target) error { return o.measure(t, s, clients, "") })
}

// requests are the requests that a server gets, by few and many clients.
func (o options) requests(b *bench) ([]*report.Table, error) {
	t := &report.Table{
		ID: "http-requests", Title: "Requests by few and many clients",
		Notes: []string{"Closed loops: each client sends the next request when the last is answered. " + shared,
			"`GET _tasks` lists the other clients' `GET _tasks` too, so that each answer grows with the clients."},
	}
	counts := []int{1, 16, 64}
	for _, n := range counts {
		prefix := fmt.Sprint(n, " ")
		head := fmt.Sprint(n, " clients: ")
		if n == 1 {
			head = "1 client: "
		}
		t.Columns = append(t.Columns, report.Column{Head: head + "requests/s", Metric: prefix + "rps"},
			report.Column{Head: "p50 ms", Metric: prefix + "p50", Digits: 2}, report.Column{Head: "p99 ms", Metric: prefix + "p99", Digits: 2})
	}
	bare, err := b.startBare("bare handler")
	if err != nil {
		return nil, err
	}
	defer bare.kill()
	ours, err := b.startOurs()
	if err != nil {
		return nil, err
	}
	defer ours.kill()
	if err := ours.createIndex("docs", ""); err != nil {
		return nil, err
	}
	if err := ours.createIndex("slow", "1h"); err != nil {
		return nil, err
	}
	limited, err := ours.createGroup("limited", 1000, 10_000)
	if err != nil {
		return nil, err
	}
	full, err := ours.createGroup("full", 1, 0)
	if err != nil {
		return nil, err
	}
	c, err := connect(ours.address, "")
	if err != nil {
		return nil, err
	}
	defer c.drop()
	if _, err := c.Write(search("slow", full)); err != nil { // takes the one place
		return nil, err
	}
	targets := []target{
		{name: "bare handler", process: bare, request: search("docs", "")},
		{name: "`GET /`", process: ours, request: request(http.MethodGet, "/", "")},
		{name: "`_search`, one shard, no hits", process: ours, request: search("docs", "")},
		{name: "the same in a throttled group, below its limit", process: ours, request: search("docs", limited)},
		{name: "the same, refused with 429", process: ours, request: search("docs", full), status: http.StatusTooManyRequests},
		{name: "`GET _wlm/stats`, three groups", process: ours, request: request(http.MethodGet, "/_wlm/stats", "")},
		{name: "`GET _tasks`, one search", process: ours, request: request(http.MethodGet, "/_tasks", "")},
	}
	t.Subjects = names(targets)
	o.counted /= 2 // there are many of them
	o.rounds = o.few
	return []*report.Table{t}, rotate(o, "requests", targets, func(s target) string { return s.name }, func(s target) error {
		if s.status == 0 {
			s.status = http.StatusOK
		}
		for _, n := range counts {
			if err := o.measure(t, s, n, fmt.Sprint(n, " ")); err != nil {
				return err
			}
		}
		return nil
	})
}
