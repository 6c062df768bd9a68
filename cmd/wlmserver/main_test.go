package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestServe(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "data")
	addressFile := filepath.Join(t.TempDir(), "address")
	args := []string{"-E", "path.data=" + folder, "-E", "http.address_file=" + addressFile}

	s := serve(t, args...)
	if b, err := os.ReadFile(addressFile); err != nil || "http://"+string(b) != s.url+"\n" {
		t.Errorf("the address file holds %q (%v), the server listens on %s", b, err, s.url)
	}
	if body := s.ok(t, "GET", "/", ""); !strings.Contains(body, `"opensearch"`) {
		t.Errorf("GET / answered %s", body)
	}
	log := s.logged()
	for _, want := range []string{"path.data", folder, strings.TrimPrefix(s.url, "http://"), "not enforced", "anonymous"} {
		if !strings.Contains(log, want) {
			t.Errorf("the start is logged without %q:\n%s", want, log)
		}
	}
	id := s.group(t)
	s.signal(t, os.Interrupt)
	if code := s.wait(t); code != 0 {
		t.Errorf("ended with %d", code)
	}
	if _, err := os.Stat(addressFile); !os.IsNotExist(err) {
		t.Errorf("the address file is still there (%v)", err)
	}

	// What was acknowledged is there again.
	s = serve(t, args...)
	if body := s.ok(t, "GET", "/_wlm/workload_group/one", ""); !strings.Contains(body, id) {
		t.Errorf("after a restart: %s", body)
	}
}

// TestAcknowledgedSurvivesKill: an answered change needs no clean stop to last.
func TestAcknowledgedSurvivesKill(t *testing.T) {
	folder := t.TempDir()
	s := serve(t, "-E", "path.data="+folder)
	id := s.group(t)
	s.signal(t, syscall.SIGKILL)
	s.wait(t)
	s = serve(t, "-E", "path.data="+folder)
	if body := s.ok(t, "GET", "/_wlm/workload_group/one", ""); !strings.Contains(body, id) {
		t.Errorf("after a kill: %s", body)
	}
}

func TestSecondProcessOnTheSameFolder(t *testing.T) {
	folder := t.TempDir()
	s := serve(t, "-E", "path.data="+folder)
	code, _, stderr := call(t, "", "-E", "http.port=0", "-E", "path.data="+folder)
	if code != exitFailure || !strings.Contains(stderr, "path.data") || !strings.Contains(stderr, folder) {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	s.ok(t, "GET", "/", "") // the first one lives
}

func TestPortInUse(t *testing.T) {
	s := serve(t, "-E", "path.data="+t.TempDir())
	port := s.url[strings.LastIndex(s.url, ":")+1:]
	code, _, stderr := call(t, "", "-E", "http.port="+port, "-E", "path.data="+t.TempDir())
	if code != exitFailure || !strings.Contains(stderr, port) || !strings.Contains(stderr, "http.port") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// TestWrongCalls: wrong command lines and configurations end with 2, say what is wrong, and leave nothing behind.
func TestWrongCalls(t *testing.T) {
	file := filepath.Join(t.TempDir(), "wlmserver.yml")
	if err := os.WriteFile(file, []byte("http:\n  prt: 9200\nlogger.level: loud\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"unknown command":       {[]string{"sreve"}, []string{"sreve"}},
		"unknown flag":          {[]string{"--port", "1"}, []string{"--port"}},
		"unknown key":           {[]string{"-E", "http.prt=1"}, []string{"http.prt", "http.port"}},
		"bad value":             {[]string{"serve", "-E", "http.port=x"}, []string{"http.port", "x", "65535"}},
		"no value":              {[]string{"-E", "http.port"}, []string{"http.port", "key=value"}},
		"bad file":              {[]string{"-c", file}, []string{file, "http.prt", "logger.level", "loud"}},
		"no such file":          {[]string{"-c", file + ".none"}, []string{file + ".none"}},
		"half a pair":           {[]string{"-E", "http.ssl.key=k.pem"}, []string{"http.ssl.key", "http.ssl.certificate"}},
		"bad start value":       {[]string{"-E", "wlm.workload_group.mode=on"}, []string{"wlm.workload_group.mode", "on", "monitor_only"}},
		"public and anonymous":  {[]string{"-E", "http.host=0.0.0.0"}, []string{"http.host", "0.0.0.0", "auth.users_file", "auth.allow_anonymous"}},
		"users file is missing": {[]string{"-E", "auth.users_file=none.yml"}, []string{"none.yml"}},
		"transport everywhere":  {[]string{"-E", "cluster.etcd.endpoints=http://127.0.0.1:1", "-E", "transport.host=0.0.0.0"}, []string{"transport.host", "0.0.0.0"}},
		"flag of another":       {[]string{"version", "--fast"}, []string{"--fast"}},
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "data")
			cmd := program(t, c.args...)
			cmd.Env = append(cmd.Env, "WLMSERVER_PATH_DATA="+folder)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			_ = cmd.Run() // the exit code tells
			if code := cmd.ProcessState.ExitCode(); code != exitUsage {
				t.Errorf("ended with %d", code)
			}
			if stdout.Len() > 0 {
				t.Errorf("standard output: %s", stdout.String())
			}
			for _, w := range c.want {
				if !strings.Contains(stderr.String(), w) {
					t.Errorf("the message does not speak of %q:\n%s", w, stderr.String())
				}
			}
			if _, err := os.Stat(folder); !os.IsNotExist(err) {
				t.Errorf("the data folder was made (%v)", err)
			}
		})
	}
}

