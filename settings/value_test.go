package settings_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
	"github.com/wlmserver/wlmserver/internal/units"
	"github.com/wlmserver/wlmserver/records/recordstest"
	"github.com/wlmserver/wlmserver/settings"
)

// judged is texts that a setting takes, at its bounds too, and texts beyond them.
type judged struct{ accepted, refused []string }

// judgedValues covers every dynamic setting; those of a search_backpressure tree by the last word of
// their key.
func judgedValues() map[string]judged {
	return map[string]judged{
		"wlm.workload_group.mode":                                 {words("enabled monitor_only disabled"), words("ENABLED Disabled on true enforced")},
		"wlm.workload_group.duress_streak":                        {words("3 4 2147483647"), words("2 0 -1 2147483648 3.0 3s 0x3 1e3 1_000")},
		"wlm.workload_group.enforcement_interval":                 {words("1000 9223372036854775807"), words("999 0 9223372036854775808 1s")},
		"wlm.workload_group.node.cpu_rejection_threshold":         {words("0 0.0 0.9 .5 5e-1 +0.1"), words("0.91 0.9000000001 -0.1 NaN nan Infinity -inf 1e999 0x1p-2 0.8d 0,5 1_0e-2 80%")},
		"wlm.workload_group.node.cpu_cancellation_threshold":      {words("0.8 0.95"), words("0.98 0.951 0.79 0 2.5")},
		"wlm.workload_group.node.memory_rejection_threshold":      {words("0 0.9"), words("0.91 -1")},
		"wlm.workload_group.node.memory_cancellation_threshold":   {words("0.8 0.95"), words("0.98 0.79")},
		"node.workload_group.max_count":                           {words("1 100"), words("0 101 -1 many")},
		"wlm.autotagging.max_rules":                               {words("10 500"), words("9 501")},
		"wlm.rule.sync_refresh_interval_ms":                       {words("1000 60000"), words("999 5s")},
		"search.cancel_after_time_interval":                       {words("-1 0 5ms 10s 1h"), words("soon 10 -5s 1.5s NaN 10x")},
		"search.default_search_timeout":                           {words("-1 0 300ms"), words("300 -2 0.5s")},
		"search.default_allow_partial_results":                    {words("true false"), words("TRUE yes 1 0 on")},
		"action.search.shard_count.limit":                         {words("1 9223372036854775807"), words("0 -1 1.5")},
		"search.max_open_scroll_context":                          {words("0 500"), words("-1 2147483648")},
		"search.max_keep_alive":                                   {words("-1 0 24h"), words("24 -2 soon")},
		"search.max_buckets":                                      {words("0 65535"), words("-1 2147483648")},
		"task_cancellation.enabled":                               {words("true false"), words("maybe")},
		"task_cancellation.duration_millis":                       {words("0 10000"), words("-1 10s")},
		"task_resource_tracking.enabled":                          {words("true false"), words("False")},
		"admission_control.transport.mode":                        {words("disabled shadow enforced"), words("monitor_only Enforced")},
		"admission_control.search.cpu_usage.limit":                {words("0 100"), words("-1 101 95.5")},
		"admission_control.search.io_usage.limit":                 {words("1 100"), words("101")},
		"search_backpressure.mode":                                {words("disabled monitor_only enforced"), words("bogus enabled")},
		"search_backpressure.node_duress.num_successive_breaches": {words("1 3"), words("0 -1")},
		"search_backpressure.node_duress.cpu_threshold":           {words("0 0.0 1 1.0"), words("1.01 -0.01")},
		"search_backpressure.node_duress.heap_threshold":          {words("0 1"), words("1.5")},
		"search_backpressure.node_duress.native_memory_threshold": {words("0 1"), words("1.5 NaN")},
		"search_backpressure.node_duress.native_memory_limit":     {words("0b 0 64mb"), words("-1 -1b 1.5gb 10 lots")},
		"search_backpressure.cancellation_ratio":                  {words("0.001 1"), words("0 1.1 -0.1")},
		"search_backpressure.cancellation_rate":                   {words("0.003 1000"), words("0 -1 0.0 Infinity")},
		"search_backpressure.cancellation_burst":                  {words("1 10.0"), words("0.99 0 NaN")},

		"cancellation_ratio":              {words("0.001 1 1.0"), words("0 1.1 -0.1")},
		"cancellation_rate":               {words("0.003 1000"), words("0 -1")},
		"cancellation_burst":              {words("1 10.0"), words("0.99 0 -5")},
		"heap_percent_threshold":          {words("0 1"), words("1.5 -0.1")},
		"total_heap_percent_threshold":    {words("0 0.0 1"), words("1.5")},
		"heap_variance":                   {words("0 2.0 100"), words("-0.5 NaN")},
		"heap_moving_average_window_size": {words("0 100"), words("-1 1.5")},
		"native_memory_percent_threshold": {words("0 1"), words("2")},
		"cpu_time_millis_threshold":       {words("0 50"), words("-1 50ms")},
		"elapsed_time_millis_threshold":   {words("0 500"), words("-1 1s")},
	}
}

func words(s string) []string { return strings.Fields(s) }

// body is an update of one setting to a string.
func body(scope, key, text string) string {
	return fmt.Sprintf(`{%q:{%q:%s}}`, scope, key, jsondoc.AppendString(nil, text))
}

