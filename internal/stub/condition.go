package stub

import (
	"fmt"
	"strconv"

	"github.com/wlmserver/wlmserver/internal/shard"
	"github.com/wlmserver/wlmserver/search"
)

// Condition is what must be so for a document to be changed or shown, in the words of a request. The zero value asks for nothing.
type Condition struct {
	versioned, typed, numbered bool // version, version_type, if_seq_no are given
	version, seqNo, term       int64
	external                   shard.Condition // of version_type; 0: internal
	alias                      bool            // the index must be an alias
}

// What OpenSearch takes for no version and no sequence number.
const (
	anyVersion = -3
	anySeqNo   = -2
)

// Set takes over a parameter: version, version_type, if_seq_no, if_primary_term or require_alias, and nothing for others. A value that
// does not fit is a *search.InvalidError.
func (c *Condition) Set(name, value string) (err error) {
	switch name {
	case "version":
		c.version, err = wholeInt64(name, value)
		c.versioned = c.version != anyVersion
	case "version_type":
		c.typed = true
		c.external, err = readVersionType(value)
	case "if_seq_no":
		c.seqNo, err = wholeInt64(name, value)
		if c.numbered = c.seqNo != anySeqNo; err == nil && c.numbered && c.seqNo < 0 {
			err = negative(name, value)
		}
	case "if_primary_term":
		if c.term, err = wholeInt64(name, value); err == nil && c.term < 0 {
			err = negative(name, value)
		}
	case "require_alias":
		c.alias, err = readBool(name, value)
	}
	return err
}

func readVersionType(value string) (shard.Condition, error) {
	switch value {
	case "internal":
		return shard.Always, nil
	case "external", "external_gt":
		return shard.NewerVersion, nil
	case "external_gte":
		return shard.NotOlderVersion, nil
	}
	return shard.Always, &search.InvalidError{Reason: fmt.Sprintf("the value [%s] of [version_type] must be [internal], [external] or [external_gte]", value)}
}

func wholeInt64(name, value string) (int64, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		cause := &search.ParseError{Type: "number_format_exception", Reason: "[" + value + "] is not a whole number"}
		return 0, &search.InvalidError{Reason: fmt.Sprintf("the value [%s] of [%s] must be a whole number", value, name), Cause: cause}
	}
	return n, nil
}

func negative(name, value string) error {
	return &search.InvalidError{Reason: fmt.Sprintf("the value [%s] of [%s] must not be negative", value, name)}
}

// apply gives the condition to an operation, or tells why it makes no sense with that: a *search.ValidationError.
func (c *Condition) apply(op *shard.Operation) error {
	var problem string
	switch {
	case op.Kind == shard.Update && (c.versioned || c.typed), op.Kind == shard.Create && (c.versioned || c.external != 0), c.external == 0 && c.versioned:
		problem = "a version cannot be asked for here: use [if_seq_no] and [if_primary_term] when a document is indexed, updated or deleted, or [version_type=external] when it is indexed or deleted"
	case op.Kind == shard.Create && (c.numbered || c.term != 0):
		problem = "a document that is to be created has no [if_seq_no] yet: index it instead"
	case c.external != 0 && (!c.versioned || c.version < 0):
		problem = "[version_type=external] needs a [version] that is not negative"
	case c.numbered != (c.term != 0):
		problem = "[if_seq_no] and [if_primary_term] go together, the latter from 1"
	case c.numbered && c.external != 0:
		problem = "[if_seq_no] and an external version exclude each other"
	case c.external != 0:
		op.Condition, op.Expected = c.external, c.version
		return nil
	case c.numbered:
		op.Condition, op.Expected = shard.LastChange, c.seqNo
		if c.term != primaryTerm {
			op.Expected = anySeqNo // which no document has
		}
		return nil
	default:
		return nil
	}
	return &search.ValidationError{Problems: []string{problem}}
}

// showable checks a condition under which a document is shown.
func (c *Condition) showable() error {
	if c.versioned && (c.version < 0 || c.version == 0 && c.external == 0) {
		return &search.ValidationError{Problems: []string{fmt.Sprintf("no document has the version [%d]", c.version)}}
	}
	return nil
}

// conflict is a *VersionConflictError unless an operation can be carried out on what is there, which may be nil.
func (ix *index) conflict(number int, op *shard.Operation, old *document) error {
	why := ""
	switch {
	case op.Kind == shard.Create && old != nil:
		why = fmt.Sprintf("the document exists already (version [%d]); index it instead of creating it to replace it", old.version)
	case op.Condition == shard.LastChange && old == nil:
		why = "there is no such document"
	case op.Condition == shard.LastChange && old.seqNo != op.Expected:
		why = fmt.Sprintf("it was changed last with the sequence number [%d] and the primary term [%d]", old.seqNo, primaryTerm)
	case op.Condition == shard.NewerVersion && old != nil && old.version >= op.Expected,
		op.Condition == shard.NotOlderVersion && old != nil && old.version > op.Expected:
		why = fmt.Sprintf("its version is [%d], and the one to come [%d]", old.version, op.Expected)
	default:
		return nil
	}
	return ix.versionConflict(number, op.ID, old, why)
}

func (ix *index) versionConflict(number int, id string, old *document, why string) error {
	e := &VersionConflictError{Index: ix.name, UUID: ix.uuid, Shard: number, ID: id, Reason: why}
	if old != nil {
		e.Version = old.version
	}
	return e
}

// NoPipeline refuses to have a document changed by a pipeline, as there is none, with a *search.InvalidError: _none means none.
func NoPipeline(name string) error {
	if name == "" || name == "_none" {
		return nil
	}
	return &search.InvalidError{Reason: "there is no pipeline [" + name + "]: this server has none; change the documents before they are sent"}
}

// primaryTerm is that of all shards: who the primary is, here the number of its copy says.
const primaryTerm = 1
