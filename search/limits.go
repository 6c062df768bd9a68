package search

import (
	"time"

	"github.com/wlmserver/wlmserver/internal/units"
	"github.com/wlmserver/wlmserver/settings"
)

// DefaultMaxConcurrentShardRequests is how many shards of a node one search
// asks at once when nobody says otherwise.
const DefaultMaxConcurrentShardRequests = 5

// Bounds are the search defaults that a workload group, or the cluster, sets.
// A nil member is one that it does not set.
type Bounds struct {
	CancelAfter                *time.Duration // units.None: no limit
	Timeout                    *time.Duration // units.None: no limit
	MaxConcurrentShardRequests *int
	AllowPartialResults        *bool
}

// Limits is what bounds one execution, as its group and the cluster said when
// it was admitted to the service. The request's own value comes first, then
// the group's, then the cluster's; with Override set, the group's comes first.
// The zero value bounds nothing.
type Limits struct {
	Override bool
	Group    Bounds
	Cluster  Bounds

	// MaxShards is how many shards the search may ask in all; 0 for no bound.
	MaxShards int

	// ScrollKeepAlive is how long the scroll is kept after this page; 0 for
	// anything but the page of a scroll.
	ScrollKeepAlive time.Duration
}

// CancelAfter resolves how long the search may live, its wait included.
// request is nil where the request does not say. The result is units.None for
// no limit; 0 means at once.
func (l Limits) CancelAfter(request *time.Duration) time.Duration {
	return duration(l.first(request, l.Group.CancelAfter, l.Cluster.CancelAfter))
}

// Timeout resolves after which time the search answers with what it has.
// request is nil where the request does not say. The result is units.None for
// no limit; 0 means at once.
func (l Limits) Timeout(request *time.Duration) time.Duration {
	return duration(l.first(request, l.Group.Timeout, l.Cluster.Timeout))
}

// MaxConcurrentShardRequests resolves how many shards of a node the search may
// ask at once. request is 0 where the request does not say.
func (l Limits) MaxConcurrentShardRequests(request int) int {
	var r *int
	if request > 0 {
		r = &request
	}
	if n := choose(l.Override, r, l.Group.MaxConcurrentShardRequests, l.Cluster.MaxConcurrentShardRequests); n != nil {
		return *n
	}
	return DefaultMaxConcurrentShardRequests
}

// AllowPartialResults resolves whether the search may answer when some of its
// shards failed. request is nil where the request does not say; when nobody
// says, it may.
func (l Limits) AllowPartialResults(request *bool) bool {
	if b := choose(l.Override, request, l.Group.AllowPartialResults, l.Cluster.AllowPartialResults); b != nil {
		return *b
	}
	return true
}

func (l Limits) first(request, group, cluster *time.Duration) *time.Duration {
	return choose(l.Override, request, group, cluster)
}

// choose returns the first value that is set, in the order of precedence.
func choose[T any](override bool, request, group, cluster *T) *T {
	if override && group != nil {
		return group
	}
	switch {
	case request != nil:
		return request
	case group != nil:
		return group
	}
	return cluster
}

// duration reads a limit: not set and any negative value mean none.
func duration(d *time.Duration) time.Duration {
	if d == nil || *d < 0 {
		return units.None
	}
	return *d
}

// limits are what bounds the search.
func (q *query) limits() Limits {
	l := Limits{
		Cluster: Bounds{
			CancelAfter:         new(q.settings.Duration(settings.CancelAfter)),
			Timeout:             new(q.settings.Duration(settings.DefaultSearchTimeout)),
			AllowPartialResults: new(q.settings.Bool(settings.AllowPartialResults)),
		},
		MaxShards: q.settings.Int(settings.MaxShards),
	}
	if g := q.group; g != nil {
		l.Override = g.OverrideRequestValues()
		l.Group = Bounds{
			CancelAfter:                optional(g.CancelAfter()),
			Timeout:                    optional(g.SearchTimeout()),
			MaxConcurrentShardRequests: optional(g.MaxConcurrentShardRequests()),
		}
	}
	if q.page != nil {
		l.ScrollKeepAlive = q.request.ScrollKeepAlive
	}
	return l
}

func optional[T any](v T, set bool) *T {
	if !set {
		return nil
	}
	return &v
}
