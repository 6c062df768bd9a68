package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// fileName is the data file's name in the data folder.
const fileName = "wlmserver.db"

// lockTimeout is how long Open waits for the lock of the file. A lock that is not free at once belongs
// to a server that runs; the time is for one that has just been killed.
const lockTimeout = 200 * time.Millisecond

// DB is the open data file. It is safe for concurrent use.
type DB struct {
	bolt *bolt.DB
	file string
}

// Open opens the data file in the folder dir, or makes both. The whole file is read and checked, which
// takes milliseconds for what it holds.
//
// Errors: [LockedError], [VersionError], [DamagedError], and those of the file system.
func Open(dir string) (*DB, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the data folder: %w", err)
	}
	file := filepath.Join(dir, fileName)
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		db, err := create(dir, file)
		if !errors.Is(err, fs.ErrExist) {
			return db, err
		}
		// Another server has been faster by a moment.
	case err != nil:
		return nil, fmt.Errorf("opening the data file: %w", err)
	case info.Size() == 0: // bbolt would take it for a new one
		return nil, &DamagedError{File: file, Cause: errors.New("it is empty")}
	}
	db, err := open(dir, file)
	if err != nil {
		return nil, err
	}
	if err := db.check(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// Close ends the use of the file. Calls that are under way finish first; later ones fail.
func (db *DB) Close() error { return db.bolt.Close() }

// create makes a data file aside and gives it its name when it is complete. The error is
// [fs.ErrExist] when there is one of that name by then.
func create(dir, file string) (_ *DB, err error) {
	aside, err := os.CreateTemp(dir, fileName+".new-*")
	if err != nil {
		return nil, fmt.Errorf("making the data file: %w", err)
	}
	defer func() { _ = os.Remove(aside.Name()) }() // one that stays is in nobody's way
	if err := aside.Close(); err != nil {
		return nil, fmt.Errorf("making the data file: %w", err)
	}
	db, err := open(dir, aside.Name())
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.Close())
		}
	}()
	if err := db.bolt.Update(initialize); err != nil {
		return nil, fmt.Errorf("making the data file: %w", err)
	}
	if err := publish(aside.Name(), file); err != nil {
		return nil, fmt.Errorf("making the data file: %w", err)
	}
	db.file = file
	if err := syncDir(dir); err != nil {
		return nil, fmt.Errorf("making the data file: %w", err)
	}
	return db, nil
}

// publish gives a file its name, but not in the place of another file.
func publish(aside, file string) error {
	err := os.Link(aside, file)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.Rename(aside, file) // the file system has no hard links
}

// syncDir waits until the names in a folder are on the disk.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // a folder cannot be synced there
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// open opens and locks a file of bbolt's.
func open(dir, file string) (*DB, error) {
	var handle *os.File
	options := *bolt.DefaultOptions
	options.Timeout = lockTimeout
	options.OpenFile = func(name string, flag int, mode os.FileMode) (f *os.File, err error) {
		handle, err = os.OpenFile(name, flag, mode)
		return handle, err
	}
	db := &DB{file: file}
	err := db.guard(func() (err error) {
		db.bolt, err = bolt.Open(file, 0o600, &options)
		return err
	})
	if err == nil {
		return db, nil
	}
	if handle != nil {
		// Open where bbolt was stopped half-way. Its mapping of the file stays, and with it the lock, until
		// the process ends, which is what a server does that cannot read its data.
		_ = handle.Close()
	}
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, &LockedError{Dir: dir}
	}
	if _, ok := errors.AsType[syscall.Errno](err); ok {
		return nil, fmt.Errorf("opening the data file [%s]: %w", file, err)
	}
	return nil, db.damaged(err)
}

func (db *DB) view(ctx context.Context, read func(*bolt.Tx) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return db.guard(func() error { return db.bolt.View(read) })
}

// update makes one change: all of it is on the disk when it returns nil, else nothing.
func (db *DB) update(ctx context.Context, change func(*bolt.Tx) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return db.guard(func() error { return db.bolt.Update(change) })
}

// guard turns what bbolt does on a page that makes no sense, which is to panic or to touch memory that
// is not there, into an error.
func (db *DB) guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = db.damaged(fmt.Errorf("%v", r))
		}
	}()
	return f()
}

// damaged wraps what was found wrong with the file, once.
func (db *DB) damaged(cause error) error {
	if _, ok := errors.AsType[*DamagedError](cause); ok {
		return cause
	}
	return &DamagedError{File: db.file, Cause: cause}
}
