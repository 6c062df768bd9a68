package main

import (
	"context"
	"fmt"
	"math"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"golang.org/x/sync/semaphore"
	"k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing"
	"k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing/eventclock"
	"k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing/queueset"
	"k8s.io/apiserver/pkg/util/flowcontrol/metrics"
	"k8s.io/apiserver/pkg/util/flowcontrol/request"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/wlm"
)

// limiter runs work once it has a permit. It fails when ctx ends before.
type limiter interface {
	Do(ctx context.Context, work func()) error
}

// subject is one of the things that are compared.
type subject struct {
	name string
	// build makes limiters of the limit given, with room for that many waiters in all. It makes more than one only where one has
	// no room.
	build func(limit, waiters int) []limiter
}

// The subjects' names; ratios are to these two.
const (
	ours      = "wlmserver, bucket of the group"
	semaphor  = "x/sync semaphore"
	oursUsers = "wlmserver, bucket of a user"
)

func subjects() []subject {
	one := func(build func(limit int) limiter) func(int, int) []limiter {
		return func(limit, _ int) []limiter { return []limiter{build(limit)} }
	}
	return []subject{
		{ours, func(limit, waiters int) []limiter { return admissions(groups.ByGroup, limit, waiters) }},
		{oursUsers, func(limit, waiters int) []limiter { return admissions(groups.ByUsername, limit, waiters) }},
		{semaphor, one(func(limit int) limiter { return weighted{semaphore.NewWeighted(int64(limit))} })},
		{"failsafe-go bulkhead", one(func(limit int) limiter { return bulk{bulkhead.New[any](uint(limit))} })},
		{"failsafe-go adaptive limiter", one(newAdaptive)},
		{"Kubernetes fair queueing, 1 queue", one(func(limit int) limiter { return newQueues(limit, 1, 1) })},
		{"Kubernetes fair queueing, 64 queues", one(func(limit int) limiter { return newQueues(limit, 64, 8) })},
	}
}

// admission is one group of ours.
type admission struct {
	*wlm.Admission
	request wlm.Request
}

// admissions makes as many groups of one admission as are needed for the waiters: one group has room for groups.MaxQueued.
func admissions(by groups.Attribute, limit, waiters int) []limiter {
	a := wlm.New()
	size := groups.MaxQueued
	count := max(1, (waiters+size-1)/size)
	var (
		all      []*groups.Group
		limiters []limiter
	)
	for i := range count {
		g := &groups.Group{
			ID: fmt.Sprintf("group-%016d", i), Name: fmt.Sprint("group ", i), Mode: groups.Enforced,
			Throttling: groups.Throttling{Attribute: by, NodeLimit: &limit}, Queue: groups.Queue{SizePerBucket: &size},
		}
		all = append(all, g)
		limiters = append(limiters, admission{a, wlm.Request{Group: g.ID, Principal: wlm.Principal{User: "ann"}}})
	}
	a.GroupsChanged(groups.NewSnapshot(1, all...))
	return limiters
}

func (a admission) Do(ctx context.Context, work func()) error {
	t, err := a.Enter(ctx, a.request)
	if err != nil {
		return err
	}
	p, err := t.Wait(ctx)
	if err != nil {
		return err
	}
	work()
	p.Close()
	return nil
}

type weighted struct{ *semaphore.Weighted }

func (w weighted) Do(ctx context.Context, work func()) error {
	if err := w.Acquire(ctx, 1); err != nil {
		return err
	}
	work()
	w.Release(1)
	return nil
}

type bulk struct{ bulkhead.Bulkhead[any] }

func (b bulk) Do(ctx context.Context, work func()) error {
	if err := b.AcquirePermit(ctx); err != nil {
		return err
	}
	work()
	b.ReleasePermit()
	return nil
}

type adaptive struct {
	adaptivelimiter.AdaptiveLimiter[any]
}

// newAdaptive pins the limit, so that it limits what the others limit; it goes on measuring all the same.
func newAdaptive(limit int) limiter {
	n := uint(limit)
	return adaptive{adaptivelimiter.NewBuilder[any]().WithLimits(n, n, n).WithQueueing(math.MaxInt32, math.MaxInt32).Build()}
}

func (a adaptive) Do(ctx context.Context, work func()) error {
	p, err := a.AcquirePermit(ctx)
	if err != nil {
		return err
	}
	work()
	p.Record()
	return nil
}

type queues struct {
	fairqueuing.QueueSet
	estimate request.WorkEstimate
}

// newQueues makes a queue set by itself, without the rest of API priority and fairness, and with gauges that record nothing.
func newQueues(limit, count, hand int) limiter {
	pair := metrics.RatioedGaugePair{RequestsWaiting: gauge{}, RequestsExecuting: gauge{}}
	c, err := queueset.NewQueueSetFactory(eventclock.Real{}).BeginConstruction(
		fairqueuing.QueuingConfig{Name: "bench", DesiredNumQueues: count, QueueLengthLimit: math.MaxInt32, HandSize: hand},
		pair, gauge{}, gauge{})
	if err != nil {
		panic(err) // the configuration above is wrong
	}
	return &queues{
		c.Complete(fairqueuing.DispatchingConfig{ConcurrencyLimit: limit, ConcurrencyDenominator: limit}),
		request.WorkEstimate{InitialSeats: 1},
	}
}

func (q *queues) Do(ctx context.Context, work func()) error {
	const flow = 0x5eed // one flow, as the searches of one group are
	r, _ := q.StartRequest(ctx, &q.estimate, flow, "", "", nil, nil, nil)
	if r == nil {
		return context.Cause(ctx)
	}
	ran := false
	r.Finish(func() {
		ran = true
		work()
	})
	if !ran {
		return context.Cause(ctx)
	}
	return nil
}

// gauge records nothing.
type gauge struct{}

func (gauge) Set(float64)            {}
func (gauge) Inc()                   {}
func (gauge) Dec()                   {}
func (gauge) Add(float64)            {}
func (gauge) SetToCurrentTime()      {}
func (gauge) SetDenominator(float64) {}
