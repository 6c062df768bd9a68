package compat_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/test/server"
)

const (
	clusterName     = "compat"
	nodeName        = "compat"
	defaultSeed     = 1
	defaultRequests = 3800
)

var (
	launcher = flag.String("opensearch", "", "a `script` that starts an OpenSearch node when called with: start FOLDER PORT SETTING=VALUE...; empty: no run")
	seed     = flag.Uint64("seed", defaultSeed, "what the requests are drawn by")
	requests = flag.Int("requests", defaultRequests, "how many requests are sent")
	only     = flag.Int("sequence", -1, "the one sequence to send")
	examples = flag.Int("examples", 0, "how many examples of each known difference are printed")
	shrinks  = flag.Int("shrink", 10, "how many failures are made smaller")
)

func TestMain(m *testing.M) { server.Main(m) }

// TestSame sends the same requests to this server and to OpenSearch.
func TestSame(t *testing.T) {
	if *launcher == "" {
		t.Skip("give -opensearch a launcher, or run: make compat-opensearch")
	}
	path, err := filepath.Abs(*launcher)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("seed %d, %d requests\n", *seed, *requests)
	began := time.Now()
	there := startOpenSearch(t, path)
	p := server.StartForgetful(t, "node.name="+nodeName, "cluster.name="+clusterName)
	fmt.Printf("both servers run after %.0f s\n", time.Since(began).Seconds())
	u := &run{
		pair: &pair{
			here:  &side{name: "this server", address: strings.TrimPrefix(p.URL, "http://")},
			there: &side{name: "OpenSearch", address: there},
			t:     t,
		},
		known: newList(), failures: map[string]*failure{}, kinds: map[string]int{}, shown: map[int]int{},
	}
	u.all()
	for _, s := range u.pair.sides() {
		s.close()
	}
	u.report(time.Since(began))
}

// run is one run, with what came of it.
type run struct {
	pair     *pair
	known    *list
	sent     int
	equal    int
	listed   int // requests all of whose differences are on the list
	failed   int
	broken   int // sequences that ended early, because the two servers were no longer in the same state
	kinds    map[string]int
	failures map[string]*failure
	shown    map[int]int // examples of known differences
}

func (u *run) all() {
	if *only >= 0 {
		u.sequence(uint64(*only))
		return
	}
	said := time.Now()
	for number := uint64(0); u.sent < *requests; number++ {
		u.sequence(number)
		if time.Since(said) > 5*time.Second {
			said = time.Now()
			fmt.Printf("sequence %d: sent %d, equal %d, listed %d, failed %d\n", number, u.sent, u.equal, u.listed, u.failed)
		}
	}
}

// sequence sends one sequence. It ends early when the two servers may no longer be in the same state: what follows would only echo that.
func (u *run) sequence(number uint64) {
	u.pair.reset()
	all := sequence(*seed, number)
	for i, r := range all {
		here, there, differences := u.pair.send(r)
		u.sent++
		if r.kind == "index-state" { // the shards begin anew there, which takes its time
			u.pair.there.send(jsonRequest("GET", "/_cluster/health?wait_for_status=yellow&wait_for_no_initializing_shards=true&timeout=5s", ""))
		}
		u.kinds[r.kind]++
		unlisted := u.count(meeting(r, here, there), differences)
		if len(unlisted) > 0 {
			f := &failure{before: all[:i], request: r, differences: unlisted, here: here, there: there, origin: fmt.Sprintf("-seed %d -sequence %d, request %d", *seed, number, i)}
			first, ok := u.failures[f.signature()]
			if !ok {
				u.failures[f.signature()], first = f, f
			}
			first.times++
		}
		if r.parts(here, there, differences, unlisted) {
			u.broken++
			return
		}
	}
}

// count sorts an answer in, and gives the differences that nothing explains.
func (u *run) count(text string, all []difference) []difference {
	var unlisted []difference
	met := map[int]bool{}
	for _, d := range all {
		if i := u.known.find(text, d); i >= 0 {
			met[i] = true
			if u.shown[i]++; u.shown[i] <= *examples {
				fmt.Printf("known, %s: %s\n%s\n", u.known.all[i].why, d, shorten(text, 500))
			}
		} else {
			unlisted = append(unlisted, d)
		}
	}
	for i := range met {
		u.known.met[i]++
	}
	switch {
	case len(unlisted) > 0:
		u.failed++
	case len(all) > 0:
		u.listed++
	default:
		u.equal++
	}
	return unlisted
}

func (u *run) report(took time.Duration) {
	t := u.pair.t
	byTimes := slices.SortedFunc(maps.Values(u.failures), func(a, b *failure) int {
		return cmp.Or(b.times-a.times, strings.Compare(a.signature(), b.signature()))
	})
	for i, f := range byTimes {
		if i < *shrinks {
			s := &shrinker{pair: u.pair, known: u.known, left: 40}
			s.shrink(f)
		} else {
			f.before = nil
		}
		t.Errorf("%s", f)
	}
	var kinds []string
	for _, k := range slices.Sorted(maps.Keys(u.kinds)) {
		kinds = append(kinds, fmt.Sprintf("%s %d", k, u.kinds[k]))
	}
	fmt.Printf("\nsent %d in %.0f s (%s); %d sequences ended early\nequal %d, listed %d, failed %d (in %d ways)\n", u.sent, took.Seconds(), strings.Join(kinds, ", "), u.broken,
		u.equal, u.listed, u.failed, len(u.failures))
	for _, c := range []category{decided, later, notOffered} {
		fmt.Printf("%s:\n", c)
		for i, k := range u.known.all {
			if k.category == c {
				fmt.Printf("%6d  %s\n", u.known.met[i], k.why)
			}
		}
	}
	if *only >= 0 {
		return
	}
	// A sequence ends where the two servers part, so that what is met is a matter of chance too: this is told and is no failure.
	for i, k := range u.known.all {
		if u.known.met[i] == 0 {
			fmt.Printf("not met in this run: %q; when no seed meets it any more, take it out\n", k.why)
		}
	}
}

// TestKnownDifferencesAreDocumented: what differs stands in the page that says so.
func TestKnownDifferencesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/differences.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range knownDifferences() {
		if k.why == "" || k.row == "" || !strings.Contains(string(page), k.row) {
			t.Errorf("%q: docs/differences.md does not say %q", k.why, k.row)
		}
	}
}
