package peer

import (
	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/internal/cluster/peer/clusterpb"
	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/internal/cluster/tier"
	"github.com/wlmserver/wlmserver/internal/sharedtier"
	"github.com/wlmserver/wlmserver/wlm"
)

// toKind says how each kind of message travels. The numbers there never change; those in memory may.
func toKind(k sharedtier.Kind) clusterpb.Kind {
	switch k {
	case sharedtier.Acquire:
		return clusterpb.Kind_KIND_ACQUIRE
	case sharedtier.Try:
		return clusterpb.Kind_KIND_TRY
	case sharedtier.Want:
		return clusterpb.Kind_KIND_WANT
	case sharedtier.Release:
		return clusterpb.Kind_KIND_RELEASE
	case sharedtier.Unused:
		return clusterpb.Kind_KIND_UNUSED
	case sharedtier.Announce:
		return clusterpb.Kind_KIND_ANNOUNCE
	case sharedtier.Done:
		return clusterpb.Kind_KIND_DONE
	case sharedtier.Beat:
		return clusterpb.Kind_KIND_BEAT
	case sharedtier.Granted:
		return clusterpb.Kind_KIND_GRANTED
	case sharedtier.Denied:
		return clusterpb.Kind_KIND_DENIED
	case sharedtier.Unavailable:
		return clusterpb.Kind_KIND_UNAVAILABLE
	case sharedtier.Grant:
		return clusterpb.Kind_KIND_GRANT
	}
	return clusterpb.Kind_KIND_UNSPECIFIED
}

// fromKind is the way back; 0 for a kind that this version does not know.
func fromKind(k clusterpb.Kind) sharedtier.Kind {
	switch k {
	case clusterpb.Kind_KIND_ACQUIRE:
		return sharedtier.Acquire
	case clusterpb.Kind_KIND_TRY:
		return sharedtier.Try
	case clusterpb.Kind_KIND_WANT:
		return sharedtier.Want
	case clusterpb.Kind_KIND_RELEASE:
		return sharedtier.Release
	case clusterpb.Kind_KIND_UNUSED:
		return sharedtier.Unused
	case clusterpb.Kind_KIND_ANNOUNCE:
		return sharedtier.Announce
	case clusterpb.Kind_KIND_DONE:
		return sharedtier.Done
	case clusterpb.Kind_KIND_BEAT:
		return sharedtier.Beat
	case clusterpb.Kind_KIND_GRANTED:
		return sharedtier.Granted
	case clusterpb.Kind_KIND_DENIED:
		return sharedtier.Denied
	case clusterpb.Kind_KIND_UNAVAILABLE:
		return sharedtier.Unavailable
	case clusterpb.Kind_KIND_GRANT:
		return sharedtier.Grant
	}
	return 0
}

func toBatch(revision uint64, envelopes []tier.Envelope) *clusterpb.Batch {
	b := &clusterpb.Batch{Revision: revision}
	if len(envelopes) > 0 {
		b.Envelopes = make([]*clusterpb.Envelope, len(envelopes))
	}
	for i := range envelopes {
		e := &envelopes[i]
		m := &e.Message
		x := &clusterpb.Envelope{Kind: toKind(m.Kind), Depth: int64(m.Depth), Generation: m.Generation, Try: m.Try, Sent: m.Sent}
		if e.Bucket != (wlm.BucketKey{}) {
			x.Bucket = &clusterpb.Bucket{Group: e.Bucket.Group, Attribute: string(e.Bucket.Attribute), Value: e.Bucket.Value}
		}
		if m.Permit != (sharedtier.PermitID{}) {
			x.Permit = toPermit(m.Permit)
		}
		for _, p := range m.Held {
			x.Held = append(x.Held, toPermit(p))
		}
		b.Envelopes[i] = x
	}
	return b
}

// fromBatch leaves out messages of kinds that this version does not know: a newer node can do without an answer to them.
func fromBatch(b *clusterpb.Batch) tier.Batch {
	out := tier.Batch{Revision: b.GetRevision()}
	if n := len(b.GetEnvelopes()); n > 0 {
		out.Envelopes = make([]tier.Envelope, 0, n)
	}
	for _, x := range b.GetEnvelopes() {
		k := fromKind(x.GetKind())
		if k == 0 {
			continue
		}
		e := tier.Envelope{Message: sharedtier.Message{
			Kind: k, Permit: fromPermit(x.GetPermit()), Depth: int(x.GetDepth()), Generation: x.GetGeneration(), Try: x.GetTry(), Sent: x.GetSent(),
		}}
		if k := x.GetBucket(); k != nil {
			e.Bucket = wlm.BucketKey{Group: k.GetGroup(), Attribute: groups.Attribute(k.GetAttribute()), Value: k.GetValue()}
		}
		for _, p := range x.GetHeld() {
			e.Message.Held = append(e.Message.Held, fromPermit(p))
		}
		out.Envelopes = append(out.Envelopes, e)
	}
	return out
}

func toPermit(p sharedtier.PermitID) *clusterpb.Permit {
	return &clusterpb.Permit{Epoch: p.Epoch, Seq: p.Seq}
}

func fromPermit(p *clusterpb.Permit) sharedtier.PermitID {
	return sharedtier.PermitID{Epoch: p.GetEpoch(), Seq: p.GetSeq()}
}

func toMember(m ring.Member) *clusterpb.Member {
	return &clusterpb.Member{
		Id: m.ID, Incarnation: m.Incarnation, Name: m.Name, TransportAddress: m.Transport, HttpAddress: m.HTTP, Version: m.Version,
	}
}

func fromMember(m *clusterpb.Member) ring.Member {
	return ring.Member{
		ID: m.GetId(), Incarnation: m.GetIncarnation(), Name: m.GetName(),
		Transport: m.GetTransportAddress(), HTTP: m.GetHttpAddress(), Version: m.GetVersion(),
	}
}
