package clients_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"github.com/wlmserver/wlmserver/test/openapi"
	"github.com/wlmserver/wlmserver/test/server"
)

// checks is the list that every client goes through.
var checks = []string{
	"product", "ping", "groups", "settings", "bulk", "search", "count", "msearch", "scroll",
	"tasks list", "tasks get", "tasks cancel parked", "tasks cancel running",
	"error 400", "error 401", "error 403", "error 404", "error 405", "error 429", "error 500",
	"retry after", "gzip", "keep-alive",
}

// The requests of these checks are marked by the client with these words in X-Opaque-Id, for the test to find them on the wire.
const (
	gzipMark      = "gzip"
	keepAliveMark = "keep-alive"
)

// Who may ask the server that has users.
const (
	admin    = "ann" // may do everything
	plain    = "bob" // may search
	password = "secret"
)

// site is two servers with a tap on each: one without users, and one that asks for them.
type site struct {
	open, guarded  *tap
	passed, failed int
}

// newSite starts the servers for a client of that name. When the test ends it prints how many checks have passed.
func newSite(t *testing.T, name string) *site {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "users.yml")
	users := fmt.Sprintf("%s: {hash: %q, roles: [admin]}\n%s: {hash: %q, roles: [analyst]}\n", admin, hash, plain, hash)
	if err := os.WriteFile(file, []byte(users), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &site{open: newTap(t, server.Start(t).URL), guarded: newTap(t, server.Start(t, "auth.users_file="+file).URL)}
	s.countAtEnd(t, name)
	return s
}

// countAtEnd prints how many checks have passed when the test ends.
func (s *site) countAtEnd(t *testing.T, name string) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			s.failed = max(s.failed, 1) // by what is no check
		}
		fmt.Printf("%s: %d passed, %d failed\n", name, s.passed, s.failed)
	})
}

// count takes what t.Run gives for a check.
func (s *site) count(passed bool) {
	if passed {
		s.passed++
	} else {
		s.failed++
	}
}

// judge looks at what has passed on the wire, once the client has ended.
func (s *site) judge(t *testing.T) {
	t.Helper()
	open, err := s.open.exchanges()
	if err != nil {
		t.Fatal(err)
	}
	guarded, err := s.guarded.exchanges()
	if err != nil {
		t.Fatal(err)
	}
	s.count(t.Run("wire: every error is JSON", func(t *testing.T) {
		seen := map[int]bool{}
		for _, e := range slices.Concat(open, guarded) {
			if e.response.StatusCode >= 400 {
				seen[e.response.StatusCode] = true
				if err := e.wellFormedError(); err != nil {
					t.Errorf("%s %s: %v\n%s", e.request.Method, e.request.URL, err, e.body)
				}
			}
		}
		for _, status := range []int{400, 401, 403, 404, 405, 429, 500} {
			if !seen[status] {
				t.Errorf("no answer was %d", status)
			}
		}
	}))
	s.count(t.Run("wire: every answer is as openapi.yaml says", func(t *testing.T) {
		described, err := openapi.Load()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range slices.Concat(open, guarded) {
			header := e.response.Header.Clone()
			header.Del("Content-Encoding") // the body is inflated already
			err := described.Check(openapi.Exchange{
				Method: e.request.Method, URL: e.request.URL, Status: e.response.StatusCode, Header: header, Body: e.body,
			})
			if err != nil {
				t.Error(err)
			}
		}
	}))
	s.count(t.Run("wire: gzip both ways", func(t *testing.T) {
		sent, received := 0, 0
		for _, e := range open {
			if !strings.HasPrefix(e.request.Header.Get("X-Opaque-Id"), gzipMark) || e.response.StatusCode != http.StatusOK {
				continue
			}
			if e.request.Header.Get("Content-Encoding") == "gzip" {
				sent++
			}
			if e.response.Header.Get("Content-Encoding") == "gzip" {
				received++
			}
		}
		if sent == 0 || received == 0 {
			t.Errorf("%d compressed bodies were taken, %d compressed answers were given", sent, received)
		}
	}))
	s.count(t.Run("wire: a connection outlives errors", func(t *testing.T) {
		statuses := map[int][]int{} // by connection
		for _, e := range open {
			if strings.HasPrefix(e.request.Header.Get("X-Opaque-Id"), keepAliveMark) {
				statuses[e.connection] = append(statuses[e.connection], e.response.StatusCode)
			}
		}
		for c, got := range statuses {
			if !slices.Contains(got, 400) || !slices.Contains(got, 404) || !slices.Contains(got, 405) || got[len(got)-1] != 200 {
				t.Errorf("on connection %d: %v, not 400, 404 and 405 with 200 at the end", c, got)
			}
		}
		if len(statuses) != 1 {
			t.Errorf("one after the other, on %d connections: %v", len(statuses), statuses)
		}
	}))
}

// wellFormedError tells what a client that decodes errors strictly would stumble over.
func (e exchange) wellFormedError() error {
	if e.request.Method == http.MethodHead {
		return nil
	}
	if kind := e.response.Header.Get("Content-Type"); !strings.HasPrefix(kind, "application/json") {
		return fmt.Errorf("the content type of an error is %q", kind)
	}
	var body struct {
		Error  json.RawMessage
		Status *int
	}
	if err := json.Unmarshal(e.body, &body); err != nil {
		return err
	}
	status := e.response.StatusCode
	if body.Status != nil && *body.Status != status {
		return fmt.Errorf("the status is %d and %d", status, *body.Status)
	}
	if status == http.StatusTooManyRequests && e.response.Header.Get("Retry-After") == "" {
		return fmt.Errorf("a refusal without Retry-After")
	}
	if text := ""; json.Unmarshal(body.Error, &text) == nil && (status == http.StatusBadRequest || status == http.StatusMethodNotAllowed) {
		return nil // for an unknown path, and for a method, the error is a plain text
	}
	var typed struct {
		Type, Reason string
		RootCause    []struct{ Type, Reason string } `json:"root_cause"`
	}
	if err := json.Unmarshal(body.Error, &typed); err != nil {
		return err
	}
	if typed.Type == "" || typed.Reason == "" || len(typed.RootCause) == 0 || typed.RootCause[0].Type == "" || body.Status == nil {
		return fmt.Errorf("the error misses some of type, reason, root_cause and status")
	}
	return nil
}
