// Package docs_test holds the documentation to what the program does: its tables name
// every key, setting, metric and field, its links lead somewhere, its Go code compiles.
package docs_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/wlmserver/wlmserver/internal/node"
	"github.com/wlmserver/wlmserver/settings"
	"github.com/wlmserver/wlmserver/wlmtest"
)

const root = "../.."

// read returns a page, named from the root of the repository.
func read(t *testing.T, page string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// rows returns the cells of the table rows of a page by their first cell, without
// its backquotes.
func rows(t *testing.T, page string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for line := range strings.Lines(read(t, page)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		cells := strings.Split(strings.ReplaceAll(strings.Trim(line, "|"), `\|`, "\x00"), "|")
		for i, cell := range cells {
			cells[i] = strings.ReplaceAll(strings.TrimSpace(cell), "\x00", "|")
		}
		found[strings.Trim(cells[0], "`")] = cells
	}
	return found
}

func TestConfigurationTable(t *testing.T) {
	table := rows(t, "docs/configuration.md")
	for _, k := range node.Keys() {
		row, ok := table[k.Name]
		if !ok {
			t.Errorf("docs/configuration.md has no row for %s", k.Name)
			continue
		}
		delete(table, k.Name)
		want := k.Derived
		if k.Default != "" {
			want = "`" + k.Default + "`"
		}
		if got := row[2]; got != want && (want != "" || got != "none") {
			t.Errorf("docs/configuration.md gives %s the default %s, the program %s", k.Name, got, want)
		}
	}
	delete(table, "key")
	delete(table, "---")
	for name := range table {
		t.Errorf("docs/configuration.md has a row for %s, which is no key", name)
	}
}

func TestSettingsTable(t *testing.T) {
	table := rows(t, "docs/settings.md")
	for _, s := range settings.Catalogue() {
		if !s.Dynamic {
			continue
		}
		acts := "no"
		if s.Acts {
			acts = "**yes**"
		}
		want := []string{"`" + s.Key + "`", string(s.Type), "`" + s.Default + "`", s.Bounds, acts}
		if got := table[s.Key]; !slices.Equal(got, want) {
			t.Errorf("docs/settings.md\nhas  %q\nwant %q", got, want)
		}
	}
}

// TestMetricsTable compares the names that a server gives with those of the page, both ways.
func TestMetricsTable(t *testing.T) {
	table := rows(t, "docs/statistics.md")
	s := wlmtest.Start(t)
	_, text := s.Do("GET", "/metrics", "")
	for line := range strings.Lines(string(text)) {
		word := strings.Fields(line)
		if len(word) != 4 || word[1] != "TYPE" {
			continue
		}
		name, kind := word[2], word[3]
		if row, ok := table[name]; !ok || row[1] != kind {
			t.Errorf("docs/statistics.md has no row for the %s %s", kind, name)
		}
		delete(table, name)
	}
	for name := range table {
		if strings.HasPrefix(name, "wlmserver_") {
			t.Errorf("docs/statistics.md has a row for %s, which is no metric", name)
		}
	}
}

// TestStatsFields looks for each field of _wlm/stats.
func TestStatsFields(t *testing.T) {
	page := read(t, "docs/statistics.md")
	s := wlmtest.Start(t)
	_, answer := s.Do("GET", "/_wlm/stats/DEFAULT_WORKLOAD_GROUP", "")
	var tree map[string]json.RawMessage
	if err := json.Unmarshal(answer, &tree); err != nil {
		t.Fatal(err)
	}
	fields := 0
	for _, value := range tree {
		var node struct {
			Groups map[string]map[string]any `json:"workload_groups"`
		}
		if json.Unmarshal(value, &node) != nil || node.Groups == nil {
			continue
		}
		for field, value := range node.Groups["DEFAULT_WORKLOAD_GROUP"] {
			fields++
			if _, nested := value.(map[string]any); nested {
				field += "."
			}
			if !strings.Contains(page, "`"+field) {
				t.Errorf("docs/statistics.md does not name %s", field)
			}
		}
	}
	if fields == 0 {
		t.Errorf("no field in %s", answer)
	}
}

// TestRoutes asks a server for the methods of each path that the page names, and compares.
func TestRoutes(t *testing.T) {
	code := regexp.MustCompile("`([^`]+)`")
	parameter := regexp.MustCompile(`\{[^}]*\}`)
	methods := map[string][]string{}
	for line := range strings.Lines(read(t, "docs/rest-api.md")) {
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		var group []string // the methods of the paths that follow them
		closed := false
		for _, m := range code.FindAllStringSubmatch(cell, -1) {
			switch word := m[1]; {
			case strings.HasPrefix(word, "/") && len(group) > 0:
				path := parameter.ReplaceAllString(word, "a")
				methods[path] = append(methods[path], group...)
				closed = true
			case slices.Contains([]string{"GET", "HEAD", "PUT", "POST", "DELETE"}, word) && strings.HasPrefix(line, "| `"):
				if closed {
					group, closed = nil, false
				}
				group = append(group, word)
			}
		}
	}
	if len(methods) == 0 {
		t.Fatal("docs/rest-api.md names no path")
	}
	s := wlmtest.Start(t)
	for path, documented := range methods {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		allowed := strings.Split(resp.Header.Get("Allow"), ",")
		slices.Sort(allowed)
		slices.Sort(documented)
		if !slices.Equal(allowed, documented) {
			t.Errorf("docs/rest-api.md gives %s the methods %v, the server %v", path, documented, allowed)
		}
	}
}

// TestLinks follows the links between pages, and to their headings.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, page := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(withoutCode(read(t, page)), -1) {
			target := m[1]
			if strings.Contains(target, "://") {
				continue
			}
			file, anchor, _ := strings.Cut(target, "#")
			to := page
			if file != "" {
				to = filepath.ToSlash(filepath.Join(filepath.Dir(page), file))
			}
			info, err := os.Stat(filepath.Join(root, to))
			if err != nil {
				t.Errorf("%s links to %s: %v", page, target, err)
				continue
			}
			if anchor != "" && !info.IsDir() && !slices.Contains(anchors(read(t, to)), anchor) {
				t.Errorf("%s links to %s: there is no such heading", page, target)
			}
		}
	}
}

