package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/wlmserver/wlmserver/bench/internal/report"
)

// parking is a server that lets many requests wait, on new connections, on such that were used before, or on streams.
type parking struct {
	name    string
	ours    bool
	used    bool
	streams bool // of one connection, HTTP/2 without TLS
}

const mebibyte = 1 << 20

// park has 10,000 requests wait and then lets them all go by one call.
func (o options) park(b *bench) ([]*report.Table, error) {
	const (
		some = 1_000
		all  = 10_000
	)
	subjects := []parking{
		{name: "bare handler, new connections"}, {name: "bare handler, used connections", used: true},
		{name: "wlmserver, new connections", ours: true}, {name: "wlmserver, used connections", ours: true, used: true},
		{name: "wlmserver, HTTP/2 streams", ours: true, used: true, streams: true},
	}
	memory := &report.Table{
		ID: "http-parked", Title: "Memory of a waiting request",
		Columns: []report.Column{
			{Head: "bytes each", Metric: "bytes"},
			{Head: "x bare, new", Metric: "bytes", Digits: 2, Over: subjects[0].name}, {Head: "x bare, used", Metric: "bytes", Digits: 2, Over: subjects[1].name},
		},
		Notes: []string{"What 10,000 blocked requests add to the process's resident memory, divided by them, in a fresh process each round. The bare handler blocks on a channel and on the request's context.",
			"A used connection has had one request answered before, as those of a client's pool have: its buffers and its goroutine's stack have been grown by that.",
			"The streams are all of one connection, HTTP/2 without TLS. What it takes to let them go tells much of the client, too, which is that of net/http there."},
	}
	cancel := &report.Table{
		ID: "http-cancel", Title: "Cancelling 10,000 waiting requests by one call",
		Columns: []report.Column{
			{Head: "ms", Metric: "ms"},
			{Head: "x bare, new", Metric: "ms", Digits: 2, Over: subjects[0].name}, {Head: "x bare, used", Metric: "ms", Digits: 2, Over: subjects[1].name},
		},
		Notes: []string{"From sending the call until the client has the last of 10,000 answers. For wlmserver it is `POST _tasks/_cancel?actions=*search*`, which finds, marks and ends each task by itself; the bare handler closes one channel that all wait for."},
	}
	rest := &report.Table{
		ID: "start", Title: "Start and memory at rest",
		Columns: []report.Column{
			{Head: "start until the first answer, ms", Metric: "start", Digits: 1}, {Head: "resident MiB at rest", Metric: "rest", Digits: 1},
			{Head: "with 1,000 waiting", Metric: "some", Digits: 1}, {Head: "with 10,000 waiting", Metric: "all", Digits: 1}, {Head: "binary, MiB", Metric: "binary", Digits: 1},
		},
		Notes: []string{"The start is with an empty folder of data, the fastest of six in each round; the probe asks five times in a millisecond at most.",
			"The binary is as `make build` makes it; the bare handler's is that of this benchmark and says nothing, so it is left out."},
	}
	for _, s := range subjects {
		memory.Subjects = append(memory.Subjects, s.name)
		cancel.Subjects = append(cancel.Subjects, s.name)
		rest.Subjects = append(rest.Subjects, s.name)
	}
	sources := 1
	return []*report.Table{memory, cancel, rest}, rotate(o, "park", subjects, func(s parking) string { return s.name }, func(s parking) error {
		sources++
		lot, err := b.openLot(s, fmt.Sprintf("127.0.0.%d", 1+sources%250))
		if err != nil {
			return err
		}
		defer lot.close()
		time.Sleep(300 * time.Millisecond) // for the start to be over
		before := lot.process.resident()
		start, err := b.fastestStart(s, lot.process.started)
		if err != nil {
			return err
		}
		rest.Add(s.name, "start", start.Seconds()*1000)
		rest.Add(s.name, "rest", before/mebibyte)
		if s.ours {
			file, err := os.Stat(b.binary)
			if err != nil {
				return err
			}
			rest.Add(s.name, "binary", float64(file.Size())/mebibyte)
		}
		if err := lot.park(some); err != nil {
			return err
		}
		rest.Add(s.name, "some", lot.process.resident()/mebibyte)
		if err := lot.park(all); err != nil {
			return err
		}
		after := lot.process.resident()
		rest.Add(s.name, "all", after/mebibyte)
		memory.Add(s.name, "bytes", (after-before)/all)
		ms, err := lot.empty()
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		cancel.Add(s.name, "ms", ms)
		return nil
	})
}

// fastestStart starts the server some more times; the fastest start counts, because what else the machine does can only add to it.
func (b *bench) fastestStart(s parking, best time.Duration) (time.Duration, error) {
	for range 5 {
		p, err := b.startBare(s.name)
		if s.ours && err == nil {
			p.kill()
			p, err = b.startOurs()
		}
		if err != nil {
			return 0, err
		}
		p.kill()
		best = min(best, p.started)
	}
	return best, nil
}

