package rest

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wlmserver/wlmserver/internal/stub"
	"github.com/wlmserver/wlmserver/search"
)

func (s *Server) clusterRoutes() []route {
	const health = timeouts + " level local wait_for_status wait_for_nodes wait_for_active_shards wait_for_no_relocating_shards" +
		" wait_for_no_initializing_shards wait_for_events expand_wildcards awareness_attribute ensure_node_commissioned"
	return []route{
		{methods: "GET", pattern: "/_cluster/health", params: health, prepare: s.health},
		{methods: "GET", pattern: "/_cluster/health/{index}", params: health, prepare: s.health},
	}
}

const (
	// healthWait is how long health waits for what it is asked to wait for.
	healthWait = 30 * time.Second
	// healthPoll is how often it looks meanwhile.
	healthPoll = 50 * time.Millisecond
)

// healthStatus is the state of shards, from good to bad.
type healthStatus uint8

const (
	green healthStatus = iota
	yellow
	red
)

func (h healthStatus) String() string { return [...]string{"green", "yellow", "red"}[h] }

// priorities are those of the events that health may be told to wait for. There are none to wait for here.
var priorities = []string{"immediate", "urgent", "high", "normal", "low", "languid"}

// healthRequest is what GET _cluster/health is asked.
type healthRequest struct {
	index        string // name, pattern or list; empty for all
	found        stub.Expansion
	level        string
	worst        healthStatus // wait until it is no worse
	nodes        func(n int) bool
	activeShards func(h *healthDTO) bool
	timeout      time.Duration
	human        bool
}

type healthDTO struct {
	ClusterName       string  `json:"cluster_name"`
	Status            string  `json:"status"`
	TimedOut          bool    `json:"timed_out"`
	Nodes             int     `json:"number_of_nodes"`
	DataNodes         int     `json:"number_of_data_nodes"`
	Master            bool    `json:"discovered_master"`
	ClusterManager    bool    `json:"discovered_cluster_manager"`
	ActivePrimaries   int     `json:"active_primary_shards"`
	Active            int     `json:"active_shards"`
	Relocating        int     `json:"relocating_shards"`
	Initializing      int     `json:"initializing_shards"`
	Unassigned        int     `json:"unassigned_shards"`
	DelayedUnassigned int     `json:"delayed_unassigned_shards"`
	PendingTasks      int     `json:"number_of_pending_tasks"`
	InFlightFetch     int     `json:"number_of_in_flight_fetch"`
	MaxWaiting        string  `json:"task_max_waiting_in_queue,omitempty"`
	MaxWaitingMillis  int     `json:"task_max_waiting_in_queue_millis"`
	ActivePercentText string  `json:"active_shards_percent,omitempty"`
	ActivePercent     double  `json:"active_shards_percent_as_number"`
	Indices           members `json:"indices,omitzero"`
	// Reasons say what is wrong with the cluster itself. OpenSearch has no such member, and its clients pass over it.
	Reasons []string `json:"reasons,omitempty"`

	status healthStatus
}

type indexHealthDTO struct {
	Status          string  `json:"status"`
	Shards          int     `json:"number_of_shards"`
	Replicas        int     `json:"number_of_replicas"`
	ActivePrimaries int     `json:"active_primary_shards"`
	Active          int     `json:"active_shards"`
	Relocating      int     `json:"relocating_shards"`
	Initializing    int     `json:"initializing_shards"`
	Unassigned      int     `json:"unassigned_shards"`
	ShardHealth     members `json:"shards,omitzero"`
}

type shardHealthDTO struct {
	Status        string `json:"status"`
	PrimaryActive bool   `json:"primary_active"`
	Active        int    `json:"active_shards"`
	Relocating    int    `json:"relocating_shards"`
	Initializing  int    `json:"initializing_shards"`
	Unassigned    int    `json:"unassigned_shards"`
}

func (s *Server) health(c *call) (action, error) {
	q, err := c.healthRequest()
	if err != nil {
		return nil, err
	}
	return func() (*answer, error) {
		return c.asTask("cluster:monitor/health", false, func() (*answer, error) {
			ctx, done := c.untilGone()
			defer done()
			h, err := s.awaitHealth(ctx, q)
			if err != nil {
				return nil, err
			}
			a := &answer{value: h}
			if h.TimedOut {
				a.status = http.StatusRequestTimeout
			}
			return a, nil
		})
	}, nil
}

