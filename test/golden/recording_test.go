package golden_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorded is a request with the answer that OpenSearch 3.9.0 gave to it. Free text is "<text>" there.
type recorded struct {
	Name    string            `json:"name"`
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers"`
	Body    *string           `json:"body"`
	Status  int               `json:"status"`
	Answer  map[string]string `json:"response_headers"`
	JSON    json.RawMessage   `json:"json"`
	Text    string            `json:"text"`
}

// recording is one file of cases.
type recording struct {
	name  string // of the file, without its extension
	cases []recorded
}

func recordings(t *testing.T) []recording {
	t.Helper()
	files, err := filepath.Glob("testdata/*.json")
	must(t, err)
	var all []recording
	for _, file := range files {
		b, err := os.ReadFile(file)
		must(t, err)
		r := recording{name: strings.TrimSuffix(filepath.Base(file), ".json")}
		must(t, json.Unmarshal(b, &r.cases))
		all = append(all, r)
	}
	return all
}

// removedNote is what the recorder wrote below an answer when it took away again what the request had created.
const removedNote = "\n\n# (it was accepted; removed again)"

// removed says whether the recorder took away again what the case had created.
func (c *recorded) removed() bool { return strings.HasSuffix(c.Text, removedNote) }

// text is the answer as it was, without the recorder's notes, which stand behind an empty line.
func (c *recorded) text() string {
	answer, _, _ := strings.Cut(c.Text, "\n\n# ")
	answer, _, _ = strings.Cut(answer, cutNote)
	return answer
}

// cutNote begins what the recorder wrote where it left off a long answer.
const cutNote = "\n…[trimmed by the recorder"

func (c *recorded) isCut() bool { return strings.Contains(c.Text, cutNote) }

// hasJSON says whether the recorded answer is a JSON document, however it was written down.
func (c *recorded) hasJSON() bool {
	return len(c.JSON) > 0 && string(c.JSON) != "null" || strings.HasPrefix(c.Answer["content-type"], "application/json") && c.Text != ""
}

func (c *recorded) document() []byte {
	if c.Text != "" {
		return []byte(c.text())
	}
	return c.JSON
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
