package clients_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	wanted  = flag.String("clients", "", "which clients to install and run: all, or some of python,javascript,java,benchmark")
	leftOut = flag.Bool("allow-left-out", false, "with -clients: a client whose toolchain is not on this machine is no failure")
)

// longest is how long a client may take, from its start to its end. It takes seconds.
const longest = 5 * time.Minute

// program is a client in another language.
type program struct {
	name string
	// locks are the files, in the folder of that name, that say what is installed.
	locks []string
	// install puts what the locks name into the folder. It gives errMissing when there is no toolchain.
	install func(ctx context.Context, source, folder string) error
	// command runs a program of the client's language, once that is done.
	command func(ctx context.Context, file, folder string) (*exec.Cmd, error)
	file    string // the program that goes through the checks
	fence   string // what marks the example on the page of clients
}

// errMissing says that a toolchain is not on this machine.
var errMissing = errors.New("not on this machine")

var programs = []program{
	{
		name: "python", file: "client.py", fence: "python", locks: []string{"requirements.txt"}, install: pip,
		command: func(ctx context.Context, file, folder string) (*exec.Cmd, error) {
			return exec.CommandContext(ctx, filepath.Join(folder, "bin", "python"), "-u", file), nil
		},
	},
	{
		name: "javascript", file: "client.js", fence: "js", locks: []string{"package.json", "package-lock.json"},
		install: func(ctx context.Context, source, folder string) error {
			for _, f := range []string{"package.json", "package-lock.json"} {
				text, err := os.ReadFile(filepath.Join(source, f))
				if err == nil {
					err = os.WriteFile(filepath.Join(folder, f), text, 0o600)
				}
				if err != nil {
					return err
				}
			}
			if _, err := toolchain("node"); err != nil {
				return err
			}
			return execute(ctx, folder, nil, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
		},
		command: func(ctx context.Context, file, folder string) (*exec.Cmd, error) {
			node, err := toolchain("node")
			if err != nil {
				return nil, err
			}
			c := exec.CommandContext(ctx, node, file)
			c.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(folder, "node_modules"))
			return c, nil
		},
	},
	{
		name: "java", file: "Client.java", fence: "java", locks: []string{"pom.xml"},
		install: func(ctx context.Context, source, folder string) error {
			home, err := jdk(ctx)
			if err != nil {
				return err
			}
			return execute(ctx, source, []string{"JAVA_HOME=" + home}, "mvn", "-q", "-B", "dependency:copy-dependencies",
				"-DincludeScope=runtime", "-DoutputDirectory="+folder)
		},
		command: func(ctx context.Context, file, folder string) (*exec.Cmd, error) {
			home, err := jdk(ctx)
			if err != nil {
				return nil, err
			}
			return exec.CommandContext(ctx, filepath.Join(home, "bin", "java"), "-cp", filepath.Join(folder, "*"), file), nil
		},
	},
}

// TestPrograms runs the clients in other languages that -clients names.
func TestPrograms(t *testing.T) {
	t.Parallel()
	known := []string{"all", "benchmark"}
	for _, p := range programs {
		known = append(known, p.name)
	}
	for name := range strings.SplitSeq(*wanted, ",") {
		if name != "" && !slices.Contains(known, name) {
			t.Errorf("-clients %s: there are %s", name, strings.Join(known, ", "))
		}
	}
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			source, folder := p.ready(t)
			ctx, stop := context.WithTimeout(t.Context(), longest)
			defer stop()
			c, err := p.command(ctx, filepath.Join(source, p.file), folder)
			if errors.Is(err, errMissing) {
				missing(t, p.name, err)
			}
			if err != nil {
				t.Fatal(err)
			}
			s := newSite(t, p.name)
			s.run(t, c)
			s.judge(t)
			s.count(t.Run("example", func(t *testing.T) {
				runExample(t, p.fence, func(file string) (*exec.Cmd, error) { return p.command(ctx, file, folder) })
			}))
		})
	}
}

// TestCurl runs the client that is a script around curl.
func TestCurl(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bash", "curl", "gzip"} {
		if _, err := toolchain(name); err != nil {
			if *wanted != "" {
				missing(t, "curl", err)
			}
			t.Skip(err)
		}
	}
	s := newSite(t, "curl")
	ctx, stop := context.WithTimeout(t.Context(), longest)
	defer stop()
	s.run(t, exec.CommandContext(ctx, "bash", filepath.Join("curl", "client.sh")))
	s.judge(t)
	s.count(t.Run("example", func(t *testing.T) {
		runExample(t, "bash", func(file string) (*exec.Cmd, error) { return exec.CommandContext(ctx, "bash", file), nil })
	}))
}

