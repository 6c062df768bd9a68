package groups

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"
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

// Encode returns the form in which a Repository may store a group. It is not the form
// that the REST API prints.
func Encode(g *Group) ([]byte, error) {
	b, err := json.Marshal(record{
		ID:         g.ID,
		Name:       g.Name,
		Mode:       g.Mode,
		Limits:     limitsRecord(g.Limits),
		Settings:   g.Settings,
		Throttling: throttlingRecord(g.Throttling),
		Queue:      queueRecord(g.Queue),
		UpdatedAt:  g.UpdatedAt.UnixMilli(),
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the workload group [%s]: %w", g.Name, err)
	}
	return b, nil
}

// Decode reads what Encode wrote. It refuses keys that it does not know, which a newer
// version must have written: to pass over them would lose them at the next change.
func Decode(b []byte) (*Group, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	var r record
	if err := d.Decode(&r); err != nil {
		return nil, fmt.Errorf("decoding a workload group, which a newer version may have written: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("decoding the workload group [%s]: bytes follow it", r.Name)
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
	}, nil
}
