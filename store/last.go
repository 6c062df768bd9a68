package store

import (
	"bytes"
	"context"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// The bucket and the key of what the node saw last of its cluster. The bucket is there once the node has been in one.
const (
	clusterBucket = "cluster"
	lastKey       = "last_seen"
)

// Last keeps what a node saw last of its cluster's metadata, as one record, for a start while those are out of reach.
type Last struct {
	db *DB
}

// Last is where the node keeps what it saw last of its cluster. It is used up when the file is closed.
func (db *DB) Last() *Last { return &Last{db} }

// Keep stores the record in the place of the last one.
func (l *Last) Keep(ctx context.Context, record []byte) error {
	err := l.db.update(ctx, func(tx *bolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists([]byte(clusterBucket))
		if err != nil {
			return err
		}
		return b.Put([]byte(lastKey), record)
	})
	if err != nil {
		return fmt.Errorf("writing to [%s]: %w", l.db.file, err)
	}
	return nil
}

// Kept returns the record; nil when there is none.
func (l *Last) Kept(ctx context.Context) ([]byte, error) {
	var record []byte
	err := l.db.view(ctx, func(tx *bolt.Tx) error {
		if b := tx.Bucket([]byte(clusterBucket)); b != nil {
			record = bytes.Clone(b.Get([]byte(lastKey)))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading from [%s]: %w", l.db.file, err)
	}
	return record, nil
}
