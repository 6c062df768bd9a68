package load

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Run puts the load on the server and returns what became of it. When ctx ends, no more is sent and the answers are waited
// for as at the usual end.
//
// It fails when the options do not fit (*FlagError), when the server does not answer at all, and when a group is not
// there. That requests fail, and that client and server count differently, is for the Result to tell.
func Run(ctx context.Context, o Options) (*Result, error) {
	u, err := o.complete()
	if err != nil {
		return nil, err
	}
	d, err := prepare(ctx, u, &o)
	if err != nil {
		return nil, err
	}
	defer d.close()
	d.drive(ctx)
	return d.conclude(context.WithoutCancel(ctx))
}

// driver is one load.
type driver struct {
	options    *Options
	url        *url.URL
	api        *api
	groups     []group
	plan       plan
	identities []identity // of the clients of a closed loop
	target     *target
	tally      *tally
	canceller  *canceller

	before  map[string]counters // nil: the server does not tell
	made    string              // the index that was made for the load
	notes   []string
	elapsed time.Duration
	cpu     time.Duration
}

// prepare looks up what the load needs of the server.
func prepare(ctx context.Context, u *url.URL, o *Options) (_ *driver, err error) {
	d := &driver{options: o, url: u, api: newAPI(u, o), plan: newPlan(o)}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	var noGroups bool
	if d.groups, noGroups, err = d.api.resolve(ctx, o.Groups); err != nil {
		return nil, unreachable(err)
	}
	if noGroups {
		d.note("the server has no workload groups: what --group says is sent as it is")
	}
	if err := d.readBefore(ctx); err != nil {
		return nil, unreachable(err)
	}
	d.prepareIndex(ctx)

	ids := make([]string, len(d.plan.groups))
	if len(o.Groups) > 0 {
		for i, g := range d.groups {
			ids[i] = g.id
		}
	}
	run := fmt.Sprintf("load-%08x-", rand.Uint32())
	d.target = newTarget(u, o, ids, d.plan.users, run)
	if o.Rate == 0 {
		d.identities = d.plan.identities(o.Clients)
	}
	d.tally = newTally(len(d.plan.groups), len(d.plan.users), len(d.identities))
	d.canceller = newCanceller(d.api)
	return d, nil
}

func (d *driver) note(format string, args ...any) {
	d.notes = append(d.notes, fmt.Sprintf(format, args...))
}

// unreachable names what is the matter when there was no answer.
func unreachable(err error) error {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Errorf("the server's certificate is not trusted: %w; --insecure accepts any", err)
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("the server does not answer: %w; is the URL right, and the server running?", e)
	}
	return err
}

// readBefore reads the counters, or notes why there are none to compare with.
func (d *driver) readBefore(ctx context.Context) error {
	before, err := d.api.stats(ctx)
	switch status, ok := errors.AsType[*statusError](err); {
	case errors.Is(err, errNoStats):
		d.note("the server has no _wlm/stats: nothing to hold the client's tally against")
	case ok:
		d.note("the statistics may not be read, so that there is nothing to hold the client's tally against: %v (--admin name:password says who asks)", status)
	case err != nil:
		return err
	case !isSearch(d.options.Path):
		d.note("%s is no single search: the client's tally is not held against _wlm/stats", d.options.Path)
	default:
		d.before = before
	}
	return nil
}

// isSearch reports whether each request of the path is one search, and its status that search's.
func isSearch(path string) bool {
	path, _, _ = strings.Cut(path, "?")
	return strings.HasSuffix(path, "/_search") || strings.HasSuffix(path, "/_count")
}

// prepareIndex makes the index of a load that names none. Where that cannot be, the answers will show what it means.
func (d *driver) prepareIndex(ctx context.Context) {
	if d.options.Path != "/"+DefaultIndex+"/_search" {
		return
	}
	made, err := d.api.makeIndex(ctx, DefaultIndex)
	if made {
		d.made = DefaultIndex
	}
	if err != nil {
		d.note("the index %s could not be made (%v); --index names another", DefaultIndex, err)
	}
}

// close gives back all but what the load needed of the server.
func (d *driver) close() { d.api.close() }

// drive sends the load and waits for its end.
func (d *driver) drive(ctx context.Context) {
	o := d.options
	sending, stopSending := context.WithCancel(ctx)
	defer stopSending()
	waiting, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	if o.Duration > 0 && o.Rate == 0 { // an open loop has its schedule: what was due before the end is sent, late or not
		defer time.AfterFunc(o.Duration, stopSending).Stop()
	}

	var helpers sync.WaitGroup
	helpers.Go(func() { d.canceller.run(waiting) })
	ended := make(chan struct{})
	helpers.Go(func() { d.endAfterGrace(sending.Done(), ended, giveUp) })
	cpu := processorTime()
	d.tally.start = time.Now()
	if o.Progress != nil {
		helpers.Go(func() { d.showProgress(ended) })
	}

	d.loop(waiting, sending.Done(), stopSending)

	d.elapsed = time.Since(d.tally.start)
	d.cpu = processorTime() - cpu
	stopSending()
	close(ended)
	giveUp()
	helpers.Wait()
}

