package groups

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wlmserver/wlmserver/records"
)

// record is how a group is stored. A key once used keeps its meaning.
type record struct {
	ID         string            `json:"_id"`
	Name       string            `json:"name"`
	Mode       Mode              `json:"resiliency_mode"`
	Limits     limitsRecord      `json:"resource_limits"`
	Settings   map[string]string `json:"settings,omitempty"`
	Throttling throttlingRecord  `json:"throttling,omitzero"`
	Queue      queueRecord       `json:"queue,omitzero"`
	UpdatedAt  int64             `json:"updated_at"` // milliseconds since 1970
}

type limitsRecord struct {
	CPU          *float64 `json:"cpu,omitempty"`
	Memory       *float64 `json:"memory,omitempty"`
	NativeMemory *float64 `json:"native_memory,omitempty"`
}

type throttlingRecord struct {
	Attribute   Attribute `json:"attribute,omitempty"`
	NodeLimit   *int      `json:"node_limit,omitempty"`
	SharedLimit *int      `json:"shared_limit,omitempty"`
}

type queueRecord struct {
	SizePerBucket *int `json:"size_per_bucket,omitempty"`
}

// Encode returns a group's record, with what Decode found in the last one beside what it
// knows. It is not the form that the REST API prints.
func Encode(g *Group) ([]byte, error) {
	b, err := records.Encode(record{
		ID:         g.ID,
		Name:       g.Name,
		Mode:       g.Mode,
		Limits:     limitsRecord(g.Limits),
		Settings:   g.Settings,
		Throttling: throttlingRecord(g.Throttling),
		Queue:      queueRecord(g.Queue),
		UpdatedAt:  g.UpdatedAt.UnixMilli(),
	}, g.unknown)
	if err != nil {
		return nil, fmt.Errorf("encoding the workload group [%s]: %w", g.Name, err)
	}
	return b, nil
}

// Decode reads a group's record. Fields that it does not know, which a newer version must
// have written, stay with the group and its copies, so that a change does not lose them.
func Decode(b []byte) (*Group, error) {
	r, unknown, err := records.Decode[record](b)
	if err != nil {
		return nil, fmt.Errorf("decoding a workload group: %w", err)
	}
	return &Group{
		ID:         r.ID,
		Name:       r.Name,
		Mode:       r.Mode,
		Limits:     ResourceLimits(r.Limits),
		Settings:   r.Settings,
		Throttling: Throttling(r.Throttling),
		Queue:      Queue(r.Queue),
		UpdatedAt:  time.UnixMilli(r.UpdatedAt).UTC(),
		unknown:    unknown,
	}, nil
}

// decodeStored reads the record with an id, and refuses one that breaks a rule.
func decodeStored(id string, b []byte) (*Group, error) {
	g, err := Decode(b)
	if err != nil {
		return nil, fmt.Errorf("the one with the id [%s]: %w", id, err)
	}
	if err := checkStored(id, g); err != nil {
		return nil, fmt.Errorf("[%s] with the id [%s]: %w", g.Name, id, err)
	}
	return g, nil
}

func checkStored(id string, g *Group) error {
	switch {
	case g.ID != id:
		return fmt.Errorf("its record has the id [%s]", g.ID)
	case id == "" || id == DefaultID || strings.Contains(id, ":"):
		return errors.New("its id is empty, reserved or has a colon")
	}
	return g.Validate()
}
