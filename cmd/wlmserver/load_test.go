package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLoad(t *testing.T) {
	s := serve(t, "-E", "path.data="+t.TempDir())
	s.group(t)
	body := filepath.Join(t.TempDir(), "body.json")
	if err := os.WriteFile(body, []byte(`{"size":0}`), 0o600); err != nil {
		t.Fatal(err)
	}

	code, stdout, stderr := call(t, "", "load", "--requests", "40", "--clients", "4", "--group", "one=2", "--body", "@"+body, "-q", s.url)
	if code != 0 || !strings.Contains(stdout, "sent 40") || !strings.Contains(stdout, "ok ") || strings.Contains(stdout, "DIFFERS") || stderr != "" {
		t.Errorf("ended with %d\n%s\n%s", code, stdout, stderr)
	}

	code, stdout, stderr = call(t, "", "load", "--rate", "100/s", "--requests", "10", "--json", s.url)
	var told struct {
		Loop string
		Sent int
	}
	if err := json.Unmarshal([]byte(stdout), &told); err != nil || code != 0 || told.Loop != "open" || told.Sent != 10 {
		t.Errorf("ended with %d: %v\n%s\n%s", code, err, stdout, stderr)
	}
}

func TestLoadCalledWrongly(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"no URL":      {nil, exitUsage, []string{"URL"}},
		"rate":        {[]string{"--rate", "fast", "http://127.0.0.1:1"}, exitUsage, []string{"--rate", "fast", "200/s"}},
		"weight":      {[]string{"--group", "a=0", "http://127.0.0.1:1"}, exitUsage, []string{"--group", "a=0"}},
		"user":        {[]string{"--user", "alice", "http://127.0.0.1:1"}, exitUsage, []string{"--user", "alice", "name:password"}},
		"body":        {[]string{"--body", "@/no/such/file", "http://127.0.0.1:1"}, exitUsage, []string{"--body", "/no/such/file"}},
		"duration":    {[]string{"--duration", "long", "http://127.0.0.1:1"}, exitUsage, []string{"--duration", "long"}},
		"nobody home": {[]string{"http://127.0.0.1:1"}, exitFailure, []string{"http://127.0.0.1:1", "refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := call(t, "", append([]string{"load"}, c.args...)...)
			if code != c.code || stdout != "" {
				t.Errorf("ended with %d: %s", code, stdout)
			}
			for _, w := range c.want {
				if !strings.Contains(stderr, w) {
					t.Errorf("the message does not speak of %q: %s", w, stderr)
				}
			}
		})
	}
}
