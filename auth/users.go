package auth

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
	"golang.org/x/crypto/bcrypt"

	"github.com/wlmserver/wlmserver/internal/nearest"
)

// maxCost bounds the time of a password check. Each step doubles it: 16 takes some seconds.
const maxCost = 16

// meta is the key under which OpenSearch keeps the version of its file.
const meta = "_meta"

// readUsers reads a users file.
func readUsers(path string) ([]*account, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, &UsersFileError{Path: path, Reason: fmt.Sprintf("cannot be read: %v: check auth.users_file and the rights of the file", err)}
	}
	accounts, err := parseUsers(b)
	if e, ok := errors.AsType[*UsersFileError](err); ok {
		e.Path = path
	}
	return accounts, err
}

// parseUsers reads the text of a users file. Its errors are of type *UsersFileError, without a path.
func parseUsers(b []byte) ([]*account, error) {
	var doc, more yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(b))
	err := d.Decode(&doc)
	if err == nil {
		err = d.Decode(&more)
	}
	switch {
	case err == nil:
		return nil, &UsersFileError{Line: more.Line, Reason: "a second YAML document: keep all users in one, without '---' between them"}
	case !errors.Is(err, io.EOF):
		return nil, &UsersFileError{Reason: "not valid YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	if len(doc.Content) == 0 {
		return nil, noUsers()
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, &UsersFileError{Line: root.Line, Reason: "must be a mapping of user names, each with its hash and roles"}
	}

	var accounts []*account
	lines := make(map[string]int)
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], resolve(root.Content[i+1])
		if key.Value == meta {
			continue
		}
		if err := checkName(key); err != nil {
			return nil, err
		}
		if line, dup := lines[key.Value]; dup {
			return nil, &UsersFileError{Line: key.Line, User: key.Value, Reason: fmt.Sprintf("is in line %d already: remove one of the two", line)}
		}
		lines[key.Value] = key.Line
		a, err := parseAccount(key, value)
		if err != nil {
			return nil, err
		}
		accounts = append(accounts, a)
	}
	if len(accounts) == 0 {
		return nil, noUsers()
	}
	return accounts, nil
}

func noUsers() *UsersFileError {
	return &UsersFileError{Reason: "no user in it, so that nobody could log in: add one, or remove auth.users_file from the configuration"}
}

func checkName(key *yaml.Node) error {
	switch {
	case key.Kind != yaml.ScalarNode || key.Value == "" || key.Tag == "!!null":
		return &UsersFileError{Line: key.Line, Reason: "here must be the name of a user"}
	case strings.Contains(key.Value, ":"):
		return &UsersFileError{Line: key.Line, User: key.Value, Reason: "HTTP Basic authentication allows no colon in a name: choose another one"}
	case strings.ContainsFunc(key.Value, unicode.IsControl):
		return &UsersFileError{Line: key.Line, User: key.Value, Reason: "a name must not contain control characters: choose another one"}
	}
	return nil
}

// parseAccount reads what stands under a user's name.
func parseAccount(name, value *yaml.Node) (*account, error) {
	fail := func(at *yaml.Node, format string, args ...any) (*account, error) {
		return nil, &UsersFileError{Line: at.Line, User: name.Value, Reason: fmt.Sprintf(format, args...)}
	}
	if value.Kind != yaml.MappingNode {
		return fail(name, "must be a mapping with a hash, and with roles if there are any")
	}
	a := &account{user: User{Name: name.Value}}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(value.Content); i += 2 {
		key, v := value.Content[i], resolve(value.Content[i+1])
		if seen[key.Value] {
			return fail(key, "%s is there twice: remove one of the two", key.Value)
		}
		seen[key.Value] = true
		switch key.Value {
		case "hash":
			cost, ok := hashOf(v)
			if !ok {
				return fail(key, "hash is not one of bcrypt ($2a$, $2b$ or $2y$, in quotes): make one with htpasswd -nBC 12, or take it from OpenSearch's hash.sh")
			}
			if cost > maxCost {
				return fail(key, "hash has cost %d, so that each check of it would take very long: make one with a cost of at most %d; 12 is usual", cost, maxCost)
			}
			a.hash, a.cost = []byte(v.Value), cost
		case "roles", "backend_roles", "opendistro_security_roles":
			roles, ok := rolesOf(v)
			if !ok {
				return fail(key, "%s must be a list of names, like [analyst, oncall]", key.Value)
			}
			for _, role := range roles {
				if !slices.Contains(a.user.Roles, role) {
					a.user.Roles = append(a.user.Roles, role)
				}
			}
		case "reserved", "hidden", "static", "description", "attributes":
			// OpenSearch's, without a meaning here.
		default:
			known := []string{"hash", "roles", "backend_roles", "opendistro_security_roles", "reserved", "hidden", "static", "description", "attributes"}
			if meant := nearest.Name(key.Value, known...); meant != "" {
				return fail(key, "unknown key %q: did you mean %q?", key.Value, meant)
			}
			return fail(key, "unknown key %q: known are %s", key.Value, strings.Join(known, ", "))
		}
	}
	if a.hash == nil {
		return fail(name, "has no hash: add the bcrypt hash of the password")
	}
	return a, nil
}

// resolve follows an alias to what it stands for.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// bcryptHash has the cost as its only group. Of the hash itself it checks the alphabet and the length, so that bcrypt never
// gives up on it early.
var bcryptHash = regexp.MustCompile(`^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$`)

// hashOf reads the cost of a hash.
func hashOf(n *yaml.Node) (cost int, ok bool) {
	if n.Kind != yaml.ScalarNode {
		return 0, false
	}
	parts := bcryptHash.FindStringSubmatch(n.Value)
	if parts == nil {
		return 0, false
	}
	cost, err := strconv.Atoi(parts[1])
	return cost, err == nil && cost >= bcrypt.MinCost && cost <= bcrypt.MaxCost
}

// rolesOf reads a list of names; nothing at all is the empty one.
func rolesOf(n *yaml.Node) (roles []string, ok bool) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil, true
	}
	if n.Kind != yaml.SequenceNode {
		return nil, false
	}
	for _, item := range n.Content {
		item = resolve(item)
		if item.Kind != yaml.ScalarNode || item.Tag == "!!null" || strings.TrimSpace(item.Value) == "" {
			return nil, false
		}
		roles = append(roles, item.Value)
	}
	return roles, true
}
