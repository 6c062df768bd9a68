package rest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/wlmserver/wlmserver/internal/units"
)

// nodeWait is how long other nodes have for their answers unless the request says otherwise.
const nodeWait = 30 * time.Second

// view is an answer that is made of what each of some nodes has to say for itself, T.
type view[T any] struct {
	action  string   // of the task; empty for none
	members []Member // who is asked
	wait    time.Duration
	// own is this node's part. ctx ends when nobody waits for it any more.
	own func(ctx context.Context) (T, error)
	// read reads the part of another node, which has encoded it as JSON. A part lacks what an older node does not know.
	read func(body []byte) (T, error)
	// merge makes the answer, of one part for each node by id.
	merge func([]part[T]) (*answer, error)
}

// part is what one node has to say.
type part[T any] struct {
	member Member
	value  T
	failed *failure // why it has nothing to say; nil if it has
}

// show answers with a view, or, when another node asks, with this node's part of it.
func show[T any](c *call, v view[T]) (*answer, error) {
	answer := func() (*answer, error) {
		ctx, done := c.untilGone()
		defer done()
		if c.local {
			own, err := v.own(ctx)
			if err != nil {
				return nil, err
			}
			return ok(own)
		}
		parts := gather(ctx, c, v)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return v.merge(parts)
	}
	if v.action == "" {
		return answer()
	}
	return c.asTask(v.action, true, answer)
}

// gather asks all nodes of a view at once, this one among them if it is one.
func gather[T any](ctx context.Context, c *call, v view[T]) []part[T] {
	others, cancel := within(ctx, v.wait)
	defer cancel()
	request := c.forOthers()
	parts := make([]part[T], len(v.members))
	own := -1
	var asked sync.WaitGroup
	for i, m := range v.members {
		parts[i].member = m
		if m.ID == c.s.cfg.Node.ID {
			own = i
			continue
		}
		asked.Go(func() { parts[i].value, parts[i].failed = ask(others, c, v, m, request) })
	}
	if own >= 0 {
		value, err := v.own(ctx)
		if err != nil {
			parts[own].failed = c.describe(err)
		}
		parts[own].value = value
	}
	asked.Wait()
	return parts
}

// within bounds a context by a time, which may be units.None.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d == units.None {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, d)
}

// ask has one other node tell its part.
func ask[T any](ctx context.Context, c *call, v view[T], m Member, r LocalRequest) (value T, failed *failure) {
	a, err := c.s.cfg.Cluster.Ask(ctx, m.ID, r)
	switch {
	case err != nil:
		return value, silence(ctx, m, v.wait, err)
	case a.Status >= http.StatusBadRequest:
		return value, failureOf(a)
	}
	if value, err = v.read(a.Body); err != nil {
		return value, &failure{status: http.StatusInternalServerError, typ: "transport_exception",
			reason: "the answer of node [" + m.Name + "] cannot be read: " + err.Error()}
	}
	return value, nil
}

// silence is why a node has given no answer.
func silence(ctx context.Context, m Member, wait time.Duration, err error) *failure {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &failure{status: http.StatusGatewayTimeout, typ: "receive_timeout_transport_exception",
			reason: "node [" + m.Name + "] has not answered within [" + units.FormatTime(wait) + "]"}
	}
	return &failure{status: http.StatusServiceUnavailable, typ: "transport_exception", reason: err.Error()}
}

// tally counts who was asked and who has answered.
func tally[T any](parts []part[T]) nodesDTO {
	d := nodesDTO{Total: len(parts)}
	for _, p := range parts {
		if p.failed == nil {
			d.Successful++
			continue
		}
		d.Failed++
		d.Failures = append(d.Failures, nodeFailure(p.member.ID, p.failed))
	}
	return d
}

// verbatim takes the part of another node, which is an object, as it is.
func verbatim(body []byte) (any, error) {
	if !json.Valid(body) || body[0] != '{' {
		return nil, errors.New("it is no JSON object")
	}
	return json.RawMessage(body), nil
}

// decoded takes the part of another node for a T.
func decoded[T any](body []byte) (T, error) {
	var v T
	err := json.Unmarshal(body, &v)
	return v, err
}
