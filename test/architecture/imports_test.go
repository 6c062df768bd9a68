// Package architecture checks the shape of the whole: which of our packages may import
// which, what the packages that others import as a library may bring along, and a few
// habits that a compiler does not see.
package architecture_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/wlmserver/wlmserver"

// arrows says which of our packages each of our packages may import. A package that is
// not here is an error, so that a new one finds its place before it finds its users.
var arrows = map[string][]string{
	"internal/units":   {},
	"internal/jsondoc": {},
	"internal/nearest": {},

	"internal/certificate":                 {},
	"internal/certificate/certificatetest": {"internal/certificate"},
	"internal/faults":                      leaf,

	"records":             {},
	"records/recordstest": {"records"},
	"groups":              slices.Concat(leaf, []string{"records"}),
	"settings":            slices.Concat(leaf, []string{"records"}),
	"tasks":               leaf,
	"auth":                leaf,
	"internal/sharedtier": leaf,
	"internal/shard":      leaf,

	"rules":  slices.Concat(leaf, []string{"groups", "records"}),
	"wlm":    {"groups", "internal/sharedtier"},
	"search": {"wlm", "tasks", "groups", "rules", "settings", "internal/units"},
	"stats":  {"wlm", "tasks", "groups"},

	"store":          {"groups", "rules", "settings", "records"},
	"store/contract": {"groups", "rules", "settings", "records"},

	"internal/stub": slices.Concat(leaf, []string{"search", "tasks", "records", "internal/shard"}),
	"api/rest": slices.Concat(leaf, []string{
		"search", "stats", "records", "groups", "rules", "settings", "tasks", "auth", "wlm", "internal/stub", "internal/faults",
	}),

	"internal/cluster/ring":           {},
	"internal/cluster/indices":        {"records"},
	"internal/cluster/meta":           {"internal/cluster/ring", "records", "groups", "rules", "settings"},
	"internal/cluster/tier":           {"internal/cluster/ring", "wlm", "internal/sharedtier"},
	"internal/cluster/tier/tiertest":  {"internal/cluster/ring", "internal/cluster/tier", "internal/sharedtier"},
	"internal/cluster/peer/clusterpb": {},
	"internal/cluster/peer": {
		"internal/cluster/ring", "internal/cluster/tier", "internal/cluster/peer/clusterpb",
		"wlm", "groups", "internal/sharedtier", "internal/shard", "internal/certificate",
	},

	"internal/cluster": {
		"internal/cluster/ring", "internal/cluster/meta", "internal/cluster/tier", "internal/cluster/peer", "internal/certificate", "internal/shard", "wlm",
	},

	"internal/node": slices.Concat(leaf, public, []string{
		"internal/sharedtier", "internal/shard", "internal/stub", "internal/certificate",
		"internal/cluster", "internal/cluster/ring", "internal/cluster/peer", "internal/cluster/indices",
	}),
	"wlmtest":       {"internal/node"},
	"internal/load": {}, // a client: it knows HTTP only
	"internal/demo": {"internal/node", "internal/load"},
	"cmd/wlmserver": slices.Concat(public, []string{"internal/node", "internal/demo", "internal/load"}),
}

// leaf is what a package may import that knows no other of ours.
var leaf = []string{"internal/units", "internal/jsondoc", "internal/nearest"}

// public are the packages outside internal that sit below internal/node.
var public = []string{"records", "groups", "rules", "settings", "tasks", "auth", "wlm", "search", "stats", "store", "api/rest"}

// wholeServer is what the packages under test/ may import, beside one another: they drive
// the server as a whole, or its public parts.
var wholeServer = slices.Concat(public, []string{"internal/node", "wlmtest", "test/server", "test/history", "test/openapi"})

// contracts are what tests use beside what their package rests on: the suites that implementations of a port run, the server
// that a client is tried against, and the description that a server is held to.
var contracts = map[string][]string{
	"store":         {"store/contract"},
	"records":       {"records/recordstest", "store/contract"},
	"groups":        {"records/recordstest"},
	"rules":         {"records/recordstest"},
	"settings":      {"records/recordstest"},
	"internal/stub": {"records/recordstest"},
	"internal/load": {"wlmtest"},
	"api/rest":      {"test/openapi"},

	"internal/certificate":     {"internal/certificate/certificatetest"},
	"internal/cluster/indices": {"records/recordstest"},
	"internal/cluster/tier":    {"internal/cluster/tier/tiertest"},
	"internal/cluster/peer":    {"internal/certificate/certificatetest", "internal/stub", "test/faultproxy"},
}

// libraries are the packages that others import without the server, with the modules of
// third parties that each may bring along. One more is paid for by every user.
var libraries = map[string][]string{
	"wlm":     {"github.com/google/uuid"},
	"records": {},
	"groups":  {"github.com/google/uuid"},
	"rules":   {"github.com/google/uuid"},
	"tasks":   {},
}