func (d *driver) loop(ctx context.Context, stop <-chan struct{}, allSent func()) {
	o := d.options
	newSender := func() *sender {
		return &sender{target: d.target, plan: &d.plan, tally: d.tally, canceller: d.canceller, body: o.Body}
	}
	if o.Rate == 0 {
		l := closedLoop{identities: d.identities, requests: uint64(o.Requests), think: o.Think, sender: newSender, allSent: allSent}
		l.run(ctx, stop)
		return
	}
	l := openLoop{schedule: schedule{o.Rate}, requests: uint64(o.Requests), duration: o.Duration, inFlight: o.MaxInFlight,
		plan: &d.plan, tally: d.tally, sender: newSender, allSent: allSent}
	l.run(ctx, stop)
}

// endAfterGrace gives up what has no answer some time after sending has stopped.
func (d *driver) endAfterGrace(stopped, ended <-chan struct{}, giveUp func()) {
	select {
	case <-stopped:
	case <-ended:
		return
	}
	select {
	case <-time.After(d.options.Grace):
		d.target.endAll()
		giveUp()
	case <-ended:
	}
}

func (d *driver) showProgress(ended <-chan struct{}) {
	tick := time.NewTicker(d.options.ProgressEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			d.options.Progress(d.tally.progress())
		case <-ended:
			return
		}
	}
}

// conclude compares, tidies up and puts the figures together.
func (d *driver) conclude(ctx context.Context) (*Result, error) {
	o := d.options
	r := &Result{URL: d.url.Redacted(), Method: o.Method, Path: o.Path, Loop: "closed", Clients: o.Clients, Seed: o.Seed, Shared: o.Shared,
		Seconds: d.elapsed.Seconds(), Answers: []AnswerCount{}, Conservation: []Check{}}
	if o.Rate != 0 {
		r.Loop, r.Rate, r.Clients = "open", o.Rate, 0
	}
	d.tally.summary(r, d.groups, o.Users, d.identities)
	if r.Seconds > 0 {
		r.PerSecond = float64(r.Answered) / r.Seconds
	}
	if r.Sent > 0 {
		r.DriverCPU = float64(d.cpu.Nanoseconds()) / 1000 / float64(r.Sent)
	}
	did := d.canceller.counted()
	r.CancelsAsked, r.CancelsDone, r.CancelsLate = did.asked, did.done, did.asked-did.done-did.failed
	if did.err != nil {
		d.note("%d searches could not be cancelled, the first because of %v", did.failed, did.err)
	}
	if d.before != nil {
		if err := d.compare(ctx, r); err != nil {
			d.note("the statistics could not be read after the load: %v", err)
			r.Conservation = append(r.Conservation, Check{Law: "the server tells what it counted", Told: err.Error()})
		}
	}
	if d.made != "" && !o.Shared { // others may search it by now
		if err := d.api.deleteIndex(ctx, d.made); err != nil {
			d.note("the index %s could not be deleted: %v", d.made, err)
		}
	}
	if r.LagMax > longLag && o.Rate != 0 {
		d.note("requests were sent up to %.0f ms late: the machine had no processor to give, and the latencies tell of that too", r.LagMax)
	}
	r.Notes = d.notes
	return r, nil
}

// longLag is how late, in milliseconds, a request of an open loop is sent when something is the matter.
const longLag = 100

// The server may notice a client that left a moment later, and counts then.
const (
	settleTime  = 3 * time.Second
	settlePause = 50 * time.Millisecond
)

// compare holds the tally against the counters, again and again until they agree or have had the time to.
func (d *driver) compare(ctx context.Context, r *Result) error {
	for deadline := time.Now().Add(settleTime); ; time.Sleep(settlePause) {
		after, err := d.api.stats(ctx)
		if err != nil {
			return err
		}
		r.Conservation = r.Conservation[:0]
		for i, g := range d.groups {
			before, wasThere := d.before[g.id]
			now, isThere := after[g.id]
			if !isThere {
				if wasThere {
					r.Conservation = append(r.Conservation, Check{Group: g.name, Law: "the group is still there", Told: "_wlm/stats does not list it any more"})
				}
				continue
			}
			r.Conservation = append(r.Conservation, conserve(g.name, &d.tally.groups[i].senderTally, before, now, d.options.Shared)...)
			r.Groups[i].moved(before, now)
		}
		if r.Conserved() || time.Now().After(deadline) {
			return nil
		}
	}
}
