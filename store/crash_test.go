package store_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/records"
	"github.com/wlmserver/wlmserver/rules"
	"github.com/wlmserver/wlmserver/settings"
	"github.com/wlmserver/wlmserver/store"
)

const (
	crashDir   = "WLMSERVER_STORE_CRASH_DIR"   // makes this binary the process that is killed
	crashFirst = "WLMSERVER_STORE_CRASH_FIRST" // the number of its first change
	crashSeed  = "WLMSERVER_STORE_CRASH_SEED"  // repeats a run
)

// model is what the store holds after a number of changes. Change n is fixed by n alone, and all that
// it writes bears n, so that half of one can be told from all of it.
type model struct {
	groups   map[string]*groups.Group
	rules    map[string]*rules.Rule
	settings map[string]string
}

func newModel() *model {
	return &model{groups: map[string]*groups.Group{}, rules: map[string]*rules.Rule{}, settings: map[string]string{}}
}

// change makes change n in the model and tells how to make it in a store.
func (m *model) change(n int) func(context.Context, *store.DB) error {
	id := fmt.Sprintf("group-%d", n/6%6)
	switch n % 6 {
	case 0, 1:
		g := &groups.Group{
			ID:         id,
			Name:       fmt.Sprintf("%s of change %d", id, n),
			Mode:       groups.Enforced,
			Limits:     groups.ResourceLimits{CPU: new(0.1)},
			Settings:   map[string]string{"search.max_concurrent_shard_requests": strconv.Itoa(n + 1)},
			Throttling: groups.Throttling{Attribute: groups.ByGroup, NodeLimit: new(n + 1)},
			Queue:      groups.Queue{SizePerBucket: new(n % 10_000)},
			UpdatedAt:  time.UnixMilli(int64(n + 1)).UTC(),
		}
		m.groups[id] = g
		return func(ctx context.Context, db *store.DB) error { return putGroup(ctx, db, g) }
	case 2:
		text := strconv.Itoa(n)
		all := map[string]string{
			"search.max_buckets": text,
			"search_backpressure.search_task.cpu_time_millis_threshold":       text,
			"search_backpressure.search_task.heap_moving_average_window_size": text,
			"search.default_search_timeout":                                   text + "ms",
		}
		if n%12 == 2 {
			delete(all, "search.default_search_timeout")
		}
		m.settings = all
		return func(ctx context.Context, db *store.DB) error { return putSettings(ctx, db, all) }
	case 3:
		r := &rules.Rule{
			ID:          fmt.Sprintf("rule-%d", n/6%6),
			Description: fmt.Sprintf("of change %d", n),
			Indices:     []string{fmt.Sprintf("logs-%d-*", n)},
			Usernames:   []string{fmt.Sprintf("user-%d", n)},
			Group:       id,
			UpdatedAt:   time.UnixMilli(int64(n + 1)).UTC(),
		}
		m.rules[r.ID] = r
		return func(ctx context.Context, db *store.DB) error { return putRule(ctx, db, r) }
	case 4:
		id := fmt.Sprintf("rule-%d", n/6%5)
		delete(m.rules, id)
		return func(ctx context.Context, db *store.DB) error { return remove(ctx, db.Rules(), id) }
	default:
		id := fmt.Sprintf("group-%d", n/6%5)
		delete(m.groups, id)
		return func(ctx context.Context, db *store.DB) error { return remove(ctx, db.Groups(), id) }
	}
}

func (m *model) clone() *model {
	return &model{maps.Clone(m.groups), maps.Clone(m.rules), maps.Clone(m.settings)}
}

// stored reads a store whole.
func stored(t *testing.T, db *store.DB) *model {
	t.Helper()
	m := newModel()
	load := func(r records.Repository) map[string][]byte {
		set, err := r.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return set.Records
	}
	for id, record := range load(db.Groups()) {
		g, err := groups.Decode(record)
		if err != nil {
			t.Fatal(err)
		}
		m.groups[id] = g
	}
	for id, record := range load(db.Rules()) {
		r, err := rules.Decode(record)
		if err != nil {
			t.Fatal(err)
		}
		m.rules[id] = r
	}
	for key, text := range load(db.Settings()) {
		m.settings[key] = string(text)
	}
	return m
}

// commit makes a change on whatever a repository holds.
func commit(ctx context.Context, r records.Repository, change records.Change) error {
	set, err := r.Load(ctx)
	if err != nil {
		return err
	}
	_, err = r.Commit(ctx, set.Revision, change)
	return err
}

func put(ctx context.Context, r records.Repository, id string, record []byte) error {
	return commit(ctx, r, records.Change{Put: map[string][]byte{id: record}})
}

