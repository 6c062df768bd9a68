package store_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.uber.org/goleak"

	"github.com/wlmserver/wlmserver/records"
	"github.com/wlmserver/wlmserver/rules"
	"github.com/wlmserver/wlmserver/store"
	"github.com/wlmserver/wlmserver/store/contract"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		changeForEver(dir)
	}
	goleak.VerifyTestMain(m)
}

func open(t *testing.T, dir string) *store.DB {
	t.Helper()
	db, err := store.Open(dir)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return db
}

// reopening gives the folder's file again and again, closed in between.
func reopening(t *testing.T) func() *store.DB {
	t.Helper()
	dir := t.TempDir()
	var last *store.DB
	return func() *store.DB {
		if last != nil {
			if err := last.Close(); err != nil {
				t.Fatal(err)
			}
		}
		last = open(t, dir)
		return last
	}
}

func TestContract(t *testing.T) {
	for name, of := range map[string]func(*store.DB) records.Repository{
		"groups": (*store.DB).Groups, "rules": (*store.DB).Rules, "settings": (*store.DB).Settings,
	} {
		t.Run(name, func(t *testing.T) {
			next := reopening(t)
			if name == "settings" {
				contract.Repository(t, func() records.Repository { return of(next()) })
				return
			}
			// A file with records that are no groups is refused when it is opened, so these are only tried while it is open.
			db := next()
			contract.Repository(t, func() records.Repository { return of(db) })
		})
	}
}

// Two registries over one file are as good as two nodes.
func TestWriters(t *testing.T) {
	db := open(t, t.TempDir())
	node := contract.Repositories{Groups: db.Groups(), Rules: db.Rules(), Settings: db.Settings()}
	contract.Writers(t, node, node)
}

func TestNodeID(t *testing.T) {
	next := reopening(t)
	first, err := next().NodeID()
	if err != nil {
		t.Fatal(err)
	}
	if b, err := base64.RawURLEncoding.DecodeString(first); err != nil || len(first) != 22 || len(b) != 16 {
		t.Errorf("id %q: %v", first, err)
	}
	for range 2 {
		if again, err := next().NodeID(); err != nil || again != first {
			t.Errorf("id after a restart: %q, %v; it was %q", again, err, first)
		}
	}
	if other, err := open(t, t.TempDir()).NodeID(); err != nil || other == first {
		t.Errorf("id of another folder: %q, %v", other, err)
	}
}

func TestLastSeen(t *testing.T) {
	next := reopening(t)
	if record, err := next().Last().Kept(t.Context()); record != nil || err != nil {
		t.Errorf("a new file has seen %q, %v", record, err)
	}
	for _, record := range []string{"one", "another", strings.Repeat("long", 100_000)} {
		if err := next().Last().Keep(t.Context(), []byte(record)); err != nil {
			t.Fatal(err)
		}
		if got, err := next().Last().Kept(t.Context()); string(got) != record || err != nil {
			t.Errorf("kept %.20q, %v; want %.20q", got, err, record)
		}
	}
}

func TestFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "yet", "there")
	open(t, dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != "wlmserver.db" {
		t.Errorf("the folder holds %v", entries)
	}
	for name, want := range map[string]os.FileMode{"": 0o700, "wlmserver.db": 0o600} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("mode of %q: %v, want %v", name, got, want)
		}
	}
}

func TestFolderThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		if _, err := store.Open(dir); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("Open(%s): error %v", dir, err)
		}
	}
}

func TestSecondServerOnTheFolder(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	_, err := store.Open(dir)
	if e, ok := errors.AsType[*store.LockedError](err); !ok || e.Dir != dir || !strings.Contains(e.Error(), "path.data") {
		t.Errorf("error %v", err)
	}
	if _, err := db.NodeID(); err != nil {
		t.Errorf("the first one is disturbed: %v", err)
	}
}