// vagueNames say nothing about what a package is for.
var vagueNames = []string{"util", "utils", "common", "helper", "helpers", "models", "types"}

// listed is what go list tells about a package.
type listed struct {
	ImportPath   string
	Name         string
	Dir          string
	Standard     bool
	Module       *struct{ Path string }
	GoFiles      []string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func TestImports(t *testing.T) {
	for _, p := range list(t, "./...") {
		name := short(p.ImportPath)
		allowed, known := arrows[name]
		if strings.HasPrefix(name, "test/") {
			allowed, known = wholeServer, true
		}
		if !known {
			t.Errorf("package %s is not in the table of this test: say there what it may import", name)
			continue
		}
		for _, to := range ours(p.Imports) {
			if !slices.Contains(allowed, to) {
				t.Errorf("%s imports %s; it may import only %s", name, to, orNothing(allowed))
			}
		}

		// A test may use all that its package rests on, however deep.
		below := reachable(slices.Concat(allowed, contracts[name]))
		for _, to := range ours(slices.Concat(p.TestImports, p.XTestImports)) {
			if to != name && !slices.Contains(below, to) {
				t.Errorf("a test of %s imports %s; it may import only the package itself and %s", name, to, orNothing(below))
			}
		}
	}
}

func TestArrowsPointDown(t *testing.T) {
	for from := range arrows {
		if slices.Contains(reachable(arrows[from]), from) {
			t.Errorf("the table lets %s import itself by way of others", from)
		}
	}
	for from, to := range arrows {
		for _, name := range to {
			if _, known := arrows[name]; !known {
				t.Errorf("the table lets %s import %s, which it does not know", from, name)
			}
		}
	}
}

func TestPackageNames(t *testing.T) {
	for _, p := range list(t, "./...") {
		if slices.Contains(vagueNames, p.Name) || slices.Contains(vagueNames, path.Base(p.ImportPath)) {
			t.Errorf("package %s: name it after its one idea", short(p.ImportPath))
		}
	}
}

func TestLibrariesStayLight(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(libraries)) {
		brought := map[string]bool{}
		for _, p := range list(t, "-deps", "./"+name) {
			if !p.Standard && p.Module != nil && p.Module.Path != module {
				brought[p.Module.Path] = true
			}
		}
		for _, m := range slices.Sorted(maps.Keys(brought)) {
			if !slices.Contains(libraries[name], m) {
				t.Errorf("%s brings along the module %s; it may bring only %s", name, m, orNothing(libraries[name]))
			}
		}
	}
}

func TestNoInitFunctions(t *testing.T) {
	for _, p := range list(t, "./...") {
		for _, file := range p.GoFiles {
			name := filepath.Join(p.Dir, file)
			parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution|parser.ParseComments)
			if err != nil {
				t.Error(err)
				continue
			}
			if ast.IsGenerated(parsed) {
				continue // protobuf's messages register themselves
			}
			for _, decl := range parsed.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
					t.Errorf("%s/%s has an init function: build it in a constructor", short(p.ImportPath), file)
				}
			}
		}
	}
}

// list runs go list. It goes on past packages that do not build (-e): their imports are
// there to be read, and what is wrong with them the compiler says.
func list(t *testing.T, args ...string) []listed {
	t.Helper()
	root := moduleRoot(t)
	cmd := exec.CommandContext(t.Context(), "go", append([]string{
		"list", "-e", "-json=ImportPath,Name,Dir,Standard,Module,GoFiles,Imports,TestImports,XTestImports",
	}, args...)...)
	cmd.Dir = root
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}

	var all []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the answer of go list: %v", err)
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		t.Fatal("go list named no package")
	}
	return all
}

// moduleRoot returns the folder of go.mod. It opens every Go file below: go test takes an
// old result for a new run unless a file that the test itself opened has changed, and it
// does not see what go list reads.
func moduleRoot(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != root && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case strings.HasSuffix(name, ".go"), d.Name() == "go.mod":
			f, err := os.Open(name)
			if err != nil {
				return err
			}
			return f.Close()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// reachable returns what can be reached from the packages by the table, with themselves.
func reachable(from []string) []string {
	seen := map[string]bool{}
	for todo := slices.Clone(from); len(todo) > 0; {
		name := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !seen[name] {
			seen[name] = true
			todo = append(todo, arrows[name]...)
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// ours returns those of the import paths that are packages of this module, shortened.
func ours(imports []string) []string {
	var names []string
	for _, i := range imports {
		if i == module || strings.HasPrefix(i, module+"/") {
			names = append(names, short(i))
		}
	}
	return names
}

// short returns the import path without the module's.
func short(importPath string) string {
	return strings.TrimPrefix(strings.TrimPrefix(importPath, module), "/")
}

func orNothing(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
