package settings_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmserver/wlmserver/records/recordstest"
	"github.com/wlmserver/wlmserver/settings"
)

// change sets the largest number of buckets, for the time being.
func change(n int) settings.Update {
	text := strconv.Itoa(n)
	return settings.Update{
		Persistent: []settings.Entry{{Key: "search.max_buckets", Value: &text}},
	}
}

func TestListenersHearChangesOneAtATimeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, &recordstest.Repository{}, nil)
		var (
			inside int
			mu     sync.Mutex
			heard  []*settings.Snapshot
		)
		all := func() []*settings.Snapshot {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(heard)
		}
		first := func(old, new *settings.Snapshot) {
			if inside++; inside != 1 {
				t.Error("two listeners at once")
			}
			if before := all(); len(before) > 0 && before[len(before)-1] != old {
				t.Error("changes out of order")
			}
			mu.Lock()
			heard = append(heard, new)
			mu.Unlock()
			time.Sleep(time.Second) // slow: the others want their turn meanwhile
			inside--
		}
		second := func(_, new *settings.Snapshot) {
			if so := all(); inside != 0 || so[len(so)-1] != new {
				t.Error("the second listener is not called after the first")
			}
			if r.Snapshot() != new {
				t.Error("a listener is called before the change is in force")
			}
		}
		r.OnChange(first)
		r.OnChange(second)

		var clients sync.WaitGroup
		for n := range 20 {
			clients.Go(func() {
				if _, err := r.Apply(t.Context(), change(n)); err != nil {
					t.Error(err)
				}
				if !slices.ContainsFunc(all(), func(s *settings.Snapshot) bool { return s.Int("search.max_buckets") == n }) {
					t.Errorf("Apply of %d returned before its listeners did", n)
				}
			})
		}
		clients.Wait()
		if heard := all(); len(heard) != 20 || heard[19] != r.Snapshot() {
			t.Errorf("heard of %d changes of 20", len(heard))
		}
	})
}

func TestReadersDoNotWaitForAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		repository := &recordstest.Repository{During: func(context.Context) error { time.Sleep(time.Minute); return nil }}
		r := open(t, repository, nil)
		done := make(chan error, 1)
		go func() {
			_, err := r.Apply(t.Context(), change(5))
			done <- err
		}()
		synctest.Wait()
		start := time.Now()
		if n := r.Snapshot().Int("search.max_buckets"); n != 65535 {
			t.Errorf("read %d before it was kept", n)
		}
		if waited := time.Since(start); waited != 0 {
			t.Errorf("the reader waited %v", waited)
		}
		if err := <-done; err != nil || r.Snapshot().Int("search.max_buckets") != 5 {
			t.Errorf("%v, %d", err, r.Snapshot().Int("search.max_buckets"))
		}
	})
}

func TestWaitForAnotherChangeEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		repository := &recordstest.Repository{During: func(context.Context) error { time.Sleep(time.Minute); return nil }}
		r := open(t, repository, nil)
		var slow sync.WaitGroup
		slow.Go(func() {
			if _, err := r.Apply(t.Context(), change(1)); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		late := errors.New("too late")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, late)
		defer cancel()
		if _, err := r.Apply(ctx, change(2)); !errors.Is(err, late) {
			t.Errorf("error %v", err)
		}
		slow.Wait()
		if n := r.Snapshot().Int("search.max_buckets"); n != 1 {
			t.Errorf("in force: %d", n)
		}
	})
}

// A listener that panics must not keep all later changes out.
func TestPanicOfAListener(t *testing.T) {
	r := open(t, &recordstest.Repository{}, nil)
	calls := 0
	r.OnChange(func(_, _ *settings.Snapshot) {
		if calls++; calls == 1 {
			panic("listener")
		}
	})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_, _ = r.Apply(t.Context(), change(1))
	}()
	if _, err := r.Apply(t.Context(), change(2)); err != nil || calls != 2 {
		t.Errorf("error %v, %d calls", err, calls)
	}
}
