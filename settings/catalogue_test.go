package settings_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/wlmserver/wlmserver/settings"
)

func TestDefaultsAreThoseOfOpenSearch(t *testing.T) {
	recorded, err := os.ReadFile("testdata/opensearch-defaults.txt")
	if err != nil {
		t.Fatal(err)
	}
	theirs := map[string]string{}
	for line := range strings.Lines(string(recorded)) {
		key, text, ok := strings.Cut(strings.TrimSpace(line), " = ")
		if !ok {
			t.Fatalf("line without a value: %s", line)
		}
		theirs[key] = strings.Trim(text, `"`)
	}
	theirs[settings.WLMMode] = "enabled" // managing workloads is what this server is for

	ours := map[string]string{}
	for _, s := range settings.Catalogue() {
		ours[s.Key] = s.Default
	}
	for key, want := range theirs {
		if got, ok := ours[key]; !ok || got != want {
			t.Errorf("default of %s: %q (known: %v), want %q", key, got, ok, want)
		}
	}
	for _, s := range settings.Catalogue() {
		if _, ok := theirs[s.Key]; s.Dynamic && !ok && s.Key != "wlm.autotagging.max_rules" && s.Key != "wlm.rule.sync_refresh_interval_ms" {
			t.Errorf("%s is dynamic and not among the recorded defaults", s.Key)
		}
	}
}

func TestCatalogue(t *testing.T) {
	all := settings.Catalogue()
	if !slices.IsSortedFunc(all, func(a, b settings.Setting) int { return strings.Compare(a.Key, b.Key) }) {
		t.Error("not sorted by key")
	}
	var acting []string
	for i, s := range all {
		if i > 0 && all[i-1].Key == s.Key {
			t.Errorf("%s is there twice", s.Key)
		}
		// A key that begins another could not be printed in nested form.
		for _, other := range all {
			if strings.HasPrefix(other.Key, s.Key+".") {
				t.Errorf("%s begins %s", s.Key, other.Key)
			}
		}
		if s.Fallback != "" && !slices.ContainsFunc(all, func(o settings.Setting) bool { return o.Key == s.Fallback && o.Type == s.Type }) {
			t.Errorf("%s falls back on %s, which is unknown or of another type", s.Key, s.Fallback)
		}
		if s.Dynamic && s.Default == "" {
			t.Errorf("%s is dynamic and has no default", s.Key)
		}
		if s.Dynamic && s.Acts {
			acting = append(acting, s.Key)
		}
	}
	want := []string{
		settings.MaxShards, settings.MaxGroups, settings.CancelAfter, settings.AllowPartialResults,
		settings.DefaultSearchTimeout, settings.MaxScrollKeepAlive, settings.MaxOpenScrolls, settings.MaxRules, settings.WLMMode,
	}
	if !slices.Equal(acting, want) {
		t.Errorf("settings with an effect: %v, want %v", acting, want)
	}
}

func TestBoundsAreTold(t *testing.T) {
	want := map[string]string{
		"wlm.workload_group.mode":                                      "enabled, monitor_only, disabled",
		"wlm.workload_group.duress_streak":                             ">= 3",
		"wlm.workload_group.enforcement_interval":                      ">= 1000",
		"wlm.workload_group.node.cpu_rejection_threshold":              "0..0.9, at most wlm.workload_group.node.cpu_cancellation_threshold",
		"wlm.workload_group.node.memory_cancellation_threshold":        "0..0.95, at least wlm.workload_group.node.memory_rejection_threshold",
		"node.workload_group.max_count":                                "1..100",
		"search_backpressure.search_shard_task.cancellation_ratio":     "> 0, <= 1",
		"search_backpressure.search_shard_task.cancellation_rate":      "> 0",
		"search_backpressure.search_task.cancellation_burst":           ">= 1",
		"search_backpressure.node_duress.native_memory_limit":          ">= 0",
		"search.default_allow_partial_results":                         "",
		"search_backpressure.search_task.total_heap_percent_threshold": "0..1",
	}
	for _, s := range settings.Catalogue() {
		if bounds, ok := want[s.Key]; ok && s.Bounds != bounds {
			t.Errorf("bounds of %s: %q, want %q", s.Key, s.Bounds, bounds)
		}
		delete(want, s.Key)
	}
	for key := range want {
		t.Errorf("%s is not in the catalogue", key)
	}
}
