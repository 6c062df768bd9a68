package stub

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
	"github.com/wlmserver/wlmserver/internal/shard"
	"github.com/wlmserver/wlmserver/search"
)

const maxShards = 1024

// bytesPerIndex is what an index takes beside its body and its documents, roughly.
const bytesPerIndex = 1 << 10

// index is one index as this node has it: what is known of it, and the copies that are here. Its documents are guarded by mu, and mu is
// held to replace now.
type index struct {
	*identity
	now     atomic.Pointer[definition]
	settled atomic.Bool // every member knows of it

	mu     sync.Mutex
	closed bool // deleted: takes no more documents
	stores []store
}

// KV is one setting of an index under its full name.
type KV struct {
	Key, Value string
	List       bool // Value is a JSON array of strings
}

// IndexInfo describes an index.
type IndexInfo struct {
	Name, UUID string
	Created    time.Time
	Shards     int
	Replicas   int
	Closed     bool            // neither searched nor written to
	Mappings   json.RawMessage // one compact JSON object, as it was given
	Settings   []KV            // all of them, in OpenSearch's order; those given beside the known ones last
	Documents  int
	Stores     []StoreInfo  // by shard
	Copies     [][]CopyInfo // by shard, the primary first; those that are missing are not there
}

// StoreInfo tells what the primary copy of a shard holds, as far as that is known here; see [Engine.Measure].
type StoreInfo struct {
	Documents int
	Bytes     int64 // roughly
}

// CopyInfo tells where one copy of a shard is.
type CopyInfo struct {
	Node    string // its id
	Started bool   // it may be asked; else it is being filled
}

// ActivePrimaries is how many shards can be asked at all.
func (i IndexInfo) ActivePrimaries() int {
	n := 0
	for _, copies := range i.Copies {
		if len(copies) > 0 {
			n++
		}
	}
	return n
}

// Active is how many copies can be asked.
func (i IndexInfo) Active() int {
	n := 0
	for _, copies := range i.Copies {
		for _, c := range copies {
			if c.Started {
				n++
			}
		}
	}
	return n
}

// Initializing is how many copies are being filled.
func (i IndexInfo) Initializing() int {
	n := -i.Active()
	for _, copies := range i.Copies {
		n += len(copies)
	}
	return n
}

// Unassigned is how many copies are missing.
func (i IndexInfo) Unassigned() int {
	return i.Shards*(1+i.Replicas) - i.Active() - i.Initializing()
}

// newDefinition makes an index with the settings of the body of a create request, and returns what else there is in that, for
// describe. It is not laid out yet.
func newDefinition(name string, body []byte, defaults Cost) (d *definition, rest *jsondoc.Value, err error) {
	d = &definition{
		identity: &identity{
			name:     name,
			uuid:     randomID(16),
			created:  time.UnixMilli(time.Now().UnixMilli()),
			mappings: json.RawMessage("{}"),
			shards:   1,
			size:     bytesPerIndex + int64(len(body)),
		},
		dynamic: dynamic{replicas: defaultReplicas, cost: defaults},
	}
	rest = new(jsondoc.Value)
	if len(bytes.TrimSpace(body)) > 0 {
		if rest, err = d.read(body); err != nil {
			return nil, nil, err
		}
	}
	d.router = newRouter(d.shards)
	return d, rest, nil
}

// read checks of what parts the body of a create request is, and takes over the settings.
func (d *definition) read(body []byte) (*jsondoc.Value, error) {
	root, err := parseObject(body)
	if err != nil {
		return nil, err
	}
	for _, m := range root.Members {
		if m.Value.Kind == jsondoc.Null && m.Name != "settings" {
			continue
		}
		if m.Value.Kind != jsondoc.Object {
			return nil, &search.ParseError{
				Type:   "parse_exception",
				Reason: fmt.Sprintf("[%s] of an index must be an object, not %s", m.Name, article(m.Value.Kind)),
			}
		}
		if m.Name != "settings" && m.Name != "mappings" && m.Name != "aliases" {
			return nil, &search.ParseError{
				Type:   "parse_exception",
				Reason: fmt.Sprintf("unknown key [%s] in the body of an index; known are [settings], [mappings] and [aliases]", m.Name),
			}
		}
	}
	if v := root.Member("settings"); v != nil {
		d.shards, err = d.dynamic.read(v)
	}
	return root, err
}

