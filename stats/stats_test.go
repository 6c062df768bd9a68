package stats_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/records"
	"github.com/wlmserver/wlmserver/stats"
	"github.com/wlmserver/wlmserver/tasks"
	"github.com/wlmserver/wlmserver/wlm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is an admission with groups and tasks, on fake time.
type rig struct {
	*testing.T
	groups    *groups.Registry
	admission *wlm.Admission
	tasks     *tasks.Manager
}

func bubble(t *testing.T, test func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		registry, err := groups.Open(t.Context(), new(records.Memory))
		if err != nil {
			t.Fatal(err)
		}
		r := &rig{T: t, groups: registry, tasks: tasks.NewManager("node-1")}
		r.admission = wlm.New(wlm.WithCauseName(func(error) string { return "user" }))
		registry.OnChange(func(_, now *groups.Snapshot) { r.admission.GroupsChanged(now) })
		test(r)
	})
}

// group makes a group with a node limit of 1 and a queue of 1, by the attribute.
func (r *rig) group(name string, by groups.Attribute) string {
	r.Helper()
	p, err := groups.ParsePatch(fmt.Appendf(nil, `{"name":%s,"resiliency_mode":"enforced","resource_limits":{"cpu":0.01},
		"throttling":{"attribute":%q,"node_limit":1},"queue":{"size_per_bucket":1}}`, strconv.Quote(name), by))
	if err != nil {
		r.Fatal(err)
	}
	g, err := r.groups.Create(r.Context(), p)
	if err != nil {
		r.Fatal(err)
	}
	return g.ID
}

func (r *rig) source() stats.Source {
	return stats.Source{Admission: r.admission, Tasks: r.tasks, Groups: r.groups.Snapshot, HeapSize: 1000, Processors: 4, Version: "1.2.3"}
}