func (c *call) healthRequest() (*healthRequest, error) {
	q := &healthRequest{level: c.query.Get("level"), worst: red, nodes: func(int) bool { return true }, human: c.human}
	q.index = c.param("index")
	if err := c.checkTimeouts(); err != nil {
		return nil, err
	}
	var err error
	if q.timeout, err = c.duration("timeout", healthWait); err != nil {
		return nil, err
	}
	if v := c.query.Get("wait_for_status"); v != "" {
		switch strings.ToLower(v) {
		case "green":
			q.worst = green
		case "yellow":
			q.worst = yellow
		case "red":
		default:
			return nil, illegalArgument("parameter [wait_for_status] must be green, yellow or red, not [%s]", v)
		}
	}
	if v := c.query.Get("wait_for_nodes"); v != "" {
		if q.nodes, err = parseNodeCount(v); err != nil {
			return nil, err
		}
	}
	if q.activeShards, err = parseActiveShards(c.query.Get("wait_for_active_shards")); err != nil {
		return nil, err
	}
	if _, err := c.s.cfg.Stub.Indices(q.index); err != nil && !isIndexNotFound(err) {
		return nil, err
	}
	if q.found, err = c.expansion(stub.Expansion{IgnoreUnavailable: true, Wildcards: stub.AllIndices}); err != nil {
		return nil, err
	}
	if v := c.query.Get("wait_for_events"); v != "" && !slices.Contains(priorities, strings.ToLower(v)) {
		return nil, illegalArgument("parameter [wait_for_events] must be one of %v, not [%s]", priorities, v)
	}
	for _, name := range [...]string{"local", "wait_for_no_relocating_shards", "wait_for_no_initializing_shards", "ensure_node_commissioned"} {
		if _, err := c.flag(name, false); err != nil {
			return nil, err
		}
	}
	if q.index != "" && q.level == "awareness_attributes" {
		return nil, &search.ValidationError{Problems: []string{"[level] may be [awareness_attributes] for all indices together, not for [" + q.index + "]"}}
	}
	return q, nil
}

// parseNodeCount reads "3", ">=3", ">3", "<=3", "<3" and the same in words, such as "ge(3)".
func parseNodeCount(v string) (func(n int) bool, error) {
	comparisons := [...]struct {
		sign, word string
		holds      func(n, want int) bool
	}{
		{">=", "ge(", func(n, want int) bool { return n >= want }},
		{"<=", "le(", func(n, want int) bool { return n <= want }},
		{">", "gt(", func(n, want int) bool { return n > want }},
		{"<", "lt(", func(n, want int) bool { return n < want }},
		{"", "", func(n, want int) bool { return n == want }},
	}
	for _, cmp := range comparisons {
		digits, ok := strings.CutPrefix(v, cmp.sign)
		if word, isWord := strings.CutPrefix(v, cmp.word); cmp.word != "" && isWord {
			digits, ok = strings.CutSuffix(word, ")")
		}
		if !ok {
			continue
		}
		want, err := strconv.Atoi(digits)
		if err != nil {
			break
		}
		return func(n int) bool { return cmp.holds(n, want) }, nil
	}
	f := illegalArgument("parameter [wait_for_nodes] must be a number, with >=, <=, > or < before it if wanted, not [%s]", v)
	f.typ = "number_format_exception"
	return nil, f
}

// parseActiveShards reads "all" or a number of active shards to wait for.
func parseActiveShards(v string) (func(h *healthDTO) bool, error) {
	if v == "all" {
		return func(h *healthDTO) bool { return h.Unassigned == 0 }, nil
	}
	if v == "" {
		return func(*healthDTO) bool { return true }, nil
	}
	if err := checkActiveShards(v); err != nil {
		return nil, err
	}
	want, err := strconv.Atoi(v)
	return func(h *healthDTO) bool { return h.Active >= want }, err
}

// checkActiveShards refuses what does not say how many copies of a shard there are to be. Only health waits for them.
func checkActiveShards(v string) error {
	if v == "all" {
		return nil
	}
	n, err := strconv.Atoi(v)
	if err == nil && n >= 0 {
		return nil
	}
	f := illegalArgument("parameter [wait_for_active_shards] must be [all] or a number from 0, not [%s]", v)
	if err != nil {
		f.cause = numberFormat(v)
	}
	return f
}

