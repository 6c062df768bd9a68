package meta

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// SchemaError says that a newer version of the server has laid out the prefix.
type SchemaError struct {
	Prefix       string
	Found, Known int
}

func (e *SchemaError) Error() string {
	return fmt.Sprintf("the cluster's metadata under [%s] has schema version %d, this server knows versions up to %d: start the newer version that the other nodes run, or use another [cluster.etcd.prefix]",
		e.Prefix, e.Found, e.Known)
}

// VersionError says that the stored metadata needs a newer version than this member is compatible with.
type VersionError struct {
	Group          string // the name of the workload group that needs it
	Feature        string
	Version, Needs string
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("the workload group [%s] has [%s], which needs version %s, and this node is compatible with %s: raise [node.compatibility_version], or remove [%s] from the group first",
		e.Group, e.Feature, e.Needs, e.Version, e.Feature)
}

// UnseenError says that a node can neither reach etcd nor knows what stood there last.
type UnseenError struct {
	Endpoints []string
	Cause     error
}

func (e *UnseenError) Error() string {
	return fmt.Sprintf("etcd cannot be reached at %v (%v), and this node has never seen the cluster's metadata, by which it could act meanwhile: start etcd, or correct [cluster.etcd.endpoints]",
		e.Endpoints, e.Cause)
}

// Unwrap gives the cause.
func (e *UnseenError) Unwrap() error { return e.Cause }

// MalformedError says that a key does not hold what it should.
type MalformedError struct {
	Key   string
	Cause error
}

func (e *MalformedError) Error() string {
	return fmt.Sprintf("the key [%s] in etcd cannot be read: %v; remove what another program has written there", e.Key, e.Cause)
}

// Unwrap gives the cause.
func (e *MalformedError) Unwrap() error { return e.Cause }

var (
	errTaken  = errors.New("another process has registered with the id of this node: give each node a [path.data] of its own, and restart this one")
	errClosed = errors.New("this node stops")
)

// inTime says of an error, where it is so, that etcd did not answer in time: the client of etcd says no more than that time is over.
func inTime(err error) error {
	if !errors.Is(err, context.DeadlineExceeded) && status.Code(err) != codes.DeadlineExceeded {
		return err
	}
	return fmt.Errorf("etcd has not answered in time: %w", err)
}

// unreachable tells whether an error says that etcd did not answer, rather than that it refused. What was asked may
// then have been done.
func unreachable(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return true
	}
	code := status.Code(err)
	if e, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		code = e.Code()
	}
	switch code {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Internal, codes.Aborted:
		return true
	}
	return false
}
