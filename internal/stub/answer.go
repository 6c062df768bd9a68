package stub

import (
	"math"
	"strconv"
	"time"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
	"github.com/wlmserver/wlmserver/internal/shard"
	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/tasks"
)

// answer prints what the search found, in OpenSearch's order of keys.
func (c *coordinator) answer(took time.Duration) []byte {
	o := &c.x.options
	b := make([]byte, 0, 256+c.sizeOfHits())
	if c.x.request.Kind == search.Count {
		b = append(b, `{"count":`...)
		b = strconv.AppendInt(b, int64(c.matched()), 10)
		b = c.appendShards(append(b, ','))
		return append(b, '}')
	}
	b = append(b, '{')
	if c.x.isScroll() && len(c.targets) > 0 && (c.first || c.scroll > 0) { // no id where there is no next page
		b = append(b, `"_scroll_id":`...)
		b = append(jsondoc.AppendString(b, c.x.request.ScrollID), ',')
	}
	b = append(b, `"took":`...)
	b = strconv.AppendInt(b, took.Milliseconds(), 10)
	if o.phaseTook {
		b = append(b, `,"phase_took":{"dfs_pre_query":0,"query":`...)
		b = strconv.AppendInt(b, c.queryTook.Milliseconds(), 10)
		b = append(b, `,"fetch":`...)
		b = strconv.AppendInt(b, c.fetchTook.Milliseconds(), 10)
		b = append(b, `,"dfs_query":0,"expand":0,"can_match":0}`...)
	}
	b = append(b, `,"timed_out":`...)
	b = strconv.AppendBool(b, c.timedOut)
	b = c.appendShards(append(b, ','))
	b = append(b, `,"hits":{`...)
	b = c.appendTotal(b)
	b = c.appendMaxScore(b)
	b = append(b, `,"hits":[`...)
	first := true
	for i := range c.documents {
		if c.documents[i].ID == "" {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = c.appendHit(b, &c.page[i], &c.documents[i])
	}
	return append(b, "]}}"...)
}

func (c *coordinator) sizeOfHits() int {
	n := 0
	for i := range c.documents {
		n += 64 + len(c.documents[i].ID) + len(c.documents[i].Source)
	}
	return n
}

func (c *coordinator) appendShards(b []byte) []byte {
	b = append(b, `"_shards":{"total":`...)
	b = strconv.AppendInt(b, int64(len(c.targets)), 10)
	b = append(b, `,"successful":`...)
	b = strconv.AppendInt(b, int64(len(c.targets)-len(c.failed)), 10)
	b = append(b, `,"skipped":0,"failed":`...)
	b = strconv.AppendInt(b, int64(len(c.failed)), 10)
	if len(c.failed) > 0 {
		b = appendFailures(append(b, `,"failures":`...), c.failed)
	}
	return append(b, '}')
}

func (c *coordinator) appendTotal(b []byte) []byte {
	o := &c.x.options
	total := c.matched()
	switch {
	case o.totalAsInt && o.trackTotal < 0:
		return append(b, `"total":-1,`...)
	case o.totalAsInt:
		b = append(b, `"total":`...)
		return append(strconv.AppendInt(b, int64(total), 10), ',')
	case o.trackTotal < 0:
		return b
	}
	relation := "eq"
	if o.trackTotal != math.MaxInt && total > o.trackTotal {
		total, relation = o.trackTotal, "gte"
	}
	b = append(b, `"total":{"value":`...)
	b = strconv.AppendInt(b, int64(total), 10)
	return append(b, `,"relation":"`+relation+`"},`...)
}

func (c *coordinator) appendMaxScore(b []byte) []byte {
	o := &c.x.options
	score := "null" // nothing was scored
	switch {
	case len(c.targets) == 0:
		score = "0.0"
	case o.size > 0 && len(o.sort) == 0 && c.matched() > 0:
		score = "1.0"
	}
	return append(append(b, `"max_score":`...), score...)
}

func (c *coordinator) appendHit(b []byte, h *hit, d *shard.Document) []byte {
	o := &c.x.options
	b = append(b, `{"_index":`...)
	b = jsondoc.AppendString(b, c.targets[h.target].id.Index)
	b = append(b, `,"_id":`...)
	b = jsondoc.AppendString(b, d.ID)
	if o.version {
		b = append(b, `,"_version":`...)
		b = strconv.AppendInt(b, d.Version, 10)
	}
	if o.seqNo {
		b = append(b, `,"_seq_no":`...)
		b = strconv.AppendInt(b, d.SeqNo, 10)
		b = append(b, `,"_primary_term":1`...)
	}
	if len(o.sort) > 0 {
		b = append(b, `,"_score":null`...)
	} else {
		b = append(b, `,"_score":1.0`...)
	}
	if !o.hideSource {
		b = append(b, `,"_source":`...)
		b = append(b, d.Source...)
	}
	if len(o.sort) > 0 {
		b = appendKeys(append(b, `,"sort":`...), h.keys, len(o.sort))
	}
	return append(b, '}')
}

// appendKeys prints n values that a document is sorted by; one without keys has
// none of them.
func appendKeys(b []byte, keys []shard.Key, n int) []byte {
	b = append(b, '[')
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		var k shard.Key
		if i < len(keys) {
			k = keys[i]
		}
		switch k.Kind {
		case shard.Number:
			b = appendNumber(b, k.Number)
		case shard.Text:
			b = jsondoc.AppendString(b, k.Text)
		default:
			b = append(b, "null"...)
		}
	}
	return append(b, ']')
}

