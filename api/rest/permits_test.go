package rest_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmserver/wlmserver/api/rest"
	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/wlm"
)

// TestPermitsOfSharedLimits: what is out without a holder, or held and not out, and stays so, is a disagreement; what is on its way is none.
func TestPermitsOfSharedLimits(t *testing.T) {
	bucket := wlm.BucketKey{Group: "g", Attribute: groups.ByGroup}
	settled := rest.Permits{Settled: true}
	out := func(seq uint64, holder string) rest.Permits {
		return rest.Permits{Settled: true, Out: []rest.Permit{{Bucket: bucket, Epoch: 3, Seq: seq, Holder: holder}}}
	}
	const held = `"held":[{"bucket":"g:group","epoch":3,"seq":7,"holder":"b-id"}]`
	for name, c := range map[string]struct {
		looks                  []rest.Permits // of node a: one after the other
		held                   bool           // by node b: 3/7
		broken, cut, unsettled bool           // node b
		wrong                  string
		took                   time.Duration
	}{
		"nothing":                  {looks: []rest.Permits{settled}},
		"out and held":             {looks: []rest.Permits{out(7, "b-id")}, held: true},
		"out and not held":         {looks: []rest.Permits{out(7, "b-id")}, wrong: "permit 3/7 of bucket [g:group] is out to node [b-id]", took: time.Second},
		"out here and not held":    {looks: []rest.Permits{out(7, "a-id")}, wrong: "permit 3/7 of bucket [g:group] is out to node [a-id]", took: time.Second},
		"held and not out":         {looks: []rest.Permits{settled}, held: true, wrong: "runs under permit 3/7 of bucket [g:group]", took: time.Second},
		"out to another":           {looks: []rest.Permits{out(7, "a-id")}, held: true, wrong: "nobody has given out", took: time.Second},
		"on its way back":          {looks: []rest.Permits{out(7, "b-id"), settled}, took: time.Second},
		"one after the other":      {looks: []rest.Permits{out(7, "b-id"), out(8, "b-id")}, took: time.Second},
		"out to who has gone":      {looks: []rest.Permits{out(7, "z-id")}},
		"owners have just changed": {looks: []rest.Permits{{}}, held: true},
		"then they change":         {looks: []rest.Permits{out(7, "b-id"), {}}, took: time.Second},
		"b is not settled":         {looks: []rest.Permits{out(7, "b-id")}, unsettled: true},
		"b does not answer":        {looks: []rest.Permits{out(7, "b-id")}, cut: true},
		"b disagrees with itself":  {looks: []rest.Permits{settled}, broken: true, wrong: "node [beta]: broken"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var looked atomic.Int64
				_, nodes := newCluster(t, 2, func(o *options) {
					o.bubble, o.permits = true, func() rest.Permits { return settled }
					if o.id == "a-id" {
						o.permits = func() rest.Permits { return c.looks[min(int(looked.Add(1)), len(c.looks))-1] }
					}
				})
				a, b := nodes[0], nodes[1]
				part := `{"found":{"buckets":0,"waiting":0,"running":0,"evicted":{},"recovered":0},"permits":{"settled":` + fmt.Sprint(!c.unsettled) + `,"out":null`
				if c.held {
					part += "," + held
				}
				part += "}"
				if c.broken {
					part += `,"disagreements":["broken"]`
				}
				if c.broken || c.held || c.unsettled {
					b.answers(func(rest.LocalAnswer) rest.LocalAnswer {
						return rest.LocalAnswer{Status: 200, Body: []byte(part + "}")}
					})
				}
				if c.cut {
					b.reached(cut)
				}
				begun := time.Now()
				r := a.do("GET", "/_wlm/check", "")
				if took := time.Since(begun); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
				if c.wrong == "" {
					r.want(200)
					return
				}
				if reason := r.wantError(500, "illegal_state_exception").at("error", "reason").(string); !strings.Contains(reason, c.wrong) {
					t.Errorf("reason %q", reason)
				}
			})
		})
	}
}

// TestPermitsThatSearchesHold: what runs under a permit that nobody has given out is found among what really runs.
func TestPermitsThatSearchesHold(t *testing.T) {
	hold := make(chan struct{})
	var out atomic.Pointer[rest.Permits]
	out.Store(&rest.Permits{Settled: true})
	s := newServer(t, func(o *options) {
		o.executor, o.permits = &gate{open: hold}, func() rest.Permits { return *out.Load() }
	})
	id := s.group("g", `,"throttling":{"attribute":"group","shared_limit":1}`)
	s.do("GET", "/_wlm/check", "").want(200)
	answer := s.background("POST", "/_search", `{}`, "workloadGroupId", id)
	s.eventually("the search runs", func() bool { return s.running("indices:data/read/search") == 1 && len(s.admission.Check().Shared) == 1 })
	r := s.do("GET", "/_wlm/check", "").wantError(500, "illegal_state_exception")
	if reason := r.at("error", "reason").(string); !strings.Contains(reason, "node ["+nodeID+"]") || !strings.Contains(reason, id+":group") {
		t.Errorf("reason %q", reason)
	}
	p := s.admission.Check().Shared[0]
	out.Store(&rest.Permits{Settled: true, Out: []rest.Permit{{Bucket: p.Bucket, Epoch: p.Epoch, Seq: p.Seq, Holder: nodeID}}})
	s.do("GET", "/_wlm/check", "").want(200)
	close(hold)
	(<-answer).want(200)
}
