package stub

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
	"github.com/wlmserver/wlmserver/internal/shard"
	"github.com/wlmserver/wlmserver/search"
)

const maxIDBytes = 512

// Result says what a change did to a document.
type Result string

// The results of changes, as OpenSearch prints them.
const (
	Created  Result = "created"
	Updated  Result = "updated"
	Deleted  Result = "deleted"
	NotFound Result = "not_found" // a delete of what was not there
	Noop     Result = "noop"      // an update that changed nothing
)

// DocumentResult is the answer to a change of a document. It marshals to the
// object that OpenSearch prints.
type DocumentResult struct {
	Index         string      `json:"_index"`
	ID            string      `json:"_id"`
	Version       int64       `json:"_version"`
	Result        Result      `json:"result"`
	ForcedRefresh bool        `json:"forced_refresh,omitempty"` // for the caller to set: the client asked for a refresh
	Shards        WriteShards `json:"_shards"`
	SeqNo         int64       `json:"_seq_no"`
	PrimaryTerm   int64       `json:"_primary_term"`
}

// WriteShards tells how many copies of a shard there should be, how many took a
// change, and how many could not and were given up. A node alone has the primary.
type WriteShards struct {
	Total      int `json:"total"`
	Successful int `json:"successful"`
	Failed     int `json:"failed"`
}

// Status is the HTTP status that goes with the result.
func (r DocumentResult) Status() int {
	switch r.Result {
	case Created:
		return 201
	case NotFound:
		return 404
	}
	return 200
}

// Document is one document, or the news that there is none.
type Document struct {
	Index, ID string
	Found     bool
	Version   int64
	SeqNo     int64
	Source    []byte // one compact JSON object; not to be changed
}

// PutDocument stores source, which must be one JSON object, under id; an empty id
// stands for a new one. The index is made when it is missing. With create, an id
// that exists is a *VersionConflictError, as is what does not meet the condition;
// there may be one. Other errors: *MalformedDocumentError, *FullError,
// *UnavailableShardError, *AliasMissingError, *search.InvalidIndexNameError,
// *search.ValidationError.
func (e *Engine) PutDocument(index, id string, source []byte, create bool, when ...Condition) (DocumentResult, error) {
	return e.carryOut(putting(index, id, source, create), when...)
}

func putting(index, id string, source []byte, create bool) action {
	if id == "" {
		id, create = randomID(15), true
	}
	name := "index"
	if create {
		name = "create"
	}
	return action{name: name, index: index, id: id, source: source}
}

// UpdateDocument changes a document as the body of an update says: doc is laid
// over what is there; upsert, or doc with doc_as_upsert, is stored when nothing
// is. Without either a missing document is a *DocumentMissingError. Scripts are
// refused with an *search.InvalidError. The condition is as in PutDocument.
func (e *Engine) UpdateDocument(index, id string, body []byte, when ...Condition) (DocumentResult, error) {
	return e.carryOut(action{name: "update", index: index, id: id, source: body}, when...)
}

// DeleteDocument takes a document out; that it was not there is a result, not an
// error. The version of a document that comes back later starts at 1 again. The
// condition is as in PutDocument.
func (e *Engine) DeleteDocument(index, id string, when ...Condition) (DocumentResult, error) {
	return e.carryOut(action{name: "delete", index: index, id: id}, when...)
}

// carryOut carries one action out.
func (e *Engine) carryOut(a action, when ...Condition) (DocumentResult, error) {
	for _, c := range when { // there is one at most
		a.when = c
	}
	for {
		ix, op, err := e.prepare(a)
		if err != nil {
			return DocumentResult{}, err
		}
		r, err := e.write(ix, ix.router.shard(op.ID), &op)
		if !errors.Is(err, errIndexClosed) {
			return r, err
		}
	}
}

