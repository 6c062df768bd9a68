package meta

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/records"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const prefix = "/p/"

// store is an etcd as far as a client sees it: keys with the revisions of their last change, and all changes in order.
type store struct {
	revision int64
	keys     map[string]*mvccpb.KeyValue
	events   []*clientv3.Event
	sets     map[int64][kinds]records.Set // what the sets held at each revision
}

func newStore() *store {
	s := &store{keys: make(map[string]*mvccpb.KeyValue), sets: make(map[int64][kinds]records.Set)}
	s.commit(map[string]string{"schema": `{"version":1,"cluster_uuid":"c"}`})
	return s
}

// commit makes one transaction; an empty value removes a key.
func (s *store) commit(changes map[string]string) {
	s.revision++
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		key := prefix + name
		kv := &mvccpb.KeyValue{Key: []byte(key), Value: []byte(changes[name]), ModRevision: s.revision}
		e := &clientv3.Event{Type: clientv3.EventTypePut, Kv: kv}
		if changes[name] == "" {
			e.Type = clientv3.EventTypeDelete
			delete(s.keys, key)
		} else {
			s.keys[key] = kv
		}
		s.events = append(s.events, e)
	}
	v, err := read(prefix, s.all(), uint64(s.revision))
	if err != nil {
		panic(err)
	}
	s.sets[s.revision] = v.sets
}

func (s *store) all() []*mvccpb.KeyValue { return slices.Collect(maps.Values(s.keys)) }

// Whatever the order in which a client learns what has happened, by the watch, by reading all, by its own changes: the
// sets that it knows are as they were at some moment, go forward only, and leave out nothing up to the view's revision.
func TestViewIsTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStore()
		c := newClient(Config{Prefix: prefix})
		if v, err := read(prefix, s.all(), uint64(s.revision)); err != nil || c.take(v, nil) != nil {
			t.Fatal(err)
		}
		watched := len(s.events)
		type reading struct{ v, before *view }
		var readings []reading
		type own struct {
			k    kind
			base uint64
			set  records.Set
		}
		var owns []own
		last := c.view.Load()
		change := func(t *rapid.T) (kind, map[string]string) {
			k := kind(rapid.IntRange(0, int(kinds)-1).Draw(t, "kind"))
			changes := map[string]string{setKey(k): fmt.Sprint("by ", s.revision)}
			for range rapid.IntRange(0, 2).Draw(t, "records") {
				id := rapid.SampledFrom([]string{"a", "b", "c/d"}).Draw(t, "id")
				changes[setKey(k)+"/"+id] = rapid.SampledFrom([]string{"", fmt.Sprint("v", s.revision)}).Draw(t, "value")
			}
			return k, changes
		}
		t.Repeat(map[string]func(*rapid.T){
			"another changes a set": func(t *rapid.T) {
				_, changes := change(t)
				s.commit(changes)
			},
			"something else changes": func(t *rapid.T) {
				s.commit(map[string]string{
					"members/m": rapid.SampledFrom([]string{"", `{"id":"m","version":"3.7.0"}`}).Draw(t, "member"),
					"ring":      fmt.Sprintf(`{"members":[{"id":"m%d","version":"3.7.0"}]}`, s.revision),
				})
			},
			"this node changes a set": func(t *rapid.T) {
				k, changes := change(t)
				base := c.view.Load().sets[k].Revision
				if base != s.sets[s.revision][k].Revision {
					t.Skip("it would be refused")
				}
				s.commit(changes)
				owns = append(owns, own{k, base, s.sets[s.revision][k]})
			},
			"its answer comes": func(t *rapid.T) {
				if len(owns) == 0 {
					t.Skip("there is none")
				}
				o := owns[0]
				owns = owns[1:]
				err := c.change(func(now *view) (*view, error) {
					if now.sets[o.k].Revision != o.base {
						return now, nil
					}
					return now.with(o.k, o.set), nil
				})
				if err != nil {
					t.Fatal(err)
				}
			},
			"the watch brings some": func(t *rapid.T) {
				to := watched + rapid.IntRange(0, len(s.events)-watched).Draw(t, "events")
				for to > watched && to < len(s.events) && s.events[to].Kv.ModRevision == s.events[to-1].Kv.ModRevision {
					to++ // what was changed at once comes at once
				}
				some := s.events[watched:to]
				watched = to
				if err := c.change(func(now *view) (*view, error) { return c.followed(now, some) }); err != nil {
					t.Fatal(err)
				}
			},
			"the watch begins anew": func(*rapid.T) {
				watched = slices.IndexFunc(s.events, func(e *clientv3.Event) bool { return uint64(e.Kv.ModRevision) > c.view.Load().revision })
				if watched < 0 {
					watched = len(s.events)
				}
			},
			"all is read": func(t *rapid.T) {
				v, err := read(prefix, s.all(), uint64(s.revision))
				if err != nil {
					t.Fatal(err)
				}
				readings = append(readings, reading{v, c.view.Load()})
			},
			"a reading is taken in": func(t *rapid.T) {
				if len(readings) == 0 {
					t.Skip("there is none")
				}
				i := rapid.IntRange(0, len(readings)-1).Draw(t, "which")
				r := readings[i]
				readings = slices.Delete(readings, i, i+1)
				if err := c.take(r.v, r.before); err != nil {
					t.Fatal(err)
				}
			},
			"": func(t *rapid.T) {
				v := c.view.Load()
				if v.revision < last.revision || v.ringRevision < last.ringRevision {
					t.Fatalf("revision %d after %d, ring %d after %d", v.revision, last.revision, v.ringRevision, last.ringRevision)
				}
				for k := range kinds {
					set := v.sets[k]
					if set.Revision < last.sets[k].Revision {
						t.Fatalf("%v: revision %d after %d", k, set.Revision, last.sets[k].Revision)
					}
					if set.Revision < s.sets[int64(v.revision)][k].Revision {
						t.Fatalf("%v: revision %d, though everything up to %d counts as known", k, set.Revision, v.revision)
					}
					then := max(int64(set.Revision), 1)
					if got, want := text(set), text(s.sets[then][k]); got != want {
						t.Fatalf("%v at revision %d: %s, want %s", k, set.Revision, got, want)
					}
				}
				last = v
			},
		})
	})
}

