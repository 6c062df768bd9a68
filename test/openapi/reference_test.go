package openapi_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/wlmserver/wlmserver/test/openapi"
)

var update = flag.Bool("update", false, "write docs/rest-api.md instead of comparing it")

// TestReference compares docs/rest-api.md with what openapi.yaml makes of it.
func TestReference(t *testing.T) {
	root := filepath.Join("..", "..")
	source, err := os.ReadFile(filepath.Join(root, openapi.File))
	if err != nil {
		t.Fatal(err)
	}
	made, err := reference(source)
	if err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(root, "docs", "rest-api.md")
	if *update {
		if err := os.WriteFile(page, made, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	has, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(has, made) {
		t.Errorf("docs/rest-api.md is not what openapi.yaml makes of it, from line %d on: change openapi.yaml, then run make rest-reference", firstDifference(has, made))
	}
}

// firstDifference is the number of the first line that differs.
func firstDifference(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return 1 + bytes.Count(a[:n], []byte{'\n'})
}