// prepare finds the index of an action and checks what can be checked without its documents.
func (e *Engine) prepare(a action) (ix *index, op shard.Operation, err error) {
	op = shard.Operation{Kind: operationKinds[a.name], ID: a.id, Source: a.source}
	if err := a.when.apply(&op); err != nil {
		return nil, op, err
	}
	if op.Kind == shard.Delete {
		find := e.existing
		if op.Condition.Versions() { // a version from elsewhere makes the index, as any write does
			find = e.indexForWriting
		}
		ix, err = find(a.index)
		return ix, op, err
	}
	if err := checkID(a.id); err != nil {
		return nil, op, err
	}
	if op.Kind == shard.Update {
		change := a.update
		if change == nil {
			u, err := parseUpdate(a.source)
			if err != nil {
				return nil, op, err
			}
			change = &u
		}
		if op.Condition == shard.Always {
			if err := change.when.apply(&op); err != nil {
				return nil, op, err
			}
		}
		if op.Condition != shard.Always && (change.upsert != nil || change.docAsUpsert) {
			return nil, op, &search.ValidationError{Problems: []string{"[upsert] and [doc_as_upsert] create a document, which has no [if_seq_no] yet"}}
		}
	}
	if a.when.alias {
		return nil, op, &AliasMissingError{Index: a.index}
	}
	if op.Kind == shard.Update {
		ix, err = e.indexForWriting(a.index)
		return ix, op, err
	}
	if ix, err = e.indexForWriting(a.index); err != nil {
		return nil, op, err
	}
	op.Source, err = ix.acceptable(a.id, a.source)
	return ix, op, err
}

// operationKinds are what the actions of a bulk request do.
var operationKinds = map[string]shard.OperationKind{"index": shard.Index, "create": shard.Create, "update": shard.Update, "delete": shard.Delete}

// update is the body of an update.
type update struct {
	doc, upsert *jsondoc.Value
	docAsUpsert bool
	always      bool // it counts as a change even when nothing changes
	when        Condition
}

func parseUpdate(body []byte) (u update, err error) {
	root, err := jsondoc.Parse(body)
	if err != nil {
		return u, err
	}
	if root.Kind != jsondoc.Object {
		return u, updateFault("an update must be an object, not %s", article(root.Kind))
	}
	for _, m := range root.Members {
		switch m.Name {
		case "doc", "upsert":
			if m.Value.Kind != jsondoc.Object {
				return u, updateFault("[%s] must be an object, not %s", m.Name, article(m.Value.Kind))
			}
			if m.Name == "doc" {
				u.doc = m.Value
			} else {
				u.upsert = m.Value
			}
		case "doc_as_upsert", "detect_noop":
			if m.Value.Kind != jsondoc.Bool && m.Value.Kind != jsondoc.String {
				return u, updateFault("[%s] must be true or false, not %s", m.Name, article(m.Value.Kind))
			}
			yes, err := readBool(m.Name, m.Value.Text)
			if err != nil {
				return u, &search.ParseError{Type: misreadUpdate, Reason: err.Error(), Cause: err}
			}
			if m.Name == "detect_noop" {
				u.always = !yes
			} else {
				u.docAsUpsert = yes
			}
		case "if_seq_no", "if_primary_term":
			if err := u.when.Set(m.Name, m.Value.Text); err != nil {
				return u, &search.ParseError{Type: misreadUpdate, Reason: err.Error(), Cause: err}
			}
		case "_source", "lang":
		case "script", "scripted_upsert":
			return u, &search.InvalidError{Reason: "[" + m.Name + "] is not provided by this server: it runs no scripts; send [doc] with the changed fields"}
		default:
			return u, updateFault("unknown key [%s] in an update; known are [doc], [upsert], [doc_as_upsert], [detect_noop], [if_seq_no] and [if_primary_term]", m.Name)
		}
	}
	if u.doc == nil {
		return u, &search.ValidationError{Problems: []string{"an update needs [doc] with the changed fields"}}
	}
	return u, nil
}

const misreadUpdate = "x_content_parse_exception"

func updateFault(format string, a ...any) error {
	return &search.ParseError{Type: misreadUpdate, Reason: fmt.Sprintf(format, a...)}
}

// apply returns what the document is after the update; old may be nil.
func (u update) apply(ix *index, id string, old *document) ([]byte, error) {
	switch {
	case old != nil:
		base, err := jsondoc.Parse(old.source)
		if err != nil {
			return nil, fmt.Errorf("the stored document [%s] does not parse: %w", id, err)
		}
		return appendValue(nil, merge(base, u.doc)), nil
	case u.upsert != nil:
		return appendValue(nil, u.upsert), nil
	case u.docAsUpsert:
		return appendValue(nil, u.doc), nil
	}
	return nil, &DocumentMissingError{Index: ix.name, UUID: ix.uuid, Shard: ix.router.shard(id), ID: id}
}

