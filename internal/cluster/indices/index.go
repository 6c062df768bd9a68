package indices

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/wlmserver/wlmserver/records"
)

// An Index is one index. It is immutable once published, and so safe for concurrent use.
type Index struct {
	Name    string
	UUID    string // another index of the same name has another one
	Created time.Time

	// Body is the JSON object of its settings and mappings.
	Body json.RawMessage

	// Shards lists the copies of each shard: ids of members, the one that takes changes first. A shard without a copy is
	// lost until one of its members is back.
	Shards [][]string

	unknown records.Unknown // what a newer version has written beside these
}

// record is how an index is stored. A key once used keeps its meaning.
type record struct {
	Name    string          `json:"name"`
	UUID    string          `json:"uuid"`
	Created int64           `json:"created"` // milliseconds since 1970
	Body    json.RawMessage `json:"body"`
	Shards  [][]string      `json:"shards"`
}

func encode(i *Index) ([]byte, error) {
	body := i.Body
	if len(body) == 0 {
		body = json.RawMessage("{}")
	}
	b, err := records.Encode(record{Name: i.Name, UUID: i.UUID, Created: i.Created.UnixMilli(), Body: body, Shards: i.Shards}, i.unknown)
	if err != nil {
		return nil, fmt.Errorf("encoding the index [%s]: %w", i.Name, err)
	}
	return b, nil
}

func decode(name string, b []byte) (*Index, error) {
	r, unknown, err := records.Decode[record](b)
	if err == nil && r.Name != name {
		err = fmt.Errorf("its record has the name [%s]", r.Name)
	}
	if err == nil && r.UUID == "" {
		err = errors.New("it has no UUID")
	}
	if err != nil {
		return nil, fmt.Errorf("the one with the name [%s]: %w", name, err)
	}
	return &Index{
		Name: r.Name, UUID: r.UUID, Created: time.UnixMilli(r.Created).UTC(), Body: r.Body, Shards: r.Shards, unknown: unknown,
	}, nil
}

// On tells whether a member holds a copy of a shard.
func (i *Index) On(shard int, member string) bool { return slices.Contains(i.Shards[shard], member) }

// Spread places the copies of shards on members, one more than there are replicas but at most one on a member. Where the
// first shard lies follows from the name, so that small indices do not all lie on the same members; the others go round.
func Spread(name string, shards, replicas int, members []string) [][]string {
	all := make([][]string, shards)
	if len(members) == 0 {
		return all
	}
	members = slices.Sorted(slices.Values(members))
	h := fnv.New64a()
	h.Write([]byte(name))
	first := int(h.Sum64() % uint64(len(members)))
	for shard := range all {
		for copies := range min(replicas+1, len(members)) {
			all[shard] = append(all[shard], members[(first+shard+copies)%len(members)])
		}
	}
	return all
}
