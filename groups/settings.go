package groups

import (
	"math"
	"strconv"
	"time"

	"github.com/wlmserver/wlmserver/internal/units"
)

// The keys of the settings block.
const (
	searchTimeoutKey     = "search.default_search_timeout"
	cancelAfterKey       = "search.cancel_after_time_interval"
	shardRequestsKey     = "search.max_concurrent_shard_requests"
	batchedReduceSizeKey = "search.batched_reduce_size"
	maxBucketsKey        = "search.max_buckets"
	overrideKey          = "override_request_values"

	longestKey = len(shardRequestsKey)

	allSettingKeys = overrideKey + ", " + batchedReduceSizeKey + ", " + cancelAfterKey + ", " +
		searchTimeoutKey + ", " + maxBucketsKey + ", " + shardRequestsKey
)

// knownSetting reports whether a group has a setting of that key.
func knownSetting(key string) bool {
	switch key {
	case searchTimeoutKey, cancelAfterKey, shardRequestsKey, batchedReduceSizeKey, maxBucketsKey, overrideKey:
		return true
	}
	return false
}

func unknownSetting(key, value string) error {
	return invalidf("Unknown WLM setting: [%s], with the value [%s]; a group's settings are %s", abridge(key), abridge(value), allSettingKeys)
}

// checkSetting reports what is wrong with one entry of the settings block.
func checkSetting(key, value string) error {
	switch key {
	case searchTimeoutKey, cancelAfterKey:
		if _, err := units.ParseTime("settings."+key, value); err != nil {
			return &InvalidError{Reason: err.Error()}
		}
		return nil
	case shardRequestsKey:
		return checkIntSetting(key, value, 1)
	case batchedReduceSizeKey:
		return checkIntSetting(key, value, 2)
	case maxBucketsKey:
		return checkIntSetting(key, value, 0)
	case overrideKey:
		if value != "true" && value != "false" {
			return invalidf("the value [%s] of [settings.%s] is not a boolean; write true or false", abridge(value), key)
		}
		return nil
	}
	return unknownSetting(key, value)
}

func checkIntSetting(key, value string, least int) error {
	if n, err := strconv.ParseInt(value, 10, 32); err != nil || n < int64(least) {
		return invalidf("the value [%s] of [settings.%s] must be an integer from %d to %d", abridge(value), key, least, math.MaxInt32)
	}
	return nil
}

// SearchTimeout returns the group's search.default_search_timeout, and whether it has
// one; units.None switches the timeout off.
func (g *Group) SearchTimeout() (time.Duration, bool) { return g.timeSetting(searchTimeoutKey) }

// CancelAfter returns the group's search.cancel_after_time_interval, and whether it has
// one; units.None switches it off.
func (g *Group) CancelAfter() (time.Duration, bool) { return g.timeSetting(cancelAfterKey) }

// MaxConcurrentShardRequests returns the group's setting of that name, and whether it
// has one.
func (g *Group) MaxConcurrentShardRequests() (int, bool) {
	n, err := strconv.Atoi(g.Settings[shardRequestsKey])
	return n, err == nil
}

// OverrideRequestValues reports whether the group's settings beat those of a request.
func (g *Group) OverrideRequestValues() bool { return g.Settings[overrideKey] == "true" }

func (g *Group) timeSetting(key string) (time.Duration, bool) {
	value, ok := g.Settings[key]
	if !ok {
		return 0, false
	}
	d, err := units.ParseTime(key, value)
	return d, err == nil
}