func remove(ctx context.Context, r records.Repository, id string) error {
	return commit(ctx, r, records.Change{Delete: []string{id}})
}

func putGroup(ctx context.Context, db *store.DB, g *groups.Group) error {
	record, err := groups.Encode(g)
	if err != nil {
		return err
	}
	return put(ctx, db.Groups(), g.ID, record)
}

func putRule(ctx context.Context, db *store.DB, r *rules.Rule) error {
	record, err := rules.Encode(r)
	if err != nil {
		return err
	}
	return put(ctx, db.Rules(), r.ID, record)
}

// putSettings replaces all settings at once.
func putSettings(ctx context.Context, db *store.DB, all map[string]string) error {
	set, err := db.Settings().Load(ctx)
	if err != nil {
		return err
	}
	change := records.Change{Put: make(map[string][]byte)}
	for key := range set.Records {
		if _, ok := all[key]; !ok {
			change.Delete = append(change.Delete, key)
		}
	}
	for key, text := range all {
		change.Put[key] = []byte(text)
	}
	return commit(ctx, db.Settings(), change)
}

// changeForEver is the process that is killed: it makes one change after the other and prints the
// number of each that the store has acknowledged.
func changeForEver(dir string) {
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	n, err := strconv.Atoi(os.Getenv(crashFirst))
	fail(err)
	db, err := store.Open(dir)
	fail(err)
	fmt.Println("ready")
	for m := newModel(); ; n++ {
		fail(m.change(n)(context.Background(), db))
		fmt.Println(n)
	}
}

// runUntilKilled has a process change the store from the change first on, kills it after a time, and
// tells how many changes it has acknowledged.
func runUntilKilled(t *testing.T, dir string, first int, after time.Duration) int {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), crashDir+"="+dir, crashFirst+"="+strconv.Itoa(first))
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	acknowledged := 0
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			break // what stands before it was cut off: nobody was told of it
		}
		if err != nil {
			t.Fatal(err)
		}
		switch line = strings.TrimSpace(line); line {
		case "ready":
			kill := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
			defer kill.Stop()
		case strconv.Itoa(first + acknowledged):
			acknowledged++
		default:
			t.Fatalf("the process printed %q, expected %d", line, first+acknowledged)
		}
	}
	if err := cmd.Wait(); err == nil || complaints.Len() > 0 {
		t.Fatalf("the process ended by itself: %v %s", err, &complaints)
	}
	return acknowledged
}

// A server may be killed at any moment. What it has acknowledged is there afterwards; the one change
// that was under way is there as a whole or not at all.
func TestKilledAtAnyMoment(t *testing.T) {
	rounds := 200
	if testing.Short() {
		rounds = 20
	}
	seed := rand.Uint64()
	if text := os.Getenv(crashSeed); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%s=%d", crashSeed, seed)
	random := rand.New(rand.NewPCG(seed, 0))

	dir := t.TempDir()
	now := newModel()
	n, unacknowledged := 0, 0
	for round := range rounds {
		acknowledged := runUntilKilled(t, dir, n, time.Duration(random.Int64N(int64(60*time.Millisecond))))
		for range acknowledged {
			now.change(n)
			n++
		}
		db, err := store.Open(dir)
		if err != nil {
			t.Fatalf("round %d, after change %d: %v", round, n, err)
		}
		found := stored(t, db)
		if next := now.clone(); !reflect.DeepEqual(found, now) {
			next.change(n)
			if !reflect.DeepEqual(found, next) {
				t.Fatalf("round %d: the changes up to %d were acknowledged; found\n%s\nwant\n%s\nor\n%s", round, n-1, found, now, next)
			}
			now = next
			n++
			unacknowledged++
		}
		if _, err := groups.Open(t.Context(), db.Groups()); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		r, err := settings.Open(t.Context(), db.Settings(), nil)
		if err != nil || len(r.Problems()) > 0 {
			t.Fatalf("round %d: %v %v", round, err, r.Problems())
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d changes, %d of them complete but not acknowledged", n, unacknowledged)
	if n < rounds {
		t.Errorf("only %d changes in %d rounds: the processes were killed before they did anything", n, rounds)
	}
}

func (m *model) String() string {
	var b strings.Builder
	for id, g := range m.groups {
		fmt.Fprintf(&b, "%s: %q limit %d\n", id, g.Name, *g.Throttling.NodeLimit)
	}
	for id, r := range m.rules {
		fmt.Fprintf(&b, "%s: %q\n", id, r.Description)
	}
	fmt.Fprint(&b, m.settings)
	return b.String()
}
