package store

import (
	"bytes"
	"context"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/records"
	"github.com/wlmserver/wlmserver/rules"
)

// Groups is the repository of the workload groups. It is used up when the file is closed.
func (db *DB) Groups() records.Repository { return &repository{db, groupsBucket} }

// Rules is the repository of the rules.
func (db *DB) Rules() records.Repository { return &repository{db, rulesBucket} }

// Settings is the repository of the settings.
func (db *DB) Settings() records.Repository { return &repository{db, settingsBucket} }

// repository keeps the set of one bucket. The set's revision is the bucket's sequence.
type repository struct {
	db     *DB
	bucket string
}

// Load reads the records.
func (r *repository) Load(ctx context.Context) (records.Set, error) {
	set := records.Set{Records: make(map[string][]byte)}
	err := r.db.view(ctx, func(tx *bolt.Tx) error {
		b, err := r.db.bucket(tx, r.bucket)
		if err != nil {
			return err
		}
		set.Revision = b.Sequence()
		return b.ForEach(func(id, record []byte) error {
			set.Records[string(id)] = bytes.Clone(record)
			return nil
		})
	})
	if err != nil {
		return records.Set{}, fmt.Errorf("reading from [%s]: %w", r.db.file, err)
	}
	return set, nil
}

// Commit makes a change: all of it is on the disk when it returns nil, else nothing.
func (r *repository) Commit(ctx context.Context, base uint64, change records.Change) (uint64, error) {
	err := r.db.update(ctx, func(tx *bolt.Tx) error {
		b, err := r.db.bucket(tx, r.bucket)
		if err != nil {
			return err
		}
		if b.Sequence() != base {
			return &records.StaleError{Base: base}
		}
		for _, id := range change.Delete {
			if err := b.Delete([]byte(id)); err != nil {
				return err
			}
		}
		for id, record := range change.Put {
			if err := b.Put([]byte(id), record); err != nil {
				return err
			}
		}
		return b.SetSequence(base + 1)
	})
	if err != nil {
		return 0, fmt.Errorf("writing to [%s]: %w", r.db.file, err)
	}
	return base + 1, nil
}

// checkRecords reads a bucket whole, and looks whether its records are what they should be.
func (db *DB) checkRecords(ctx context.Context, bucket string) error {
	set, err := (&repository{db, bucket}).Load(ctx)
	if err != nil {
		return err
	}
	for id, record := range set.Records {
		if err := checkRecord(bucket, id, record); err != nil {
			return db.damaged(fmt.Errorf("the record [%s] of [%s]: %w", id, bucket, err))
		}
	}
	return nil
}

func checkRecord(bucket, id string, record []byte) error {
	named := id
	switch bucket {
	case groupsBucket:
		g, err := groups.Decode(record)
		if err != nil {
			return err
		}
		named = g.ID
	case rulesBucket:
		r, err := rules.Decode(record)
		if err != nil {
			return err
		}
		named = r.ID
	}
	if named != id {
		return fmt.Errorf("it says that its id is [%s]", named)
	}
	return nil
}
