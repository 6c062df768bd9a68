package soak_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/test/server"
)

// steady is a group that is never deleted and whose clients never leave before they are answered: what they saw is what happened.
const steady = "steady"

// fickle are groups that come and go, and whose clients do.
var fickle = []string{"fickle-1", "fickle-2"}

// soak is one run.
type soak struct {
	testing.TB
	*server.Process
	seed, round uint64
	steadyID    string
	ids         map[string]*atomic.Pointer[string] // by name of the group

	checks, changes, wrongs atomic.Int64

	mu      sync.Mutex
	tallies map[string]*tally
}

// tally is what clients saw of a group.
type tally struct {
	sent      int // searches that asked to be admitted
	ran       int
	refused   int
	cancelled int
	left      int // the client did not wait for the answer
}

func newSoak(t testing.TB, p *server.Process, seed uint64) *soak {
	t.Helper()
	s := &soak{TB: t, Process: p, seed: seed, ids: map[string]*atomic.Pointer[string]{}, tallies: map[string]*tally{}}
	p.CreateIndex("quick", "")
	p.CreateIndex("slow", `"index.stub.query_time":"3ms","index.stub.jitter":0.9`)
	p.Must(http.MethodPut, "/wide", `{"settings":{"number_of_shards":3,"number_of_replicas":0,"index.stub.query_time":"1ms"}}`, nil)
	for range 3 {
		p.Send(t.Context(), http.MethodPost, "/quick/_doc", `{"a":1}`)
	}
	for _, name := range append([]string{steady, ""}, fickle...) {
		id := name
		if name != "" {
			id = p.CreateGroup(name, firstLimits)
		}
		s.ids[name] = new(atomic.Pointer[string])
		s.ids[name].Store(&id)
	}
	s.steadyID = *s.ids[steady].Load()
	return s
}

// wrong reports what is wrong, the first twenty times: the load goes on, and one fault may show in every answer.
func (s *soak) wrong(format string, args ...any) {
	s.Helper()
	switch n := s.wrongs.Add(1); {
	case n < 20:
		s.Errorf(format, args...)
	case n == 20:
		s.Error("and more of it")
	}
}

func (s *soak) count(group string, add func(*tally)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tallies[group] == nil {
		s.tallies[group] = &tally{}
	}
	add(s.tallies[group])
}

func (s *soak) tally(group string) tally {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.tallies[group]
}

func (s *soak) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for name, t := range s.tallies {
		fmt.Fprintf(&b, " %q %+v", name, *t)
	}
	return b.String()
}

// client is one goroutine that sends searches, one at a time.
type client struct {
	*soak
	rand *rand.Rand
}

func (s *soak) client(number uint64) *client {
	return &client{soak: s, rand: rand.New(rand.NewPCG(s.seed, s.round<<32|number))}
}

func (c *client) work(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		switch c.rand.IntN(20) {
		case 0:
			c.multi()
		case 1:
			c.scroll()
		case 2:
			c.nested()
		case 3, 4:
			c.one(http.MethodGet, "/"+c.index()+"/_count", "")
		default:
			c.one(http.MethodPost, "/"+c.index()+"/_search"+c.parameters(), c.body())
		}
		if c.rand.IntN(4) == 0 { // bursts and pauses
			time.Sleep(time.Duration(c.rand.IntN(10)) * time.Millisecond)
		}
	}
}

func (c *client) index() string {
	return []string{"quick", "slow", "slow", "slow", "wide", "quick,slow"}[c.rand.IntN(6)]
}

func (c *client) parameters() string {
	switch c.rand.IntN(8) {
	case 0:
		return fmt.Sprintf("?cancel_after_time_interval=%dms", 1+c.rand.IntN(30))
	case 1:
		return fmt.Sprintf("?timeout=%dms", 1+c.rand.IntN(5))
	}
	return ""
}

func (c *client) body() string {
	switch c.rand.IntN(6) {
	case 0:
		return `{"ext":{"stub":{"query_cpu":"500micros","query_memory":"64kb"}}}`
	case 1:
		return `{"size":2,"ext":{"stub":{"hits":50,"fetch_time":"1ms"}}}`
	}
	return `{}`
}

// somewhere chooses a group and a principal, and a context: clients of the steady group wait for their answer.
func (c *client) somewhere() (ctx context.Context, done context.CancelFunc, group string, headers []string) {
	group = []string{steady, steady, steady, fickle[0], fickle[1], ""}[c.rand.IntN(6)]
	headers = []string{
		"x-proxy-user", fmt.Sprint("u", c.rand.IntN(4)), "x-proxy-roles", fmt.Sprint("admin,r", c.rand.IntN(3)),
		"workloadGroupId", *c.ids[group].Load(),
	}
	if group != steady && c.rand.IntN(4) == 0 {
		ctx, done = context.WithTimeout(c.Context(), time.Duration(c.rand.IntN(20_000))*time.Microsecond)
		return ctx, done, group, headers
	}
	return c.Context(), func() {}, group, headers
}