// describe takes over what the body of a create request says beside the settings.
func (d *definition) describe(root *jsondoc.Value) error {
	if v := root.Member("mappings"); v != nil && v.Kind == jsondoc.Object {
		if err := d.readMappings(v); err != nil {
			return err
		}
	}
	if v := root.Member("aliases"); v != nil && len(v.Members) > 0 {
		return &search.InvalidError{Reason: "[aliases] are not provided by this server; search the index by its name or by a pattern"}
	}
	return nil
}

// read takes over the settings of a new index and returns the number of shards.
func (d *dynamic) read(v *jsondoc.Value) (shards int, err error) {
	shards = 1
	all, err := flatten(nil, "", v)
	if err != nil {
		return 0, err
	}
	for _, kv := range all {
		switch {
		case kv.null: // stands for the default
		case kv.Key == shardsKey:
			shards, err = wholeNumber(kv.Key, kv.Value, 1, maxShards)
		default:
			err = d.set(kv.KV)
		}
		if err != nil {
			return 0, err
		}
	}
	return shards, nil
}

const (
	shardsKey       = "index.number_of_shards"
	replicasKey     = "index.number_of_replicas"
	defaultReplicas = 1
	costPrefix      = "index.stub."
)

// set takes over one setting that may change.
func (d *dynamic) set(kv KV) (err error) {
	switch {
	case kv.Key == replicasKey:
		d.replicas, err = wholeNumber(kv.Key, kv.Value, 0, maxShards)
		return err
	case strings.HasPrefix(kv.Key, costPrefix):
		err = d.cost.Set(kv.Key, kv.Value)
	}
	if err == nil {
		d.forget(kv.Key)
		d.settings = append(d.settings, kv)
	}
	return err
}

func (d *dynamic) forget(key string) {
	d.settings = slices.DeleteFunc(d.settings, func(kv KV) bool { return kv.Key == key })
}

// given is a setting as a request gives it.
type given struct {
	KV
	null bool
}

