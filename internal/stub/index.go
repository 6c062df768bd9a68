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
	"time"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
	"github.com/wlmserver/wlmserver/search"
)

const maxShards = 1024

// bytesPerIndex is what an index takes beside its body and its documents, roughly.
const bytesPerIndex = 1 << 10

// index is one index. Its documents are guarded by mu; the rest never changes.
type index struct {
	name, uuid string
	created    time.Time
	replicas   int
	mappings   json.RawMessage   // one compact JSON object
	numeric    map[string]string // the fields that are mapped to a type of numbers
	settings   []KV              // as they were given, beside those that IndexInfo tells apart
	cost       Cost
	router     router
	size       int64 // bytes that it takes without documents, roughly

	mu     sync.Mutex
	closed bool // deleted: takes no more documents
	stores []store
}

// KV is one setting of an index under its full name.
type KV struct{ Key, Value string }

// IndexInfo describes an index.
type IndexInfo struct {
	Name, UUID string
	Created    time.Time
	Shards     int
	Replicas   int
	Mappings   json.RawMessage // one compact JSON object, as it was given
	Settings   []KV            // all of them, in OpenSearch's order; those given beside the known ones last
	Documents  int
	Stores     []StoreInfo // by shard
}

// StoreInfo tells what the primary copy of a shard holds.
type StoreInfo struct {
	Documents int
	Bytes     int64 // roughly
}

// newIndex makes an index from the body of a create request.
func newIndex(name string, body []byte, defaults Cost) (*index, error) {
	ix := &index{
		name:     name,
		uuid:     randomID(16),
		created:  time.Now(),
		replicas: 1,
		mappings: json.RawMessage("{}"),
		cost:     defaults,
	}
	shards := 1
	if len(bytes.TrimSpace(body)) > 0 {
		n, err := ix.read(body)
		if err != nil {
			return nil, err
		}
		shards = n
	}
	ix.router = newRouter(shards)
	ix.stores = make([]store, shards)
	ix.size = bytesPerIndex + int64(len(body))
	return ix, nil
}

// read takes over what the body of a create request says and returns the number
// of shards.
func (ix *index) read(body []byte) (shards int, err error) {
	root, err := parseObject(body)
	if err != nil {
		return 0, err
	}
	shards = 1
	for _, m := range root.Members {
		if m.Value.Kind == jsondoc.Null {
			continue
		}
		if m.Value.Kind != jsondoc.Object {
			return 0, &search.ParseError{
				Type:   "parse_exception",
				Reason: fmt.Sprintf("[%s] of an index must be an object, not %s", m.Name, article(m.Value.Kind)),
			}
		}
		switch m.Name {
		case "settings":
			if shards, err = ix.readSettings(m.Value); err != nil {
				return 0, err
			}
		case "mappings":
			if err := ix.readMappings(m.Value); err != nil {
				return 0, err
			}
		case "aliases":
			if len(m.Value.Members) > 0 {
				return 0, &search.InvalidError{Reason: "[aliases] are not provided by this server; search the index by its name or by a pattern"}
			}
		default:
			return 0, &search.ParseError{
				Type:   "parse_exception",
				Reason: fmt.Sprintf("unknown key [%s] in the body of an index; known are [settings], [mappings] and [aliases]", m.Name),
			}
		}
	}
	return shards, nil
}

func (ix *index) readSettings(v *jsondoc.Value) (shards int, err error) {
	shards = 1
	for _, kv := range flatten(nil, "", v) {
		switch {
		case kv.Key == "index.number_of_shards":
			shards, err = wholeNumber(kv.Key, kv.Value, 1, maxShards)
		case kv.Key == "index.number_of_replicas":
			ix.replicas, err = wholeNumber(kv.Key, kv.Value, 0, maxShards)
		case strings.HasPrefix(kv.Key, "index.stub."):
			if err = ix.cost.Set(kv.Key, kv.Value); err == nil {
				ix.settings = append(ix.settings, kv)
			}
		default:
			ix.settings = append(ix.settings, kv)
		}
		if err != nil {
			return 0, err
		}
	}
	return shards, nil
}

// flatten turns nested settings into dotted ones. A null is left out: it stands
// for the default.
func flatten(kvs []KV, path string, v *jsondoc.Value) []KV {
	switch v.Kind {
	case jsondoc.Object:
		for _, m := range v.Members {
			kvs = flatten(kvs, join(path, m.Name), m.Value)
		}
	case jsondoc.Array:
		for i, item := range v.Items {
			kvs = flatten(kvs, join(path, strconv.Itoa(i)), item)
		}
	case jsondoc.Null:
	default:
		if path != "index" && !strings.HasPrefix(path, "index.") {
			path = "index." + path
		}
		kvs = append(kvs, KV{path, v.Text})
	}
	return kvs
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func (ix *index) readMappings(v *jsondoc.Value) error {
	ix.mappings = appendValue(nil, v)
	properties := v.Member("properties")
	if properties == nil {
		return nil
	}
	for _, m := range properties.Members {
		t := m.Value.Member("type")
		if t != nil && !slices.Contains(fieldTypes, t.Text) {
			unknown := &search.ParseError{Type: "mapper_parsing_exception", Reason: fmt.Sprintf("the field [%s] has the type [%s], which there is not", m.Name, t.Text)}
			return &search.ParseError{Type: unknown.Type, Reason: "the mappings cannot be read: " + unknown.Reason, Cause: unknown}
		}
		if t != nil && slices.Contains(numericTypes, t.Text) {
			if ix.numeric == nil {
				ix.numeric = make(map[string]string)
			}
			ix.numeric[m.Name] = t.Text
		}
	}
	return nil
}

// fieldTypes are the types of fields of OpenSearch, with those of the modules and plugins that come with the usual distribution.
var fieldTypes = append([]string{
	"alias", "binary", "boolean", "completion", "constant_keyword", "context_aware_grouping", "date", "date_nanos", "date_range", "derived",
	"double_range", "flat_object", "float_range", "geo_point", "geo_shape", "integer_range", "ip", "ip_range", "join", "keyword", "knn_vector",
	"long_range", "match_only_text", "murmur3", "annotated_text", "nested", "object", "percolator", "rank_feature", "rank_features",
	"search_as_you_type", "semantic", "sparse_vector", "star_tree", "text", "token_count", "version", "wildcard", "xy_point", "xy_shape",
}, numericTypes...)

var numericTypes = []string{"byte", "short", "integer", "long", "unsigned_long", "half_float", "float", "double", "scaled_float"}

func (ix *index) info() IndexInfo {
	i := IndexInfo{
		Name: ix.name, UUID: ix.uuid, Created: ix.created,
		Shards: len(ix.stores), Replicas: ix.replicas, Mappings: ix.mappings,
	}
	i.Settings = append([]KV{
		{"index.replication.type", "DOCUMENT"},
		{"index.number_of_shards", strconv.Itoa(i.Shards)},
		{"index.provided_name", i.Name},
		{"index.creation_date", strconv.FormatInt(i.Created.UnixMilli(), 10)},
		{"index.number_of_replicas", strconv.Itoa(i.Replicas)},
		{"index.uuid", i.UUID},
	}, ix.settings...)
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for s := range ix.stores {
		store := StoreInfo{len(ix.stores[s].byID), ix.stores[s].size}
		i.Documents += store.Documents
		i.Stores = append(i.Stores, store)
	}
	return i
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
	size = ix.size
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
		return 0, &search.InvalidError{Reason: fmt.Sprintf("the value [%s] of [%s] must be a whole number from %d to %d", value, key, least, most)}
	}
	return n, nil
}
