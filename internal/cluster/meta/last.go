package meta

import (
	"encoding/json"
	"fmt"

	"github.com/wlmserver/wlmserver/records"
)

// lastRecord is how a node keeps the sets that it saw last. A key once used keeps its meaning.
type lastRecord struct {
	Version  int                `json:"version"`
	Prefix   string             `json:"prefix"`
	Cluster  string             `json:"cluster_uuid"`
	Revision uint64             `json:"revision"`
	Sets     map[string]lastSet `json:"sets"`
}

type lastSet struct {
	Revision uint64            `json:"revision"`
	Records  map[string][]byte `json:"records"`
}

// lastSeen tells views apart that are kept differently.
type lastSeen struct {
	cluster string
	sets    [kinds]uint64
}

func lastSeenOf(v *view) lastSeen {
	seen := lastSeen{cluster: v.schema.Cluster}
	for k, set := range v.sets {
		seen.sets[k] = set.Revision
	}
	return seen
}

// encodeLast writes what of a view outlives the node: the sets, but neither members nor the ring.
func encodeLast(prefix string, v *view) ([]byte, error) {
	r := lastRecord{
		Version: v.schema.Version, Prefix: prefix, Cluster: v.schema.Cluster, Revision: v.revision,
		Sets: make(map[string]lastSet, kinds),
	}
	for k := range kinds {
		r.Sets[k.String()] = lastSet(v.sets[k])
	}
	return json.Marshal(r)
}

// decodeLast reads what encodeLast wrote. There is none of another prefix.
func decodeLast(prefix string, record []byte) (*view, error) {
	var r lastRecord
	if err := json.Unmarshal(record, &r); err != nil {
		return nil, fmt.Errorf("the metadata that this node saw last cannot be read: %w", err)
	}
	if r.Prefix != prefix {
		return nil, nil
	}
	if r.Version > schemaVersion {
		return nil, &SchemaError{Prefix: prefix, Found: r.Version, Known: schemaVersion}
	}
	v := emptyView()
	v.revision = r.Revision
	v.schema = schemaRecord{Version: r.Version, Cluster: r.Cluster}
	for k := range kinds {
		v.sets[k] = records.Set(r.Sets[k.String()])
		if v.sets[k].Records == nil {
			v.sets[k].Records = make(map[string][]byte)
		}
	}
	return v, nil
}
