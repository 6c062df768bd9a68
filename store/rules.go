package store

import (
	"context"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"github.com/wlmserver/wlmserver/rules"
)

// Rules reads all rules, in the order of their ids. They are the caller's.
func (db *DB) Rules(ctx context.Context) ([]*rules.Rule, error) {
	var all []*rules.Rule
	err := db.view(ctx, func(tx *bolt.Tx) error {
		b, err := db.bucket(tx, rulesBucket)
		if err != nil {
			return err
		}
		return b.ForEach(func(id, record []byte) error {
			r, err := rules.Decode(record)
			if err == nil && r.ID != string(id) {
				err = fmt.Errorf("its record has the id [%s]", r.ID)
			}
			if err != nil {
				return db.damaged(fmt.Errorf("the rule with the id [%s]: %w", id, err))
			}
			all = append(all, r)
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("reading the rules: %w", err)
	}
	return all, nil
}

// PutRule stores a rule, in the place of the one with its id if there is one.
func (db *DB) PutRule(ctx context.Context, r *rules.Rule) error {
	record, err := rules.Encode(r)
	if err != nil {
		return err
	}
	return db.put(ctx, rulesBucket, r.ID, record)
}

// DeleteRule removes the rule with an id; that there is none is no error.
func (db *DB) DeleteRule(ctx context.Context, id string) error {
	return db.remove(ctx, rulesBucket, id)
}
