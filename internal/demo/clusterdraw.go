package demo

import (
	"fmt"
	"strings"
)

// clusterFrameLines is the height of a frame of three nodes.
const clusterFrameLines = 12

// frame draws a row of cells for each node, one cell for each search that it was sent, and what all come to.
func (p clusterPicture) frame() []line {
	lines := []line{
		p.heading(),
		{},
		{{fmt.Sprintf("  %d. %s", p.act+1, p.plan.acts[p.act].title), plain}},
		{},
	}
	for _, r := range p.rows {
		lines = append(lines, r.line(p.plan.perNode()))
	}
	return append(lines,
		line{},
		bar("running", fmt.Sprintf("of %d permits (shared_limit)", p.plan.sharedLimit), pile{p.count[running], running}),
		bar("waiting", "let in node by node, in turn", pile{p.count[waiting], waiting}),
		bar("answered", p.lostNote(), pile{p.count[answered], answered}),
		line{},
	)
}

func (p clusterPicture) heading() line {
	return line{
		{"  A cluster of three", bold},
		{fmt.Sprintf("   group %s   searches of %v", p.plan.group, p.plan.takes), plain},
		{fmt.Sprintf("   %5.1f s", p.elapsed.Seconds()), faint},
	}
}

func (p clusterPicture) lostNote() string {
	if p.count[lost] == 0 {
		return "with 200"
	}
	return fmt.Sprintf("%d lost with their node", p.count[lost])
}

// perNode is how many searches a node is sent in all acts.
func (p clusterPlan) perNode() int { return p.searches / len(p.nodes) }

// line draws a node's cells in a column of that width.
func (r nodeRow) line(width int) line {
	note := fmt.Sprintf("  %d running, %2d waiting", r.count[running], r.count[waiting])
	colour := faint
	if r.dead {
		note, colour = "  killed", red
	}
	l := append(line{{fmt.Sprintf("  %-4s", r.name), bold}}, cells(r.states)...)
	return append(l, span{strings.Repeat(" ", max(0, width-len(r.states))), plain}, span{note, colour})
}

func (p clusterPicture) progress() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%5.1fs ", p.elapsed.Seconds())
	for _, r := range p.rows {
		if r.dead {
			fmt.Fprintf(&b, "  %s killed             ", r.name)
		} else {
			fmt.Fprintf(&b, "  %s running %d waiting %2d", r.name, r.count[running], r.count[waiting])
		}
	}
	fmt.Fprintf(&b, "   all: running %d of %d  answered %2d  lost %d", p.count[running], p.plan.sharedLimit, p.count[answered], p.count[lost])
	return b.String()
}

// clusterTable lays out what each node counted.
func clusterTable(names []string, nodes map[string]groupStats, restarted int) []line {
	lines := []line{{{fmt.Sprintf("  %-6s%14s%18s%23s%17s", "node", "total_queued", "queue_wait_count", "max_queue_wait_millis", "total_throttled"), faint}}}
	for i, name := range names {
		s := nodes[name]
		l := line{{fmt.Sprintf("  %-6s", name), bold}, {fmt.Sprintf("%14d%18d%23d%17d", s.Queued, s.QueueWaits, s.LongestWaitMilli, s.Throttled), plain}}
		if i == restarted {
			l = append(l, span{"   since its start", faint})
		}
		lines = append(lines, l)
	}
	return lines
}
