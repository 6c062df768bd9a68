package stub_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmserver/wlmserver/internal/shard"
	"github.com/wlmserver/wlmserver/tasks"
)

// TestShardOfASearchElsewhere: its task names the search on the other node, and ends with the call.
func TestShardOfASearchElsewhere(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.index("one", 1, "")
		ctx, cancel := context.WithCancelCause(f.Context())
		done := make(chan error, 1)
		search := shard.Task{Node: "node-2", Number: 7, User: "alice", Group: "g", OpaqueID: "mine"}
		f.engine.Local().Query(ctx, &shard.QueryRequest{Shard: shard.ID{Index: "one"}, Parent: search, Timeout: -1, Matches: -1, Work: shard.Work{Time: time.Hour}},
			func(_ *shard.QueryResult, err error) { done <- err })
		synctest.Wait()
		below := f.tasks.List(tasks.Filter{Parent: tasks.ID{Node: "node-2", Number: 7}})
		if len(below) != 1 || below[0].Type() != tasks.Transport {
			f.Fatalf("the search elsewhere has the tasks %v here, want one that came over the network", below)
		}
		if x := below[0]; x.User() != "alice" || x.Group() != "g" || x.Headers()["X-Opaque-Id"] != "mine" {
			f.Errorf("its task is of the user %q, the group %q, and has the headers %v", x.User(), x.Group(), x.Headers())
		}
		cancel(tasks.UserCause())
		if err := <-done; !cancelledBy(err, tasks.ByUser) {
			f.Errorf("a cancelled call gave %v", err)
		}
	})
}
