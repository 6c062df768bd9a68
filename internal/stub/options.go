package stub

import (
	"fmt"
	"math"
	"time"

	"github.com/wlmserver/wlmserver/internal/shard"
	"github.com/wlmserver/wlmserver/search"
)

const (
	defaultSize       = 10
	defaultTrackTotal = 10_000
	// maxWindow is how many hits can be reached by from and size, and how many a
	// page of a scroll may have.
	maxWindow = 10_000
)

// options is what a search says, in its body and in its parameters. A search that
// waits keeps them.
type options struct {
	selection  selection
	preference *preference // nil: not said

	size, from int
	sort       []shard.Sort
	timeout    *time.Duration // nil: not said
	partial    *bool          // nil: not said
	concurrent int            // 0: not said
	trackTotal int            // up to this many hits are counted; -1: none

	trackTotalSaid bool
	dfs            bool
	totalAsInt     bool
	phaseTook      bool
	hideSource     bool
	version        bool
	seqNo          bool

	terms []term // of the query
	ext   *ext   // nil: not said
}

// ext is what tests say in [ext.stub].
type ext struct {
	costs  []costSetting
	nested string // indices to search first, on behalf of this search
}

// nested are the indices to search first; none for nearly all.
func (o *options) nested() string {
	if o.ext == nil {
		return ""
	}
	return o.ext.nested
}

// read reads what r says into o, which is new, and checks it as far as that goes
// without knowing the indices. The parameters win over the body.
func (o *options) read(r *search.Request) error {
	o.size, o.trackTotal = defaultSize, defaultTrackTotal
	if len(r.Body) > 0 {
		read := o.readBody
		if r.Kind == search.Count {
			read = o.readCountBody
		}
		if err := read(r.Body); err != nil {
			return err
		}
	}
	o.selection.ForbidClosed = true
	if len(r.Query) > 0 {
		if err := o.readParameters(r); err != nil {
			return err
		}
	}
	if r.Kind == search.Count {
		o.size, o.trackTotal = 0, math.MaxInt
	}
	if err := o.settleTotal(); err != nil {
		return err
	}
	if r.ScrollKeepAlive > 0 {
		if err := o.checkScroll(r); err != nil {
			return err
		}
	}
	o.selection.names = r.Indices
	return o.selection.check()
}

// settleTotal brings the two ways to ask for the number of hits together: as a
// plain number it has to be exact.
func (o *options) settleTotal() error {
	if !o.totalAsInt {
		return nil
	}
	if !o.trackTotalSaid {
		o.trackTotal = math.MaxInt
	}
	if o.trackTotal >= 0 && o.trackTotal != math.MaxInt {
		return &search.InvalidError{Reason: fmt.Sprintf(
			"[rest_total_hits_as_int] needs the exact number of hits, and [track_total_hits] is [%d]; leave that out or make it true", o.trackTotal)}
	}
	return nil
}

// checkScroll refuses what makes no sense for a search that is read page by page.
func (o *options) checkScroll(r *search.Request) error {
	var problems []string
	if o.size == 0 {
		problems = append(problems, "[size] must not be 0 in a scroll: it is the length of a page")
	}
	if o.from > 0 {
		problems = append(problems, "[from] must not be given in a scroll: it starts with the first hit")
	}
	if o.trackTotalSaid && o.trackTotal != math.MaxInt {
		problems = append(problems, "[track_total_hits] must be true in a scroll, or left out")
	}
	if cached, ok := lastParameter(r, "request_cache"); ok && cached != "false" {
		problems = append(problems, "[request_cache] must not be true in a scroll")
	}
	if len(problems) > 0 {
		return &search.ValidationError{Problems: problems}
	}
	return nil
}
