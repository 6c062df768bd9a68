package demo

import (
	"fmt"
	"time"
)

// plan is what the demonstration will do. Numbers are of searches.
type plan struct {
	group       string
	index       string
	nodeLimit   int // 0 = none
	sharedLimit int // 0 = none
	queueSize   int
	replicas    int // of the index
	searches    int
	takes       time.Duration // each search
	every       time.Duration // from one search sent to the next
	patience    time.Duration // cancel_after_time_interval of the impatient ones
	impatient   []int         // which searches give up by themselves
	cancelAt    time.Duration // when _tasks/_cancel is called, from the first search on
	cancelCount int           // how many of the last in line it is called for
}

// newPlan lets all searches arrive while the first ones still run, so that the limit is full, then the queue, and what is
// left is refused; those that give up and those that are cancelled stand at the end of the line.
func newPlan(fast bool) plan {
	p := plan{
		group:       "reports",
		index:       "demo",
		nodeLimit:   4,
		queueSize:   24,
		searches:    40,
		takes:       800 * time.Millisecond,
		every:       15 * time.Millisecond,
		patience:    1500 * time.Millisecond,
		cancelAt:    2300 * time.Millisecond,
		cancelCount: 3,
	}
	if fast {
		p.takes /= 8
		p.every /= 8
		p.patience /= 8
		p.cancelAt /= 8
	}
	for i := range 4 {
		p.impatient = append(p.impatient, p.nodeLimit+p.queueSize-4+i)
	}
	return p
}

func (p plan) indexBody() string {
	if p.replicas > 0 {
		return fmt.Sprintf(`{"settings":{"number_of_shards":1,"number_of_replicas":%d}}`, p.replicas)
	}
	return `{"settings":{"number_of_shards":1}}`
}

func (p plan) groupBody() string {
	limit, n := "node_limit", p.nodeLimit
	if p.sharedLimit > 0 {
		limit, n = "shared_limit", p.sharedLimit
	}
	return fmt.Sprintf(`{"name":%q,"resiliency_mode":"enforced","resource_limits":{"cpu":0.5},`+
		`"throttling":{"attribute":"group",%q:%d},"queue":{"size_per_bucket":%d}}`, p.group, limit, n, p.queueSize)
}

func (p plan) searchBody() string {
	return fmt.Sprintf(`{"query":{"match_all":{}},"ext":{"stub":{"query_time":"%dms"}}}`, p.takes.Milliseconds())
}