// appendNumber prints whole numbers without exponent, as far as they are exact.
func appendNumber(b []byte, n float64) []byte {
	const exact = 1 << 53
	if n == math.Trunc(n) && math.Abs(n) <= exact {
		return strconv.AppendInt(b, int64(n), 10)
	}
	return strconv.AppendFloat(b, n, 'g', -1, 64)
}

// appendFailures prints the failures of shards beside an answer. Those of one
// index that read the same are told once.
func appendFailures(b []byte, failures []search.ShardFailure) []byte {
	type told struct{ index, reason string }
	before := make(map[told]bool)
	b = append(b, '[')
	for _, f := range failures {
		reason := string(appendReason(nil, f.Err))
		if before[told{f.Index, reason}] {
			continue
		}
		before[told{f.Index, reason}] = true
		if b[len(b)-1] != '[' {
			b = append(b, ',')
		}
		b = append(b, `{"shard":`...)
		b = strconv.AppendInt(b, int64(f.Shard), 10)
		b = jsondoc.AppendString(append(b, `,"index":`...), f.Index)
		if b = append(b, `,"node":`...); f.Node == "" { // no node has the shard
			b = append(b, "null"...)
		} else {
			b = jsondoc.AppendString(b, f.Node)
		}
		b = append(b, `,"reason":`...)
		b = append(append(b, reason...), '}')
	}
	return append(b, ']')
}

// appendReason prints the error of one shard. These are all that a shard fails
// with; where a search fails as a whole, its errors are printed by whoever answers
// the client.
func appendReason(b []byte, err error) []byte {
	kind, reason := "exception", err.Error()
	var details []byte
	switch e := err.(type) { //nolint:errorlint // an error of a shard is not wrapped
	case *tasks.CancelledError:
		kind = "task_cancelled_exception"
	case *search.PoolFullError:
		kind = "rejected_execution_exception"
	case *QueryShardError:
		kind = "query_shard_exception"
		details = jsondoc.AppendString([]byte(`,"index":`), e.Index)
		details = jsondoc.AppendString(append(details, `,"index_uuid":`...), e.UUID)
	case *search.IndexNotFoundError:
		kind = "index_not_found_exception"
		details = jsondoc.AppendString([]byte(`,"index":`), e.Index)
	case *search.ShardError:
		kind = e.Type
	case *FullError:
		kind = "circuit_breaking_exception"
		details = strconv.AppendInt([]byte(`,"bytes_wanted":`), e.Wanted, 10)
		details = strconv.AppendInt(append(details, `,"bytes_limit":`...), e.Limit, 10)
		details = append(details, `,"durability":"`+e.Durability()+`"`...)
	}
	b = jsondoc.AppendString(append(b, `{"type":`...), kind)
	b = jsondoc.AppendString(append(b, `,"reason":`...), reason)
	return append(append(b, details...), '}')
}
