package rules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"
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

// Encode returns the form in which a Repository may store a rule. It is not the form
// that the REST API prints.
func Encode(r *Rule) ([]byte, error) {
	b, err := json.Marshal(record{
		ID:          r.ID,
		Description: r.Description,
		Indices:     r.Indices,
		Usernames:   r.Usernames,
		Roles:       r.Roles,
		Group:       r.Group,
		UpdatedAt:   r.UpdatedAt.UnixMilli(),
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the rule [%s]: %w", r.ID, err)
	}
	return b, nil
}

// Decode reads what Encode wrote. It refuses keys that it does not know, which a newer
// version must have written: to pass over them would lose them at the next change.
func Decode(b []byte) (*Rule, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	var r record
	if err := d.Decode(&r); err != nil {
		return nil, fmt.Errorf("decoding a rule, which a newer version may have written: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("decoding the rule [%s]: bytes follow it", r.ID)
	}
	return &Rule{
		ID:          r.ID,
		Description: r.Description,
		Indices:     r.Indices,
		Usernames:   r.Usernames,
		Roles:       r.Roles,
		Group:       r.Group,
		UpdatedAt:   time.UnixMilli(r.UpdatedAt).UTC(),
	}, nil
}