func text(s records.Set) string {
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(s.Records)) {
		fmt.Fprintf(&b, "%s=%s ", id, s.Records[id])
	}
	return b.String()
}

func TestLastSeenRoundTrip(t *testing.T) {
	s := newStore()
	s.commit(map[string]string{"sets/groups": "x", "sets/groups/a/b": `{"_id":"a/b"}`, "sets/settings": "y", "sets/settings/k": "\xff\x00"})
	s.commit(map[string]string{"ring": `{"members":[{"id":"m"}]}`, "members/m": `{"id":"m"}`})
	v, err := read(prefix, s.all(), uint64(s.revision))
	if err != nil {
		t.Fatal(err)
	}
	record, err := encodeLast(prefix, v)
	if err != nil {
		t.Fatal(err)
	}
	again, err := decodeLast(prefix, record)
	if err != nil {
		t.Fatal(err)
	}
	for k := range kinds {
		if text(again.sets[k]) != text(v.sets[k]) || again.sets[k].Revision != v.sets[k].Revision || again.sets[k].Records == nil {
			t.Errorf("%v: %v, want %v", k, again.sets[k], v.sets[k])
		}
	}
	if again.revision != v.revision || again.schema != v.schema || len(again.members) != 0 || again.ring.Epoch() != 0 {
		t.Errorf("%+v", again)
	}
	if other, err := decodeLast("/q/", record); other != nil || err != nil {
		t.Errorf("of another prefix: %v, %v", other, err)
	}
	newer := strings.Replace(string(record), `"version":1`, `"version":2`, 1)
	if _, err := decodeLast(prefix, []byte(newer)); !errors.As(err, new(*SchemaError)) {
		t.Errorf("of a newer version: %v", err)
	}
	if _, err := decodeLast(prefix, []byte("{")); err == nil {
		t.Error("what cannot be read was read")
	}
}