// abroad is somewhere without the steady group: for requests of which nobody can say how many searches they were.
func (c *client) abroad() (ctx context.Context, done context.CancelFunc, group string, headers []string) {
	for {
		if ctx, done, group, headers = c.somewhere(); group != steady {
			return ctx, done, group, headers
		}
	}
}

// one sends a request that is one search, and counts its end.
func (c *client) one(method, path, body string) {
	ctx, done, group, headers := c.somewhere()
	defer done()
	c.end(ctx, group, c.Send(ctx, method, path, body, headers...), path)
}

// end counts how a search ended.
func (c *client) end(ctx context.Context, group string, a server.Answer, what string) {
	switch {
	case a.Err != nil && ctx.Err() != nil:
		c.count(group, func(t *tally) { t.left++ })
		return
	case a.Err != nil:
		c.wrong("%s was not answered: %v", what, a.Err)
		return
	}
	c.outcome(group, a.Status, a.Body, what)
}

// outcome counts one answer, or one item of a multi-search's. Anything but these answers is a defect: these clients ask for nothing
// that is wrong or unknown, and for less than the pool takes.
func (c *client) outcome(group string, status int, body []byte, what string) {
	typ := server.Answer{Body: body}.ErrorType()
	var add func(*tally)
	switch {
	case status == http.StatusOK:
		add = func(t *tally) { t.sent++; t.ran++ }
	case status == http.StatusTooManyRequests && typ == "rejected_execution_exception" && strings.Contains(string(body), "Request throttled"):
		add = func(t *tally) { t.sent++; t.refused++ }
	case status == http.StatusInternalServerError && strings.Contains(string(body), "task_cancelled_exception"):
		add = func(t *tally) { t.sent++; t.cancelled++ }
	default:
		c.wrong("%s was answered %d %s", what, status, body)
		return
	}
	c.count(group, add)
}

// nested sends a search that runs two others on its way.
func (c *client) nested() {
	ctx, done, group, headers := c.abroad()
	defer done()
	c.end(ctx, group, c.Send(ctx, http.MethodPost, "/slow/_search", `{"ext":{"stub":{"nested":"quick,slow"}}}`, headers...), "a search with nested ones")
}

// multi sends a multi-search.
func (c *client) multi() {
	ctx, done, group, headers := c.abroad()
	defer done()
	items := 1 + c.rand.IntN(4)
	var body strings.Builder
	for range items {
		fmt.Fprintf(&body, "{\"index\":\"slow\"}\n%s\n", c.body())
	}
	a := c.Send(ctx, http.MethodPost, "/_msearch", body.String(), append(headers, "Content-Type", "application/x-ndjson")...)
	if a.Err != nil || a.Status != http.StatusOK {
		c.end(ctx, group, a, "_msearch")
		return
	}
	var all struct {
		Responses []json.RawMessage `json:"responses"`
	}
	if err := json.Unmarshal(a.Body, &all); err != nil || len(all.Responses) != items {
		c.wrong("%d items were answered with %s", items, a.Body)
	}
	for _, r := range all.Responses {
		var item struct {
			Status int `json:"status"`
		}
		if err := json.Unmarshal(r, &item); err != nil {
			c.wrong("an item was answered %s", r)
		}
		c.outcome(group, item.Status, r, "an item")
	}
}

// scroll opens a scroll, reads a page or two, and frees it. A client that has left meanwhile frees it too: a node has only so many, and
// of a page whose scroll is freed by somebody else nobody can say whether it asked to be admitted.
func (c *client) scroll() {
	ctx, done, group, headers := c.somewhere()
	defer done()
	a := c.Send(ctx, http.MethodPost, "/quick/_search?scroll=10s", `{"size":1}`, headers...)
	c.end(ctx, group, a, "opening a scroll")
	var s struct {
		ID string `json:"_scroll_id"`
	}
	if a.Err != nil || a.Status != http.StatusOK || json.Unmarshal(a.Body, &s) != nil || s.ID == "" {
		return
	}
	for range c.rand.IntN(3) {
		a = c.Send(ctx, http.MethodPost, "/_search/scroll", fmt.Sprintf(`{"scroll":"10s","scroll_id":%q}`, s.ID), headers...)
		c.end(ctx, group, a, "a page")
	}
	a = c.Send(c.Context(), http.MethodDelete, "/_search/scroll", fmt.Sprintf(`{"scroll_id":%q}`, s.ID), headers...)
	if a.Err != nil || a.Status != http.StatusOK && a.Status != http.StatusNotFound {
		c.wrong("freeing a scroll was answered %d %v %s", a.Status, a.Err, a.Body)
	}
}
