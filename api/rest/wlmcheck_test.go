package rest_test

import (
	"strings"
	"testing"

	"github.com/wlmserver/wlmserver/wlm"
)

func TestSelfCheck(t *testing.T) {
	hold := make(chan struct{})
	s := newServer(t, func(o *options) { o.executor = &gate{open: hold} })
	id := s.group("reports", `,"throttling":{"attribute":"group","node_limit":1},"queue":{"size_per_bucket":5}`)
	running := s.background("POST", "/_search", `{}`, "workloadGroupId", id)
	s.eventually("one runs", func() bool { return s.admission.Totals().Tracked == 1 })
	parked := s.background("POST", "/_search?cancel_after_time_interval=1ms", `{}`, "workloadGroupId", id)
	(<-parked).wantError(500, "task_cancelled_exception")
	r := s.do("GET", "/_wlm/check", "").want(200)
	if r.keyOrder(nodeID) != "buckets waiting running evicted recovered" || r.at(nodeID, "running") != float64(1) ||
		r.at(nodeID, "evicted", "context") != float64(1) || r.at(nodeID, "recovered") != float64(0) {
		t.Error(r.body)
	}

	// A permit that no task stands for.
	ticket, err := s.admission.Enter(t.Context(), wlm.Request{Group: id})
	if err != nil {
		t.Fatal(err)
	}
	r = s.do("GET", "/_wlm/check", "").wantError(500, "illegal_state_exception")
	if !strings.Contains(r.body, "a parked search of bucket ["+id+":group] has no task") {
		t.Error(r.body)
	}
	close(hold)
	(<-running).want(200)
	permit, err := ticket.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	permit.Close()
	s.do("GET", "/_wlm/check", "").want(200)
}
