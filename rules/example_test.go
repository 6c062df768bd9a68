package rules_test

import (
	"context"
	"fmt"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/records"
	"github.com/wlmserver/wlmserver/rules"
)

func Example() {
	ctx := context.Background()
	reports := groups.NewSnapshot(1, &groups.Group{ID: "z6788ZXmSpihOV8ra-fkww", Name: "reports"})
	registry, err := rules.Open(ctx, new(records.Memory), func() *groups.Snapshot { return reports }) // for as long as the process runs
	if err != nil {
		panic(err)
	}
	patch, err := rules.ParsePatch([]byte(`{"description":"what analysts do with logs",
		"index_pattern":["logs-*"],"principal":{"role":["analyst"]},"workload_group":"z6788ZXmSpihOV8ra-fkww"}`))
	if err != nil {
		panic(err)
	}
	if _, err := registry.Create(ctx, patch); err != nil {
		panic(err)
	}

	now := registry.Snapshot()
	fmt.Println(now.Match(rules.Request{Indices: []string{"logs-1", "logs-2"}, Username: "ann", Roles: []string{"analyst"}}))
	fmt.Println(now.Match(rules.Request{Indices: []string{"logs-1", "metrics"}, Username: "ann", Roles: []string{"analyst"}}))
	// Output:
	// z6788ZXmSpihOV8ra-fkww true
	//  false
}
