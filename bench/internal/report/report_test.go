package report_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wlmserver/wlmserver/bench/internal/report"
)

func example() *report.Report {
	t := &report.Table{ID: "speed", Title: "Speed", Notes: []string{"A note."}, Subjects: []string{"base", "ours", "absent"},
		Columns: []report.Column{
			{Head: "ns", Metric: "ns", Digits: 1}, {Head: "x base", Metric: "ns", Digits: 2, Over: "base"},
			{Head: "most", Metric: "ns", Most: true}, {Head: "none", Metric: "none"},
		}}
	for i, v := range []float64{1000, 2000, 4000} { // the machine gets slower; the ratio does not
		t.Add("base", "ns", v)
		t.Add("ours", "ns", v*[]float64{3, 2, 2.5}[i])
	}
	r := report.New("test", 3)
	r.Tables = []*report.Table{t}
	return r
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	example().Markdown(&out)
	for _, want := range []string{"### Speed", "| base | 2,000.0 | 1.00 | 4,000 | - |", "| ours | 4,000.0 | 2.50 | 10,000 | - |", "- A note.", "medians of 3 rounds"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "absent") {
		t.Error("a subject that was not measured has a row")
	}
}

func TestFill(t *testing.T) {
	page := "a\n<!-- measured: speed -->\nold\n<!-- end -->\nb\n<!-- measured: other -->\nkept\n<!-- end -->\n"
	r := example()
	once := r.Fill([]byte(page))
	for _, want := range []string{"a\n<!-- measured: speed -->\n\nMeasured on", "\n\n<!-- end -->\nb\n", "kept"} {
		if !bytes.Contains(once, []byte(want)) {
			t.Errorf("%q is not in\n%s", want, once)
		}
	}
	if bytes.Contains(once, []byte("old")) {
		t.Error("the old table is still there")
	}
	if twice := r.Fill(once); !bytes.Equal(once, twice) {
		t.Errorf("filling again changed the page:\n%s", twice)
	}
}

func TestReadWhatWasWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	if err := example().Write(file); err != nil {
		t.Fatal(err)
	}
	r, err := report.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Table("speed").Ratio("ours", "base", "ns"); got != 2.5 {
		t.Errorf("the ratio is %v after reading", got)
	}
}

func TestRotate(t *testing.T) {
	var order []string
	_ = report.Rotate(2, []string{"a", "b", "c"}, func(_ int, s string) error { // never fails
		order = append(order, s)
		return nil
	})
	if want := []string{"a", "b", "c", "b", "c", "a"}; !slices.Equal(order, want) {
		t.Errorf("the order was %v, not %v", order, want)
	}
}
