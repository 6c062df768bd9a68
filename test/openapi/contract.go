package openapi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// File is the name of the description, in the root of the module.
const File = "openapi.yaml"

// Contract is the description, read. It is safe for concurrent use.
type Contract struct {
	doc    *openapi3.T
	routes []route
}

// route is one operation of the description.
type route struct {
	method   string
	path     string // with parameters in braces
	segments []string
	item     *openapi3.PathItem
	*openapi3.Operation
}

// Load reads the description in the nearest folder above that has one, and checks that it is a valid one with examples that fit their
// schemas: tests run in the folder of their package, those of modules within this one too.
func Load() (*Contract, error) {
	root, err := describedRoot()
	if err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromFile(filepath.Join(root, File))
	if err != nil {
		return nil, err
	}
	if err := doc.Validate(context.Background(), openapi3.EnableExamplesValidation()); err != nil {
		return nil, fmt.Errorf("%s: %w", File, err)
	}
	c := &Contract{doc: doc}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			c.routes = append(c.routes, route{method, path, strings.Split(path, "/"), item, op})
		}
	}
	return c, nil
}

// describedRoot is the nearest folder above with a description.
func describedRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, File)); err == nil {
			return dir, nil
		}
		above := filepath.Dir(dir)
		if above == dir {
			return "", errors.New("no " + File + " in or above the working directory: run the test with go test")
		}
		dir = above
	}
}

// Operation is what the description says of a method of a path, as far as a table of routes says it too.
type Operation struct {
	Method, Path string   // with parameters in braces
	Parameters   []string // of the query, sorted
	Body         Body
	Admin        bool // only for administrators, where there are users
}

// Body says whether an operation takes a body.
type Body string

// What an operation does with a body.
const (
	NoBody       Body = "none"
	OptionalBody Body = "optional"
	RequiredBody Body = "required"
)

// Operations are all operations of the description.
func (c *Contract) Operations() []Operation {
	var all []Operation
	for _, r := range c.routes {
		op := Operation{Method: r.method, Path: r.path, Parameters: r.query(), Body: NoBody, Admin: r.Extensions["x-admin"] == true}
		if b := r.RequestBody; b != nil && b.Value.Required {
			op.Body = RequiredBody
		} else if b != nil {
			op.Body = OptionalBody
		}
		all = append(all, op)
	}
	return all
}

// query are the names of the query parameters.
func (r *route) query() []string {
	names := map[string]bool{}
	for _, p := range slices.Concat(r.item.Parameters, r.Parameters) {
		if p.Value.In == openapi3.ParameterInQuery {
			names[p.Value.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// find is the operation that answers a request; nil if there is none. The path is as it was sent, with its escapes. As in
// the server, a path that is described as it stands is never taken for one with parameters, a parameter is never empty, and
// of several patterns the one wins that is fixed where the others have a parameter, from the left.
func (c *Contract) find(method string, u *url.URL) *route {
	path := sentPath(u)
	if n := len(path) - 1; n > 0 && path[n] == '/' && path[n-1] != '/' {
		path = path[:n]
	}
	fixed := c.doc.Paths.Value(path) != nil
	segments := strings.Split(path, "/")
	var best *route
	for i := range c.routes {
		r := &c.routes[i]
		if r.method != method || fixed && r.path != path || !r.matches(segments) {
			continue
		}
		if best == nil || r.moreFixed(best) {
			best = r
		}
	}
	return best
}

// moreFixed says whether the pattern goes before another one that matches the same path.
func (r *route) moreFixed(than *route) bool {
	for i, segment := range r.segments {
		if here, there := isParameter(segment), isParameter(than.segments[i]); here != there {
			return there
		}
	}
	return false
}

func isParameter(segment string) bool { return strings.HasPrefix(segment, "{") }

func (r *route) matches(path []string) bool {
	return slices.EqualFunc(r.segments, path, func(pattern, sent string) bool {
		if isParameter(pattern) {
			return sent != ""
		}
		return pattern == sent
	})
}

// outside are the answers to requests that no operation takes, and to those that are refused before it is known which does:
// names of components/responses.
func outside(status int) []string {
	switch status {
	case http.StatusBadRequest:
		return []string{"NoSuchPath", "BadRequest"}
	case http.StatusUnauthorized:
		return []string{"Unauthorized"}
	case http.StatusForbidden:
		return []string{"Forbidden"}
	case http.StatusMethodNotAllowed:
		return []string{"MethodNotAllowed"}
	case http.StatusRequestEntityTooLarge:
		return []string{"TooLarge"}
	case http.StatusExpectationFailed:
		return []string{"ExpectationFailed"}
	case http.StatusInternalServerError:
		return []string{"InternalError"}
	}
	return nil
}

// sentPath is the path as it was sent. EscapedPath would write one anew that holds bytes which should have been escaped, such as
// quotes, and then an escaped slash in it for a plain one.
func sentPath(u *url.URL) string {
	if u.RawPath != "" {
		return u.RawPath
	}
	return u.EscapedPath()
}
