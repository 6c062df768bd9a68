package stub

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
	"github.com/wlmserver/wlmserver/search"
)

// BulkResult is the answer to a bulk request: one item for each action, in order.
type BulkResult struct {
	Took   time.Duration
	Errors bool // some item failed
	Items  []BulkItem
}

// BulkItem is what became of one action of a bulk request.
type BulkItem struct {
	Action string // "index", "create", "update", "delete"
	Index  string
	ID     string         // empty when none was given and the action failed
	HasID  bool           // an id was given, be it empty
	Result DocumentResult // when Err is nil
	Err    error
}

// action is one action of a bulk request, not yet carried out.
type action struct {
	name, index, id string
	named, hasID    bool   // the action says the index, the id, be they empty
	source          []byte // none for a delete
}

// Bulk carries out the actions of a bulk request's body, lines of JSON of which
// each ends in a newline. index is where actions go that do not say. A body that
// is not well formed is an error, and then nothing was done; an action that fails
// is an item with an error, and the others go on.
func (e *Engine) Bulk(index string, body []byte) (BulkResult, error) {
	start := time.Now()
	actions, err := parseBulk(index, body)
	if err != nil {
		return BulkResult{}, err
	}
	r := BulkResult{Items: make([]BulkItem, len(actions))}
	for i, a := range actions {
		r.Items[i] = e.carryOut(a)
		r.Errors = r.Errors || r.Items[i].Err != nil
	}
	r.Took = time.Since(start)
	return r, nil
}

func (e *Engine) carryOut(a action) BulkItem {
	item := BulkItem{Action: a.name, Index: a.index, ID: a.id, HasID: a.hasID}
	switch a.name {
	case "index", "create":
		if a.hasID && a.id == "" {
			item.Err = &search.InvalidError{Reason: "_id must not be empty; leave it out to be given one"}
			break
		}
		item.Result, item.Err = e.PutDocument(a.index, a.id, a.source, a.name == "create")
	case "update":
		item.Result, item.Err = e.UpdateDocument(a.index, a.id, a.source)
	case "delete":
		item.Result, item.Err = e.DeleteDocument(a.index, a.id)
	}
	if item.Err == nil {
		item.ID = item.Result.ID
	}
	return item
}

// parseBulk reads a bulk body without carrying anything out.
func parseBulk(index string, body []byte) ([]action, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, &search.ValidationError{Problems: []string{"the bulk request holds no action"}}
	}
	if body[len(body)-1] != '\n' {
		return nil, &search.InvalidError{Reason: `the last line of a bulk request must end in a newline [\n]`}
	}
	var actions []action
	var problems []string
	for number, rest := 1, body; len(rest) > 0; number++ {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		a, err := parseAction(line, number)
		if err != nil {
			return nil, err
		}
		if !a.named {
			a.index = index
		}
		if a.index == "" && !a.named {
			problems = append(problems, fmt.Sprintf("the action in line %d names no index, nor does the path", number))
		}
		if a.name == "delete" || a.name == "update" {
			if a.id == "" {
				problems = append(problems, fmt.Sprintf("the action in line %d needs an _id", number))
			}
		}
		if a.name != "delete" {
			if len(rest) == 0 {
				return nil, &search.InvalidError{Reason: fmt.Sprintf("the action [%s] in line %d has no line with a document after it", a.name, number)}
			}
			a.source, rest, _ = bytes.Cut(rest, []byte("\n"))
			number++
		}
		actions = append(actions, a)
	}
	if len(problems) > 0 {
		return nil, &search.ValidationError{Problems: problems}
	}
	return actions, nil
}

var (
	bulkActions = []string{"index", "create", "update", "delete"}
	// bulkIgnored are parts of an action that change nothing here: there is one
	// copy of each shard, no alias, no pipeline, and updates repeat as needed.
	bulkIgnored = []string{"routing", "_routing", "require_alias", "retry_on_conflict", "pipeline", "dynamic_templates"}
)

// parseAction reads a line such as {"index":{"_index":"a","_id":"1"}}.
func parseAction(line []byte, number int) (a action, err error) {
	root, err := jsondoc.Parse(line)
	if err != nil {
		return a, err
	}
	if root.Kind != jsondoc.Object || len(root.Members) != 1 || root.Members[0].Value.Kind != jsondoc.Object {
		return a, malformedAction(number, "it must be an object with one action, which is an object too")
	}
	a.name = root.Members[0].Name
	if !slices.Contains(bulkActions, a.name) {
		return a, malformedAction(number, fmt.Sprintf("unknown action [%s]; known are [%s]", a.name, strings.Join(bulkActions, "], [")))
	}
	for _, m := range root.Members[0].Value.Members {
		switch {
		case m.Value.Kind == jsondoc.Null:
		case m.Name == "_index" && m.Value.Scalar():
			a.index, a.named = m.Value.Text, true
		case m.Name == "_id" && m.Value.Scalar():
			a.id, a.hasID = m.Value.Text, true
		case m.Name == "op_type" && a.name == "index" && m.Value.Text == "create":
			a.name = "create"
		case m.Name == "op_type" && m.Value.Text == a.name:
		case slices.Contains(bulkIgnored, m.Name):
		default:
			return a, malformedAction(number, fmt.Sprintf("[%s] is not a parameter that this server knows", m.Name))
		}
	}
	return a, nil
}

func malformedAction(number int, why string) error {
	return &search.InvalidError{Reason: fmt.Sprintf("malformed action in line %d of the bulk request: %s", number, why)}
}
