package rest_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// TestChangesWaitForAllNodes: a change is answered when every node acts by it; when one is late, the change stands and the answer says
// that it is not acknowledged where it can.
func TestChangesWaitForAllNodes(t *testing.T) {
	cl, nodes := newCluster(t, 2)
	n := nodes[0]
	var asked atomic.Int64
	cl.mu.Lock()
	n.settle = func(ctx context.Context) error {
		asked.Add(1)
		if _, ok := ctx.Deadline(); !ok {
			t.Error("the wait has no end")
			return nil
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}
	cl.mu.Unlock()
	const group = `{"name":"g","resiliency_mode":"soft","resource_limits":{"cpu":0.1}}`
	for i, r := range []struct{ method, path, body, want string }{
		{http.MethodPut, "/_cluster/settings?timeout=1ms", `{"transient":{"wlm.workload_group.mode":"enabled"}}`, `"acknowledged":false`},
		{http.MethodPut, "/_wlm/workload_group?timeout=1ms", group, `"name":"g"`},
		{http.MethodPut, "/_wlm/workload_group/g?timeout=1ms", `{"resource_limits":{"cpu":0.2}}`, `"cpu":0.2`},
		{http.MethodDelete, "/_wlm/workload_group/g?timeout=1ms", "", `"acknowledged":false`},
	} {
		a := n.do(r.method, r.path, r.body)
		if a.status != http.StatusOK || !strings.Contains(a.body, r.want) {
			t.Errorf("%s %s: %d %s, want %s", r.method, r.path, a.status, a.body, r.want)
		}
		if n := asked.Load(); n != int64(i+1) {
			t.Errorf("%s %s: the other nodes were waited for %d times", r.method, r.path, n-int64(i))
		}
	}
	if a := n.do(http.MethodGet, "/_wlm/workload_group", ""); a.status != http.StatusOK || asked.Load() != 4 {
		t.Errorf("reading waits for nobody: %d", a.status)
	}
	if a := n.do(http.MethodPut, "/_wlm/workload_group", `{"name":"x"}`); a.status != http.StatusBadRequest || asked.Load() != 4 {
		t.Errorf("a refused change waits for nobody: %d", a.status)
	}
}
