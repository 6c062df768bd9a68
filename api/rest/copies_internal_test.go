package rest

import (
	"fmt"
	"testing"

	"github.com/wlmserver/wlmserver/internal/stub"
)

// What clients read of an index's copies: how it is, where they are, and what they hold.
func TestCopiesOfShards(t *testing.T) {
	here, there := stub.CopyInfo{Node: "here", Started: true}, stub.CopyInfo{Node: "there", Started: true}
	filling := stub.CopyInfo{Node: "there"}
	s := &Server{cfg: Config{Node: NodeInfo{ID: "here", Name: "n1", IP: "10.0.0.1"}}}
	for _, c := range []struct {
		name     string
		replicas int
		copies   [][]stub.CopyInfo
		health   string // status, primaries, active, initializing, unassigned
		rows     string
		docs     string // of the primaries, of all
	}{
		{"a node alone", 0, [][]stub.CopyInfo{{here}}, "green 1 1 0 0", "[x 0 p STARTED 3 7 10.0.0.1 here n1]", "3 3"},
		{"no place for a replica", 1, [][]stub.CopyInfo{{here}}, "yellow 1 1 0 1",
			"[x 0 p STARTED 3 7 10.0.0.1 here n1][x 0 r UNASSIGNED <nil> <nil> <nil> <nil> <nil>]", "3 3"},
		{"a replica", 1, [][]stub.CopyInfo{{there, here}}, "green 1 2 0 0", "[x 0 p STARTED 3 7  there ][x 0 r STARTED 3 7 10.0.0.1 here n1]", "3 6"},
		{"a replica that is being filled", 1, [][]stub.CopyInfo{{here, filling}}, "yellow 1 1 1 0",
			"[x 0 p STARTED 3 7 10.0.0.1 here n1][x 0 r INITIALIZING <nil> <nil>  there ]", "3 3"},
		{"nobody has it", 0, [][]stub.CopyInfo{{}}, "red 0 0 0 1", "[x 0 p UNASSIGNED <nil> <nil> <nil> <nil> <nil>]", "0 0"},
		{"nobody has one of two", 0, [][]stub.CopyInfo{{here}, {}}, "red 1 1 0 1",
			"[x 0 p STARTED 3 7 10.0.0.1 here n1][x 1 p UNASSIGNED <nil> <nil> <nil> <nil> <nil>]", "3 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := stub.IndexInfo{Name: "x", Shards: len(c.copies), Replicas: c.replicas, Copies: c.copies, Stores: make([]stub.StoreInfo, len(c.copies))}
			x.Stores[0] = stub.StoreInfo{Documents: 3, Bytes: 7}
			h := newIndexHealth(x, true)
			if got := fmt.Sprintf("%s %d %d %d %d", h.Status, h.ActivePrimaries, h.Active, h.Initializing, h.Unassigned); got != c.health {
				t.Errorf("health %q, want %q", got, c.health)
			}
			worst, active, missing := green, 0, 0
			for _, m := range h.ShardHealth {
				one := m.value.(shardHealthDTO)
				for _, status := range []healthStatus{green, yellow, red} {
					if one.Status == status.String() {
						worst = max(worst, status)
					}
				}
				active += one.Active
				missing += one.Initializing + one.Unassigned
			}
			if worst.String() != h.Status || active != h.Active || missing != h.Initializing+h.Unassigned {
				t.Errorf("the shards come to %v with %d active and %d missing, the index to %+v", worst, active, missing, h)
			}
			rows := ""
			for number, store := range x.Stores {
				for _, row := range s.shardRows(x, number, store) {
					rows += fmt.Sprint(row)
				}
			}
			if rows != c.rows {
				t.Errorf("rows\n%s, want\n%s", rows, c.rows)
			}
			docs := [2]int{}
			of := sides([]stub.IndexInfo{x}, nil)
			for i, side := range []indexStatsDTO{of.Primaries, of.Total} {
				if side.Docs != nil {
					docs[i] = side.Docs.Count
				}
			}
			if got := fmt.Sprintf("%d %d", docs[0], docs[1]); got != c.docs {
				t.Errorf("documents %q, want %q", got, c.docs)
			}
			reached := copies([]stub.IndexInfo{x})
			if reached.Total != x.Shards*(1+x.Replicas) || reached.Successful != h.Active {
				t.Errorf("a refresh reaches %+v", reached)
			}
		})
	}
}
