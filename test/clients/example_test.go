package clients_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wlmserver/wlmserver/test/server"
)

// runExample runs what docs/clients.md shows behind a fence of that language against a server of its own. Each example finds the one
// document that it has made.
func runExample(t *testing.T, fence string, command func(file string) (*exec.Cmd, error)) {
	t.Helper()
	const elsewhere = "http://localhost:9200"
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "clients.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "\n```"+fence+"\n")
	text, _, closed := strings.Cut(rest, "\n```\n")
	if !found || !closed || !strings.Contains(text, elsewhere) {
		t.Fatalf("docs/clients.md has no example in %s that asks %s", fence, elsewhere)
	}
	file := filepath.Join(t.TempDir(), "Example."+fence)
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, elsewhere, server.Start(t).URL)), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := command(file)
	if err != nil {
		t.Fatal(err)
	}
	var complaints strings.Builder
	c.Stderr = &complaints
	if out, err := c.Output(); err != nil || strings.TrimSpace(string(out)) != "found 1" {
		t.Errorf("%v, %q\n%s", err, out, complaints.String())
	}
}