// Of servers that meet in a folder that is not there yet, one gets it, and all agree on its id.
func TestFirstStartOfManyAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	var (
		all sync.WaitGroup
		mu  sync.Mutex
		ids = map[string]int{}
	)
	for range 8 {
		all.Go(func() {
			db, err := store.Open(dir)
			if _, ok := errors.AsType[*store.LockedError](err); ok {
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			id, err := db.NodeID()
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			ids[id]++
			mu.Unlock()
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(ids) != 1 {
		t.Errorf("node ids and how many servers had them: %v", ids)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// What a server leaves that died before its first file was complete is in nobody's way.
func TestFileOfAnUnfinishedFirstStart(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"wlmserver.db.new-1", "wlmserver.db.new-2"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := open(t, dir).NodeID(); err != nil {
		t.Error(err)
	}
}

func TestClosed(t *testing.T) {
	db, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	ctx := t.Context()
	_, errID := db.NodeID()
	_, errLoad := db.Groups().Load(ctx)
	_, errCommit := db.Rules().Commit(ctx, 0, records.Change{Delete: []string{"a"}})
	for _, err := range []error{errID, errLoad, errCommit} {
		if _, damaged := errors.AsType[*store.DamagedError](err); err == nil || damaged {
			t.Errorf("error %v", err)
		}
	}
}

// edit changes the closed file of a folder with bbolt itself.
func edit(t *testing.T, dir string, change func(*bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(filepath.Join(dir, "wlmserver.db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(change); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// filled is a folder whose closed file holds something of everything.
func filled(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	db, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 40 {
		m := newModel()
		m.change(n)
		for _, g := range m.groups {
			if err := putGroup(t.Context(), db, g); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := putSettings(t.Context(), db, map[string]string{"search.max_buckets": "5"}); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		r := &rules.Rule{ID: fmt.Sprint("rule-", i), Description: "d", Indices: []string{fmt.Sprint("i", i)}, Group: "g", UpdatedAt: time.UnixMilli(1).UTC()}
		if err := putRule(t.Context(), db, r); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestNewerSchema(t *testing.T) {
	dir := filled(t)
	edit(t, dir, func(tx *bolt.Tx) error {
		if _, err := tx.CreateBucket([]byte("of the future")); err != nil {
			return err
		}
		return tx.Bucket([]byte("node")).Put([]byte("schema_version"), []byte("7"))
	})
	before, err := os.ReadFile(filepath.Join(dir, "wlmserver.db"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the lock is given back each time
		_, err = store.Open(dir)
		e, ok := errors.AsType[*store.VersionError](err)
		if !ok || e.Found != 7 || e.Known != 2 || !strings.Contains(e.File, dir) {
			t.Fatalf("error %v", err)
		}
		for _, part := range []string{e.File, "version 7", "up to 2", "path.data"} {
			if !strings.Contains(e.Error(), part) {
				t.Errorf("%q does not say %q", e, part)
			}
		}
	}
	after, err := os.ReadFile(filepath.Join(dir, "wlmserver.db"))
	if err != nil || string(after) != string(before) {
		t.Errorf("the refused file was changed (%v)", err)
	}
}

// older makes the closed file of a folder one as the first version of the schema had it.
func older(t *testing.T, dir string) {
	t.Helper()
	edit(t, dir, func(tx *bolt.Tx) error {
		if err := tx.DeleteBucket([]byte("rules")); err != nil {
			return err
		}
		return tx.Bucket([]byte("node")).Put([]byte("schema_version"), []byte("1"))
	})
}

func TestOlderSchema(t *testing.T) {
	dir := filled(t)
	db := open(t, dir)
	before := stored(t, db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	older(t, dir)
	clear(before.rules)
	rule := &rules.Rule{ID: "r", Description: "d", Indices: []string{"a"}, Group: "g", UpdatedAt: time.UnixMilli(1).UTC()}
	for round := range 2 {
		db, err := store.Open(dir)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if now := stored(t, db); !reflect.DeepEqual(now, before) {
			t.Errorf("round %d: %v, want %v", round, now, before)
		}
		before.rules[rule.ID] = rule
		if err := errors.Join(putRule(t.Context(), db, rule), db.Close()); err != nil {
			t.Fatal(err)
		}
	}
	edit(t, dir, func(tx *bolt.Tx) error {
		if v := string(tx.Bucket([]byte("node")).Get([]byte("schema_version"))); v != "2" {
			t.Errorf("schema version %s: a server that knows no rules would lose them", v)
		}
		return nil
	})
}

// A damaged file is not changed, whatever its version.
func TestDamagedOlderSchema(t *testing.T) {
	dir := filled(t)
	older(t, dir)
	edit(t, dir, func(tx *bolt.Tx) error { return tx.Bucket([]byte("groups")).Put([]byte("id"), []byte("{")) })
	wantDamaged(t, dir)
	edit(t, dir, func(tx *bolt.Tx) error {
		if tx.Bucket([]byte("rules")) != nil || string(tx.Bucket([]byte("node")).Get([]byte("schema_version"))) != "1" {
			t.Error("the damaged file was changed")
		}
		return nil
	})
}

func TestDamagedContent(t *testing.T) {
	put := func(bucket, key, text string) func(*bolt.Tx) error {
		return func(tx *bolt.Tx) error { return tx.Bucket([]byte(bucket)).Put([]byte(key), []byte(text)) }
	}
	for name, change := range map[string]func(*bolt.Tx) error{
		"a record that is cut":   put("groups", "id", `{"_id":"id","name`),
		"a record of another id": put("groups", "id", `{"_id":"other","name":"n"}`),
		"a version that is none": put("node", "schema_version", "one"),
		"a version of nothing":   put("node", "schema_version", "0"),
		"a node id that is none": put("node", "node_id", "AAAA"),
		"no groups":              func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte("groups")) },
		"a rule that is cut":     put("rules", "id", `{"id":"id","descr`),
		"a rule of another id":   put("rules", "id", `{"id":"other","description":"d"}`),
		"no rules":               func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte("rules")) },
		"no settings":            func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte("settings")) },
		"no schema":              func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte("node")) },
		"no version":             func(tx *bolt.Tx) error { return tx.Bucket([]byte("node")).Delete([]byte("schema_version")) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filled(t)
			edit(t, dir, change)
			wantDamaged(t, dir)
			wantDamaged(t, dir) // the lock was given back
		})
	}
}

func wantDamaged(t *testing.T, dir string) {
	t.Helper()
	file := filepath.Join(dir, "wlmserver.db")
	db, err := store.Open(dir)
	if err == nil {
		_ = db.Close()
		t.Fatal("the damage is not noticed")
	}
	if e, ok := errors.AsType[*store.DamagedError](err); !ok || e.File != file || !strings.Contains(err.Error(), file) {
		t.Fatalf("error %T %v", err, err)
	}
}

func TestDamagedFile(t *testing.T) {
	page := os.Getpagesize()
	for name, damage := range map[string]func([]byte) []byte{
		"emptied":           func([]byte) []byte { return nil },
		"text":              func([]byte) []byte { return []byte("not a database\n") },
		"much text":         func(b []byte) []byte { return []byte(strings.Repeat("not a database\n", len(b)/15)) },
		"zeroes":            func(b []byte) []byte { return make([]byte, len(b)) },
		"cut to one page":   func(b []byte) []byte { return b[:page] },
		"cut to two pages":  func(b []byte) []byte { return b[:2*page] },
		"cut to five pages": func(b []byte) []byte { return b[:5*page] },
		"no heads":          func(b []byte) []byte { return append(make([]byte, 2*page), b[2*page:]...) },
		"only heads": func(b []byte) []byte {
			return append(b[:2*page:2*page], make([]byte, len(b)-2*page)...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filled(t)
			file := filepath.Join(dir, "wlmserver.db")
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, damage(b), 0o600); err != nil {
				t.Fatal(err)
			}
			wantDamaged(t, dir)
		})
	}
}

// Whatever bytes are wrong: the file is opened or refused with its name; it is never the end of the
// process.
func TestDamagedAnywhere(t *testing.T) {
	whole, err := os.ReadFile(filepath.Join(filled(t), "wlmserver.db"))
	if err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	used := 8 * page // the rest of the file is still empty
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		b := bytes.Clone(whole)
		for range 1 + random.IntN(5) {
			b[random.IntN(used)] = byte(random.Uint32())
		}
		if seed%3 == 0 {
			head := random.IntN(used/page) * page
			for i := range 64 {
				b[head+i] = byte(random.Uint32())
			}
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "wlmserver.db"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := store.Open(dir)
		if err == nil {
			err = errors.Join(putSettings(t.Context(), db, map[string]string{"a": "b"}), remove(t.Context(), db.Groups(), "group-1"), db.Close())
		}
		if _, ok := errors.AsType[*store.DamagedError](err); err != nil && !ok {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}
