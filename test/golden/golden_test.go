package golden_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tally is how the cases of one recording came out.
type tally struct {
	name   string
	passed int
	listed [categories]int
	failed int
}

func (t *tally) cases() int {
	n := t.passed + t.failed
	for _, l := range t.listed {
		n += l
	}
	return n
}

// recordedCases is how many there are; docs/differences.md says it too.
const recordedCases = 732

// TestGolden replays all recordings.
func TestGolden(t *testing.T) {
	all := recordings(t)
	tallies := make([]tally, len(all))
	t.Cleanup(func() { t.Logf("OpenSearch 3.9.0, recorded and replayed:\n%s", report(tallies)) })
	known := map[string]bool{}
	for i, r := range all {
		for n := range r.cases {
			known[exceptionKey(r.name, n)] = true
		}
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			tallies[i] = conform(t, r, all)
		})
	}
	if len(known) != recordedCases {
		t.Errorf("%d cases are replayed, %d were recorded", len(known), recordedCases)
	}
	for key := range exceptions {
		if !known[key] {
			t.Errorf("the exception %q is of no case", key)
		}
	}
}

// conform replays one recording and fails for each case that neither passes nor is an exception, and for each exception that
// passes.
func conform(t *testing.T, r recording, all []recording) (n tally) {
	t.Helper()
	c := scripts[r.name]
	p := newReplay(startServer(t, cmp.Or(c.threads, 4), cmp.Or(c.queue, 1000)), r)
	n.name = r.name
	p.run(func(i int, c *recorded, a answer) {
		others, lucky := p.script.either[i]
		p.lucky = lucky
		differences := p.compare(c, a)
		for _, other := range others {
			if other == cancelledAnyhow && isCancelled(a) || other != cancelledAnyhow && len(p.compare(caseOf(all, other), a)) == 0 {
				differences = nil
			}
		}
		e, listed := exceptions[exceptionKey(r.name, i)]
		switch {
		case len(differences) == 0 && listed:
			t.Errorf("%d %s: passes, and is listed as one that does not (%s)", i, c.Name, e.why)
			n.failed++
		case len(differences) == 0:
			n.passed++
		case listed:
			n.listed[e.category]++
		default:
			n.failed++
			t.Errorf("%d %s: %s %s\n\t%s\nours     %s\nrecorded %s%s", i, c.Name, c.Method, c.Path, strings.Join(differences, "\n\t"), a.body, c.JSON, c.Text)
		}
	})
	return n
}

// TestExceptionsAreFew holds the list to what was agreed.
func TestExceptionsAreFew(t *testing.T) {
	var n [categories]int
	for key, e := range exceptions {
		n[e.category]++
		if e.why == "" {
			t.Errorf("%s: the exception has no reason", key)
		}
	}
	for c, most := range mostExceptions {
		if n[c] > most {
			t.Errorf("%d exceptions of the category %q, at most %d are agreed", n[c], category(c), most)
		}
	}
}

// isCancelled says whether a search was cancelled.
func isCancelled(a answer) bool {
	var e struct {
		Error struct {
			Type  string `json:"type"`
			Cause struct {
				Type string `json:"type"`
			} `json:"caused_by"`
		} `json:"error"`
	}
	return json.Unmarshal([]byte(a.body), &e) == nil && a.status == http.StatusInternalServerError &&
		e.Error.Type == "search_phase_execution_exception" && e.Error.Cause.Type == "task_cancelled_exception"
}

// caseOf finds a case by its key.
func caseOf(all []recording, key string) *recorded {
	for _, r := range all {
		for i := range r.cases {
			if exceptionKey(r.name, i) == key {
				return &r.cases[i]
			}
		}
	}
	panic("no case " + key)
}

// report is a table of all recordings, with a line for the total.
func report(all []tally) string {
	var b bytes.Buffer
	all = slices.DeleteFunc(slices.Clone(all), func(t tally) bool { return t.name == "" }) // it was not asked for
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "recording\tcases\tpassed\t")
	for c := range categories {
		fmt.Fprint(w, c, "\t")
	}
	fmt.Fprintln(w, "failed\t")
	total := tally{name: "total"}
	for _, t := range all {
		total.passed += t.passed
		total.failed += t.failed
		for c := range t.listed {
			total.listed[c] += t.listed[c]
		}
	}
	for _, t := range append(all, total) {
		fmt.Fprintf(w, "%s\t%d\t%d\t", t.name, t.cases(), t.passed)
		for _, n := range t.listed {
			fmt.Fprintf(w, "%d\t", n)
		}
		fmt.Fprintf(w, "%d\t\n", t.failed)
	}
	w.Flush()
	return b.String()
}
