package store

import (
	"context"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"github.com/wlmserver/wlmserver/groups"
)

// Groups reads all workload groups, in the order of their ids. They are the caller's.
func (db *DB) Groups(ctx context.Context) ([]*groups.Group, error) {
	var all []*groups.Group
	err := db.view(ctx, func(tx *bolt.Tx) error {
		b, err := db.bucket(tx, groupsBucket)
		if err != nil {
			return err
		}
		return b.ForEach(func(id, record []byte) error {
			g, err := groups.Decode(record)
			if err == nil && g.ID != string(id) {
				err = fmt.Errorf("its record has the id [%s]", g.ID)
			}
			if err != nil {
				return db.damaged(fmt.Errorf("the group with the id [%s]: %w", id, err))
			}
			all = append(all, g)
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("reading the groups: %w", err)
	}
	return all, nil
}

// PutGroup stores a group, in the place of the one with its id if there is one.
func (db *DB) PutGroup(ctx context.Context, g *groups.Group) error {
	record, err := groups.Encode(g)
	if err != nil {
		return err
	}
	return db.put(ctx, groupsBucket, g.ID, record)
}

// DeleteGroup removes the group with an id; that there is none is no error.
func (db *DB) DeleteGroup(ctx context.Context, id string) error {
	return db.remove(ctx, groupsBucket, id)
}