// ready skips the test of a program that is not wanted, and installs the others, if their locks have changed since the last time.
func (p program) ready(t *testing.T) (source, folder string) {
	t.Helper()
	if *wanted != "all" && !slices.Contains(strings.Split(*wanted, ","), p.name) {
		t.Skipf("runs with -clients %s, or all", p.name)
	}
	source, err := filepath.Abs(p.name)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	for _, f := range p.locks {
		text, err := os.ReadFile(filepath.Join(source, f))
		if err != nil {
			t.Fatal(err)
		}
		sum.Write(text)
	}
	folder = filepath.Join(cache, "wlmserver", "clients", p.name+"-"+hex.EncodeToString(sum.Sum(nil)[:6]))
	whole := filepath.Join(folder, "installed") // a folder without it was given up half way
	if _, err := os.Stat(whole); err == nil {
		return source, folder
	}
	start := time.Now()
	err = os.RemoveAll(folder)
	if err == nil {
		err = os.MkdirAll(folder, 0o700)
	}
	if err == nil {
		err = p.install(t.Context(), source, folder)
	}
	if errors.Is(err, errMissing) {
		missing(t, p.name, err)
	}
	if err == nil {
		err = os.WriteFile(whole, nil, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("installed in %v", time.Since(start).Round(time.Second))
	return source, folder
}

// missing ends the test of a client that cannot run here, so that nobody takes it for one that has passed.
func missing(t *testing.T, name string, why error) {
	t.Helper()
	fmt.Printf("%s: LEFT OUT: %v\n", name, why)
	if *leftOut {
		t.SkipNow()
	}
	t.FailNow()
}

// run starts a client and makes a test of each line that it prints.
func (s *site) run(t *testing.T, c *exec.Cmd) {
	t.Helper()
	if c.Env == nil {
		c.Env = os.Environ()
	}
	c.Env = append(c.Env, "WLMSERVER_URL="+s.open.URL, "WLMSERVER_USERS_URL="+s.guarded.URL)
	var complaints strings.Builder
	c.Stderr = &complaints
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	left := slices.Clone(checks)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		name, reason, known := verdict(lines.Text())
		i := slices.Index(left, name)
		if !known || i < 0 {
			t.Errorf("the client said %q", lines.Text())
			continue
		}
		left = slices.Delete(left, i, i+1)
		s.count(t.Run(name, func(t *testing.T) {
			if reason != "" {
				t.Error(reason)
			}
		}))
	}
	if err := c.Wait(); err != nil && !t.Failed() {
		t.Error(err)
	}
	if s.failed += len(left); len(left) > 0 {
		t.Errorf("not checked: %s", strings.Join(left, ", "))
	}
	if t.Failed() {
		t.Logf("the client complained:\n%s", complaints.String())
	}
}

// verdict reads a line of a client. The reason is empty for a check that has passed.
func verdict(line string) (name, reason string, known bool) {
	if rest, failed := strings.CutPrefix(line, "not ok "); failed {
		name, reason, known = strings.Cut(rest, ": ")
		return name, reason, known && reason != ""
	}
	name, known = strings.CutPrefix(line, "ok ")
	return name, "", known
}

// pip makes a virtual environment of what requirements.txt names.
func pip(ctx context.Context, source, folder string) error {
	if err := execute(ctx, source, nil, "python3", "-m", "venv", folder); err != nil {
		return err
	}
	return execute(ctx, source, nil, filepath.Join(folder, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check",
		"--no-deps", "--requirement", "requirements.txt")
}

// jdk gives the home of a JDK that is new enough.
func jdk(ctx context.Context) (string, error) {
	if _, err := toolchain("mvn"); err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, filepath.Join("..", "..", "bench", "opensearch", "node.sh"), "jdk").Output()
	if err != nil {
		return "", fmt.Errorf("a JDK of version 21 or newer is %w", errMissing)
	}
	return strings.TrimSpace(string(out)), nil
}

func toolchain(name string) (string, error) {
	file, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s is %w", name, errMissing)
	}
	return file, nil
}

// execute runs one step of an installation.
func execute(ctx context.Context, folder string, env []string, name string, args ...string) error {
	file, err := toolchain(name)
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, file, args...)
	c.Dir = folder
	c.Env = append(os.Environ(), env...)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", c, err, out)
	}
	return nil
}
