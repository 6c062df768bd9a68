package wlm_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/wlm"
)

// One search at a time, and one more may wait.
func Example() {
	limit, size := 1, 1
	admission := wlm.New()
	admission.GroupsChanged(groups.NewSnapshot(1, &groups.Group{
		ID: "1", Name: "reports", Mode: groups.Enforced,
		Throttling: groups.Throttling{Attribute: groups.ByGroup, NodeLimit: &limit},
		Queue:      groups.Queue{SizePerBucket: &size},
	}))
	ctx, search := context.Background(), wlm.Request{Group: "1"}

	first, _ := admission.Enter(ctx, search)
	permit, _ := first.Wait(ctx) // at once
	second, _ := admission.Enter(ctx, search)
	status, _ := admission.Survey().Status(second)
	fmt.Printf("the second is %s at place %d\n", status.State, status.Position)

	_, err := admission.Enter(ctx, search)
	if refused, ok := errors.AsType[*wlm.RejectedError](err); ok {
		fmt.Println("the third may come again in", refused.RetryAfter)
	}

	permit.Close() // hands the slot to the second
	permit, _ = second.Wait(ctx)
	fmt.Println("the second runs:", permit.Tracked())
	permit.Close()
	// Output:
	// the second is waiting at place 1
	// the third may come again in 1s
	// the second runs: true
}
