package peer

import (
	"time"

	"github.com/wlmserver/wlmserver/internal/cluster/peer/clusterpb"
	"github.com/wlmserver/wlmserver/internal/shard"
)

// The reader of a request or a result is not looked at here: it travels as a number, which only the two sides of a call know.

func toQuery(r *shard.QueryRequest, reader uint64) *clusterpb.Query {
	q := &clusterpb.Query{
		Shard: toShardID(r.Shard), Parent: toTask(r.Parent), Reader: reader, Scroll: r.Scroll,
		Skip: int64(r.Skip), Size: int64(r.Size), Matches: int64(r.Matches),
		TimeoutNanos: int64(r.Timeout), Work: toWork(&r.Work), KeepNanos: int64(r.Keep),
	}
	for _, s := range r.Sort {
		q.Sort = append(q.Sort, &clusterpb.Sort{Field: s.Field, Descending: s.Descending})
	}
	if f := r.Fetch; f != nil {
		q.Fetch = &clusterpb.InlineFetch{From: int64(f.From), Work: toWork(&f.Work)}
	}
	return q
}

func fromQuery(q *clusterpb.Query) *shard.QueryRequest {
	r := &shard.QueryRequest{
		Shard: fromShardID(q.GetShard()), Parent: fromTask(q.GetParent()), Scroll: q.GetScroll(),
		Skip: int(q.GetSkip()), Size: int(q.GetSize()), Matches: int(q.GetMatches()),
		Timeout: time.Duration(q.GetTimeoutNanos()), Work: fromWork(q.GetWork()), Keep: time.Duration(q.GetKeepNanos()),
	}
	for _, s := range q.GetSort() {
		r.Sort = append(r.Sort, shard.Sort{Field: s.GetField(), Descending: s.GetDescending()})
	}
	if f := q.GetFetch(); f != nil {
		r.Fetch = &shard.InlineFetch{From: int(f.GetFrom()), Work: fromWork(f.GetWork())}
	}
	return r
}

func toQueryResult(r *shard.QueryResult, reader uint64) *clusterpb.QueryResult {
	out := &clusterpb.QueryResult{
		Matches: int64(r.Matches), TimedOut: r.TimedOut, Count: int64(r.Count), Reader: reader,
		Fetched: toDocuments(r.Fetched), Usage: toUsage(r.Usage),
	}
	for _, h := range r.Hits {
		x := &clusterpb.Hit{Position: int64(h.Position)}
		for _, k := range h.Keys {
			x.Keys = append(x.Keys, toKey(k))
		}
		out.Hits = append(out.Hits, x)
	}
	return out
}

func fromQueryResult(r *clusterpb.QueryResult) *shard.QueryResult {
	out := &shard.QueryResult{
		Matches: int(r.GetMatches()), TimedOut: r.GetTimedOut(), Count: int(r.GetCount()),
		Fetched: fromDocuments(r.GetFetched()), Usage: fromUsage(r.GetUsage()),
	}
	for _, x := range r.GetHits() {
		h := shard.Hit{Position: int(x.GetPosition())}
		for _, k := range x.GetKeys() {
			h.Keys = append(h.Keys, fromKey(k))
		}
		out.Hits = append(out.Hits, h)
	}
	return out
}

func toFetch(r *shard.FetchRequest, reader uint64) *clusterpb.Fetch {
	f := &clusterpb.Fetch{
		Shard: toShardID(r.Shard), Parent: toTask(r.Parent), Reader: reader, Scroll: r.Scroll, Work: toWork(&r.Work),
		Positions: make([]int64, len(r.Positions)),
	}
	for i, p := range r.Positions {
		f.Positions[i] = int64(p)
	}
	return f
}

func fromFetch(f *clusterpb.Fetch) *shard.FetchRequest {
	r := &shard.FetchRequest{
		Shard: fromShardID(f.GetShard()), Parent: fromTask(f.GetParent()), Scroll: f.GetScroll(), Work: fromWork(f.GetWork()),
		Positions: make([]int, len(f.GetPositions())),
	}
	for i, p := range f.GetPositions() {
		r.Positions[i] = int(p)
	}
	return r
}