func TestMalformedKeys(t *testing.T) {
	for name, value := range map[string]string{"schema": "1.", "ring": "[]", "members/a": "x"} {
		kv := &mvccpb.KeyValue{Key: []byte(prefix + name), Value: []byte(value), ModRevision: 1}
		_, err := read(prefix, []*mvccpb.KeyValue{kv}, 1)
		if e, ok := errors.AsType[*MalformedError](err); !ok || e.Key != prefix+name || !strings.Contains(err.Error(), e.Key) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	kv := &mvccpb.KeyValue{Key: []byte(prefix + "of the future/x"), Value: []byte("x"), ModRevision: 1}
	if _, err := read(prefix, []*mvccpb.KeyValue{kv}, 1); err != nil {
		t.Errorf("a key of a newer version: %v", err)
	}
}

func TestUnreachable(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{context.DeadlineExceeded, true},
		{fmt.Errorf("reading: %w", context.Canceled), true},
		{status.Error(codes.Unavailable, "x"), true},
		{rpctypes.ErrNoLeader, true},
		{fmt.Errorf("writing: %w", rpctypes.ErrTimeout), true},
		{rpctypes.ErrRequestTooLarge, false},
		{rpctypes.ErrPermissionDenied, false},
		{rpctypes.ErrAuthFailed, false},
		{&SchemaError{}, false},
	} {
		if got := unreachable(c.err); got != c.want {
			t.Errorf("%v: %t", c.err, got)
		}
	}
}

// A change of very many records is one transaction of a depth and width that etcd takes.
func TestManyOperations(t *testing.T) {
	c := newClient(Config{Prefix: prefix, Self: ring.Member{ID: "n"}})
	for _, n := range []int{0, 1, mostOperations - 1, mostOperations, 1000} {
		change := records.Change{Put: make(map[string][]byte)}
		for i := range n {
			if i%2 == 0 {
				change.Put[fmt.Sprint(i)] = []byte("v")
			} else {
				change.Delete = append(change.Delete, fmt.Sprint(i))
			}
		}
		all := (&transaction{set: c.Rules(), change: change}).operations()
		count, widest := 0, 0
		for _, op := range all {
			within := 0
			if op.IsTxn() {
				_, then, _ := op.Txn()
				within = len(then)
				count += within
			} else {
				count++
			}
			widest = max(widest, len(all)+within)
		}
		if count != n+1 || widest > 128 {
			t.Errorf("%d records: %d operations, %d of them on the widest way down", n, count, widest)
		}
	}
}

// A reading that brings an earlier revision than was known when it began says that etcd's data were replaced, also where
// only an own change made the later one known.
func TestDataOfAnEarlierTime(t *testing.T) {
	for _, own := range []bool{false, true} {
		s := newStore()
		s.commit(map[string]string{"sets/groups": "x", "sets/groups/a": "1"})
		earlier := s.all()
		revision := uint64(s.revision)
		c := newClient(Config{Prefix: prefix})
		take := func(kvs []*mvccpb.KeyValue, revision uint64, before *view) {
			t.Helper()
			v, err := read(prefix, kvs, revision)
			if err == nil {
				err = c.take(v, before)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		take(earlier, revision, nil)
		s.commit(map[string]string{"sets/groups": "y", "sets/groups/b": "2"})
		if own {
			now := s.sets[s.revision][groupsSet]
			if err := c.change(func(v *view) (*view, error) { return v.with(groupsSet, now), nil }); err != nil {
				t.Fatal(err)
			}
		} else {
			take(s.all(), uint64(s.revision), nil)
		}
		// One that began before is only late.
		late := emptyView()
		take(earlier, revision, late)
		if got := text(c.view.Load().sets[groupsSet]); got != "a=1 b=2 " {
			t.Errorf("own %t: after a late reading: %s", own, got)
		}
		take(earlier, revision, c.view.Load())
		if got := text(c.view.Load().sets[groupsSet]); got != "a=1 " || c.view.Load().revision != revision {
			t.Errorf("own %t: %s", own, got)
		}
	}
}
