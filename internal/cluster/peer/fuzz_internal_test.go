package peer

import (
	"reflect"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/internal/cluster/peer/clusterpb"
	"github.com/wlmserver/wlmserver/internal/cluster/tier"
	"github.com/wlmserver/wlmserver/internal/sharedtier"
	"github.com/wlmserver/wlmserver/wlm"
)

// FuzzFrame reads what another node may send in a session: whatever is read can be sent on and is read the same again.
func FuzzFrame(f *testing.F) {
	for _, e := range []tier.Envelope{
		{Message: sharedtier.Message{Kind: sharedtier.Beat, Sent: -1}},
		{Bucket: wlm.BucketKey{Group: "g", Attribute: groups.ByRole, Value: "\xff"}, Message: sharedtier.Message{
			Kind: sharedtier.Announce, Depth: 2, Held: []sharedtier.PermitID{{Epoch: 1, Seq: 2}, {}}}},
	} {
		b, err := proto.Marshal(&clusterpb.SessionFrame{Frame: &clusterpb.SessionFrame_Batch{Batch: toBatch(1, []tier.Envelope{e})}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var frame clusterpb.SessionFrame
		if proto.Unmarshal(b, &frame) != nil || frame.GetBatch() == nil {
			return
		}
		read := fromBatch(frame.GetBatch())
		b, err := proto.Marshal(toBatch(read.Revision, read.Envelopes))
		if err != nil {
			t.Fatal(err)
		}
		var again clusterpb.Batch
		if err := proto.Unmarshal(b, &again); err != nil {
			t.Fatal(err)
		}
		got := fromBatch(&again)
		if got.Revision != read.Revision || len(got.Envelopes) != len(read.Envelopes) {
			t.Fatalf("read %v, then %v", read, got)
		}
		for i := range got.Envelopes {
			if !reflect.DeepEqual(got.Envelopes[i], read.Envelopes[i]) {
				t.Errorf("read %v, then %v", read.Envelopes[i], got.Envelopes[i])
			}
		}
	})
}

// FuzzShard does the same for the questions to a shard and its answers.
func FuzzShard(f *testing.F) {
	for _, m := range []proto.Message{
		&clusterpb.ShardCall{Call: &clusterpb.ShardCall_Query{Query: &clusterpb.Query{Sort: []*clusterpb.Sort{{Field: "\xff"}}, Fetch: new(clusterpb.InlineFetch)}}},
		&clusterpb.ShardCall{Call: &clusterpb.ShardCall_Fetch{Fetch: &clusterpb.Fetch{Positions: []int64{-1, 1 << 62}}}},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, true)
	}
	b, err := proto.Marshal(&clusterpb.ShardAnswer{Answer: &clusterpb.ShardAnswer_Query{Query: &clusterpb.QueryResult{
		Hits: []*clusterpb.Hit{{Keys: []*clusterpb.Key{{}, toKey(fromKey(nil))}}}, Fetched: []*clusterpb.Document{{Source: []byte("{}")}},
	}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b, false)
	f.Fuzz(func(t *testing.T, b []byte, question bool) {
		var call clusterpb.ShardCall
		var answer clusterpb.ShardAnswer
		switch {
		case question && proto.Unmarshal(b, &call) == nil:
			q, f := fromQuery(call.GetQuery()), fromFetch(call.GetFetch())
			same(t, q, fromQuery(toQuery(q, 1)))
			same(t, f, fromFetch(toFetch(f, 1)))
		case !question && proto.Unmarshal(b, &answer) == nil:
			q, f, e := fromQueryResult(answer.GetQuery()), fromFetchResult(answer.GetFetch()), fromFailure(answer.GetFailure())
			same(t, toQueryResult(q, 1), toQueryResult(fromQueryResult(toQueryResult(q, 1)), 1))
			same(t, f, fromFetchResult(toFetchResult(f)))
			same(t, e, fromFailure(toFailure(e)))
		}
	})
}

func same[T any](t *testing.T, want, got T) {
	t.Helper()
	if a, ok := any(want).(proto.Message); ok { // a key may be no number, which equals nothing
		x, errX := proto.MarshalOptions{Deterministic: true}.Marshal(a)
		y, errY := proto.MarshalOptions{Deterministic: true}.Marshal(any(got).(proto.Message))
		if errX != nil || errY != nil || string(x) != string(y) {
			t.Errorf("read %v, then %v", want, got)
		}
		return
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, then %+v", want, got)
	}
}