func toFetchResult(r *shard.FetchResult) *clusterpb.FetchResult {
	return &clusterpb.FetchResult{Documents: toDocuments(r.Documents), Usage: toUsage(r.Usage)}
}

func fromFetchResult(r *clusterpb.FetchResult) *shard.FetchResult {
	return &shard.FetchResult{Documents: fromDocuments(r.GetDocuments()), Usage: fromUsage(r.GetUsage())}
}

func toDocuments(documents []shard.Document) []*clusterpb.Document {
	var out []*clusterpb.Document
	for _, d := range documents {
		out = append(out, &clusterpb.Document{Id: d.ID, Version: d.Version, SeqNo: d.SeqNo, Source: d.Source})
	}
	return out
}

func fromDocuments(documents []*clusterpb.Document) []shard.Document {
	var out []shard.Document
	for _, d := range documents {
		out = append(out, shard.Document{ID: d.GetId(), Version: d.GetVersion(), SeqNo: d.GetSeqNo(), Source: d.GetSource()})
	}
	return out
}

func toKey(k shard.Key) *clusterpb.Key {
	switch k.Kind {
	case shard.Number:
		return &clusterpb.Key{Key: &clusterpb.Key_Number{Number: k.Number}}
	case shard.Text:
		return &clusterpb.Key{Key: &clusterpb.Key_Text{Text: k.Text}}
	}
	return new(clusterpb.Key)
}

func fromKey(k *clusterpb.Key) shard.Key {
	switch v := k.GetKey().(type) {
	case *clusterpb.Key_Number:
		return shard.Key{Kind: shard.Number, Number: v.Number}
	case *clusterpb.Key_Text:
		return shard.Key{Kind: shard.Text, Text: v.Text}
	}
	return shard.Key{}
}

func toShardID(id shard.ID) *clusterpb.ShardID {
	return &clusterpb.ShardID{Index: id.Index, Number: int64(id.Number)}
}

func fromShardID(id *clusterpb.ShardID) shard.ID {
	return shard.ID{Index: id.GetIndex(), Number: int(id.GetNumber())}
}

func toTask(t shard.Task) *clusterpb.Task {
	return &clusterpb.Task{Node: t.Node, Number: t.Number, User: t.User, Group: t.Group, OpaqueId: t.OpaqueID}
}

func fromTask(t *clusterpb.Task) shard.Task {
	return shard.Task{Node: t.GetNode(), Number: t.GetNumber(), User: t.GetUser(), Group: t.GetGroup(), OpaqueID: t.GetOpaqueId()}
}

func toWork(w *shard.Work) *clusterpb.Work {
	return &clusterpb.Work{TimeNanos: int64(w.Time), CpuNanos: int64(w.CPU), Memory: w.Memory, IgnoreCancel: w.IgnoreCancel, Fail: w.Fail}
}

func fromWork(w *clusterpb.Work) shard.Work {
	return shard.Work{
		Time: time.Duration(w.GetTimeNanos()), CPU: time.Duration(w.GetCpuNanos()), Memory: w.GetMemory(),
		IgnoreCancel: w.GetIgnoreCancel(), Fail: w.GetFail(),
	}
}

func toUsage(u shard.Usage) *clusterpb.Usage {
	return &clusterpb.Usage{CpuNanos: int64(u.CPU), Memory: u.Memory}
}

func fromUsage(u *clusterpb.Usage) shard.Usage {
	return shard.Usage{CPU: time.Duration(u.GetCpuNanos()), Memory: u.GetMemory()}
}

func toFailure(f shard.Failure) *clusterpb.Failure {
	return &clusterpb.Failure{Kind: f.Kind, Type: f.Type, Reason: f.Reason, Status: int32(f.Status), Detail: f.Detail}
}

func fromFailure(f *clusterpb.Failure) shard.Failure {
	return shard.Failure{Kind: f.GetKind(), Type: f.GetType(), Reason: f.GetReason(), Status: int(f.GetStatus()), Detail: f.GetDetail()}
}
