package stub

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
	"github.com/wlmserver/wlmserver/internal/shard"
	"github.com/wlmserver/wlmserver/records"
)

// identity is what of an index never changes.
type identity struct {
	name, uuid string
	created    time.Time         // in whole milliseconds
	mappings   json.RawMessage   // one compact JSON object
	numeric    map[string]string // the fields that are mapped to a type of numbers
	shards     int
	router     router
	size       int64 // bytes that it takes without documents, roughly
}

// dynamic is what of an index may be changed by a request.
type dynamic struct {
	replicas int
	settings []KV // as they were given, beside those that IndexInfo tells apart
	cost     Cost
	shut     bool // neither searched nor written to
}

// definition is what all nodes know of an index, beside its documents, at one time. It never changes: what follows is another one.
type definition struct {
	*identity
	dynamic
	layout

	unknown records.Unknown
}

// catalog is all definitions, by name. It never changes.
type catalog struct {
	all    map[string]*definition
	shards int // of all of them
}

// kind says how definitions are stored. Costs that an index does not say are those of defaults.
func kind(defaults Cost) records.Kind[*definition, *catalog] {
	return records.Kind[*definition, *catalog]{
		Name:   "the indices",
		Encode: encodeDefinition,
		Decode: func(name string, record []byte) (*definition, error) { return decodeDefinition(name, record, defaults) },
		Snapshot: func(_ uint64, all map[string]*definition) (*catalog, error) {
			c := &catalog{all: all}
			for _, d := range all {
				c.shards += d.shards
			}
			return c, nil
		},
	}
}

// indexRecord is how a definition is stored. A key once used keeps its meaning.
type indexRecord struct {
	UUID     string          `json:"uuid"`
	Created  int64           `json:"creation_date"`
	Shards   int             `json:"number_of_shards"`
	Replicas int             `json:"number_of_replicas"`
	Closed   bool            `json:"closed"`
	Settings []settingRecord `json:"settings"`
	Mappings json.RawMessage `json:"mappings"`
	Epoch    uint64          `json:"members_epoch"`
	LastCopy int64           `json:"last_copy"`
	Copies   [][]copyRecord  `json:"copies"` // of each shard the primary first
}

type settingRecord struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	List  bool   `json:"list,omitempty"`
}

type copyRecord struct {
	shard.Node
	Number  int64 `json:"copy"`
	Started bool  `json:"started"`
}

func encodeDefinition(d *definition) ([]byte, error) {
	r := indexRecord{
		UUID: d.uuid, Created: d.created.UnixMilli(), Shards: d.shards, Replicas: d.replicas, Closed: d.shut,
		Settings: []settingRecord{}, Mappings: d.mappings, Epoch: d.epoch, LastCopy: d.last, Copies: make([][]copyRecord, len(d.copies)),
	}
	for _, kv := range d.settings {
		r.Settings = append(r.Settings, settingRecord(kv))
	}
	for n, copies := range d.copies {
		r.Copies[n] = []copyRecord{}
		for _, c := range copies {
			r.Copies[n] = append(r.Copies[n], copyRecord{c.node, c.number, c.started})
		}
	}
	return records.Encode(r, d.unknown)
}

func decodeDefinition(name string, record []byte, defaults Cost) (*definition, error) {
	r, unknown, err := records.Decode[indexRecord](record)
	if err == nil && (r.UUID == "" || r.Shards < 1 || r.Shards > maxShards || len(r.Copies) != r.Shards) {
		err = errors.New("it has no uuid, or another number of shards than it says")
	}
	if err != nil {
		return nil, fmt.Errorf("the index [%s]: %w", name, err)
	}
	mappings, err := parseObject(r.Mappings)
	if err != nil {
		return nil, fmt.Errorf("the mappings of the index [%s]: %w", name, err)
	}
	d := &definition{
		identity: &identity{
			name: name, uuid: r.UUID, created: time.UnixMilli(r.Created), mappings: appendValue(nil, mappings), numeric: numericFields(mappings),
			shards: r.Shards, router: newRouter(r.Shards), size: bytesPerIndex + int64(len(record)),
		},
		dynamic: dynamic{replicas: r.Replicas, cost: defaults, shut: r.Closed},
		layout:  layout{epoch: r.Epoch, last: r.LastCopy, copies: make([][]placed, r.Shards)},
		unknown: unknown,
	}
	for _, kv := range r.Settings {
		d.settings = append(d.settings, KV(kv))
		if strings.HasPrefix(kv.Key, costPrefix) {
			_ = d.cost.Set(kv.Key, kv.Value) // one of a newer version has no effect here
		}
	}
	for n, copies := range r.Copies {
		for _, c := range copies {
			d.copies[n] = append(d.copies[n], placed{c.Node, c.Number, c.Started})
		}
	}
	return d, nil
}

// numericFields are the fields of mappings that have a type of numbers, with that type; nil when there are none.
func numericFields(mappings *jsondoc.Value) (numeric map[string]string) {
	properties := mappings.Member("properties")
	if properties == nil {
		return nil
	}
	for _, m := range properties.Members {
		if t := m.Value.Member("type"); t != nil && isNumeric(t.Text) {
			if numeric == nil {
				numeric = make(map[string]string)
			}
			numeric[m.Name] = t.Text
		}
	}
	return numeric
}
