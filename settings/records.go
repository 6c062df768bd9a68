package settings

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/wlmserver/wlmserver/records"
)

// What stands before a key in the id of its record. A persistent setting has nothing there. A record
// whose id begins with a colon and is none of these is a newer version's, and stays as it is.
const (
	transientID = ":transient:"
	startID     = ":start:"
)

// stored is what the repository holds of this snapshot, by id, start values apart.
func (s *Snapshot) stored() map[string]string {
	all := make(map[string]string)
	maps.Copy(all, s.persistent)
	for key, a := range s.archived {
		all[key] = a.Value
	}
	for key, text := range s.transient {
		all[transientID+key] = text
	}
	for key, a := range s.shelved {
		all[transientID+key] = a.Value
	}
	return all
}

// records is stored with the start values of the cluster.
func (s *Snapshot) records() map[string]string {
	all := s.stored()
	for key, text := range s.startRecords {
		all[startID+key] = text
	}
	return all
}

// started is what the start values of the configuration file add to those of the cluster: nothing when
// together they do not keep an order.
func (s *Snapshot) started() records.Edit[string] {
	edit := records.Edit[string]{Put: make(map[string]string)}
	together := maps.Clone(s.start)
	for key, text := range s.file {
		if d, _ := s.known.lookup(key); !d.Dynamic {
			continue
		}
		if _, ok := s.startRecords[key]; !ok {
			edit.Put[startID+key] = text
			together[key] = text
		}
	}
	if values, err := s.known.resolve(together); err != nil {
		return records.Edit[string]{}
	} else if _, ok := s.known.violated(values); ok {
		return records.Edit[string]{}
	}
	return edit
}

// scopes sorts records by what they are about.
func scopes(all map[string]string) (persistent, transient, start map[string]string) {
	persistent, transient, start = make(map[string]string), make(map[string]string), make(map[string]string)
	for id, text := range all {
		if key, ok := strings.CutPrefix(id, transientID); ok {
			transient[key] = text
		} else if key, ok := strings.CutPrefix(id, startID); ok {
			start[key] = text
		} else if !strings.HasPrefix(id, ":") {
			persistent[id] = text
		}
	}
	return persistent, transient, start
}

// forgetful is the repository of a server by itself: transient settings end with the server.
type forgetful struct {
	records.Repository

	mu        sync.Mutex
	transient records.Set // its revision counts the changes that were of transient settings alone
}

// Load returns what the repository holds, with the transient settings.
func (f *forgetful) Load(ctx context.Context) (records.Set, error) {
	set, err := f.Repository.Load(ctx)
	if err != nil {
		return records.Set{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return set.After(records.Change{Put: f.transient.Records}, set.Revision+f.transient.Revision), nil
}

// Commit has the repository make the change, transient settings apart.
func (f *forgetful) Commit(ctx context.Context, base uint64, change records.Change) (uint64, error) {
	lasting, passing := split(change)
	f.mu.Lock()
	defer f.mu.Unlock()
	revision, alone := base-f.transient.Revision, uint64(1)
	if len(lasting.Put)+len(lasting.Delete) > 0 {
		var err error
		revision, err = f.Repository.Commit(ctx, revision, lasting)
		if stale, ok := errors.AsType[*records.StaleError](err); ok {
			return 0, &records.StaleError{Base: stale.Base + f.transient.Revision}
		}
		if err != nil {
			return 0, err
		}
		alone = 0
	}
	f.transient = f.transient.After(passing, f.transient.Revision+alone)
	return revision + f.transient.Revision, nil
}

// split parts a change in what is kept and what is of transient settings.
func split(change records.Change) (lasting, passing records.Change) {
	transient := func(id string) bool { return strings.HasPrefix(id, transientID) }
	lasting.Put, passing.Put = maps.Clone(change.Put), maps.Clone(change.Put)
	maps.DeleteFunc(lasting.Put, func(id string, _ []byte) bool { return transient(id) })
	maps.DeleteFunc(passing.Put, func(id string, _ []byte) bool { return !transient(id) })
	lasting.Delete = slices.DeleteFunc(slices.Clone(change.Delete), transient)
	passing.Delete = slices.DeleteFunc(slices.Clone(change.Delete), func(id string) bool { return !transient(id) })
	return lasting, passing
}
