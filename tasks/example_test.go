package tasks_test

import (
	"context"
	"fmt"

	"github.com/wlmserver/wlmserver/tasks"
)

func Example() {
	manager := tasks.NewManager("node-1")
	search, err := manager.Register(context.Background(), tasks.Spec{
		Action: "indices:data/read/search", Type: tasks.Transport, Cancellable: true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer search.End()

	manager.Cancel(manager.List(tasks.Filter{Actions: []string{"*search*"}}), tasks.UserCause())
	fmt.Println(search.ID(), "ended:", context.Cause(search.Context()))

	_, err = manager.Register(search.Context(), tasks.Spec{Action: "indices:data/read/search[phase/query]", Parent: search})
	fmt.Println(err)
	// Output:
	// node-1:1 ended: by user request
	// task cancelled before starting: by user request
}
