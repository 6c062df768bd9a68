package auth_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/crypto/bcrypt"

	"github.com/wlmserver/wlmserver/auth"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hash is a cheap one.
func hash(tb testing.TB, password string) string {
	tb.Helper()
	h, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		tb.Fatal(err)
	}
	return string(h)
}

func usersFile(tb testing.TB, text string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "users.yml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// twoUsers has ann, an admin whose password is "secret", and bob with "hunter".
func twoUsers(tb testing.TB) string {
	tb.Helper()
	return usersFile(tb, "ann: {hash: '"+hash(tb, "secret")+"', roles: [admin, oncall]}\nbob: {hash: '"+hash(tb, "hunter")+"'}\n")
}

func newAuth(tb testing.TB, c auth.Config) *auth.Authenticator {
	tb.Helper()
	a, err := auth.New(c)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

func request(user, password string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/_search", nil)
	if user != "" || password != "" {
		r.SetBasicAuth(user, password)
	}
	return r
}

func isUnauthenticated(err error) bool {
	_, ok := errors.AsType[*auth.UnauthenticatedError](err)
	return ok
}

func isForbidden(err error) bool {
	_, ok := errors.AsType[*auth.ForbiddenError](err)
	return ok
}
