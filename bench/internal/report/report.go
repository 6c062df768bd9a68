// Package report holds what a benchmark measured, and shows it as text, as Markdown and as JSON.
package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Report is what one run of one program measured.
type Report struct {
	Program string    `json:"program"`
	Date    time.Time `json:"date"`
	Machine string    `json:"machine"`
	Go      string    `json:"go"`
	Load    string    `json:"load,omitempty"` // the machine's load average when it began, which is of others
	Rounds  int       `json:"rounds"`
	Tables  []*Table  `json:"tables"`
}

// Table is one comparison: subjects that were measured in the same rounds, one after the other.
type Table struct {
	ID       string   `json:"id"`
	Title    string   `json:"title"`
	Notes    []string `json:"notes,omitempty"` // what the figures mean, and what was not equal
	Subjects []string `json:"subjects"`
	Columns  []Column `json:"columns"`

	// Samples are by subject and metric, one for each round in their order.
	Samples map[string]map[string][]float64 `json:"samples"`
}

// Column says what a table shows of a metric.
type Column struct {
	Head   string `json:"head"`
	Metric string `json:"metric"`
	Digits int    `json:"digits"` // behind the point

	// Over is the subject to which the column gives the ratio; empty, and it gives the figure itself.
	Over string `json:"over,omitempty"`
	// Most shows the largest of the rounds in place of the median.
	Most bool `json:"most,omitempty"`
}

// New begins a report.
func New(program string, rounds int) *Report {
	load, _ := os.ReadFile("/proc/loadavg") // elsewhere nothing is said
	now, _, _ := strings.Cut(string(load), " ")
	return &Report{
		Program: program, Date: time.Now().UTC().Truncate(time.Second), Machine: machine(), Go: runtime.Version(), Load: now, Rounds: rounds,
	}
}

// where says where and when it was measured.
func (r *Report) where() string {
	s := fmt.Sprintf("%s, %s, %s", r.Machine, r.Go, r.Date.Format(time.DateOnly))
	if r.Load != "" {
		s += ", where the load average was " + r.Load + " before"
	}
	return s
}

// Add takes in the sample of one round.
func (t *Table) Add(subject, metric string, v float64) {
	if t.Samples == nil {
		t.Samples = make(map[string]map[string][]float64)
	}
	if t.Samples[subject] == nil {
		t.Samples[subject] = make(map[string][]float64)
	}
	t.Samples[subject][metric] = append(t.Samples[subject][metric], v)
}

// Median is the median of the subject's rounds; NaN when there are none.
func (t *Table) Median(subject, metric string) float64 {
	return Median(t.Samples[subject][metric])
}

// Ratio is the median of the ratios that subject and base had in each round, which what else the machine did moves less than the
// ratio of their medians.
func (t *Table) Ratio(subject, base, metric string) float64 {
	s, b := t.Samples[subject][metric], t.Samples[base][metric]
	var ratios []float64
	for i := range min(len(s), len(b)) {
		ratios = append(ratios, s[i]/b[i])
	}
	return Median(ratios)
}

// Median is the median; NaN of nothing.
func Median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// Table is the table of that id, or nil.
func (r *Report) Table(id string) *Table {
	i := slices.IndexFunc(r.Tables, func(t *Table) bool { return t.ID == id })
	if i < 0 {
		return nil
	}
	return r.Tables[i]
}

// cells are the table's head and rows as texts.
func (t *Table) cells() [][]string {
	head := []string{""}
	for _, c := range t.Columns {
		head = append(head, c.Head)
	}
	out := [][]string{head}
	for _, s := range t.Subjects {
		if t.Samples[s] == nil {
			continue
		}
		row := []string{s}
		for _, c := range t.Columns {
			v := t.Median(s, c.Metric)
			switch {
			case c.Over != "":
				v = t.Ratio(s, c.Over, c.Metric)
			case c.Most && !math.IsNaN(v):
				v = slices.Max(t.Samples[s][c.Metric])
			}
			row = append(row, Figure(v, c.Digits))
		}
		out = append(out, row)
	}
	return out
}

// Figure writes a number with commas between its thousands, and with that many digits behind the point.
func Figure(v float64, digits int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "-"
	}
	s := fmt.Sprintf("%.*f", digits, v)
	whole, fraction, _ := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return whole
}

// Text writes every table for a terminal.
func (r *Report) Text(w io.Writer) {
	fmt.Fprintf(w, "%s; medians of up to %d rounds\n", r.where(), r.Rounds)
	for _, t := range r.Tables {
		fmt.Fprintf(w, "\n%s\n", t.Title)
		cells := t.cells()
		widths := make([]int, len(cells[0]))
		for _, row := range cells {
			for i, c := range row {
				widths[i] = max(widths[i], utf8.RuneCountInString(c))
			}
		}
		for _, row := range cells {
			for i, c := range row {
				pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
				if i == 0 {
					fmt.Fprint(w, c, pad)
				} else {
					fmt.Fprint(w, "  ", pad, c)
				}
			}
			fmt.Fprintln(w)
		}
		for _, n := range t.Notes {
			fmt.Fprintf(w, "  %s\n", n)
		}
	}
}

// Markdown writes every table under a heading.
func (r *Report) Markdown(w io.Writer) {
	for _, t := range r.Tables {
		fmt.Fprintf(w, "### %s\n\n%s\n", t.Title, r.markdown(t))
	}
}

// markdown is the table, where and when it was measured, and its notes.
func (r *Report) markdown(t *Table) string {
	var b strings.Builder
	rounds := 0
	for _, metrics := range t.Samples {
		for _, v := range metrics {
			rounds = max(rounds, len(v))
		}
	}
	fmt.Fprintf(&b, "Measured on %s; medians of %d rounds.\n\n", r.where(), rounds)
	for i, row := range t.cells() {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintf(&b, "| --- |%s\n", strings.Repeat(" ---: |", len(row)-1))
		}
	}
	if len(t.Notes) > 0 {
		b.WriteByte('\n')
	}
	for _, n := range t.Notes {
		fmt.Fprintf(&b, "- %s\n", n)
	}
	return b.String()
}

// Fill replaces in a page the block of each of the report's tables, wherever there is one.
func (r *Report) Fill(page []byte) []byte {
	for _, t := range r.Tables {
		page = Replace(page, t.ID, r.markdown(t))
	}
	return page
}

// Replace replaces what stands between the lines <!-- measured: ID --> and <!-- end -->; a page without them stays as it is.
func Replace(page []byte, id, text string) []byte {
	begin, end := fmt.Appendf(nil, "<!-- measured: %s -->\n", id), []byte("<!-- end -->")
	before, rest, found := bytes.Cut(page, begin)
	_, after, closed := bytes.Cut(rest, end)
	if !found || !closed {
		return page
	}
	return slices.Concat(before, begin, []byte("\n"+text+"\n"), end, after)
}

// Read reads a report that Write has written.
func Read(file string) (*Report, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var r Report
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &r, nil
}

// Write writes the report as JSON, with the sample of every round.
func (r *Report) Write(file string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// machine names the processors, for a reader of the figures.
func machine() string {
	model := runtime.GOARCH
	text, _ := os.ReadFile("/proc/cpuinfo") // elsewhere the architecture has to do
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			model = cmp.Or(strings.TrimSpace(value), model)
			break
		}
	}
	return fmt.Sprintf("%d cores %s, %s", runtime.NumCPU(), model, runtime.GOOS)
}
