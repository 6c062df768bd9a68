package store

import (
	"context"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// Settings reads all persistent settings. The map is the caller's.
func (db *DB) Settings(ctx context.Context) (map[string]string, error) {
	all := make(map[string]string)
	err := db.view(ctx, func(tx *bolt.Tx) error {
		b, err := db.bucket(tx, settingsBucket)
		if err != nil {
			return err
		}
		return b.ForEach(func(key, text []byte) error {
			all[string(key)] = string(text)
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("reading the settings: %w", err)
	}
	return all, nil
}

// PutSettings replaces all persistent settings.
func (db *DB) PutSettings(ctx context.Context, all map[string]string) error {
	err := db.update(ctx, func(tx *bolt.Tx) error {
		if err := tx.DeleteBucket([]byte(settingsBucket)); err != nil {
			return err
		}
		b, err := tx.CreateBucket([]byte(settingsBucket))
		if err != nil {
			return err
		}
		for key, text := range all {
			if err := b.Put([]byte(key), []byte(text)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("writing to [%s]: %w", db.file, err)
	}
	return nil
}