func TestValues(t *testing.T) {
	all := judgedValues()
	for _, s := range settings.Catalogue() {
		if !s.Dynamic {
			continue
		}
		texts, ok := all[s.Key]
		if !ok {
			texts, ok = all[s.Key[strings.LastIndexByte(s.Key, '.')+1:]]
		}
		if !ok {
			t.Errorf("no texts to judge for %s", s.Key)
		}
		for _, text := range texts.accepted {
			r := open(t, &recordstest.Repository{}, nil)
			mustPut(t, r, body("persistent", s.Key, text))
			if got := r.Snapshot().String(s.Key); got != text {
				t.Errorf("%s set to %q reads %q", s.Key, text, got)
			}
		}
		r := open(t, &recordstest.Repository{}, nil)
		for _, text := range append(texts.refused, "", "x", "\x00", "${HOME}") {
			for _, scope := range []string{"persistent", "transient"} {
				e := refused[*settings.InvalidError](t, r, body(scope, s.Key, text))
				if e.Key != s.Key || e.Value != text || e.Type != "illegal_argument_exception" || e.Reason == "" {
					t.Errorf("%s = %q: error %+v", s.Key, text, e)
				}
			}
		}
	}
}

// A text that is no number at all, or a fraction of a time, is answered with a nested cause.
func TestNumberFormat(t *testing.T) {
	r := open(t, &recordstest.Repository{}, nil)
	for _, c := range []struct {
		key, text string
		want      bool
	}{
		{"search.cancel_after_time_interval", "1.5s", true},
		{"search.cancel_after_time_interval", "10", false},
		{"search.cancel_after_time_interval", "-5s", false},
		{"wlm.workload_group.duress_streak", "three", true},
		{"wlm.workload_group.duress_streak", "0", false},
		{"search_backpressure.cancellation_rate", "NaN", true},
		{"search_backpressure.cancellation_rate", "0", false},
		{"wlm.workload_group.mode", "ENABLED", false},
	} {
		if e := refused[*settings.InvalidError](t, r, body("persistent", c.key, c.text)); e.NumberFormat != c.want {
			t.Errorf("%s = %q: number format %v, want %v", c.key, c.text, e.NumberFormat, c.want)
		}
	}
}

func TestTypedLookups(t *testing.T) {
	r := open(t, &recordstest.Repository{}, nil)
	s := r.Snapshot()
	if d := s.Duration(settings.CancelAfter); d != units.None {
		t.Errorf("cancel after: %v, want none", d)
	}
	mustPut(t, r, `{"transient":{
		"search.cancel_after_time_interval": "1500ms",
		"search.default_allow_partial_results": false,
		"node.workload_group.max_count": 7,
		"search_backpressure.node_duress.native_memory_limit": "2kb",
		"search_backpressure.node_duress.cpu_threshold": 0.25
	}}`)
	s = r.Snapshot()
	if d := s.Duration(settings.CancelAfter); d != 1500*time.Millisecond {
		t.Errorf("cancel after: %v", d)
	}
	if s.Bool(settings.AllowPartialResults) || !s.Bool("task_cancellation.enabled") {
		t.Error("booleans")
	}
	if n := s.Int(settings.MaxGroups); n != 7 {
		t.Errorf("largest number of groups: %d", n)
	}
	if n := s.Int("search_backpressure.node_duress.native_memory_limit"); n != 2048 {
		t.Errorf("limit of native memory: %d", n)
	}
	if f := s.Float("search_backpressure.node_duress.cpu_threshold"); f != 0.25 {
		t.Errorf("threshold: %v", f)
	}
	if mode := s.String(settings.WLMMode); mode != "enabled" {
		t.Errorf("mode: %s", mode)
	}
}

func TestLookupOfWrongKeyOrTypePanics(t *testing.T) {
	s := open(t, &recordstest.Repository{}, nil).Snapshot()
	for name, look := range map[string]func(){
		"unknown key":       func() { s.String("search.cancel_after") },
		"time as number":    func() { s.Int(settings.CancelAfter) },
		"number as double":  func() { s.Float(settings.MaxGroups) },
		"word as boolean":   func() { s.Bool(settings.WLMMode) },
		"boolean as a time": func() { s.Duration(settings.AllowPartialResults) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			look()
		})
	}
}

// The look-ups stand on the path of every search.
func TestLookupsAllocateNothing(t *testing.T) {
	r := open(t, &recordstest.Repository{}, nil)
	var sum time.Duration
	allocations := testing.AllocsPerRun(100, func() {
		s := r.Snapshot()
		sum += s.Duration(settings.CancelAfter) + s.Duration(settings.DefaultSearchTimeout)
		if s.Bool(settings.AllowPartialResults) && s.String(settings.WLMMode) == "enabled" {
			sum += time.Duration(s.Int(settings.MaxGroups))
		}
	})
	if allocations != 0 {
		t.Errorf("%v allocations for five look-ups", allocations)
	}
}

func BenchmarkLookup(b *testing.B) {
	r, err := settings.Open(b.Context(), &recordstest.Repository{}, nil)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		r.Snapshot().Duration(settings.CancelAfter)
	}
}
