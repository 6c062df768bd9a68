package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/wlmserver/wlmserver/bench/internal/report"
)

// goal is what a figure ought to be. Both reached and missed ones are published.
type goal struct {
	what     string
	table    string
	subject  string
	over     string // the subject to which the ratio is taken; empty = the figure itself
	metric   string
	most     bool // the bound is an upper one
	bound    float64
	digits   int
	relation string // to what, in words
}

// The subjects that goals are about; the programs that measure name them.
const (
	group     = "wlmserver, bucket of the group"
	user      = "wlmserver, bucket of a user"
	semaphore = "x/sync semaphore"
	limited   = "wlmserver, a group below its limit"
	bare      = "bare handler"
	queued    = "wlmserver, 256 clients"
	used      = "wlmserver, used connections"
	streams   = "wlmserver, HTTP/2 streams"
	queueing  = "Kubernetes fair queueing, 64 queues"
	node      = "OpenSearch"
	bareUsed  = "bare handler, used connections"
)

var goals = []goal{
	{"Admission without contention, bucket of the group", "admission-free", group, semaphore, "1", true, 5, 2, "times x/sync"},
	{"Admission without contention, bucket of a user", "admission-free", user, semaphore, "1", true, 12, 2, "times x/sync"},
	{"Saturated bucket, 64 goroutines", "admission-saturated", group, semaphore, "64", true, 1.2, 2, "times x/sync"},
	{"The same by the fair queueing of Kubernetes", "admission-saturated", queueing, group, "64", false, 4, 1, "times ours"},
	{"Permits idle while searches of 50 ms wait", "admission-idle", group, "", "idle", true, 1, 3, "% of their time"},
	{"Cancelling 10,000 waiters in process", "admission-cancel", group, semaphore, "10000", true, 1.5, 2, "times x/sync"},
	{"Cancelling 100,000 waiters in process", "admission-cancel", group, "", "growth", true, 12, 1, "times 10,000"},
	{"Processor time of a search that costs nothing", "http-search", limited, bare, "cpu", true, 2, 2, "times a bare handler"},
	{"Such searches a second", "http-search", limited, bare, "rps", false, 0.6, 2, "times a bare handler"},
	{"Such searches a second", "http-search", limited, node, "rps", false, 5, 1, "times an OpenSearch node"},
	{"10,000 searches by a server that has just been started", "http-fresh", "wlmserver", node, "rps", false, 5, 1, "times an OpenSearch node's, a second"},
	{"Refusals a second", "http-refusal", "wlmserver", "bare gate", "rps", false, 0.6, 2, "times a bare gate"},
	{"Limit 8: searches a second under 256 clients", "http-queue", queued, "", "x8", false, 0.9, 2, "times the same with 8 clients"},
	{"Limit 8: p99 under 256 clients", "http-queue", queued, "", "tail", true, 1.2, 2, "times p50"},
	{"Limit 8: fairness among 256 clients", "http-queue", queued, "", "jain", false, 0.999, 4, "Jain index"},
	{"Memory of a waiting request, used connections", "http-parked", used, bareUsed, "bytes", true, 1.15, 2, "times a bare handler"},
	{"Memory of a waiting request, HTTP/2 streams", "http-parked", streams, bareUsed, "bytes", true, 0.6, 2, "times a bare handler, HTTP/1.1"},
	{"Cancelling 10,000 waiting requests, used connections", "http-cancel", used, bareUsed, "ms", true, 1.5, 2, "times a bare handler's broadcast"},
}

// measured is the goal's figure in whichever report has it; NaN when none has.
func (g goal) measured(reports []*report.Report) float64 {
	for _, r := range reports {
		if t := r.Table(g.table); t != nil {
			if g.over == "" {
				return t.Median(g.subject, g.metric)
			}
			return t.Ratio(g.subject, g.over, g.metric)
		}
	}
	return math.NaN()
}

// needed says whether the reports ought to have the goal's figure: a node of OpenSearch is not in every round.
func (g goal) needed() bool { return g.over != node }

// goalTable is a Markdown table of all goals and where they stand; empty when a report is missing that one of them needs.
func goalTable(reports []*report.Report) string {
	var b strings.Builder
	b.WriteString("| what | unit | goal | measured | |\n| --- | --- | ---: | ---: | --- |\n")
	for _, g := range goals {
		v := g.measured(reports)
		if math.IsNaN(v) {
			if g.needed() {
				return ""
			}
			continue
		}
		sign, reached := "≥", v >= g.bound
		if g.most {
			sign, reached = "≤", v <= g.bound
		}
		state := "reached"
		if !reached {
			state = "**not reached**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s %v | %s | %s |\n", g.what, g.relation, sign, g.bound, report.Figure(v, g.digits), state)
	}
	return b.String()
}
