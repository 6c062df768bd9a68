package load

import (
	"context"
	"errors"
	"os"
	"strconv"
	"time"
)

// sender sends requests over one connection, one after the other. It is not safe for concurrent use.
type sender struct {
	target    *target
	plan      *plan
	tally     *tally
	canceller *canceller
	body      string

	conn    *conn
	request []byte            // reused
	kinds   map[string]string // error types, so that each is one string
}

// send sends one request, waits for what becomes of it and counts that. due is when it was meant to be sent.
func (s *sender) send(ctx context.Context, number uint64, id identity, client int, due time.Time) end {
	now := time.Now()
	s.tally.began(id, now.Sub(due))
	o := s.exchange(ctx, number, id, now)
	o.latency = time.Since(due)
	s.tally.ended(id, client, o)
	return o.end
}

func (s *sender) exchange(ctx context.Context, number uint64, id identity, now time.Time) outcome {
	if s.conn != nil && !s.conn.reusable(now) {
		s.disconnect()
	}
	if s.conn == nil {
		c, err := s.target.dial(ctx)
		if err != nil {
			return s.broken(err, patient)
		}
		s.conn = c
	}
	fate, after := s.plan.fate(number)
	s.prepare(number, id, fate)
	switch fate {
	case leaves:
		if err := s.conn.SetReadDeadline(time.Now().Add(after)); err != nil {
			return s.broken(err, patient)
		}
	case cancelsByTask:
		opaqueID := s.target.run + strconv.FormatUint(number, 10)
		timer := time.AfterFunc(after, func() { s.canceller.ask(opaqueID) })
		defer timer.Stop()
	}
	r, err := s.conn.roundTrip(s.request, s.target.noBody)
	if err != nil {
		return s.broken(err, fate)
	}
	if fate == leaves {
		if err := s.conn.SetReadDeadline(time.Time{}); err != nil {
			s.conn.noReuse = true
		}
	}
	s.conn.used = time.Now()
	if r.status < 300 {
		return outcome{end: completed, answer: answer{status: r.status}}
	}
	e := readError(r.body)
	return outcome{end: judge(r.status, e), answer: answer{r.status, s.kind(e.kind)}}
}

// prepare writes the request into s.request.
func (s *sender) prepare(number uint64, id identity, f fate) {
	t := &s.target.requests[id.group*s.target.users+id.user]
	head := t.plain
	if f == cancelsByItself {
		head = t.cancelsItself
	}
	b := append(s.request[:0], head...)
	b = append(b, s.target.run...)
	b = strconv.AppendUint(b, number, 10)
	b = append(b, "\r\n\r\n"...)
	s.request = append(b, s.body...)
}

// broken says what it means that there is no whole answer.
func (s *sender) broken(err error, f fate) outcome {
	s.disconnect()
	switch {
	case s.target.hasEnded():
		return outcome{end: unanswered}
	case f == leaves && errors.Is(err, os.ErrDeadlineExceeded):
		return outcome{end: disconnected}
	}
	return outcome{end: lost, loss: lossReason(err)}
}

func (s *sender) disconnect() {
	if s.conn != nil {
		s.target.close(s.conn)
		s.conn = nil
	}
}

// kind returns the error type as a string; there are few of them.
func (s *sender) kind(b []byte) string {
	if k, ok := s.kinds[string(b)]; ok || len(b) == 0 {
		return k
	}
	if len(s.kinds) >= maxKinds || len(b) > maxKindLength {
		return "other"
	}
	if s.kinds == nil {
		s.kinds = map[string]string{}
	}
	k := string(b)
	s.kinds[k] = k
	return k
}

const (
	maxKinds      = 50
	maxKindLength = 100
)
