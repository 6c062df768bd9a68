package stub

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
	"github.com/wlmserver/wlmserver/internal/shard"
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
	named, hasID    bool    // the action says the index, the id, be they empty
	source          []byte  // none for a delete
	update          *update // that the source is, when it has been read
	when            Condition
}

// Bulk carries out the actions of a bulk request's body, lines of JSON of which
// each ends in a newline. index is where actions go that do not say. A body that
// is not well formed is an error, as is the body of an update in it, and then
// nothing was done; an action that fails is an item with an error, and the others
// go on.
// Those that say no condition themselves have that of the request, of which there
// may be one.
func (e *Engine) Bulk(index string, body []byte, when ...Condition) (BulkResult, error) {
	start := time.Now()
	actions, err := parseBulk(index, body, when)
	if err != nil {
		return BulkResult{}, err
	}
	r := BulkResult{Items: make([]BulkItem, len(actions))}
	b := batches{engine: e, actions: actions, items: r.Items}
	for i := range actions {
		b.add(i)
	}
	b.run()
	for _, item := range r.Items {
		r.Errors = r.Errors || item.Err != nil
	}
	r.Took = time.Since(start)
	return r, nil
}

// batches carries out the actions of a bulk request: those on shards whose only copy is here one after another, the others together,
// shard by shard. What concerns one document keeps its order.
type batches struct {
	engine  *Engine
	actions []action
	items   []BulkItem
	byShard map[batchKey]*batch
}

type batchKey struct {
	index *index
	shard int
}

// batch is what is to be done on one shard.
type batch struct {
	batchKey
	items      []int
	operations []shard.Operation
}

// add begins with an action.
func (b *batches) add(i int) {
	a := &b.actions[i]
	b.items[i] = BulkItem{Action: a.name, Index: a.index, ID: a.id, HasID: a.hasID}
	if ix := b.engine.index(a.index); ix != nil && ix.open() != nil {
		b.items[i].Err = ix.open()
		return
	}
	if a.hasID && a.id == "" && (a.name == "index" || a.name == "create") {
		b.items[i].Err = &search.InvalidError{Reason: "_id must not be empty; leave it out to be given one"}
		return
	}
	if a.id == "" {
		made := putting(a.index, a.id, a.source, a.name == "create")
		made.when = a.when
		*a = made
	}
	ix, op, err := b.engine.prepare(*a)
	if err != nil {
		b.items[i].Err = err
		return
	}
	key := batchKey{ix, ix.router.shard(op.ID)}
	of := b.byShard[key]
	if of == nil && ix.now.Load().alone(key.shard, b.engine.self) {
		r, err := b.engine.write(ix, key.shard, &op)
		b.settle(i, r, err)
		return
	}
	if of == nil {
		of = &batch{batchKey: key}
		if b.byShard == nil {
			b.byShard = make(map[batchKey]*batch)
		}
		b.byShard[key] = of
	}
	of.items = append(of.items, i)
	of.operations = append(of.operations, op)
}

// settle notes what became of an action. When its index was deleted meanwhile, it is made anew.
func (b *batches) settle(i int, r DocumentResult, err error) {
	if errors.Is(err, errIndexClosed) {
		r, err = b.engine.carryOut(b.actions[i])
	}
	b.items[i].Result, b.items[i].Err = r, err
	if err == nil {
		b.items[i].ID = r.ID
	}
}

// batchesAtOnce bounds how many shards one bulk request works on at once.
const batchesAtOnce = 16

// run carries out what was put together.
func (b *batches) run() {
	var running sync.WaitGroup
	slots := make(chan struct{}, batchesAtOnce)
	for _, of := range b.byShard {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			written, err := b.engine.send(of.index, of.shard, of.operations)
			for at, i := range of.items {
				if err != nil {
					b.settle(i, DocumentResult{}, err)
					continue
				}
				o := &written.Outcomes[at]
				b.settle(i, of.index.result(of.operations[at].ID, o, written), o.Err)
			}
		})
	}
	running.Wait()
}

// parseBulk reads a bulk body without carrying anything out.
func parseBulk(index string, body []byte, when []Condition) ([]action, error) {
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
		var all Condition
		for _, c := range when {
			all = c
		}
		a, err := parseAction(line, number, all)
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
		if e, ok := errors.AsType[*search.ValidationError](a.when.apply(&shard.Operation{Kind: operationKinds[a.name]})); ok {
			for _, problem := range e.Problems {
				problems = append(problems, fmt.Sprintf("the action in line %d: %s", number, problem))
			}
		}
		if a.name != "delete" {
			if len(rest) == 0 {
				return nil, &search.InvalidError{Reason: fmt.Sprintf("the action [%s] in line %d has no line with a document after it", a.name, number)}
			}
			a.source, rest, _ = bytes.Cut(rest, []byte("\n"))
			number++
		}
		if a.name == "update" {
			u, err := parseUpdate(a.source)
			if invalid, ok := errors.AsType[*search.ValidationError](err); ok {
				for _, problem := range invalid.Problems {
					problems = append(problems, fmt.Sprintf("the document in line %d: %s", number, problem))
				}
			} else if err != nil {
				return nil, err
			}
			a.update = &u
			if a.when.numbered && (u.upsert != nil || u.docAsUpsert) {
				problems = append(problems, fmt.Sprintf("the action in line %d: an upsert creates a document, which has no [if_seq_no] yet", number))
			}
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
	// bulkConditions are parts of an action that say when it is carried out.
	bulkConditions = []string{"version", "version_type", "if_seq_no", "if_primary_term", "require_alias"}
	// bulkIgnored are parts of an action that change nothing here: documents lie
	// where their id says, and updates repeat as needed.
	bulkIgnored = []string{"routing", "_routing", "retry_on_conflict", "dynamic_templates"}
)

// parseAction reads a line such as {"index":{"_index":"a","_id":"1"}}.
func parseAction(line []byte, number int, when Condition) (a action, err error) {
	a.when = when
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
		case slices.Contains(bulkConditions, m.Name) && m.Value.Scalar():
			if err := a.when.Set(m.Name, m.Value.Text); err != nil {
				return a, err
			}
		case m.Name == "pipeline" && m.Value.Scalar():
			if err := NoPipeline(m.Value.Text); err != nil {
				return a, err
			}
		case slices.Contains(bulkIgnored, m.Name):
		default:
			return a, malformedAction(number, fmt.Sprintf("[%s] is not a parameter that this server knows", m.Name))
		}
	}
	if a.name == "update" && (a.when.versioned || a.when.typed) {
		return a, malformedAction(number, "an update has no version: use [if_seq_no] and [if_primary_term]")
	}
	return a, nil
}

func malformedAction(number int, why string) error {
	return &search.InvalidError{Reason: fmt.Sprintf("malformed action in line %d of the bulk request: %s", number, why)}
}
