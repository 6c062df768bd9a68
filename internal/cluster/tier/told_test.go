package tier_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/internal/cluster/tier"
	"github.com/wlmserver/wlmserver/wlm"
)

// journal is a log that a test reads while it is written.
type journal struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lines.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lines.String()
}

// refusing reaches nobody.
type refusing struct{}

func (refusing) Session(context.Context, ring.Member, uint64) (tier.Stream, error) {
	return nil, errors.New("bad certificate")
}

// TestSilentOwnerIsTold: an owner that cannot be asked for long is in the log, once, with the reason; a short break is not.
func TestSilentOwnerIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{member: ring.Member{ID: "a", Incarnation: "1", Name: "a", Version: "3.7.0"}}
		n.live.Store(true)
		var log journal
		n.Admission = wlm.New(wlm.WithLink(func(a *wlm.Admission) wlm.Link {
			n.tier = tier.New(tier.Config{Self: n.member, Lease: lease, Metadata: n, Dialer: refusing{}, Log: zerolog.New(&log)}, a)
			return n.tier
		}))
		defer n.tier.Close()
		n.tier.SetRing(ring.New(1, []ring.Member{n.member, {ID: "b", Incarnation: "1", Name: "b", Version: "3.7.0"}}))
		time.Sleep(lease/3 - time.Second)
		synctest.Wait()
		if told := log.String(); told != "" {
			t.Errorf("it is told too early: %s", told)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if told := log.String(); strings.Count(told, "\n") != 1 || !strings.Contains(told, `"owner":"b"`) || !strings.Contains(told, "bad certificate") {
			t.Errorf("told: %s", told)
		}
	})
}
