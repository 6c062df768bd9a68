package rest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/wlmserver/wlmserver/wlm"
)

// Permits are those of shared limits that a node has given out.
type Permits struct {
	// Settled: the node knows what every other one holds, and is connected with all that give out permits.
	Settled bool
	Out     []Permit
}

// Permit is a permit of a shared limit.
type Permit struct {
	Bucket     wlm.BucketKey
	Epoch, Seq uint64 // its name within the bucket
	Holder     string // id of the node that has it
}

// permitsPart are permits as one node knows them.
type permitsPart struct {
	Settled bool        `json:"settled"`
	Out     []permitDTO `json:"out"`  // that it has given
	Held    []permitDTO `json:"held"` // that its searches run under
}

type permitDTO struct {
	Bucket string `json:"bucket"`
	Epoch  uint64 `json:"epoch"`
	Seq    uint64 `json:"seq"`
	Holder string `json:"holder"`
}

// permits are those that this node knows; held are those that its searches run under.
func (s *Server) permits(held []wlm.SharedPermit) *permitsPart {
	if s.cfg.Permits == nil {
		return nil
	}
	now := s.cfg.Permits()
	d := &permitsPart{Settled: now.Settled}
	for _, p := range now.Out {
		d.Out = append(d.Out, permitDTO{p.Bucket.String(), p.Epoch, p.Seq, p.Holder})
	}
	for _, p := range held {
		d.Held = append(d.Held, permitDTO{p.Bucket.String(), p.Epoch, p.Seq, s.cfg.Node.ID})
	}
	return d
}

// permitSettling is how long a permit may be on its way between who gives it and who has it.
const permitSettling = time.Second

// astray says which permits are out that nobody has, and which somebody has that nobody has given out. Those are looked for again a
// moment later, and count if they are the same: whatever is on its way has arrived by then. The error is why nobody waits for that.
func (c *call) astray(v view[checkPart], parts []part[checkPart]) (wrong []string, err error) {
	first := permitsAstray(parts)
	if len(first) == 0 {
		return nil, nil
	}
	ctx, done := c.untilGone()
	defer done()
	again := time.NewTimer(permitSettling)
	defer again.Stop()
	select {
	case <-again.C:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	second := permitsAstray(gather(ctx, c, v))
	maps.DeleteFunc(second, func(p permitDTO, why string) bool { return first[p] != why })
	return slices.Sorted(maps.Values(second)), nil
}

// permitsAstray compares what is out with what is held. As long as not all nodes have answered, and are settled, nothing can be said.
func permitsAstray(parts []part[checkPart]) map[permitDTO]string {
	out, held, here := map[permitDTO]bool{}, map[permitDTO]bool{}, map[string]bool{}
	for _, p := range parts {
		permits := p.value.Permits
		if p.failed != nil || permits == nil || !permits.Settled {
			return nil
		}
		here[p.member.ID] = true
		for _, x := range permits.Out {
			out[x] = true
		}
		for _, x := range permits.Held {
			held[x] = true
		}
	}
	astray := make(map[permitDTO]string)
	for p := range out {
		if here[p.Holder] && !held[p] {
			astray[p] = fmt.Sprintf("permit %d/%d of bucket [%s] is out to node [%s], where no search runs under it", p.Epoch, p.Seq, p.Bucket, p.Holder)
		}
	}
	for p := range held {
		if !out[p] {
			astray[p] = fmt.Sprintf("a search on node [%s] runs under permit %d/%d of bucket [%s], which nobody has given out", p.Holder, p.Epoch, p.Seq, p.Bucket)
		}
	}
	return astray
}
