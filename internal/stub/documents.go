package stub

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
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

// WriteShards tells how many copies of a shard there should be and how many took
// a change: the primary alone, for replicas exist in name only.
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

// errIndexClosed tells a writer that its index was deleted under its hands.
var errIndexClosed = errors.New("the index has just been deleted")

// PutDocument stores source, which must be one JSON object, under id; an empty id
// stands for a new one. The index is made when it is missing. With create, an id
// that exists is a *VersionConflictError. Other errors: *MalformedDocumentError,
// *FullError, *search.InvalidIndexNameError, *search.ValidationError.
func (e *Engine) PutDocument(index, id string, source []byte, create bool) (DocumentResult, error) {
	if id == "" {
		id = randomID(15)
	}
	if err := checkID(id); err != nil {
		return DocumentResult{}, err
	}
	for {
		ix, err := e.indexForWriting(index)
		if err != nil {
			return DocumentResult{}, err
		}
		stored, err := ix.acceptable(id, source)
		if err != nil {
			return DocumentResult{}, err
		}
		r, err := e.write(ix, &document{id: id, source: stored}, func(old *document) error {
			if create && old != nil {
				return &VersionConflictError{Index: ix.name, UUID: ix.uuid, Shard: ix.router.shard(id), ID: id, Version: old.version}
			}
			return nil
		})
		if !errors.Is(err, errIndexClosed) {
			return r, err
		}
	}
}

// UpdateDocument changes a document as the body of an update says: doc is laid
// over what is there; upsert, or doc with doc_as_upsert, is stored when nothing
// is. Without either a missing document is a *DocumentMissingError. Scripts are
// refused with an *search.InvalidError.
func (e *Engine) UpdateDocument(index, id string, body []byte) (DocumentResult, error) {
	if err := checkID(id); err != nil {
		return DocumentResult{}, err
	}
	u, err := parseUpdate(body)
	if err != nil {
		return DocumentResult{}, err
	}
	for {
		ix, err := e.indexForWriting(index)
		if err != nil {
			return DocumentResult{}, err
		}
		old := ix.document(id)
		source, err := u.apply(ix, id, old)
		if err != nil {
			return DocumentResult{}, err
		}
		if old != nil && string(source) == string(old.source) {
			return ix.result(Noop, old), nil
		}
		stored, err := ix.acceptable(id, source)
		if err != nil {
			return DocumentResult{}, err
		}
		r, err := e.write(ix, &document{id: id, source: stored}, func(now *document) error {
			if now != old {
				return errChanged
			}
			return nil
		})
		if !errors.Is(err, errIndexClosed) && !errors.Is(err, errChanged) {
			return r, err
		}
	}
}

// errChanged tells an update that somebody else was faster.
var errChanged = errors.New("the document has just been changed")

// update is the body of an update.
type update struct {
	doc, upsert *jsondoc.Value
	docAsUpsert bool
}

func parseUpdate(body []byte) (u update, err error) {
	root, err := parseObject(body)
	if err != nil {
		return u, err
	}
	for _, m := range root.Members {
		switch m.Name {
		case "doc", "upsert":
			if m.Value.Kind != jsondoc.Object {
				return u, parseFault(body, m.Value, fmt.Sprintf("[%s] must be an object, not %s", m.Name, article(m.Value.Kind)))
			}
			if m.Name == "doc" {
				u.doc = m.Value
			} else {
				u.upsert = m.Value
			}
		case "doc_as_upsert":
			u.docAsUpsert = m.Value.Text == "true"
		case "detect_noop", "_source", "lang":
		case "script", "scripted_upsert":
			return u, &search.InvalidError{Reason: "[" + m.Name + "] is not provided by this server: it runs no scripts; send [doc] with the changed fields"}
		default:
			return u, parseFaultAt(body, m.Offset, fmt.Sprintf("unknown key [%s] in an update; known are [doc], [upsert] and [doc_as_upsert]", m.Name), nil)
		}
	}
	if u.doc == nil {
		return u, &search.ValidationError{Problems: []string{"an update needs [doc] with the changed fields"}}
	}
	return u, nil
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

// DeleteDocument takes a document out; that it was not there is a result, not an
// error. The version of a document that comes back later starts at 1 again.
func (e *Engine) DeleteDocument(index, id string) (DocumentResult, error) {
	ix, err := e.existing(index)
	if err != nil {
		return DocumentResult{}, err
	}
	r, freed := ix.delete(id)
	e.stored.give(freed)
	return r, nil
}

// Document returns a document. It is no error that there is none; that there is
// no such index is an *search.IndexNotFoundError.
func (e *Engine) Document(index, id string) (Document, error) {
	ix, err := e.existing(index)
	if err != nil {
		return Document{}, err
	}
	found := Document{Index: ix.name, ID: id}
	if d := ix.document(id); d != nil {
		found.Found, found.Version, found.SeqNo, found.Source = true, d.version, d.seqNo, d.source
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

// write makes d the newest version of its document unless guard, which is told
// of the version before it, returns an error.
func (e *Engine) write(ix *index, d *document, guard func(old *document) error) (DocumentResult, error) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.closed {
		return DocumentResult{}, errIndexClosed
	}
	s := &ix.stores[ix.router.shard(d.id)]
	old := s.byID[d.id]
	if err := guard(old); err != nil {
		return DocumentResult{}, err
	}
	result, growth := Created, d.size()
	d.version, d.seqNo = 1, s.seqNo
	if old != nil {
		result = Updated
		growth -= old.size()
		d.version = old.version + 1
	}
	if err := e.stored.take(growth); err != nil {
		return DocumentResult{}, err
	}
	s.seqNo++
	s.put(d)
	return ix.result(result, d), nil
}

// delete takes a document out and tells how many bytes that frees.
func (ix *index) delete(id string) (r DocumentResult, freed int64) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	s := &ix.stores[ix.router.shard(id)]
	gone := &document{id: id, version: 1, seqNo: s.seqNo}
	s.seqNo++
	old := s.byID[id]
	if old == nil || ix.closed {
		return ix.result(NotFound, gone), 0
	}
	s.delete(old)
	gone.version = old.version + 1
	return ix.result(Deleted, gone), old.size()
}

func (ix *index) document(id string) *document {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.stores[ix.router.shard(id)].byID[id]
}

func (ix *index) result(r Result, d *document) DocumentResult {
	shards := WriteShards{Total: 1 + ix.now.Load().replicas, Successful: 1}
	if r == Noop {
		shards = WriteShards{} // no shard was asked
	}
	return DocumentResult{Index: ix.name, ID: d.id, Version: d.version, Result: r, Shards: shards, SeqNo: d.seqNo, PrimaryTerm: 1}
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
