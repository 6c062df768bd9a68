package stub

import (
	"fmt"

	"github.com/wlmserver/wlmserver/internal/shard"
	"github.com/wlmserver/wlmserver/internal/units"
)

// IndexExistsError refuses to create an index twice: 400
// resource_already_exists_exception.
type IndexExistsError struct {
	Index, UUID string
}

func (e *IndexExistsError) Error() string {
	return fmt.Sprintf("index [%s/%s] exists already; delete it first or choose another name", e.Index, e.UUID)
}

// IndexClosedError is a search on a closed index, or a document of one: 400
// index_closed_exception.
type IndexClosedError struct {
	Index, UUID string
}

func (e *IndexClosedError) Error() string {
	return "index [" + e.Index + "] is closed; POST /" + e.Index + "/_open opens it"
}

// PrivateSettingError refuses to change a setting that is the server's own: 400
// settings_exception.
type PrivateSettingError struct {
	Key string
}

func (e *PrivateSettingError) Error() string {
	return "the setting [" + e.Key + "] is the server's own and cannot be changed"
}

// QueryShardError is a query that an index cannot take for what its fields are
// mapped to: 400 query_shard_exception.
type QueryShardError struct {
	Index, UUID string
	Reason      string
	Value       string // of the query, that is not a number
}

func (e *QueryShardError) Error() string { return e.Reason }

// VersionConflictError refuses to change a document, or to show it, because it is
// not as the request has it: 409 version_conflict_engine_exception.
type VersionConflictError struct {
	Index, UUID string
	Shard       int
	ID          string
	Version     int64  // of the document that is there; 0: there is none
	Reason      string // as the rest of a sentence
}

func (e *VersionConflictError) Error() string {
	return fmt.Sprintf("[%s]: version conflict, %s", e.ID, e.Reason)
}

// AliasMissingError refuses to write to what is to be an alias, of which there are
// none: 404 index_not_found_exception.
type AliasMissingError struct {
	Index string
}

func (e *AliasMissingError) Error() string {
	return "[require_alias] is set and [" + e.Index + "] is no alias: this server has none"
}

// DocumentMissingError is the update of a document that is not there: 404
// document_missing_exception.
type DocumentMissingError struct {
	Index, UUID string
	Shard       int
	ID          string
}

func (e *DocumentMissingError) Error() string {
	return fmt.Sprintf("[%s]: document missing; send upsert or doc_as_upsert to create it", e.ID)
}

// StaleCopyError says that a node does not hold a copy of a shard as whoever asks has it: it is another one by now, or one of the two does
// not know of it yet.
type StaleCopyError struct {
	Copy shard.Copy
}

func (e *StaleCopyError) Error() string {
	return fmt.Sprintf("the copy [%d] of the shard %s is not, or no longer, what it was taken for", e.Copy.Number, describeShard(e.Copy.Shard))
}

// UnavailableShardError is a change of a document, or a look at it, for which no primary copy of its shard was there in time: 503
// unavailable_shards_exception. The change may have been made.
type UnavailableShardError struct {
	Index string
	Shard int
}

func (e *UnavailableShardError) Error() string {
	return fmt.Sprintf("no node that has the primary copy of the shard %s has answered within [%s]; try again",
		describeShard(shard.ID{Index: e.Index, Number: e.Shard}), units.FormatTime(writeTimeout))
}

// MalformedDocumentError is a document that cannot be stored: 400
// mapper_parsing_exception.
type MalformedDocumentError struct {
	Reason string
	// Cause is why it is no JSON. Where it is, CauseType is the type of what lies
	// below: "not_x_content_exception", "number_format_exception",
	// "input_coercion_exception", "illegal_argument_exception"; CauseReason is its text.
	Cause                  error
	CauseType, CauseReason string
}

func (e *MalformedDocumentError) Error() string { return e.Reason }

func (e *MalformedDocumentError) Unwrap() error { return e.Cause }

const (
	whatDocuments = "documents"
	whatWork      = "running searches"
)

// FullError refuses what would take more memory than the server may use for it:
// 429 circuit_breaking_exception.
type FullError struct {
	What   string // what the memory is for: "documents" or "running searches"
	Wanted int64  // bytes in use with this one
	Limit  int64
	Key    string // the configuration key that raises the limit
}

// Durability tells whether to wait helps: "TRANSIENT" of work, which ends, and
// "PERMANENT" of documents.
func (e *FullError) Durability() string {
	if e.What == whatWork {
		return "TRANSIENT"
	}
	return "PERMANENT"
}

func (e *FullError) Error() string {
	return fmt.Sprintf("no memory left for %s: this would make it [%d/%s], which is over the limit of [%d/%s]; raise %s, or delete or send less",
		e.What, e.Wanted, units.HumanBytes(e.Wanted), e.Limit, units.HumanBytes(e.Limit), e.Key)
}
