package main

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/wlmserver/wlmserver/bench/internal/report"
)

// panel is one figure of every subject.
type panel struct {
	title  string
	table  string
	metric string
	digits int
	bars   bool // from 0, for what differs too little for powers of ten
}

var panels = []panel{
	{title: "Admission without contention, ns", table: "admission-free", metric: "1"},
	{title: "Saturated, 64 goroutines, ns an operation", table: "admission-saturated", metric: "64"},
	{title: "Cancelling 10,000 waiters, ms", table: "admission-cancel", metric: "10000", digits: 1},
	{title: "Letting 10,000 waiters run, ms", table: "admission-drain", metric: "10000", digits: 1},
	{title: "Hand-over of a permit, p50, µs", table: "admission-handover", metric: "p50", digits: 1},
	{title: "Memory of a waiter, bytes", table: "admission-memory", metric: "bytes", bars: true},
}

// Measures of the plot, in pixels.
const (
	rowHeight  = 20
	nameWidth  = 230
	scaleWidth = 250
	valueWidth = 60
	panelWidth = nameWidth + scaleWidth + valueWidth
	titleRoom  = 46
	gap        = 24
)

// draw writes a plot as SVG: a panel for each figure, in it a dot for each subject at its median and a line from its least to its
// most, on a scale of powers of ten.
func draw(w io.Writer, r *report.Report) {
	var found []panel
	subjects := 0
	for _, p := range panels {
		if t := r.Table(p.table); t != nil {
			found = append(found, p)
			subjects = max(subjects, len(t.Subjects))
		}
	}
	panelHeight := titleRoom + subjects*rowHeight + gap
	width := 2*panelWidth + 3*gap
	height := gap + (len(found)+1)/2*panelHeight + gap
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(w, `<title>Admission beside other limiters</title>`+"\n")
	fmt.Fprintf(w, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	for i, p := range found {
		p.draw(w, r.Table(p.table), gap+i%2*(panelWidth+gap), gap+i/2*panelHeight)
	}
	fmt.Fprintf(w, `<text x="%d" y="%d" fill="#666">%s</text>`+"\n", gap, height-gap/2, escape(fmt.Sprintf(
		"Medians of %d rounds, lines from the least to the most; all scales but that of memory are logarithmic. %s, %s, %s.",
		r.Rounds, r.Machine, r.Go, r.Date.Format(time.DateOnly))))
	fmt.Fprintln(w, "</svg>")
}

func (p panel) draw(w io.Writer, t *report.Table, left, top int) {
	least, most := math.Inf(1), 0.0
	for _, s := range t.Subjects {
		for _, v := range t.Samples[s][p.metric] {
			least, most = min(least, v), max(most, v)
		}
	}
	if most == 0 {
		return
	}
	low, high := math.Log10(least)-0.05, math.Log10(most)+0.05
	x := func(v float64) float64 {
		if p.bars {
			return float64(left+nameWidth) + v/most*scaleWidth
		}
		return float64(left+nameWidth) + (math.Log10(v)-low)/(high-low)*scaleWidth
	}
	bottom := top + titleRoom + len(t.Subjects)*rowHeight
	fmt.Fprintf(w, `<text x="%d" y="%d" font-size="14" font-weight="600" fill="#111">%s</text>`+"\n", left, top+14, escape(p.title))
	for tens := math.Ceil(low); tens <= high && !p.bars; tens++ {
		at := x(math.Pow(10, tens))
		fmt.Fprintf(w, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#ddd"/>`+"\n", at, at, top+titleRoom-8, bottom-4)
		fmt.Fprintf(w, `<text x="%.1f" y="%d" text-anchor="middle" font-size="10" fill="#888">%s</text>`+"\n", at, top+titleRoom-12, report.Figure(math.Pow(10, tens), 0))
	}
	order := slices.SortedStableFunc(slices.Values(t.Subjects), func(a, b string) int {
		return cmp.Compare(t.Median(a, p.metric), t.Median(b, p.metric))
	})
	for i, s := range order {
		y := top + titleRoom + i*rowHeight + rowHeight/2
		samples := t.Samples[s][p.metric]
		if len(samples) == 0 {
			continue
		}
		colour, weight := "#7a869a", "400"
		if strings.HasPrefix(s, "wlmserver") {
			colour, weight = "#0b63c5", "600"
		}
		median := t.Median(s, p.metric)
		fmt.Fprintf(w, `<text x="%d" y="%d" fill="#222" font-weight="%s">%s</text>`+"\n", left, y+4, weight, escape(s))
		if p.bars {
			fmt.Fprintf(w, `<rect x="%.1f" y="%d" width="%.1f" height="9" fill="%s"/>`+"\n", x(0), y-4, x(median)-x(0), colour)
		} else {
			fmt.Fprintf(w, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="%s" stroke-width="2" opacity="0.45"/>`+"\n",
				x(slices.Min(samples)), x(slices.Max(samples)), y, y, colour)
			fmt.Fprintf(w, `<circle cx="%.1f" cy="%d" r="4.5" fill="%s"/>`+"\n", x(median), y, colour)
		}
		fmt.Fprintf(w, `<text x="%d" y="%d" text-anchor="end" fill="#222" font-weight="%s">%s</text>`+"\n", left+panelWidth, y+4, weight, report.Figure(median, p.digits))
	}
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes everything
	return b.String()
}