// run has a search of the group run at once.
func (r *rig) run(group, user string) *wlm.Permit {
	r.Helper()
	ticket, err := r.admission.Enter(r.Context(), wlm.Request{Group: group, Principal: wlm.Principal{User: user}})
	if err != nil {
		r.Fatal(err)
	}
	p, err := ticket.Wait(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	return p
}

// park has a search of the group wait.
func (r *rig) park(ctx context.Context, group, user string) {
	r.Helper()
	ticket, err := r.admission.Enter(ctx, wlm.Request{Group: group, Principal: wlm.Principal{User: user}})
	if err != nil {
		r.Fatal(err)
	}
	go func() {
		if p, err := ticket.Wait(ctx); err == nil {
			p.Close()
		}
	}()
	synctest.Wait()
}

func TestGroups(t *testing.T) {
	bubble(t, func(r *rig) {
		id := r.group("ours", groups.ByGroup)
		reader := stats.New(r.source())

		used := func(group string, cpu time.Duration, bytes int64) *tasks.Task {
			task, err := r.tasks.Register(r.Context(), tasks.Spec{Action: "search", Type: tasks.Transport, Cancellable: true})
			if err != nil {
				r.Fatal(err)
			}
			task.SetGroup(group)
			task.StartWork().Add(cpu, bytes)
			return task
		}
		all := []*tasks.Task{
			used(id, 2*time.Second, 100),
			used(id, time.Second, 50),
			used(groups.DefaultID, time.Second, 10),
			used("deleted", time.Second, 20),
			used("", time.Hour, 999), // of no group
		}
		time.Sleep(2 * time.Second)

		got := reader.Groups()
		want := map[string][2]float64{id: {(1 + 0.5) / 4, 0.15}, groups.DefaultID: {(0.5 + 0.5) / 4, 0.03}}
		if len(got) != len(want) || !slices.IsSortedFunc(got, func(a, b stats.GroupStats) int { return strings.Compare(a.Group, b.Group) }) {
			r.Fatalf("groups %+v", got)
		}
		for _, g := range got {
			w := want[g.Group]
			if math.Abs(g.CPUUsage-w[0]) > 1e-9 || math.Abs(g.MemoryUsage-w[1]) > 1e-9 { // sums of doubles, in any order
				r.Errorf("%s uses %v CPU and %v memory, want %v", g.Name, g.CPUUsage, g.MemoryUsage, w)
			}
		}
		if i := slices.IndexFunc(got, func(g stats.GroupStats) bool { return g.Group == id }); got[i].Name != "ours" {
			r.Errorf("name %q", got[i].Name)
		}
		for _, task := range all {
			task.End()
		}
		for _, g := range reader.Groups() {
			if g.CPUUsage != 0 || g.MemoryUsage != 0 {
				r.Errorf("at rest: %+v", g)
			}
		}
	})
}

func TestGroupsWithoutSizes(t *testing.T) {
	bubble(t, func(r *rig) {
		id := r.group("ours", groups.ByGroup)
		reader := stats.New(stats.Source{Admission: r.admission, Tasks: r.tasks})
		task, err := r.tasks.Register(r.Context(), tasks.Spec{})
		if err != nil {
			r.Fatal(err)
		}
		defer task.End()
		task.SetGroup(id)
		task.StartWork().Add(time.Second, 100)
		time.Sleep(time.Second)
		for _, g := range reader.Groups() {
			if g.Group == id && (g.MemoryUsage != 0 || !(g.CPUUsage > 0 && g.CPUUsage <= 1) || g.Name != id) {
				r.Errorf("got %+v, want no memory usage and the id for a name", g)
			}
		}
	})
}

func TestMetrics(t *testing.T) {
	bubble(t, func(r *rig) {
		const name = "a \"quoted\" \\ name\nof two lines"
		id, users := r.group(name, groups.ByGroup), r.group("users", groups.ByUsername)
		started := time.Now()
		source := r.source()
		source.Started = started
		reader := stats.New(source)

		// Of the group: 1 runs, 1 waited for 1.5 s and ran, 1 was evicted, 1
		// refused, 1 waits.
		first := r.run(id, "")
		r.park(r.Context(), id, "")
		if _, err := r.admission.Enter(r.Context(), wlm.Request{Group: id}); err == nil {
			r.Fatal("not refused")
		}
		time.Sleep(1500 * time.Millisecond)
		first.Close()
		synctest.Wait()
		first = r.run(id, "")
		ctx, leave := context.WithCancel(r.Context())
		r.park(ctx, id, "")
		leave()
		synctest.Wait()
		r.park(r.Context(), id, "")
		r.admission.Completed(id)

		// Two users run, one search has no user, and one is of no group.
		permits := []*wlm.Permit{first, r.run(users, "secret-user"), r.run(users, "other-user"), r.run(users, ""), r.run("", "")}
		task, err := r.tasks.Register(r.Context(), tasks.Spec{})
		if err != nil {
			r.Fatal(err)
		}
		defer task.End()

		text := write(r.T, reader,
			stats.Metric{Name: "wlmserver_pool_threads", Help: "Back\\slash\nand line.", Samples: []stats.Sample{{
				Labels: []stats.Label{{Name: "pool", Value: "search\xff"}}, Value: 4}}},
			stats.Metric{Name: "wlmserver_pool_completed_total", Help: "Done.", Kind: stats.Counter,
				Samples: []stats.Sample{{Value: 1<<53 - 1}}})
		if strings.Contains(text, "-user") {
			r.Error("a user shows in the metrics")
		}
		got := parse(r.T, text)
		label := fmt.Sprintf(`{group=%q,group_id=%q`, name, id)
		other := fmt.Sprintf(`{group="users",group_id=%q`, users)
		fallback := fmt.Sprintf(`{group=%q,group_id=%q`, groups.DefaultID, groups.DefaultID)
		for series, want := range map[string]float64{
			"wlmserver_group_admitted_total" + label + "}":             3,
			"wlmserver_group_refused_total" + label + "}":              1,
			"wlmserver_group_cancelled_total" + label + "}":            1,
			"wlmserver_group_completions_total" + label + "}":          1,
			"wlmserver_group_rejections_total" + label + "}":           0,
			"wlmserver_group_cancellations_total" + label + "}":        0,
			"wlmserver_group_throttled_total" + label + "}":            1,
			"wlmserver_group_would_throttle_total" + label + "}":       0,
			"wlmserver_group_queued_total" + label + "}":               3,
			"wlmserver_group_queue_rejections_total" + label + "}":     1,
			"wlmserver_group_queue_waits_total" + label + "}":          1,
			"wlmserver_group_queue_wait_seconds_total" + label + "}":   1.5,
			"wlmserver_group_queue_wait_seconds_max" + label + "}":     1.5,
			"wlmserver_group_evictions_total" + label + "}":            1,
			"wlmserver_group_queued" + label + "}":                     1,
			"wlmserver_group_queued_peak" + label + "}":                1,
			"wlmserver_group_waiters" + label + "}":                    1,
			"wlmserver_group_running" + label + `,tracked="true"}`:     1,
			"wlmserver_group_running" + label + `,tracked="false"}`:    0,
			"wlmserver_group_running" + other + `,tracked="true"}`:     2,
			"wlmserver_group_running" + other + `,tracked="false"}`:    1,
			"wlmserver_group_running" + fallback + `,tracked="false"}`: 1,
			"wlmserver_group_cpu_usage_ratio" + label + "}":            0,
			"wlmserver_group_memory_usage_ratio" + label + "}":         0,
			"wlmserver_buckets":                                     3,
			"wlmserver_waiters":                                     1,
			`wlmserver_running{tracked="true"}`:                     3,
			`wlmserver_running{tracked="false"}`:                    2,
			`wlmserver_evictions_total{cause="user"}`:               1,
			`wlmserver_evictions_total{cause="shutdown"}`:           0,
			"wlmserver_unattributed_total":                          1,
			"wlmserver_unused_permits_total":                        0,
			"wlmserver_sweep_recovered_total":                       0,
			"wlmserver_permits_reclosed_total":                      0,
			"wlmserver_tasks":                                       1,
			"wlmserver_process_start_time_seconds":                  float64(started.UnixMilli()) / 1000,
			`wlmserver_pool_threads{pool="search` + "\uFFFD" + `"}`: 4,
			"wlmserver_pool_completed_total":                        1<<53 - 1,
		} {
			if v, ok := got[series]; !ok || v != want {
				r.Errorf("%s is %v (there: %v), want %v", series, v, ok, want)
			}
		}
		for _, series := range []string{"wlmserver_go_goroutines", "wlmserver_go_heap_bytes"} {
			if got[series] <= 0 {
				r.Errorf("%s is %v", series, got[series])
			}
		}
		if !slices.ContainsFunc(slices.Collect(keys(got)), func(s string) bool {
			return strings.HasPrefix(s, `wlmserver_build_info{version="1.2.3",go_version="go`) && got[s] == 1
		}) {
			r.Error("no build info")
		}
		for _, p := range permits {
			p.Close()
		}
		synctest.Wait()
	})
}

// A group may have the name of the default group, which is only reserved as an
// id. The series must still be told apart.
func TestMetricsOfAGroupNamedLikeTheDefault(t *testing.T) {
	bubble(t, func(r *rig) {
		id := r.group(groups.DefaultID, groups.ByGroup)
		got := parse(r.T, write(r.T, stats.New(r.source())))
		for _, id := range []string{id, groups.DefaultID} {
			if _, ok := got[fmt.Sprintf(`wlmserver_group_queued{group=%q,group_id=%q}`, groups.DefaultID, id)]; !ok {
				r.Errorf("no series of %s", id)
			}
		}
	})
}

func TestMetricsWithoutGroups(t *testing.T) {
	bubble(t, func(r *rig) {
		if n := len(parse(r.T, write(r.T, stats.New(r.source())))); n == 0 {
			r.Error("nothing was written")
		}
		if err := stats.New(r.source()).WriteMetrics(broken{}); !errors.Is(err, errBroken) {
			r.Errorf("got %v, want the writer's error", err)
		}
	})
}

var errBroken = errors.New("broken")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func write(t *testing.T, r *stats.Reader, extra ...stats.Metric) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteMetrics(&b, extra...); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func keys(m map[string]float64) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// parse reads Prometheus' text format and allows only what we mean to write:
// each metric in one block of HELP, TYPE and samples, once, in its own name;
// counters in "_total" and only they; every sample of a metric with the same
// labels and no series twice. It returns the values by series, with label
// values quoted as Go does.
func parse(t *testing.T, text string) map[string]float64 {
	t.Helper()
	if !strings.HasSuffix(text, "\n") || strings.Contains(text, "\r") {
		t.Fatal("the text must end in a newline and hold no carriage return")
	}
	var (
		help   = regexp.MustCompile(`^# HELP ([a-z][a-z0-9_]*) ((?:[^\\]|\\\\|\\n)+)$`)
		kind   = regexp.MustCompile(`^# TYPE ([a-z][a-z0-9_]*) (counter|gauge)$`)
		sample = regexp.MustCompile(`^([a-z][a-z0-9_]*)(?:\{(.+)\})? (\S+)$`)
		label  = regexp.MustCompile(`^([a-z][a-z0-9_]*)="((?:[^"\\]|\\\\|\\"|\\n)*)"(?:,|$)`)
	)
	values := make(map[string]float64)
	announced := make(map[string]bool)
	var name, names string
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		if m := help.FindStringSubmatch(lines[i]); m != nil {
			name, names = m[1], ""
			if announced[name] || !strings.HasPrefix(name, "wlmserver_") {
				t.Errorf("line %d: %s is announced twice, or not ours", i+1, name)
			}
			announced[name] = true
			if i++; i == len(lines) {
				t.Fatalf("%s has no type", name)
			}
			k := kind.FindStringSubmatch(lines[i])
			if k == nil || k[1] != name || (k[2] == "counter") != strings.HasSuffix(name, "_total") {
				t.Errorf("line %d: %q is not the type of %s", i+1, lines[i], name)
			}
			continue
		}
		m := sample.FindStringSubmatch(lines[i])
		if m == nil || m[1] != name {
			t.Fatalf("line %d: %q is no sample of %s", i+1, lines[i], name)
		}
		series, own := m[1], "."
		if m[2] != "" {
			var pairs []string
			for rest := m[2]; rest != ""; {
				l := label.FindStringSubmatch(rest)
				if l == nil {
					t.Fatalf("line %d: labels %q", i+1, rest)
				}
				value, err := strconv.Unquote(`"` + l[2] + `"`)
				if err != nil {
					t.Fatalf("line %d: %v", i+1, err)
				}
				pairs = append(pairs, l[1]+"="+strconv.Quote(value))
				own += l[1] + "."
				rest = rest[len(l[0]):]
			}
			series += "{" + strings.Join(pairs, ",") + "}"
		}
		if names != "" && own != names {
			t.Errorf("line %d: labels %s, before %s", i+1, own, names)
		}
		names = own
		v, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			t.Errorf("line %d: %v", i+1, err)
		}
		if _, twice := values[series]; twice {
			t.Errorf("line %d: %s comes twice", i+1, series)
		}
		values[series] = v
	}
	return values
}
