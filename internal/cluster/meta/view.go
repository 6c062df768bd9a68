package meta

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/records"
)

// kind is one of the sets.
type kind int

// The sets, in the order in which listeners hear of them: rules name groups, and settings bound both.
const (
	settingsSet kind = iota
	groupsSet
	rulesSet
	indicesSet
	kinds
)

func (k kind) String() string { return [kinds]string{"settings", "groups", "rules", "indices"}[k] }

// Keys below the prefix.
const (
	schemaKey  = "schema"
	ringKey    = "ring"
	membersKey = "members"
	setsKey    = "sets"
)

// setKey is the key that every change of a set writes.
func setKey(k kind) string { return setsKey + "/" + k.String() }

// schemaVersion is the newest layout that this package knows.
const schemaVersion = 1

// schemaRecord is how the schema is stored. A key once used keeps its meaning.
type schemaRecord struct {
	Version int    `json:"version"`
	Cluster string `json:"cluster_uuid"`
}

// ringRecord is how the ring is stored. Members stand there as they have registered themselves.
type ringRecord struct {
	Members []json.RawMessage `json:"members"`
}

// view is what the prefix holds at one revision. It never changes: what follows is another one.
type view struct {
	revision uint64 // everything up to here is in it

	schema         schemaRecord
	schemaRevision int64 // 0 before anybody has laid the prefix out

	sets [kinds]records.Set

	members         map[string]registration // by id
	membersRevision int64

	ring         *ring.Ring
	ringRevision int64
	ringUnknown  records.Unknown
}

// registration is a member's key.
type registration struct {
	ring.Member

	record []byte // with what a newer version has written beside
}

func emptyView() *view { return &view{ring: ring.New(0, nil)} }

