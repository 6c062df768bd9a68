package load_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/internal/load"
)

func sample() *load.Result {
	return &load.Result{
		URL: "http://h:1", Method: "POST", Path: "/i/_search", Loop: "open", Rate: 12.5, Seed: 3, Seconds: 2,
		Sent: 100, Unsent: 4, Answered: 97, Completed: 80, Throttled: 17, Disconnected: 2, Lost: 1, PerSecond: 48.5, InFlightPeak: 9,
		LagMax: 1.25, DriverCPU: 11.234, CancelsAsked: 5, CancelsDone: 3, CancelsLate: 2,
		Answers:  []load.AnswerCount{{200, "", 80}, {429, "rejected_execution_exception", 17}},
		Losses:   []load.LossCount{{"timeout", 1}},
		Latency:  load.Latency{80, 1, 2, 30.04, 400.4, 500, 600},
		Refusals: load.Latency{17, 1, 1, 1, 1, 1, 1},
		Groups: []load.GroupResult{
			{Name: "a", ID: "i", Sent: 60, Completed: 43, Throttled: 17, Server: &load.Server{Waits: 7, MeanWait: 1.5, LongestWait: 20, Peak: 6}},
			{Name: "b", ID: "j", Sent: 40, Completed: 37},
		},
		Users:        []load.UserResult{{"u", 50, 40, 10}, {"v", 50, 40, 7}},
		Fairness:     []load.Fairness{{"all", 4, 0.98765, 1, 2}},
		Conservation: []load.Check{{"a", "law one", true, "1 = 1"}, {"a", "law two", false, "1 and 2"}},
		Notes:        []string{"something is missing"},
	}
}

func TestText(t *testing.T) {
	var b bytes.Buffer
	if err := sample().WriteText(&b, false); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, line := range [][]string{
		{"POST http://h:1/i/_search"},
		{"open loop, 12.5 requests/s", "2.00 s", "seed 3"},
		{"sent 100", "answered 97", "48.5 answers/s", "left by their client 2", "lost 1", "not sent for want of room 4"},
		{"429 rejected_execution_exception", "17", "17.0 %"},
		{"none: timeout", "1.0 %"},
		{"latency ms, since due", "p50", "p99.9"},
		{"completed", "80", "1.00", "2.00", "30.0", "400", "500", "600"},
		{"refused (429)", "17"},
		{"a ", "60", "43", "17", "7", "1.50", "20.0", "6"},
		{"b ", "40", "37", "-"},
		{"v ", "50", "40", "7"},
		{"all", "4", "0.9877", "1", "2"},
		{"in flight", "9"},
		{"_tasks/_cancel: 3 of 5, 2 had ended"},
		{"latest start", "1.25 ms"},
		{"CPU", "11.2 µs"},
		{"ok ", "law one", "1 = 1"},
		{"DIFFERS", "law two", "1 and 2"},
		{"note: something is missing"},
	} {
		if !hasLine(text, line) {
			t.Errorf("no line has %q:\n%s", line, text)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Error("colours that nobody asked for")
	}
	b.Reset()
	if err := sample().WriteText(&b, true); err != nil || !strings.Contains(b.String(), "\x1b[31mDIFFERS\x1b[0m") {
		t.Errorf("%v: no colours in %q", err, b.String())
	}
}

// hasLine reports whether one line of the text has the parts in this order.
func hasLine(text string, parts []string) bool {
	for line := range strings.Lines(text) {
		rest, ok := line, true
		for _, p := range parts {
			if _, rest, ok = strings.Cut(rest, p); !ok {
				break
			}
		}
		if ok {
			return true
		}
	}
	return false
}

func TestJSON(t *testing.T) {
	b, err := json.Marshal(sample())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"sent":100`, `"p99_9_ms":500`, `"jain":0.98765`, `"queue_wait_count":7`, `"law":"law two","ok":false`, `"driver_cpu_us_per_request":11.234`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %s in %s", want, b)
		}
	}
}

func TestErr(t *testing.T) {
	r := sample()
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "law two") || !strings.Contains(err.Error(), "--shared") {
		t.Errorf("%v", err)
	}
	r.Shared = true
	if err := r.Err(); err != nil {
		t.Errorf("with others at work: %v", err)
	}
}

// TestMeterElsewhere: without a terminal there is a line for each state, and nothing to take away.
func TestMeterElsewhere(t *testing.T) {
	var b bytes.Buffer
	m := load.NewMeter(&b)
	m.Show(load.Progress{Elapsed: time.Second, Sent: 5, Unsent: 1, Others: 2})
	m.Close()
	if got := b.String(); m.Every() != time.Second || strings.Count(got, "\n") != 1 || strings.Contains(got, "\x1b") ||
		!strings.Contains(got, "sent 5") || !strings.Contains(got, "not sent 1") || !strings.Contains(got, "other 2") {
		t.Errorf("%q", got)
	}
	if load.Colours(&b) {
		t.Error("colours without a terminal")
	}
}
