package shard

import "context"

// Node names one run of a node: what it held in memory before a restart is gone, so that it is another one then.
type Node struct {
	ID          string `json:"node"`
	Incarnation string `json:"incarnation,omitempty"`
}

// NodeError is the error of a shard that was asked on another node than the one that asks. Its text is that of the error.
type NodeError struct {
	Node string // the id of the node that was asked last; empty: there was none to ask
	Err  error
}

func (e *NodeError) Error() string { return e.Err.Error() }

// Unwrap gives the error.
func (e *NodeError) Unwrap() error { return e.Err }

// Holder is a node that holds copies of shards, as far as their documents are concerned. Implementations are safe for concurrent use.
// A method returns soon after its context has ended.
type Holder interface {
	// Write carries out operations on a copy, in their order. An error means that the copy did not take them, or that this is not
	// known; what becomes of a single operation is in its outcome.
	Write(ctx context.Context, r *WriteRequest) (*WriteResult, error)
	// Read reads on in a primary's documents, for a copy that is being filled.
	Read(ctx context.Context, r *ReadRequest) (*Page, error)
	// Measure tells what copies of these shards hold. One that is not there is left out.
	Measure(ctx context.Context, shards []ID) ([]Size, error)
}

// Nodes finds the other nodes of a cluster. It is safe for concurrent use.
type Nodes interface {
	// Holder returns a node, whether or not it can be reached: then its methods fail.
	Holder(n Node) Holder
}

// Copy says which copy of a shard is meant. Numbers are given once, so that a copy that has been given up and made again, maybe on
// the same node, is another one.
type Copy struct {
	Shard  ID
	UUID   string // of the index
	Number int64
}

// WriteRequest is what is to be done to one copy.
type WriteRequest struct {
	Copy Copy
	// Primary is the number of the primary copy that has carried the operations out already, and to which this copy is a replica. 0:
	// this is the primary.
	Primary    int64
	Operations []Operation
}

// Operation is a change of one document, or a look at it.
type Operation struct {
	Kind   OperationKind
	ID     string
	Source []byte // of Index and Create the document, of Update the body of the request

	// Condition must be so, of what is Expected; a replica is told none.
	Condition Condition
	Expected  int64

	// Version and SeqNo are those that the primary has given the change; only a replica is told.
	Version int64
	SeqNo   int64
}

// Condition says what must be so of a document for it to be changed.
type Condition uint8

// The conditions.
const (
	Always          Condition = iota
	LastChange                // its last change has the sequence number that is expected
	NewerVersion              // the version that is expected, and which it gets, is greater than its own
	NotOlderVersion           // or equal
	Unknown                   // to this node; what has it is refused
)

// Versions says whether the document gets the version that is expected.
func (c Condition) Versions() bool { return c == NewerVersion || c == NotOlderVersion }

// OperationKind says what an Operation does.
type OperationKind uint8

// The kinds of operations. A replica is sent Index and Delete alone.
const (
	Index  OperationKind = 1 + iota // make it the document, whatever was there
	Create                          // the same, unless there is one
	Update                          // change a part of it
	Delete
	Get
)

// WriteResult tells what became of operations.
type WriteResult struct {
	Outcomes []Outcome // one for each; of a replica none
	// Taken is how many copies have carried them out, with the primary, and Failed how many could not and so were given up.
	Taken, Failed int
}

// Outcome is what became of one operation.
type Outcome struct {
	Result  string // in the words of OpenSearch; of Get empty when there is no such document
	Version int64
	SeqNo   int64
	Source  []byte // of Get; not to be changed
	Err     error  // why it was not carried out; then nothing else counts
}

// ReadRequest asks a primary for the documents that were changed last at From or later, in the order of their changes.
type ReadRequest struct {
	Copy   Copy  // the primary
	For    int64 // the copy that is being filled
	From   int64 // a sequence number
	Amount int64 // bytes after which the page may end
}

// Page is a part of a primary's documents.
type Page struct {
	Documents []Document
	Next      int64 // where the next page begins
	Last      bool  // there is nothing more
}

// Size is what a copy holds.
type Size struct {
	Shard     ID
	Documents int
	Bytes     int64 // roughly
}
