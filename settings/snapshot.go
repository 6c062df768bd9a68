package settings

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// archivedPrefix marks a persisted setting without effect where settings are printed or reset.
const archivedPrefix = "archived."

// Snapshot is the settings at one moment. It is immutable and safe for concurrent use; a look-up takes
// no lock and parses nothing.
//
// The look-ups panic on a key that is not in the catalogue and on the wrong type: both are mistakes of
// the program.
type Snapshot struct {
	known      *catalogue
	values     []value           // in force, in the order of known.definitions
	start      map[string]string // in force, of the file or of the cluster
	persistent map[string]string
	transient  map[string]string
	archived   map[string]*ArchivedError // by key without the prefix; persisted too
	shelved    map[string]*ArchivedError // the same of transient settings

	file         map[string]string         // start values of the configuration file
	startRecords map[string]string         // of the cluster, as they are stored
	startless    map[string]*ArchivedError // those of the cluster that have no effect
	cluster      bool
}

// String is the text of a setting of any type.
func (s *Snapshot) String(key string) string { return s.values[s.find(key)].text }

// Duration is the value of a time setting; [units.None] is no limit.
func (s *Snapshot) Duration(key string) time.Duration {
	return time.Duration(s.value(key, Time).number)
}

// Int is the value of a whole number or, in bytes, of a size.
func (s *Snapshot) Int(key string) int { return int(s.value(key, Long).number) }

// Float is the value of a double.
func (s *Snapshot) Float(key string) float64 { return s.value(key, Double).float }

// Bool is the value of a boolean.
func (s *Snapshot) Bool(key string) bool { return s.value(key, Boolean).number != 0 }

// Persistent lists what requests have set to outlast a restart, sorted by key, archived ones with
// their prefix.
func (s *Snapshot) Persistent() []KV {
	return withArchived(s.persistent, s.archived)
}

// Transient lists what requests have set for as long as the server or the cluster runs, as Persistent
// does.
func (s *Snapshot) Transient() []KV { return withArchived(s.transient, s.shelved) }

func withArchived(acting map[string]string, archived map[string]*ArchivedError) []KV {
	all := pairs(acting)
	for key, a := range archived {
		all = append(all, KV{archivedPrefix + key, a.Value})
	}
	return sorted(all)
}

// Defaults lists the value in force of every setting that no request has set, sorted by key.
func (s *Snapshot) Defaults() []KV {
	var all []KV
	for i, d := range s.known.definitions {
		if _, ok := first(d.Key, s.transient, s.persistent); !ok && s.values[i].text != "" {
			all = append(all, KV{d.Key, s.values[i].text})
		}
	}
	return all
}

func (s *Snapshot) find(key string) int {
	i, ok := s.known.index[key]
	if !ok {
		panic("settings: [" + key + "] is not in the catalogue")
	}
	return i
}

// value looks up a setting whose values are read as those of type t.
func (s *Snapshot) value(key string, t Type) *value {
	i := s.find(key)
	if actual := s.known.definitions[i].Type; actual.readAs() != t {
		panic("settings: [" + key + "] is of type " + string(actual) + ", not to be read as " + string(t))
	}
	return &s.values[i]
}

// problems lists why settings are archived, by key, and which start values do not act.
func (s *Snapshot) problems() []error {
	var all []error
	for _, archived := range []map[string]*ArchivedError{s.archived, s.shelved, s.startless} {
		for _, key := range slices.Sorted(maps.Keys(archived)) {
			all = append(all, archived[key])
		}
	}
	if !s.cluster {
		return all
	}
	for _, key := range slices.Sorted(maps.Keys(s.file)) {
		if d, _ := s.known.lookup(key); !d.Dynamic {
			continue
		}
		if standing := s.startRecords[key]; standing != s.file[key] {
			all = append(all, &StandingError{Key: key, Value: s.file[key], Standing: standing})
		}
	}
	return all
}

func pairs(m map[string]string) []KV {
	all := make([]KV, 0, len(m))
	for key, text := range m {
		all = append(all, KV{key, text})
	}
	return all
}

func sorted(all []KV) []KV {
	slices.SortFunc(all, func(a, b KV) int { return strings.Compare(a.Key, b.Key) })
	return all
}

// first finds a key in the first layer that has it.
func first(key string, layers ...map[string]string) (string, bool) {
	for _, layer := range layers {
		if text, ok := layer[key]; ok {
			return text, true
		}
	}
	return "", false
}
