package settings

import (
	"fmt"
	"slices"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
)

// Entry is one change: a value for a key, or its reset.
type Entry struct {
	Key   string
	Value *string // nil resets; then Key may hold wildcards: "wlm.*"
}

// KV is a setting's key and the text of its value.
type KV struct{ Key, Value string }

// Update is what a request wants changed. Within a scope resets come before values, whatever their
// order: {"search.*": null, "search.default_search_timeout": "1s"} leaves one search setting.
type Update struct {
	Persistent, Transient []Entry
}

// Applied is what an update set, in the order in which it named them; resets are not listed.
type Applied struct {
	Persistent, Transient []KV
}

func (u Update) empty() bool { return len(u.Persistent)+len(u.Transient) == 0 }

// names tells whether the update sets or resets exactly this key, in whichever scope.
func (u Update) names(key string) bool {
	is := func(e Entry) bool { return e.Key == key }
	return slices.ContainsFunc(u.Persistent, is) || slices.ContainsFunc(u.Transient, is)
}

// ParseUpdate reads the body of PUT /_cluster/settings. Keys may be flat ("a.b.c") or nested; numbers
// and booleans become their text. It knows the form only: [Registry.Apply] judges keys and values.
//
// Errors: [jsondoc.SyntaxError], [ClassCastError], [NothingError], [InvalidError] for an array or for
// an object in the place of a value, and [UnknownError] for a key that is too long to be one.
func ParseUpdate(body []byte) (Update, error) {
	doc, err := jsondoc.Parse(body)
	if err != nil {
		return Update{}, err
	}
	var (
		u       Update
		ignored []string
	)
	for _, m := range doc.Members {
		var err error
		switch m.Name {
		case scopePersistent:
			u.Persistent, err = flatten(m)
		case scopeTransient:
			u.Transient, err = flatten(m)
		default:
			ignored = append(ignored, m.Name)
		}
		if err != nil {
			return Update{}, err
		}
	}
	if u.empty() {
		return Update{}, &NothingError{Ignored: ignored}
	}
	return u, nil
}

// maxKeyLength is above the length of every key, known or archived. Nested objects can make keys that
// are far larger together than the body was.
const maxKeyLength = 512

// flattener turns the nested objects of a scope into entries with dotted keys.
type flattener struct {
	scope   string
	known   *catalogue
	entries []Entry
}

// flatten reads one scope.
func flatten(m jsondoc.Member) ([]Entry, error) {
	switch m.Value.Kind {
	case jsondoc.Object:
		f := flattener{scope: m.Name, known: newCatalogue()}
		err := f.object("", m.Value)
		return f.entries, err
	case jsondoc.Null:
		return nil, nil
	default:
		return nil, &ClassCastError{Scope: m.Name, Found: m.Value.Kind.String()}
	}
}

func (f *flattener) object(prefix string, v *jsondoc.Value) error {
	for _, m := range v.Members {
		if len(prefix)+len(m.Name) > maxKeyLength {
			return &UnknownError{Scope: f.scope, Key: fmt.Sprintf("%s%.*s...", prefix, maxKeyLength, m.Name)}
		}
		if err := f.member(prefix+m.Name, m.Value); err != nil {
			return err
		}
	}
	return nil
}

func (f *flattener) member(key string, v *jsondoc.Value) error {
	switch v.Kind {
	case jsondoc.Object:
		if _, ok := f.known.lookup(key); ok {
			return malformed(key, "takes one value, not an object")
		}
		return f.object(key+".", v)
	case jsondoc.Array:
		return malformed(key, "takes one value, not an array")
	case jsondoc.Null:
		f.entries = append(f.entries, Entry{Key: key})
	default:
		f.entries = append(f.entries, Entry{Key: key, Value: &v.Text})
	}
	return nil
}

// malformed refuses the form of an entry rather than its value.
func malformed(key, format string, args ...any) *InvalidError {
	return &InvalidError{Key: key, Reason: fmt.Sprintf(format, args...), Type: settingsException}
}
