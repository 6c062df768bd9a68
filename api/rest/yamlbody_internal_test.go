package rest

import (
	"encoding/json"
	"errors"
	"testing"
)

// FuzzReadYAML: whatever is sent, what comes out of it is JSON, or an error that blames the request.
func FuzzReadYAML(f *testing.F) {
	for _, seed := range []string{
		"name: a\nresource_limits: {cpu: 0.1}\n", "- 1\n- [0x1f, 0o17, 1_000, .inf, ~, true, 2001-01-01]\n", "--- |\n text\n...\n", "", "# nothing",
		"a: &x 1\nb: *x\n", "<<: {a: 1}\n", "? [a]\n: b\n", "!!binary aGk=", "!!float x", "!!int 'x'", "!!bool maybe", "!x {a: b}", "a: 1\n---\nb: 2\n", "\"\\ud83d\"", "{\"a\": 1e400}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		document, err := readYAML(body)
		if err != nil {
			if bad, ok := errors.AsType[*failure](err); !ok || bad.status != 400 || bad.reason == "" {
				t.Fatalf("error %#v", err)
			}
			return
		}
		if document != nil && !json.Valid(document) {
			t.Fatalf("%q became %q", body, document)
		}
	})
}