// Document returns a document. It is no error that there is none; that there is
// no such index is an *search.IndexNotFoundError, that nobody has its shard an
// *UnavailableShardError. One that does not meet the condition, of which there may
// be one, is a *VersionConflictError.
func (e *Engine) Document(index, id string, when ...Condition) (Document, error) {
	for _, c := range when {
		if err := c.showable(); err != nil {
			return Document{}, err
		}
	}
	ix, err := e.existing(index)
	if err != nil {
		return Document{}, err
	}
	found := Document{Index: ix.name, ID: id}
	d, here := ix.document(id)
	if !here {
		o, err := e.ask(ix, &shard.Operation{Kind: shard.Get, ID: id})
		if errors.Is(err, errIndexClosed) {
			err = &search.IndexNotFoundError{Index: index, Literal: true}
		}
		if err != nil || o.Result == "" {
			return found, err
		}
		d = &document{version: o.Version, seqNo: o.SeqNo, source: o.Source}
	}
	if d != nil {
		found.Found, found.Version, found.SeqNo, found.Source = true, d.version, d.seqNo, d.source
		for _, c := range when {
			if c.versioned && c.version != d.version {
				why := fmt.Sprintf("its version is [%d], and not [%d]", d.version, c.version)
				return found, ix.versionConflict(ix.router.shard(id), id, d, why)
			}
		}
	}
	return found, nil
}

func (e *Engine) existing(name string) (*index, error) {
	if name != "_all" {
		if err := checkReserved(name); err != nil {
			return nil, err
		}
	}
	if ix := e.index(name); ix != nil {
		return ix, ix.open()
	}
	return nil, &search.IndexNotFoundError{Index: name, Literal: true}
}

func checkID(id string) error {
	switch {
	case id == "":
		return &search.ValidationError{Problems: []string{"the id of a document must not be empty"}}
	case len(id) > maxIDBytes:
		return &search.ValidationError{Problems: []string{fmt.Sprintf("the id of a document must not be longer than %d bytes, this one has %d", maxIDBytes, len(id))}}
	}
	return nil
}

// acceptable returns source as it is stored, or says why it cannot be: it must be
// one JSON object, and a field that is mapped to numbers must hold them.
func (ix *index) acceptable(id string, source []byte) ([]byte, error) {
	root, err := jsondoc.Parse(source)
	if err != nil && bytes.HasPrefix(bytes.TrimSpace(source), []byte("{")) {
		return nil, &MalformedDocumentError{
			Reason: fmt.Sprintf("the document [%s] is not well-formed JSON", id),
			Cause:  err,
		}
	}
	if err != nil || root.Kind != jsondoc.Object {
		return nil, &MalformedDocumentError{
			Reason:    fmt.Sprintf("the document [%s] must be one JSON object", id),
			CauseType: "not_x_content_exception", CauseReason: "expected an object",
		}
	}
	if hasEmptyName(root) {
		return nil, &MalformedDocumentError{
			Reason:    fmt.Sprintf("the document [%s] has a field without a name", id),
			CauseType: "illegal_argument_exception", CauseReason: "the name of a field must not be empty",
		}
	}
	if len(ix.numeric) > 0 {
		for _, m := range root.Members {
			kind, ok := ix.numeric[m.Name]
			if !ok {
				continue
			}
			if misfit := noNumber(m.Value); misfit != nil {
				bad := &MalformedDocumentError{
					Reason:    fmt.Sprintf("the field [%s] of the document [%s] is mapped to [%s] and holds %s", m.Name, id, kind, abridged(m.Value)),
					CauseType: "number_format_exception", CauseReason: "not a number",
				}
				if misfit.Kind != jsondoc.String {
					bad.CauseType, bad.CauseReason = "input_coercion_exception", article(misfit.Kind)+" cannot be read as a number"
				}
				return nil, bad
			}
		}
	}
	return compact(source), nil
}

// hasEmptyName reports whether a field in v has no name.
func hasEmptyName(v *jsondoc.Value) bool {
	for _, m := range v.Members {
		if m.Name == "" || hasEmptyName(m.Value) {
			return true
		}
	}
	return slices.ContainsFunc(v.Items, hasEmptyName)
}

// noNumber is the first value in v that a field of numbers cannot hold; nil when it
// can hold them all.
func noNumber(v *jsondoc.Value) *jsondoc.Value {
	switch v.Kind {
	case jsondoc.Number, jsondoc.Null:
		return nil
	case jsondoc.String:
		if _, err := strconv.ParseFloat(strings.TrimSpace(v.Text), 64); err == nil {
			return nil
		}
	case jsondoc.Array:
		for _, item := range v.Items {
			if misfit := noNumber(item); misfit != nil {
				return misfit
			}
		}
		return nil
	}
	return v
}

// abridged is the text of v for an error message.
func abridged(v *jsondoc.Value) string {
	const most = 100
	text := appendValue(nil, v)
	if len(text) > most {
		return strings.ToValidUTF8(string(text[:most]), "") + "…"
	}
	return string(text)
}
