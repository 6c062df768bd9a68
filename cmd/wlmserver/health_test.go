package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wlmserver/wlmserver/auth"
)

func TestHealth(t *testing.T) {
	s := serve(t, "-E", "path.data="+t.TempDir())
	code, stdout, stderr := call(t, "", "health", s.url, "--status", "green")
	if code != 0 || stdout != "green, 1 node\n" {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	s.ok(t, "PUT", "/copied", `{"settings":{"number_of_replicas":1}}`) // there is nowhere for the copy
	for status, want := range map[string]int{"any": 0, "red": 0, "yellow": 0, "green": exitFailure} {
		code, stdout, stderr := call(t, "", "health", s.url, "--status", status)
		if code != want || !strings.HasPrefix(stdout, "yellow, 1 node\n") {
			t.Errorf("%s: exit code %d: %s%s", status, code, stdout, stderr)
		}
	}
}

func TestHealthWithUsers(t *testing.T) {
	hash, err := auth.HashPassword("secret")
	if err != nil {
		t.Fatal(err)
	}
	users := filepath.Join(t.TempDir(), "users.yml")
	if err := os.WriteFile(users, []byte("ann:\n  hash: \""+hash+"\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, "-E", "path.data="+t.TempDir(), "-E", "auth.users_file="+users)
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{nil, 0, "asks for a user"},
		{[]string{"--status", "green"}, exitFailure, "401"},
		{[]string{"--user", "ann:secret", "--status", "green"}, 0, "green, 1 node"},
		{[]string{"--user", "ann:wrong"}, exitFailure, "401"},
		{[]string{"--user", "ann"}, exitUsage, "NAME:PASSWORD"},
	} {
		code, stdout, stderr := call(t, "", append([]string{"health", s.url}, test.args...)...)
		if code != test.code || !strings.Contains(stdout+stderr, test.want) {
			t.Errorf("%v: exit code %d: %s%s", test.args, code, stdout, stderr)
		}
	}
}

func TestHealthOfNothing(t *testing.T) {
	answers := func(status int, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	never := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-never }))
	t.Cleanup(func() { close(never); silent.Close() })
	for name, test := range map[string]struct {
		url  string
		code int
		want string
	}{
		"nobody listens":     {"http://127.0.0.1:1", exitFailure, "127.0.0.1:1"},
		"it is silent":       {silent.URL, exitFailure, "no answer within 200ms"},
		"it is another":      {answers(http.StatusOK, "hello"), exitFailure, "hello"},
		"it fails":           {answers(http.StatusServiceUnavailable, "not now"), exitFailure, "503"},
		"no address":         {"localhost", exitUsage, "http://127.0.0.1:9200"},
		"an address of mail": {"mailto:a@b", exitUsage, "http://127.0.0.1:9200"},
	} {
		code, stdout, stderr := call(t, "", "health", test.url, "--timeout", "200ms")
		if code != test.code || !strings.Contains(stderr, test.want) || stdout != "" {
			t.Errorf("%s: exit code %d: %s%s", name, code, stdout, stderr)
		}
	}
}
