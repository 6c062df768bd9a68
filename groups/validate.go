package groups

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	allModes      = "enforced, soft or monitor"
	allAttributes = "group, username or role"
	shareRemedy   = "give a share above 0 and at most 1.0"
)

// Validate checks everything that can be said of a group without regard to others: each
// field, and the rules that bind several of them. The error is an *InvalidError.
func (g *Group) Validate() error {
	if err := ValidateName(g.Name); err != nil {
		return err
	}
	if err := checkMode(g.Mode, string(g.Mode)); err != nil {
		return err
	}
	if err := g.Limits.check(); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(g.Settings)) {
		if err := checkSetting(key, g.Settings[key]); err != nil {
			return err
		}
	}
	if err := g.Throttling.check(); err != nil {
		return err
	}
	return g.Queue.check(g.Throttling)
}

// ValidateName checks the name of a group, also of one that is asked for. The error is
// an *InvalidError.
func ValidateName(name string) error {
	if n := utf8.RuneCountInString(name); n < 1 || n > MaxNameLength {
		return invalidf("the value [%s] of [name] has %d characters; give 1 to %d", abridge(name), n, MaxNameLength)
	}
	return nil
}

// checkMode checks a mode; text is how it was written.
func checkMode(mode Mode, text string) error {
	switch mode {
	case Enforced, Soft, Monitor:
		return nil
	}
	return invalidf("the value [%s] of [resiliency_mode] is unknown; give %s", abridge(text), allModes)
}

func checkAttribute(key string, attribute Attribute) error {
	switch attribute {
	case ByGroup, ByUsername, ByRole:
		return nil
	}
	return invalidf("the value [%s] of [%s] is unknown; give %s", abridge(string(attribute)), key, allAttributes)
}

// checkInt checks a limit or size; text is how it was written.
func checkInt(key, text string, n int64, most int) error {
	switch {
	case n < 0:
		return invalidf("the value [%s] of [%s] must be non-negative; give an integer from 0 to %d, or null to remove it", abridge(text), key, most)
	case n > int64(most):
		return invalidf("the value [%s] of [%s] must not exceed %d; give an integer from 0 to that, or null to remove it", abridge(text), key, most)
	}
	return nil
}

func checkIntField(key string, n *int, most int) error {
	if n == nil {
		return nil
	}
	return checkInt(key, strconv.Itoa(*n), int64(*n), most)
}

// checkShare is written so that NaN fails.
func checkShare(key string, share float64) error {
	if share > 0 && share <= 1 {
		return nil
	}
	return invalidf("the value [%s] of [%s] is not a resource limit; %s", formatShare(share), key, shareRemedy)
}

func formatShare(share float64) string { return strconv.FormatFloat(share, 'g', -1, 64) }

// resourceNames are the keys of resource_limits, in the order in which they are printed.
func resourceNames() []string { return []string{"cpu", "memory", "native_memory"} }

// field returns where the limit of the resource is kept, or nil for an unknown resource.
func (l *ResourceLimits) field(resource string) **float64 {
	switch resource {
	case "cpu":
		return &l.CPU
	case "memory":
		return &l.Memory
	case "native_memory":
		return &l.NativeMemory
	}
	return nil
}

func (l ResourceLimits) check() error {
	if l == (ResourceLimits{}) {
		return invalidf("the value [{}] of [resource_limits] limits nothing; give at least one of cpu, memory and native_memory, for example {\"cpu\":0.4}")
	}
	for _, resource := range resourceNames() {
		if share := *l.field(resource); share != nil {
			if err := checkShare("resource_limits."+resource, *share); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t Throttling) check() error {
	if t == (Throttling{}) {
		return nil
	}
	if err := checkIntField("throttling.node_limit", t.NodeLimit, maxLimit); err != nil {
		return err
	}
	if err := checkIntField("throttling.shared_limit", t.SharedLimit, maxLimit); err != nil {
		return err
	}
	limits := fmt.Sprintf("node_limit [%s], shared_limit [%s]", formatInt(t.NodeLimit), formatInt(t.SharedLimit))
	if t.Attribute == "" {
		return invalidf("[throttling.attribute] is required when a throttle limit is set (%s); "+
			"give %s, or send \"throttling\":null to turn throttling off", limits, allAttributes)
	}
	if err := checkAttribute("throttling.attribute", t.Attribute); err != nil {
		return err
	}
	if !t.limits() {
		return invalidf("Effective throttle ceiling is 0 with [throttling] at attribute [%s], %s; "+
			"set a limit of at least 1, or send \"throttling\":null to turn throttling off", t.Attribute, limits)
	}
	return nil
}

// limits reports whether any tier is on.
func (t Throttling) limits() bool {
	_, node := t.NodeTier()
	_, shared := t.SharedTier()
	return node || shared
}

func (q Queue) check(t Throttling) error {
	if err := checkIntField("queue.size_per_bucket", q.SizePerBucket, MaxQueued); err != nil {
		return err
	}
	if q.SizePerBucket != nil && *q.SizePerBucket > 0 && !t.limits() {
		return invalidf("the value [%d] of [queue.size_per_bucket] has nothing to wait for, as no throttle limit is set; "+
			"set [throttling.node_limit] or [throttling.shared_limit], or clear the queue: "+
			"turning throttling off must clear [queue] in the same request, with \"queue\":null", *q.SizePerBucket)
	}
	return nil
}

func formatInt(n *int) string {
	if n == nil {
		return "not set"
	}
	return strconv.Itoa(*n)
}

// checkSum checks that the limits that a change names, together with those that the
// other groups have, share out no more than the whole of any resource.
func checkSum(named ResourceLimits, others []*Group) error {
	for _, resource := range resourceNames() {
		share := *named.field(resource)
		if share == nil {
			continue
		}
		var shares []float64
		for _, g := range others {
			if other := *g.Limits.field(resource); other != nil {
				shares = append(shares, *other)
			}
		}
		if total := sum(append(shares, *share)); total > 1 {
			return invalidf("the value [%s] of [resource_limits.%s] makes %s with the other groups' %s; "+
				"all groups together may have at most 1.0, so lower this limit or theirs",
				formatShare(*share), resource, formatShare(total), formatShare(sum(shares)))
		}
	}
	return nil
}

// sum adds exactly and rounds once, so the order of the shares does not matter, and
// shares whose decimals add up to 1 make 1: the errors of their binary forms together
// are less than half a step there.
func sum(shares []float64) float64 {
	// Enough bits for any two of the doubles up to 1, the smallest being 2^-1074.
	total := new(big.Float).SetPrec(1200)
	for _, share := range shares {
		total.Add(total, big.NewFloat(share))
	}
	f, _ := total.Float64()
	return f
}

// missing names the keys that a new group must have and p does not.
func (p Patch) missing() error {
	var keys []string
	if _, ok := p.Name.Value(); !ok {
		keys = append(keys, "[name]")
	}
	if _, ok := p.Mode.Value(); !ok {
		keys = append(keys, "[resiliency_mode]")
	}
	if _, ok := p.Limits.Value(); !ok {
		keys = append(keys, "[resource_limits]")
	}
	if keys == nil {
		return nil
	}
	return invalidf("%s missing or null; a new workload group needs name, resiliency_mode and resource_limits, "+
		"for example {\"name\":\"reports\",\"resiliency_mode\":\"enforced\",\"resource_limits\":{\"cpu\":0.4}}", strings.Join(keys, ", "))
}