// TestCodeCompiles checks every block of Go that is a whole file, in a module of its own
// as a reader would.
func TestCodeCompiles(t *testing.T) {
	dir := t.TempDir()
	files := 0
	for _, page := range pages(t) {
		for _, block := range goBlocks(read(t, page)) {
			if !strings.HasPrefix(block, "package ") {
				continue
			}
			files++
			folder := filepath.Join(dir, fmt.Sprintf("%s_%d", strings.NewReplacer("/", "_", ".", "_").Replace(page), files))
			name := "main.go"
			if strings.Contains(block, "testing.T") {
				name = "block_test.go"
			}
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(folder, name), block)
		}
	}
	if files == 0 {
		t.Fatal("no page has a block of Go that is a whole file")
	}

	abs, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	const module = "github.com/wlmserver/wlmserver"
	requires := strings.Replace(read(t, "go.mod"), "module "+module, "module example", 1)
	write(t, filepath.Join(dir, "go.mod"), requires+
		"\nrequire "+module+" v0.0.0\nreplace "+module+" => "+abs+"\n")
	write(t, filepath.Join(dir, "go.sum"), read(t, "go.sum"))
	cmd := exec.CommandContext(t.Context(), "go", "vet", "-mod=mod", "./...")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// pages lists the Markdown files of the repository.
func pages(t *testing.T) []string {
	t.Helper()
	found := map[string]bool{}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case strings.HasSuffix(name, ".md"):
			found[name] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(found))
}

var fenced = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```")

// withoutCode returns a page without its blocks of code.
func withoutCode(page string) string { return fenced.ReplaceAllString(page, "") }

// goBlocks returns the blocks of Go of a page.
func goBlocks(page string) []string {
	var blocks []string
	for _, m := range fenced.FindAllStringSubmatch(page, -1) {
		if m[1] == "go" {
			blocks = append(blocks, m[2])
		}
	}
	return blocks
}

var notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// anchors returns the names by which a page's headings can be linked to.
func anchors(page string) []string {
	var names []string
	for line := range strings.Lines(withoutCode(page)) {
		if heading := strings.TrimLeft(line, "#"); heading != line && strings.HasPrefix(heading, " ") {
			name := notInAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
			names = append(names, strings.ReplaceAll(name, " ", "-"))
		}
	}
	return names
}
