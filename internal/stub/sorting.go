package stub

import (
	"slices"
	"strconv"
	"strings"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
	"github.com/wlmserver/wlmserver/internal/shard"
)

// The fields to sort by that are not fields of documents.
const (
	sortScore = "_score"
	sortDoc   = "_doc"
	sortShard = "_shard_doc"
	sortID    = "_id"
)

// lookEvery is how many documents are read between two looks at whether to go on:
// some milliseconds' worth of large ones.
const lookEvery = 64

// sorted returns a reader that has the first of the documents in order. It reads
// every one of them, unless an earlier page did.
func (p *phase) sorted(sorts []shard.Sort, from *reader, matches int) (*reader, error) {
	if from.sorted != nil {
		return from, nil
	}
	n := min(matches, len(from.documents))
	hits := make([]shard.Hit, n)
	keys := make([]shard.Key, n*len(sorts))
	for i := range hits {
		if i%lookEvery == 0 {
			if err := p.stopped(); err != nil {
				return nil, err
			}
		}
		hits[i] = shard.Hit{Position: i, Keys: keys[:len(sorts):len(sorts)]}
		keys = keys[len(sorts):]
		sortKeys(hits[i].Keys, sorts, i, from.documents[i])
	}
	slices.SortStableFunc(hits, func(a, b shard.Hit) int { return shard.Compare(sorts, a.Keys, b.Keys) })
	return &reader{documents: from.documents, sorted: hits}, nil
}

// hits returns up to count of the sorted hits from skip on. Made-up documents,
// which have no fields, come after them.
func (r *reader) hits(skip, count int) []shard.Hit {
	if skip >= len(r.sorted) {
		return nil
	}
	return r.sorted[skip:min(skip+count, len(r.sorted))]
}

// sortKeys finds the values of a document under sorts.
func sortKeys(keys []shard.Key, sorts []shard.Sort, position int, d *document) {
	var source *jsondoc.Value
	for i, s := range sorts {
		switch {
		case s.Field == sortScore:
			keys[i] = shard.Key{Kind: shard.Number, Number: 1}
		case s.Field == sortDoc || s.Field == sortShard:
			keys[i] = shard.Key{Kind: shard.Number, Number: float64(position)}
		case s.Field == sortID:
			keys[i] = shard.Key{Kind: shard.Text, Text: d.id}
		default:
			if source == nil {
				source, _ = jsondoc.Parse(d.source) // it parsed when it was stored
			}
			keys[i] = keyOf(field(source, s.Field))
		}
	}
}

// field finds the value of a dotted field. A last part that is not there is taken
// for a sub-field, such as name.keyword, which has its parent's value.
func field(source *jsondoc.Value, path string) *jsondoc.Value {
	v := source
	for part := range strings.SplitSeq(path, ".") {
		if v == nil || v.Kind != jsondoc.Object {
			return v
		}
		v = v.Member(part)
	}
	return v
}

// keyOf is the sort key of a value: of several the first.
func keyOf(v *jsondoc.Value) shard.Key {
	if v == nil {
		return shard.Key{}
	}
	switch v.Kind {
	case jsondoc.Number:
		n, err := strconv.ParseFloat(v.Text, 64)
		if err == nil {
			return shard.Key{Kind: shard.Number, Number: n}
		}
		return shard.Key{Kind: shard.Text, Text: v.Text}
	case jsondoc.String:
		return shard.Key{Kind: shard.Text, Text: v.Text}
	case jsondoc.Bool:
		k := shard.Key{Kind: shard.Number}
		if v.Text == "true" {
			k.Number = 1
		}
		return k
	case jsondoc.Array:
		if len(v.Items) > 0 {
			return keyOf(v.Items[0])
		}
	}
	return shard.Key{}
}
