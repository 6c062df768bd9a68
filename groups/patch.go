package groups

import "maps"

// A Field is one part of a change: absent, null or a value. The zero Field is absent.
type Field[T any] struct {
	state fieldState
	value T
}

type fieldState uint8

const (
	absent fieldState = iota
	null
	present
)

// Value returns a Field that has the value v.
func Value[T any](v T) Field[T] { return Field[T]{state: present, value: v} }

// Null returns a Field that is null.
func Null[T any]() Field[T] { return Field[T]{state: null} }

// Absent reports whether the part was not given.
func (f Field[T]) Absent() bool { return f.state == absent }

// Null reports whether the part was given as null.
func (f Field[T]) Null() bool { return f.state == null }

// Value returns the value, and whether there is one.
func (f Field[T]) Value() (v T, ok bool) { return f.value, f.state == present }

// A Patch is what the body of a create or an update says. The package comment tells
// what absent, null and a value mean for each part.
type Patch struct {
	Name       Field[string] // for a new group; else ignored
	Mode       Field[Mode]
	Limits     Field[ResourceLimits]
	Settings   Field[map[string]Field[string]]
	Throttling Field[ThrottlingPatch]
	Queue      Field[QueuePatch]
}

// A ThrottlingPatch is a change of a group's throttling. Its zero value clears it.
type ThrottlingPatch struct {
	Attribute              Field[Attribute]
	NodeLimit, SharedLimit Field[int]
}

// A QueuePatch is a change of a group's queue. Its zero value clears it.
type QueuePatch struct {
	SizePerBucket Field[int]
}

// Apply returns g with the change merged in. It checks nothing, changes neither g nor
// the patch, and leaves id, name and time of change as they are.
func (p Patch) Apply(g *Group) *Group {
	merged := *g
	if mode, ok := p.Mode.Value(); ok {
		merged.Mode = mode
	}
	if limits, ok := p.Limits.Value(); ok {
		merged.Limits = g.Limits.overlay(limits)
	}
	merged.Settings = p.mergeSettings(g.Settings)
	merged.Throttling = p.mergeThrottling(g.Throttling)
	merged.Queue = p.mergeQueue(g.Queue)
	return &merged
}

func (l ResourceLimits) overlay(over ResourceLimits) ResourceLimits {
	if over.CPU != nil {
		l.CPU = over.CPU
	}
	if over.Memory != nil {
		l.Memory = over.Memory
	}
	if over.NativeMemory != nil {
		l.NativeMemory = over.NativeMemory
	}
	return l
}

// mergeSettings returns a map of its own, nil when it is empty.
func (p Patch) mergeSettings(base map[string]string) map[string]string {
	if p.Settings.Null() {
		return nil
	}
	over, given := p.Settings.Value()
	if given && len(over) == 0 {
		return nil
	}
	merged := make(map[string]string, len(base)+len(over))
	maps.Copy(merged, base)
	for key, field := range over {
		if value, ok := field.Value(); ok {
			merged[key] = value
		} else if field.Null() {
			delete(merged, key)
		}
	}
	if len(merged) == 0 {
		return nil
	}
	return merged
}

func (p Patch) mergeThrottling(base Throttling) Throttling {
	over, given := p.Throttling.Value()
	if p.Throttling.Null() || given && over == (ThrottlingPatch{}) {
		return Throttling{}
	}
	if attribute, ok := over.Attribute.Value(); ok || over.Attribute.Null() {
		base.Attribute = attribute // empty for null
	}
	base.NodeLimit = mergeInt(base.NodeLimit, over.NodeLimit)
	base.SharedLimit = mergeInt(base.SharedLimit, over.SharedLimit)
	return base
}

func (p Patch) mergeQueue(base Queue) Queue {
	over, given := p.Queue.Value()
	if p.Queue.Null() || given && over == (QueuePatch{}) {
		return Queue{}
	}
	base.SizePerBucket = mergeInt(base.SizePerBucket, over.SizePerBucket)
	return base
}

func mergeInt(base *int, over Field[int]) *int {
	if n, ok := over.Value(); ok {
		return &n
	}
	if over.Null() {
		return nil
	}
	return base
}
