package search

import (
	"context"
	"testing"
)

// An admitted page is executed even when it has been cancelled meanwhile, as
// any admitted search is. Many rounds, because a select would choose at random.
func TestTurnComesBeforeCancellation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	sc := newScroll(&Request{}, nil)
	for range 100 {
		if !sc.takeTurn(ctx) {
			t.Fatal("the turn was there to be taken")
		}
		if sc.takeTurn(ctx) {
			t.Fatal("the turn was taken twice")
		}
		sc.endTurn()
	}
}