// awaitHealth waits until the state of the cluster is as asked for, or the time is up.
func (s *Server) awaitHealth(ctx context.Context, q *healthRequest) (*healthDTO, error) {
	h, met := s.currentHealth(q)
	if met || q.timeout == 0 {
		h.TimedOut = !met
		return h, nil
	}
	var timedOut <-chan time.Time
	if q.timeout > 0 {
		t := time.NewTimer(q.timeout)
		defer t.Stop()
		timedOut = t.C
	}
	poll := time.NewTicker(healthPoll)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-timedOut:
			h, met = s.currentHealth(q)
			h.TimedOut = !met
			return h, nil
		case <-poll.C:
			if h, met = s.currentHealth(q); met {
				return h, nil
			}
		}
	}
}

// currentHealth is the state of the cluster now, and whether it is as asked for: the worst of what is wrong with the cluster and with
// its shards. With one node, replicas have no place to be: they stay unassigned.
func (s *Server) currentHealth(q *healthRequest) (_ *healthDTO, met bool) {
	cluster, nodes := s.clusterHealth(), len(s.clusterMembers())
	h := &healthDTO{ClusterName: s.cfg.Node.ClusterName, Nodes: nodes, DataNodes: nodes, Master: cluster.Metadata, ClusterManager: cluster.Metadata}
	h.status, h.Reasons = cluster.status()
	indices, err := s.cfg.Stub.Expand(q.index, q.found)
	if err == nil { // whatever is left out, a name that does not exist is waited for
		_, err = s.cfg.Stub.Indices(q.index)
	}
	for _, x := range indices {
		i := newIndexHealth(x, q.level == "shards")
		h.ActivePrimaries += i.ActivePrimaries
		h.Active += i.Active
		h.Initializing += i.Initializing
		h.Unassigned += i.Unassigned
		h.status = max(h.status, copiesStatus(i.ActivePrimaries < i.Shards, i.Initializing+i.Unassigned))
		if q.level == "indices" || q.level == "shards" {
			h.Indices = append(h.Indices, member{x.Name, i})
		}
	}
	if h.Indices == nil && (q.level == "indices" || q.level == "shards") {
		h.Indices = members{}
	}
	h.ActivePercent = 100
	if h.status != green {
		h.ActivePercent = s.activePercent()
	}
	if err != nil { // no such index, yet
		h.status = red
	}
	h.Status = h.status.String()
	if q.human {
		h.MaxWaiting = "0s"
		h.ActivePercentText = strconv.FormatFloat(float64(h.ActivePercent), 'f', 1, 64) + "%"
	}
	return h, err == nil && h.status <= q.worst && q.nodes(h.Nodes) && q.activeShards(h)
}

// activePercent is the part of all shards that are active, whichever were asked for: only where all of these are active, it is
// not looked at.
func (s *Server) activePercent() double {
	all, err := s.cfg.Stub.Indices("")
	if err != nil { // all there are can always be asked for
		panic(err)
	}
	var active, shards int
	for _, x := range all {
		active += x.Active()
		shards += x.Shards * (1 + x.Replicas)
	}
	if shards == 0 {
		return 100
	}
	return double(float64(active) / float64(shards) * 100) // in this order: the last digit is OpenSearch's
}

func newIndexHealth(x stub.IndexInfo, shards bool) indexHealthDTO {
	i := indexHealthDTO{
		Shards: x.Shards, Replicas: x.Replicas, ActivePrimaries: x.ActivePrimaries(), Active: x.Active(),
		Initializing: x.Initializing(), Unassigned: x.Unassigned(),
	}
	i.Status = copiesStatus(i.ActivePrimaries < i.Shards, i.Initializing+i.Unassigned).String()
	for n := 0; shards && n < x.Shards; n++ {
		h := shardHealthDTO{PrimaryActive: len(x.Copies[n]) > 0, Unassigned: 1 + x.Replicas - len(x.Copies[n])}
		for _, copy := range x.Copies[n] {
			if copy.Started {
				h.Active++
			} else {
				h.Initializing++
			}
		}
		h.Status = copiesStatus(!h.PrimaryActive, h.Initializing+h.Unassigned).String()
		i.ShardHealth = append(i.ShardHealth, member{strconv.Itoa(n), h})
	}
	return i
}

// copiesStatus is red where documents cannot be reached, and yellow where copies of them are missing.
func copiesStatus(lacking bool, missing int) healthStatus {
	switch {
	case lacking:
		return red
	case missing > 0:
		return yellow
	}
	return green
}

func isIndexNotFound(err error) bool {
	_, ok := errors.AsType[*search.IndexNotFoundError](err)
	return ok
}
