package rest_test

import (
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/wlmserver/wlmserver/api/rest"
	"github.com/wlmserver/wlmserver/test/openapi"
)

// contract is openapi.yaml, which every answer of these tests is held to.
var contract = sync.OnceValues(openapi.Load)

// TestOpenAPI compares the table of routes with openapi.yaml, both ways.
func TestOpenAPI(t *testing.T) {
	c, err := contract()
	must(t, err)
	// What a parameter of a path is called is no part of the path.
	names := regexp.MustCompile(`\{[^}]*\}`)
	key := func(method, path string) string { return method + " " + names.ReplaceAllString(path, "{}") }

	described := map[string]openapi.Operation{}
	for _, op := range c.Operations() {
		described[key(op.Method, op.Path)] = op
	}
	for _, rt := range newServer(t, withControl).rest.Routes() {
		op, ok := described[key(rt.Method, rt.Pattern)]
		if !ok {
			t.Errorf("%s has no %s %s: describe it there, then run make rest-reference", openapi.File, rt.Method, rt.Pattern)
			continue
		}
		delete(described, key(rt.Method, rt.Pattern))
		compare(t, rt, op)
	}
	for _, op := range described {
		t.Errorf("%s has %s %s, which the server does not serve", openapi.File, op.Method, op.Path)
	}
}

func compare(t *testing.T, rt rest.Route, op openapi.Operation) {
	t.Helper()
	params := slices.Clone(rt.Params)
	slices.Sort(params)
	params = slices.Compact(params)
	for _, name := range params {
		if !slices.Contains(op.Parameters, name) {
			t.Errorf("%s does not name the parameter %s of %s %s", openapi.File, name, op.Method, op.Path)
		}
	}
	for _, name := range op.Parameters {
		if !slices.Contains(params, name) {
			t.Errorf("%s gives %s %s the parameter %s, which the server does not know", openapi.File, op.Method, op.Path, name)
		}
	}
	body := openapi.NoBody
	switch {
	case rt.NeedsBody:
		body = openapi.RequiredBody
	case rt.TakesBody:
		body = openapi.OptionalBody
	}
	if op.Body != body {
		t.Errorf("%s: the body of %s %s is %s, in the server it is %s", openapi.File, op.Method, op.Path, op.Body, body)
	}
	if op.Admin != rt.Admin {
		t.Errorf("%s: %s %s is for administrators only: %t, in the server: %t", openapi.File, op.Method, op.Path, op.Admin, rt.Admin)
	}
}
