package stub

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wlmserver/wlmserver/internal/shard"
	"github.com/wlmserver/wlmserver/internal/units"
	"github.com/wlmserver/wlmserver/search"
)

// Cost is what a search costs on purpose, for each shard. The zero value costs
// nothing and finds the documents that there are.
//
// The keys of Set, in the body under ext.stub, in an index's settings under
// index.stub and in the configuration under stub, are the names of the fields
// with underscores: query_time, fail_shards.
type Cost struct {
	QueryTime   time.Duration // the query phase lasts at least this long
	QueryCPU    time.Duration // processor time burnt within it
	QueryMemory int64         // bytes held while it lasts
	FetchTime   time.Duration // the same of the fetch phase
	FetchCPU    time.Duration
	FetchMemory int64

	// Hits is how many documents match. Beyond those that the shard has, they
	// are made up: with an _id, and an empty _source. Nil: the shard's own.
	Hits *int

	// FailShards is how many shards of the index fail in the query phase, once
	// they have done their work: those with the lowest numbers, or Shard.
	FailShards int

	// IgnoreCancel makes a phase look for cancellation and timeout only when all
	// its work is done.
	IgnoreCancel bool

	// Jitter is by how much of itself each amount of time, processor time and
	// memory may be more or less, from 0 to 1; Seed makes that the same every
	// time for the same shard.
	Jitter float64
	Seed   *int64

	// Shard is the one shard of the index that these costs are for; the others
	// cost nothing. Nil: all of them.
	Shard *int
}

const (
	maxCostTime = time.Hour
	maxCostHits = 1 << 31
)

// costKey is one key of a cost: how to read a value, and where it goes.
type costKey struct {
	name string
	read func(key, value string) (costSetting, error)
}

// costSetting sets one field of a cost.
type costSetting func(*Cost)

var costKeys = []costKey{
	{"query_time", costTime(func(c *Cost) *time.Duration { return &c.QueryTime })},
	{"query_cpu", costTime(func(c *Cost) *time.Duration { return &c.QueryCPU })},
	{"query_memory", costMemory(func(c *Cost) *int64 { return &c.QueryMemory })},
	{"fetch_time", costTime(func(c *Cost) *time.Duration { return &c.FetchTime })},
	{"fetch_cpu", costTime(func(c *Cost) *time.Duration { return &c.FetchCPU })},
	{"fetch_memory", costMemory(func(c *Cost) *int64 { return &c.FetchMemory })},
	{"hits", costNumber(maxCostHits, func(c *Cost, n int) { c.Hits = &n })},
	{"fail_shards", costNumber(maxShards, func(c *Cost, n int) { c.FailShards = n })},
	{"ignore_cancel", readIgnoreCancel},
	{"jitter", readJitter},
	{"seed", readSeed},
	{"shard", costNumber(maxShards-1, func(c *Cost, n int) { c.Shard = &n })},
}

// CostKeys returns the names that Set takes, without what stands before them.
func CostKeys() []string {
	names := make([]string, len(costKeys))
	for i, k := range costKeys {
		names[i] = k.name
	}
	return names
}

// Set sets one field from text. The part of key after its last dot is one of
// CostKeys; all of it is named in errors, which are *search.InvalidError or
// *units.ParseError.
func (c *Cost) Set(key, value string) error {
	set, err := readCost(key, value)
	if err == nil {
		set(c)
	}
	return err
}

func readCost(key, value string) (costSetting, error) {
	name := key[strings.LastIndexByte(key, '.')+1:]
	i := slices.IndexFunc(costKeys, func(k costKey) bool { return k.name == name })
	if i < 0 {
		names := CostKeys()
		return nil, &search.InvalidError{Reason: fmt.Sprintf("unknown key [%s]:%s known are [%s]", key, didYouMean(name, names), strings.Join(names, "], ["))}
	}
	return costKeys[i].read(key, value)
}

