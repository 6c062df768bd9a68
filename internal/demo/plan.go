package demo

import (
	"fmt"
	"time"
)

// plan is what the demonstration will do. Numbers are of searches.
type plan struct {
	group       string
	index       string
	nodeLimit   int
	queueSize   int
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

func (p plan) indexBody() string { return `{"settings":{"number_of_shards":1}}` }

func (p plan) groupBody() string {
	return fmt.Sprintf(`{"name":%q,"resiliency_mode":"enforced","resource_limits":{"cpu":0.5},`+
		`"throttling":{"attribute":"group","node_limit":%d},"queue":{"size_per_bucket":%d}}`, p.group, p.nodeLimit, p.queueSize)
}

func (p plan) searchBody() string {
	return fmt.Sprintf(`{"query":{"match_all":{}},"ext":{"stub":{"query_time":"%dms"}}}`, p.takes.Milliseconds())
}