// read returns the view of a whole prefix.
func read(prefix string, kvs []*mvccpb.KeyValue, revision uint64) (*view, error) {
	v := emptyView()
	for k := range v.sets {
		v.sets[k].Records = make(map[string][]byte)
	}
	v.members = make(map[string]registration)
	v.revision = revision
	for _, kv := range kvs {
		if err := v.put(prefix, kv); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// after returns the view that events lead to, all of them of revisions after the view's or known to be in it. Sets
// that are newer already, since this node has changed them itself, stay.
func (v *view) after(prefix string, events []*clientv3.Event) (*view, error) {
	next := *v
	next.members = maps.Clone(v.members)
	for k := range next.sets {
		next.sets[k].Records = maps.Clone(v.sets[k].Records)
	}
	for _, e := range events {
		revision := uint64(e.Kv.ModRevision)
		if k, ok := kindOf(prefix, e.Kv.Key); revision <= v.revision || ok && revision <= v.sets[k].Revision {
			continue
		}
		if e.Type == clientv3.EventTypeDelete {
			next.remove(prefix, e.Kv)
		} else if err := next.put(prefix, e.Kv); err != nil {
			return nil, err
		}
		next.revision = max(next.revision, revision)
	}
	// Also what was passed over is in it now.
	for _, e := range events {
		next.revision = max(next.revision, uint64(e.Kv.ModRevision))
	}
	return &next, nil
}

// with returns the view with a set as a change of this node has left it, unless it is newer already.
func (v *view) with(k kind, set records.Set) *view {
	if v.sets[k].Revision >= set.Revision {
		return v
	}
	next := *v
	next.sets[k] = set
	return &next
}

// newest is the newest revision that the view knows of: its own, or that of a change which this node has made itself.
func (v *view) newest() uint64 {
	newest := v.revision
	for _, set := range v.sets {
		newest = max(newest, set.Revision)
	}
	return newest
}

// kindOf tells of which set a key is.
func kindOf(prefix string, key []byte) (kind, bool) {
	name, ok := strings.CutPrefix(string(key), prefix+setsKey+"/")
	if !ok {
		return 0, false
	}
	name, _, _ = strings.Cut(name, "/")
	for k := range kinds {
		if name == k.String() {
			return k, true
		}
	}
	return 0, false
}

// put takes a key in. Keys of a newer version are passed over.
func (v *view) put(prefix string, kv *mvccpb.KeyValue) error {
	name := strings.TrimPrefix(string(kv.Key), prefix)
	var err error
	switch k, isSet := kindOf(prefix, kv.Key); {
	case isSet:
		if id, ok := strings.CutPrefix(name, setKey(k)+"/"); ok {
			v.sets[k].Records[id] = bytes.Clone(kv.Value)
		} else {
			v.sets[k].Revision = uint64(kv.ModRevision)
		}
	case name == schemaKey:
		v.schemaRevision = kv.ModRevision
		err = json.Unmarshal(kv.Value, &v.schema)
	case name == ringKey:
		err = v.putRing(kv)
	case name == membersKey:
		v.membersRevision = kv.ModRevision
	case strings.HasPrefix(name, membersKey+"/"):
		r := registration{record: bytes.Clone(kv.Value)}
		if err = json.Unmarshal(kv.Value, &r.Member); err == nil {
			v.members[strings.TrimPrefix(name, membersKey+"/")] = r
		}
	}
	if err != nil {
		return &MalformedError{Key: string(kv.Key), Cause: err}
	}
	return nil
}

func (v *view) putRing(kv *mvccpb.KeyValue) error {
	record, unknown, err := records.Decode[ringRecord](kv.Value)
	if err != nil {
		return err
	}
	all := make([]ring.Member, len(record.Members))
	for i, m := range record.Members {
		if err := json.Unmarshal(m, &all[i]); err != nil {
			return err
		}
	}
	v.ring, v.ringRevision, v.ringUnknown = ring.New(uint64(kv.ModRevision), all), kv.ModRevision, unknown
	return nil
}

// remove takes a key out. Schema, ring and the keys that number changes are never removed; should somebody do so, what
// they said stands until the prefix is read anew.
func (v *view) remove(prefix string, kv *mvccpb.KeyValue) {
	name := strings.TrimPrefix(string(kv.Key), prefix)
	if k, ok := kindOf(prefix, kv.Key); ok {
		if id, ok := strings.CutPrefix(name, setKey(k)+"/"); ok {
			delete(v.sets[k].Records, id)
		}
		return
	}
	if id, ok := strings.CutPrefix(name, membersKey+"/"); ok {
		delete(v.members, id)
	}
}

// registered returns the members that are registered, in the order of their ids.
func (v *view) registered() []registration {
	return slices.SortedFunc(maps.Values(v.members), func(a, b registration) int { return strings.Compare(a.ID, b.ID) })
}

// left tells whether the ring names a member that is not registered any more.
func (v *view) left() bool {
	return slices.ContainsFunc(v.ring.Members(), func(m ring.Member) bool { return v.members[m.ID].Member != m })
}

// joined tells whether a member is registered that the ring does not name.
func (v *view) joined() bool {
	for _, r := range v.members {
		if !v.ring.Has(r.Member) {
			return true
		}
	}
	return false
}

// ringOf writes the ring of some members.
func (v *view) ringOf(all []registration) ([]byte, error) {
	record := ringRecord{Members: make([]json.RawMessage, len(all))}
	for i, r := range all {
		record.Members[i] = r.record
	}
	return records.Encode(record, v.ringUnknown)
}

// tooOld finds a member that is below a version: this node, or one that is registered or of the ring.
func (v *view) tooOld(version string, self ring.Member) (ring.Member, bool) {
	all := append([]ring.Member{self}, v.ring.Members()...)
	for _, r := range v.registered() {
		all = append(all, r.Member)
	}
	if i := slices.IndexFunc(all, func(m ring.Member) bool { return !m.Supports(version) }); i >= 0 {
		return all[i], true
	}
	return ring.Member{}, false
}

// fits checks that a member may take part in what is stored.
func (v *view) fits(m ring.Member) error {
	if m.Supports(ring.Since) {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(v.sets[groupsSet].Records)) {
		if g, queues := queued(v.sets[groupsSet].Records[id]); queues {
			return &VersionError{Group: g.Name, Feature: "queue", Version: m.Version, Needs: ring.Since}
		}
	}
	return nil
}

// queued tells whether a record is of a group with a queue.
func queued(record []byte) (*groups.Group, bool) {
	g, err := groups.Decode(record)
	return g, err == nil && g.Queue.SizePerBucket != nil
}