// lot is a server with requests that wait in it.
type lot struct {
	parking
	process *process
	from    string // the clients' address: each lot has its own, so that ports are free
	short   []byte
	long    []byte
	release []byte
	waiting func() (float64, error)

	holder      *connection // runs while all others wait
	connections []*connection
	client      *http.Client // of streams
	group       string       // that holds them
	answered    sync.WaitGroup
	mu          sync.Mutex
	statuses    map[int]int
	err         error
}

// openLot starts a server.
func (b *bench) openLot(s parking, from string) (*lot, error) {
	l := &lot{parking: s, from: from, statuses: make(map[int]int)}
	var err error
	if !s.ours {
		l.short, l.long = search("docs", ""), request(http.MethodPost, "/park", "{}", "workloadGroupId", "0123456789012345678901")
		l.release = request(http.MethodPost, "/control/release", "")
		l.waiting = func() (float64, error) { return l.process.control("parked") }
		l.process, err = b.startBare(s.name)
		return l, err
	}
	if l.process, err = b.startOurs(); err != nil {
		return nil, err
	}
	l.release = request(http.MethodPost, "/_tasks/_cancel?actions=*search*", "")
	l.waiting = func() (float64, error) { return l.process.metric("wlmserver_waiters") }
	id, err := l.process.createGroup("parked", 1, 10_000)
	if err == nil {
		err = l.process.createIndex("docs", "")
	}
	if err == nil {
		err = l.process.createIndex("slow", "1h")
	}
	if err == nil {
		l.holder, err = connect(l.process.address, "")
	}
	l.short, l.long, l.group = search("docs", ""), search("slow", id), id
	if s.streams {
		t := &http.Transport{Protocols: new(http.Protocols)}
		t.Protocols.SetUnencryptedHTTP2(true)
		l.client = &http.Client{Transport: t}
	}
	if err == nil {
		_, err = l.holder.Write(l.long)
	}
	if err == nil {
		err = await(1, func() (float64, error) { return l.process.metric(`wlmserver_running{tracked="true"}`) })
	}
	if err == nil && s.streams {
		_, err = l.post("docs", "") // opens the connection
	}
	return l, err
}

// park sends requests until that many wait.
func (l *lot) park(total int) error {
	first := len(l.connections)
	l.connections = append(l.connections, make([]*connection, total-first)...)
	var wg sync.WaitGroup
	errs := make(chan error, total)
	places := make(chan struct{}, 64) // fewer than the kernel keeps for a listener
	for i := first; i < total; i++ {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			errs <- l.parkOne(&l.connections[i])
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	if err := await(float64(total), l.waiting); err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	time.Sleep(200 * time.Millisecond) // for what they have left behind
	return nil
}

func (l *lot) parkOne(place **connection) error {
	if l.streams {
		l.answered.Go(func() { l.count(l.post("slow", l.group)) })
		return nil
	}
	c, err := connect(l.process.address, l.from)
	if err != nil {
		return err
	}
	*place = c
	if l.used {
		if status, err := c.do(l.short); err != nil || status != http.StatusOK {
			return fmt.Errorf("the request before: %d, %w", status, err)
		}
	}
	if _, err := c.Write(l.long); err != nil {
		return err
	}
	l.answered.Go(func() { l.count(c.answer()) })
	return nil
}

// post sends a search on a stream of the one connection, and gives the status.
func (l *lot) post(index, group string) (int, error) {
	r, err := http.NewRequest(http.MethodPost, "http://"+l.process.address+"/"+index+"/_search", strings.NewReader("{}"))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("workloadGroupId", group)
	res, err := l.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err
}

// count takes in the answer to a request that has waited.
func (l *lot) count(status int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.statuses[status]++
	if err != nil {
		l.err = err
	}
}

// empty lets all go and gives the milliseconds until the last has its answer.
func (l *lot) empty() (float64, error) {
	c, err := connect(l.process.address, "")
	if err != nil {
		return 0, err
	}
	defer c.drop()
	begun := time.Now()
	if _, err := c.Write(l.release); err != nil {
		return 0, err
	}
	l.answered.Wait()
	took := time.Since(begun).Seconds() * 1000
	if l.err != nil {
		return 0, l.err
	}
	if len(l.statuses) != 1 {
		return 0, fmt.Errorf("they were answered in different ways: %v", l.statuses)
	}
	return took, nil
}

func (l *lot) close() {
	l.process.kill()
	if l.client != nil {
		l.client.CloseIdleConnections()
	}
	for _, c := range append(l.connections, l.holder) {
		if c != nil {
			c.drop()
		}
	}
	l.answered.Wait()
}
