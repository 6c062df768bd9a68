package store

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/google/uuid"
	bolt "go.etcd.io/bbolt"
)

// schemaVersion is the newest form of the file that this package knows, and the one that it writes.
// Version 1 had no rules.
const schemaVersion = 2

// bucket and key names.
const (
	nodeBucket     = "node"
	groupsBucket   = "groups"
	rulesBucket    = "rules"
	settingsBucket = "settings"

	versionKey = "schema_version"
	nodeIDKey  = "node_id"
)

// initialize fills a new file.
func initialize(tx *bolt.Tx) error {
	for _, name := range []string{nodeBucket, groupsBucket, rulesBucket, settingsBucket} {
		if _, err := tx.CreateBucket([]byte(name)); err != nil {
			return err
		}
	}
	id := uuid.New()
	node := tx.Bucket([]byte(nodeBucket))
	return errors.Join(
		node.Put([]byte(versionKey), []byte(strconv.Itoa(schemaVersion))),
		node.Put([]byte(nodeIDKey), []byte(base64.RawURLEncoding.EncodeToString(id[:]))))
}

// NodeID is the id that this data folder's node got when the folder was made: a UUID in 22 characters
// of URL-safe base64.
func (db *DB) NodeID() (string, error) {
	var id string
	err := db.view(context.Background(), func(tx *bolt.Tx) error {
		node, err := db.bucket(tx, nodeBucket)
		if err != nil {
			return err
		}
		id = string(node.Get([]byte(nodeIDKey)))
		if b, err := base64.RawURLEncoding.Strict().DecodeString(id); err != nil || len(b) != len(uuid.UUID{}) {
			return db.damaged(fmt.Errorf("the node id [%.100s] is none", id))
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("reading the node id: %w", err)
	}
	return id, nil
}

// bucket finds a bucket that every file of this schema has.
func (db *DB) bucket(tx *bolt.Tx, name string) (*bolt.Bucket, error) {
	b := tx.Bucket([]byte(name))
	if b == nil {
		return nil, db.damaged(fmt.Errorf("it has no bucket [%s], as if another program had written it", name))
	}
	return b, nil
}

// check reads everything that the file holds, and brings a file of an older schema up to ours once it
// is known to be whole. It does not use bbolt's own check of pages: on some damage that one takes all
// memory or ends the process.
func (db *DB) check() error {
	ctx := context.Background()
	var version int
	err := db.view(ctx, func(tx *bolt.Tx) (err error) {
		version, err = db.checkForm(tx)
		return err
	})
	if err != nil {
		return err
	}
	if _, err := db.NodeID(); err != nil {
		return err
	}
	for _, bucket := range []string{groupsBucket, settingsBucket} {
		if err := db.checkRecords(ctx, bucket); err != nil {
			return err
		}
	}
	if version < schemaVersion {
		if err := db.update(ctx, upgrade); err != nil {
			return fmt.Errorf("bringing the data file [%s] from schema version %d to %d: %w", db.file, version, schemaVersion, err)
		}
	}
	return db.checkRecords(ctx, rulesBucket)
}

// upgrade makes a file of version 1 one of version 2, which a server of version 1 refuses.
func upgrade(tx *bolt.Tx) error {
	if _, err := tx.CreateBucketIfNotExists([]byte(rulesBucket)); err != nil {
		return err
	}
	return tx.Bucket([]byte(nodeBucket)).Put([]byte(versionKey), []byte(strconv.Itoa(schemaVersion)))
}

// checkForm returns the schema version of a file, and refuses one that has lost its end and a version
// that is not ours.
func (db *DB) checkForm(tx *bolt.Tx) (version int, err error) {
	info, err := os.Stat(db.file)
	if err != nil {
		return 0, err
	}
	if info.Size() < tx.Size() {
		return 0, db.damaged(fmt.Errorf("it has %d bytes of %d", info.Size(), tx.Size()))
	}
	node, err := db.bucket(tx, nodeBucket)
	if err != nil {
		return 0, err
	}
	text := string(node.Get([]byte(versionKey)))
	switch version, err = strconv.Atoi(text); {
	case err != nil || version < 1:
		return 0, db.damaged(fmt.Errorf("its schema version [%.100s] is none", text))
	case version > schemaVersion:
		return 0, &VersionError{File: db.file, Found: version, Known: schemaVersion}
	}
	return version, nil
}
