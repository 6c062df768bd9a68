package rules

import (
	"errors"
	"fmt"
	"time"

	"github.com/wlmserver/wlmserver/records"
)

// record is how a rule is stored. A key once used keeps its meaning.
type record struct {
	ID          string   `json:"id"`
	Description string   `json:"description"`
	Indices     []string `json:"index_pattern,omitempty"`
	Usernames   []string `json:"username,omitempty"`
	Roles       []string `json:"role,omitempty"`
	Group       string   `json:"workload_group"`
	UpdatedAt   int64    `json:"updated_at"` // milliseconds since 1970
}

// Encode returns a rule's record, with what Decode found in the last one beside what it
// knows. It is not the form that the REST API prints.
func Encode(r *Rule) ([]byte, error) {
	b, err := records.Encode(record{
		ID:          r.ID,
		Description: r.Description,
		Indices:     r.Indices,
		Usernames:   r.Usernames,
		Roles:       r.Roles,
		Group:       r.Group,
		UpdatedAt:   r.UpdatedAt.UnixMilli(),
	}, r.unknown)
	if err != nil {
		return nil, fmt.Errorf("encoding the rule [%s]: %w", r.ID, err)
	}
	return b, nil
}

// Decode reads a rule's record. Fields that it does not know, which a newer version must
// have written, stay with the rule and its copies, so that a change does not lose them.
func Decode(b []byte) (*Rule, error) {
	r, unknown, err := records.Decode[record](b)
	if err != nil {
		return nil, fmt.Errorf("decoding a rule: %w", err)
	}
	return &Rule{
		ID:          r.ID,
		Description: r.Description,
		Indices:     r.Indices,
		Usernames:   r.Usernames,
		Roles:       r.Roles,
		Group:       r.Group,
		UpdatedAt:   time.UnixMilli(r.UpdatedAt).UTC(),
		unknown:     unknown,
	}, nil
}

// decodeStored reads the record with an id, and refuses one that breaks a rule.
func decodeStored(id string, b []byte) (*Rule, error) {
	r, err := Decode(b)
	if err == nil {
		err = checkStored(id, r)
	}
	if err != nil {
		return nil, fmt.Errorf("the one with the id [%s]: %w", id, err)
	}
	return r, nil
}

func checkStored(id string, r *Rule) error {
	switch {
	case r.ID != id:
		return fmt.Errorf("its record has the id [%s]", r.ID)
	case id == "":
		return errors.New("its id is empty")
	}
	return r.Validate()
}
