package peer

import (
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/internal/cluster/peer/clusterpb"
	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/internal/cluster/tier"
	"github.com/wlmserver/wlmserver/internal/shard"
	"github.com/wlmserver/wlmserver/internal/sharedtier"
	"github.com/wlmserver/wlmserver/wlm"
)

// fill makes every field of v something that is not its zero value, and different in each draw: a field that is forgotten on the way
// does not come back. Fields named in skip do not travel.
func fill(t *rapid.T, v reflect.Value, skip ...string) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			skipped := false
			for _, s := range skip {
				skipped = skipped || s == name
			}
			if !skipped {
				fill(t, v.Field(i), skip...)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), skip...)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes(rapid.SliceOfN(rapid.Byte(), 1, 8).Draw(t, "bytes"))
			return
		}
		n := rapid.IntRange(1, 3).Draw(t, "length")
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(t, v.Index(i), skip...)
		}
	case reflect.String: // any bytes: clients send what they like
		v.SetString(string(rapid.SliceOfN(rapid.Byte(), 1, 8).Draw(t, "text")))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64().Filter(func(i int64) bool { return i != 0 }).Draw(t, "int"))
	case reflect.Int32:
		v.SetInt(int64(rapid.Int32Min(1).Draw(t, "int32")))
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(rapid.Uint64Range(1, 255).Draw(t, "uint"))
	case reflect.Float64:
		v.SetFloat(rapid.Float64().Filter(func(f float64) bool { return f != 0 }).Draw(t, "float"))
	default:
		t.Fatalf("the test does not know how to fill a %v", v.Type())
	}
}

// travel is what the other side reads.
func travel[M proto.Message](t *rapid.T, m M) M {
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	out := m.ProtoReflect().New().Interface()
	if err := proto.Unmarshal(b, out); err != nil {
		t.Fatal(err)
	}
	return out.(M)
}

func check[T any](t *rapid.T, want, got T) {
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("came as %+v, want %+v", got, want)
	}
}

// Every field of every value that travels arrives as it was.
func TestEverythingTravels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b tier.Batch
		fill(t, reflect.ValueOf(&b).Elem())
		for i := range b.Envelopes {
			b.Envelopes[i].Message.Kind = rapid.SampledFrom(kinds()).Draw(t, "kind")
		}
		check(t, b, fromBatch(travel(t, toBatch(b.Revision, b.Envelopes))))

		var q shard.QueryRequest
		fill(t, reflect.ValueOf(&q).Elem(), "Reader")
		check(t, &q, fromQuery(travel(t, toQuery(&q, 1))))

		var qr shard.QueryResult
		fill(t, reflect.ValueOf(&qr).Elem(), "Reader", "Node") // the side that asks fills in the node
		for _, h := range qr.Hits {
			for i := range h.Keys {
				k := &h.Keys[i]
				switch k.Kind %= 3; k.Kind {
				case shard.Missing:
					*k = shard.Key{}
				case shard.Number:
					k.Text = ""
				case shard.Text:
					k.Number = 0
				}
			}
		}
		check(t, &qr, fromQueryResult(travel(t, toQueryResult(&qr, 1))))

		var f shard.FetchRequest
		fill(t, reflect.ValueOf(&f).Elem(), "Reader")
		check(t, &f, fromFetch(travel(t, toFetch(&f, 1))))

		var fr shard.FetchResult
		fill(t, reflect.ValueOf(&fr).Elem())
		check(t, &fr, fromFetchResult(travel(t, toFetchResult(&fr))))

		var e shard.Failure
		fill(t, reflect.ValueOf(&e).Elem())
		e.Status = int(int32(e.Status))
		check(t, e, fromFailure(travel(t, toFailure(e))))

		var m ring.Member
		fill(t, reflect.ValueOf(&m).Elem())
		check(t, m, fromMember(travel(t, toMember(m))))
	})
}

// kinds are all kinds of messages that have a name.
func kinds() []sharedtier.Kind {
	var all []sharedtier.Kind
	for k := sharedtier.Kind(1); k < 255; k++ {
		if !strings.HasPrefix(k.String(), "kind(") {
			all = append(all, k)
		}
	}
	return all
}

// Each kind has a number of its own on the wire, named after it, and each number there is a kind here.
func TestKindsTravel(t *testing.T) {
	known := map[clusterpb.Kind]bool{clusterpb.Kind_KIND_UNSPECIFIED: true}
	for _, k := range kinds() {
		on := toKind(k)
		if want := "KIND_" + strings.ToUpper(k.String()); on.String() != want {
			t.Errorf("%v travels as %v", k, on)
		}
		if got := fromKind(on); got != k {
			t.Errorf("%v comes back as %v", k, got)
		}
		known[on] = true
	}
	for n := range clusterpb.Kind_name {
		if !known[clusterpb.Kind(n)] {
			t.Errorf("%v is no kind here", clusterpb.Kind(n))
		}
	}
}

// What only a newer node says is passed over, and what an older one does not say is zero.
func TestOtherVersions(t *testing.T) {
	b := fromBatch(&clusterpb.Batch{Envelopes: []*clusterpb.Envelope{{Kind: 99, Depth: 1}, {Kind: clusterpb.Kind_KIND_GRANT}}})
	want := []tier.Envelope{{Message: sharedtier.Message{Kind: sharedtier.Grant}}}
	if !reflect.DeepEqual(b.Envelopes, want) {
		t.Errorf("read %v", b.Envelopes)
	}
	if q := fromQuery(new(clusterpb.Query)); !reflect.DeepEqual(q, new(shard.QueryRequest)) {
		t.Errorf("an empty query is read as %+v", q)
	}
	if k := fromBatch(toBatch(0, []tier.Envelope{{Bucket: wlm.BucketKey{Attribute: groups.ByGroup}}})); len(k.Envelopes) != 0 {
		t.Errorf("a message of no kind is read as %v", k)
	}
}
