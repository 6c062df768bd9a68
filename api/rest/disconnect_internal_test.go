package rest

import (
	"context"
	"reflect"
	"slices"
	"syscall"
	"testing"
)

// Who leaves is no longer looked at, in whatever order they leave; who has never been entered may leave, too.
func TestWatchLeave(t *testing.T) {
	if !canSeeDisconnects {
		t.Skip("nobody is watched here")
	}
	w := newWatch()
	w.running = true // nobody is to look
	ctx := context.WithValue(t.Context(), connKey{}, noConn{})
	var all [4]watched
	for i := range all {
		w.enter(ctx, &all[i], nil)
	}
	w.leave(&watched{})
	var left []*watched
	for _, i := range []int{1, 3, 3, 0, 2} {
		left = append(left, &all[i])
		w.leave(&all[i])
		list, _ := w.appendInFlight(nil)
		for j := range all {
			if slices.Contains(list, &all[j]) == slices.Contains(left, &all[j]) {
				t.Errorf("%d after %d of them: %v", j, len(left), list)
			}
		}
	}
	if list, idle := w.appendInFlight(nil); len(list) > 0 || !idle {
		t.Errorf("%v are watched when all have left", list)
	}
}

// noConn is a connection that nobody looks at.
type noConn struct{ syscall.RawConn }

// TestCallSize: each request that waits keeps its call, and a byte more would make it 32 more.
func TestCallSize(t *testing.T) {
	t.Parallel()
	if size := reflect.TypeFor[call]().Size(); size > 288 {
		t.Errorf("a call has %d bytes", size)
	}
}
