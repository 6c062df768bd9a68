package rules

import (
	"fmt"
	"slices"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/internal/jsondoc"
)

const members = "a rule has description, index_pattern, principal (username, role) and workload_group"

// ParsePatch reads the body of a request that creates or updates a rule. Values of the
// wrong kind are refused here; what else is wrong is told, all at once, by who makes
// the change. The error is an *InvalidError, or a *jsondoc.SyntaxError where the body
// is not JSON.
func ParsePatch(body []byte) (Patch, error) {
	r := patchReader{body: body}
	document, err := jsondoc.Parse(body)
	if err != nil {
		return Patch{}, err
	}
	if document.Kind != jsondoc.Object {
		return Patch{}, r.wrongKind("the body", document, "send an object")
	}
	for _, m := range document.Members {
		if err := r.member(m); err != nil {
			return Patch{}, err
		}
	}
	return r.patch, nil
}

// patchReader gathers a patch from the members of a body.
type patchReader struct {
	body  []byte
	patch Patch
}

func (r *patchReader) member(m jsondoc.Member) error {
	switch m.Name {
	case "description":
		return r.text(&r.patch.Description, m.Name, m.Value)
	case "workload_group":
		return r.text(&r.patch.Group, m.Name, m.Value)
	case IndexPattern:
		return r.list(&r.patch.Indices, m.Name, m.Value)
	case "principal":
		return r.principal(m.Value)
	case "id", "updated_at": // the server's to say; what a client sends, as from a GET, is passed over
		if m.Value.Kind == jsondoc.Object || m.Value.Kind == jsondoc.Array {
			return r.wrongKind(m.Name, m.Value, "leave it out, the server sets it")
		}
		return nil
	}
	r.patch.unknown = append(r.patch.unknown, fmt.Sprintf("[%s] is no attribute of a rule; %s", abridge(m.Name), members))
	return nil
}

func (r *patchReader) principal(v *jsondoc.Value) error {
	if v.Kind != jsondoc.Object {
		return r.wrongKind("principal", v, `give an object such as {"username":["ann"]}`)
	}
	for _, m := range v.Members {
		var err error
		switch key := "principal." + m.Name; key {
		case Username:
			err = r.list(&r.patch.Usernames, key, m.Value)
		case Role:
			err = r.list(&r.patch.Roles, key, m.Value)
		default:
			err = r.misplaced(fmt.Sprintf("[%s] is no part of [principal]; it has username and role", abridge(m.Name)), m.Offset)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *patchReader) text(f *groups.Field[string], key string, v *jsondoc.Value) error {
	if v.Kind != jsondoc.String {
		return r.wrongKind(key, v, "give a string")
	}
	*f = groups.Value(v.Text)
	return nil
}

// list reads the patterns of an attribute and leaves out those that it has had.
func (r *patchReader) list(f *groups.Field[[]string], key string, v *jsondoc.Value) error {
	const remedy = "give an array of strings"
	if v.Kind != jsondoc.Array {
		return r.wrongKind(key, v, remedy)
	}
	values := []string{}
	for _, item := range v.Items {
		if item.Kind != jsondoc.String {
			return r.wrongKind(key, item, remedy)
		}
		// The first of too many are all that a message needs, and comparing them all costs their square.
		if len(values) <= MaxValues && !slices.Contains(values, item.Text) {
			values = append(values, item.Text)
		}
	}
	*f = groups.Value(values)
	return nil
}

func (r *patchReader) wrongKind(key string, v *jsondoc.Value, remedy string) error {
	shown := abridge(v.Text)
	switch v.Kind {
	case jsondoc.Object:
		shown = "{…}"
	case jsondoc.Array:
		shown = "[…]"
	}
	return r.misplaced(fmt.Sprintf("the value [%s] of [%s] is of the wrong kind, %s; %s", shown, key, v.Kind, remedy), v.Offset)
}

func (r *patchReader) misplaced(problem string, offset int) error {
	line, column := jsondoc.Position(r.body, offset)
	return &InvalidError{Problems: []string{problem}, Line: line, Column: column}
}