func costTime(field func(*Cost) *time.Duration) func(key, value string) (costSetting, error) {
	return func(key, value string) (costSetting, error) {
		d, err := units.ParseTime(key, value)
		if err != nil {
			return nil, err
		}
		if d < 0 || d > maxCostTime {
			return nil, costFault(key, value, "a time from 0 to "+units.FormatTime(maxCostTime))
		}
		return func(c *Cost) { *field(c) = d }, nil
	}
}

func costMemory(field func(*Cost) *int64) func(key, value string) (costSetting, error) {
	return func(key, value string) (costSetting, error) {
		n, err := units.ParseBytes(key, value)
		if err != nil {
			return nil, err
		}
		if n < 0 {
			return nil, costFault(key, value, "a size of 0 or more")
		}
		return func(c *Cost) { *field(c) = n }, nil
	}
}

func costNumber(most int, set func(*Cost, int)) func(key, value string) (costSetting, error) {
	return func(key, value string) (costSetting, error) {
		n, err := wholeNumber(key, value, 0, most)
		if err != nil {
			return nil, err
		}
		return func(c *Cost) { set(c, n) }, nil
	}
}

func readIgnoreCancel(key, value string) (costSetting, error) {
	if value != "true" && value != "false" {
		return nil, costFault(key, value, "[true] or [false]")
	}
	return func(c *Cost) { c.IgnoreCancel = value == "true" }, nil
}

func readJitter(key, value string) (costSetting, error) {
	f, err := strconv.ParseFloat(value, 64)
	if err != nil || !(f >= 0 && f <= 1) { // not a number is neither
		return nil, costFault(key, value, "a number from 0 to 1")
	}
	return func(c *Cost) { c.Jitter = f }, nil
}

func readSeed(key, value string) (costSetting, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return nil, costFault(key, value, "a whole number")
	}
	return func(c *Cost) { c.Seed = &n }, nil
}

func costFault(key, value, want string) error {
	return &search.InvalidError{Reason: fmt.Sprintf("the value [%s] of [%s] must be %s", value, key, want)}
}

// of reports whether the cost is for that shard at all.
func (c *Cost) of(number int) bool { return c.Shard == nil || *c.Shard == number }

// matches returns how many documents match on a shard, or -1 for as many as it
// has.
func (c *Cost) matches(number int) int {
	if c.Hits == nil || !c.of(number) {
		return -1
	}
	return *c.Hits
}

// query returns what the query phase costs a shard.
func (c *Cost) query(number int) shard.Work {
	if !c.of(number) {
		return shard.Work{}
	}
	w := shard.Work{Time: c.QueryTime, CPU: c.QueryCPU, Memory: c.QueryMemory, IgnoreCancel: c.IgnoreCancel}
	c.vary(&w, uint64(number)<<1)
	if number < c.FailShards || c.Shard != nil && c.FailShards > 0 {
		w.Fail = fmt.Sprintf("shard [%d] failed because [fail_shards] is [%d]", number, c.FailShards)
	}
	return w
}

// fetch returns what the fetch phase costs a shard.
func (c *Cost) fetch(number int) shard.Work {
	if !c.of(number) {
		return shard.Work{}
	}
	w := shard.Work{Time: c.FetchTime, CPU: c.FetchCPU, Memory: c.FetchMemory, IgnoreCancel: c.IgnoreCancel}
	c.vary(&w, uint64(number)<<1|1)
	return w
}

// vary applies the jitter. Each stream of a seed gives the same amounts again.
func (c *Cost) vary(w *shard.Work, stream uint64) {
	if c.Jitter == 0 || w.Free() {
		return
	}
	draw := rand.Float64
	if c.Seed != nil {
		draw = rand.New(rand.NewPCG(uint64(*c.Seed), stream)).Float64
	}
	factor := func() float64 { return 1 + c.Jitter*(2*draw()-1) }
	w.Time = time.Duration(float64(w.Time) * factor())
	w.CPU = time.Duration(float64(w.CPU) * factor())
	w.Memory = int64(float64(w.Memory) * factor())
}
