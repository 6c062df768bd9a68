package groups_test

import (
	"context"
	"fmt"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/records"
)

func Example() {
	ctx := context.Background()
	registry, err := groups.Open(ctx, new(records.Memory)) // for as long as the process runs
	if err != nil {
		panic(err)
	}
	registry.OnChange(func(_, now *groups.Snapshot) {
		fmt.Println("groups:", now.Len())
	})

	patch, err := groups.ParsePatch([]byte(`{"name":"reports","resiliency_mode":"enforced","resource_limits":{"cpu":0.4},
		"throttling":{"attribute":"username","node_limit":10},"queue":{"size_per_bucket":100}}`))
	if err != nil {
		panic(err)
	}
	group, err := registry.Create(ctx, patch)
	if err != nil {
		panic(err)
	}
	limit, _ := group.Throttling.NodeTier()
	fmt.Println(group.Name, "runs", limit, "searches of each user at once")

	// A part that a patch does not name stays; null clears it.
	_, err = registry.Update(ctx, "reports", groups.Patch{Throttling: groups.Null[groups.ThrottlingPatch]()})
	fmt.Println(err)
	// Output:
	// groups: 1
	// reports runs 10 searches of each user at once
	// the value [100] of [queue.size_per_bucket] has nothing to wait for, as no throttle limit is set; set [throttling.node_limit] or [throttling.shared_limit], or clear the queue: turning throttling off must clear [queue] in the same request, with "queue":null
}