func TestPublicAddressWithLeave(t *testing.T) {
	s := serve(t, "-E", "path.data="+t.TempDir(), "-E", "http.host=0.0.0.0", "-E", "auth.allow_anonymous=true")
	s.ok(t, "GET", "/", "")
}

func TestVersion(t *testing.T) {
	code, stdout, _ := call(t, "", "version")
	if code != 0 || !strings.HasPrefix(stdout, "wlmserver ") || !strings.Contains(stdout, "OpenSearch 3.7.0") {
		t.Errorf("exit code %d: %s", code, stdout)
	}
}

func TestHelp(t *testing.T) {
	code, stdout, _ := call(t, "", "--help")
	for _, want := range []string{"serve", "demo", "config", "health", "version", "hash-password"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("--help does not speak of %s:\n%s", want, stdout)
		}
	}
	if code != 0 {
		t.Errorf("ended with %d", code)
	}
}

func TestConfigListsTheKeys(t *testing.T) {
	code, stdout, _ := call(t, "", "config")
	for _, want := range []string{"http.port", "9200", "wlm.workload_group.mode", "WLMSERVER_HTTP_PORT"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("config does not list %s:\n%s", want, stdout)
		}
	}
	if code != 0 {
		t.Errorf("ended with %d", code)
	}
}

// TestHashPassword signs in with what was printed.
func TestHashPassword(t *testing.T) {
	code, hash, stderr := call(t, "correct horse\n", "hash-password")
	if code != 0 {
		t.Fatalf("ended with %d: %s", code, stderr)
	}
	users := filepath.Join(t.TempDir(), "users.yml")
	if err := os.WriteFile(users, fmt.Appendf(nil, "alice:\n  hash: %q\n  roles: [admin]\n", strings.TrimSpace(hash)), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, "-E", "path.data="+t.TempDir(), "-E", "auth.users_file="+users)
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth("alice", "correct horse")
	if a := request(t.Context(), "GET", s.url+"/_wlm/workload_group", "", r.Header); a.status != http.StatusOK {
		t.Errorf("answered %d %s", a.status, a.body)
	}
	if a := request(t.Context(), "GET", s.url+"/_wlm/workload_group", "", nil); a.status != http.StatusUnauthorized {
		t.Errorf("without a user: answered %d %s", a.status, a.body)
	}
	if strings.Contains(s.logged(), "everyone is anonymous") {
		t.Error("the log says that everyone is anonymous")
	}

	if code, _, _ := call(t, "", "hash-password"); code != exitUsage {
		t.Errorf("without a password: ended with %d", code)
	}
}

func TestDemo(t *testing.T) {
	code, stdout, stderr := call(t, "", "demo", "--fast")
	if code != 0 {
		t.Errorf("ended with %d: %s", code, stderr)
	}
	for _, want := range []string{"running", "total_queued", "curl"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("does not show %s:\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, "\x1b") {
		t.Error("escape sequences without a terminal")
	}
}