// flatten turns nested settings into dotted ones.
func flatten(kvs []given, path string, v *jsondoc.Value) ([]given, error) {
	if v.Kind == jsondoc.Object {
		var err error
		for _, m := range v.Members {
			if kvs, err = flatten(kvs, join(path, m.Name), m.Value); err != nil {
				return nil, err
			}
		}
		return kvs, nil
	}
	if path != "index" && !strings.HasPrefix(path, "index.") {
		path = "index." + path
	}
	kv := KV{Key: path, Value: v.Text}
	if v.Kind == jsondoc.Array {
		list := []string{}
		for _, item := range v.Items {
			if !item.Scalar() || item.Kind == jsondoc.Null {
				reason := fmt.Sprintf("the list of the setting [%s] must hold values, not %s", path, article(item.Kind))
				return nil, &search.ParseError{Type: "settings_exception", Reason: reason, Cause: &search.ParseError{Type: "illegal_argument_exception", Reason: reason}}
			}
			list = append(list, item.Text)
		}
		text, err := json.Marshal(list)
		if err != nil {
			return nil, err
		}
		kv.Value, kv.List = string(text), true
	}
	return append(kvs, given{kv, v.Kind == jsondoc.Null}), nil
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func (i *identity) readMappings(v *jsondoc.Value) error {
	i.mappings = appendValue(nil, v)
	for _, m := range v.Members {
		if !slices.Contains(mappingParts, m.Name) {
			return unreadableMappings(fmt.Sprintf("[%s] is not known in mappings; known are %v", m.Name, mappingParts))
		}
	}
	properties := v.Member("properties")
	switch {
	case properties == nil, properties.Kind == jsondoc.Array && len(properties.Items) == 0:
		return nil
	case properties.Kind != jsondoc.Object:
		return unreadableMappings(fmt.Sprintf("[properties] has to be an object of fields with their types, not [%s]", properties.Kind))
	}
	for _, m := range properties.Members {
		t := m.Value.Member("type")
		if t == nil && m.Value.Member("properties") == nil {
			return unreadableMappings(fmt.Sprintf("the field [%s] has no type", m.Name))
		}
		if t != nil && !slices.Contains(fieldTypes, t.Text) {
			return unreadableMappings(fmt.Sprintf("the field [%s] has the type [%s], which there is not", m.Name, t.Text))
		}
	}
	i.numeric = numericFields(v)
	return nil
}

// unreadableMappings is why mappings cannot be read, which is told twice, as OpenSearch does.
func unreadableMappings(reason string) error {
	cause := &search.ParseError{Type: "mapper_parsing_exception", Reason: reason}
	return &search.ParseError{Type: cause.Type, Reason: "the mappings cannot be read: " + reason, Cause: cause}
}

// mappingParts are the members of mappings.
var mappingParts = []string{
	"_doc", "_data_stream_timestamp", "_field_names", "_meta", "_routing", "_size", "_source", "composite", "date_detection", "derived",
	"dynamic", "dynamic_date_formats", "dynamic_templates", "enabled", "numeric_detection", "properties",
}

// fieldTypes are the types of fields of OpenSearch, with those of the modules and plugins that come with the usual distribution.
var fieldTypes = append([]string{
	"alias", "binary", "boolean", "completion", "constant_keyword", "context_aware_grouping", "date", "date_nanos", "date_range", "derived",
	"double_range", "flat_object", "float_range", "geo_point", "geo_shape", "integer_range", "ip", "ip_range", "join", "keyword", "knn_vector",
	"long_range", "match_only_text", "murmur3", "annotated_text", "nested", "object", "percolator", "rank_feature", "rank_features",
	"search_as_you_type", "semantic", "sparse_vector", "star_tree", "text", "token_count", "version", "wildcard", "xy_point", "xy_shape",
}, numericTypes...)

var numericTypes = []string{"byte", "short", "integer", "long", "unsigned_long", "half_float", "float", "double", "scaled_float"}

func isNumeric(fieldType string) bool { return slices.Contains(numericTypes, fieldType) }

func (ix *index) info() IndexInfo {
	now := ix.now.Load()
	i := IndexInfo{
		Name: ix.name, UUID: ix.uuid, Created: ix.created,
		Shards: ix.shards, Replicas: now.replicas, Closed: now.shut, Mappings: ix.mappings, Copies: make([][]CopyInfo, ix.shards),
	}
	for n, copies := range now.copies {
		for _, c := range copies {
			i.Copies[n] = append(i.Copies[n], CopyInfo{c.node.ID, c.started})
		}
	}
	i.Settings = append([]KV{
		{Key: "index.replication.type", Value: "DOCUMENT"},
		{Key: shardsKey, Value: strconv.Itoa(i.Shards)},
		{Key: "index.provided_name", Value: i.Name},
		{Key: "index.creation_date", Value: strconv.FormatInt(i.Created.UnixMilli(), 10)},
		{Key: replicasKey, Value: strconv.Itoa(i.Replicas)},
		{Key: "index.uuid", Value: i.UUID},
	}, now.settings...)
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for s := range ix.stores {
		var store StoreInfo
		if ix.stores[s].started {
			store = StoreInfo{len(ix.stores[s].byID), ix.stores[s].size}
		}
		i.Documents += store.Documents
		i.Stores = append(i.Stores, store)
	}
	return i
}

// filling is a copy that is to be filled from its primary.
type filling struct {
	index  *index
	shard  int
	number int64
}

// adopt makes d what is known of the index, and the copies that d says are on this node those that are here. It tells how many bytes
// that frees, and which copies are to be filled.
func (ix *index) adopt(d *definition, self shard.Node) (freed int64, fill []filling) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if before := ix.now.Load(); before != nil {
		freed = before.extra()
	}
	ix.now.Store(d)
	freed -= d.extra()
	for n := range ix.stores {
		s := &ix.stores[n]
		c, _ := d.at(n, self)
		if c.number != s.copy {
			freed += s.reset(c.number)
			if c.number != 0 && !c.started {
				fill = append(fill, filling{ix, n, c.number})
			}
		}
		if c.started {
			s.start()
		}
	}
	return freed, fill
}

// close makes the index refuse documents and tells how many bytes it took, with
// those that it holds.
func (ix *index) close() (size int64) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.closed {
		return 0
	}
	ix.closed = true
	size = ix.size + ix.now.Load().extra()
	for s := range ix.stores {
		size += ix.stores[s].size
	}
	return size
}

// randomID returns n random bytes in URL-safe text: 16 make the 22 characters of
// an index's UUID, 15 the 20 of a document's id.
func randomID(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// wholeNumber reads a setting or parameter that is a whole number within bounds.
func wholeNumber(key, value string, least, most int) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(value))
	if err != nil || n < least || n > most {
		e := &search.InvalidError{Reason: fmt.Sprintf("the value [%s] of [%s] must be a whole number from %d to %d", value, key, least, most)}
		if err != nil {
			e.NoNumber = value
		}
		return 0, e
	}
	return n, nil
}
