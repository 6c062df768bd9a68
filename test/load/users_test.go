package load_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"
)

const password = "secret"

// users writes a users file with admins of the given names (ann and bob if none), and gives the configuration that names it.
func users(t *testing.T, names ...string) []string {
	t.Helper()
	if len(names) == 0 {
		names = []string{"ann", "bob"}
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, n := range names {
		fmt.Fprintf(&b, "%s:\n  hash: %q\n  roles: [admin]\n", n, hash)
	}
	file := filepath.Join(t.TempDir(), "users.yml")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"auth.users_file=" + file}
}

func basic(user string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}
