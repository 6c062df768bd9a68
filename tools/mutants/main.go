// Mutants breaks chosen lines of the admission, one at a time, and looks whether a test notices. A line that can be broken without a
// failing test is a line that nothing checks.
//
//	go run -C tools ./mutants [-j 2] [-run PATTERN] [-check]
//
// The mutants are in list.go. Each one is made in a copy of the tree, where the tests of its packages then run. It is killed when they
// fail, by the first test that does. The exit code is 1 when one survives, or when the list does not fit the code any more, which is
// all that -check looks at.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// testTimeout is how long the tests of a mutant may take: many times what they take when nothing is wrong, since a mutant may make
// them wait for what never comes. That kills it too.
const testTimeout = 90 * time.Second

// seed makes the random tests of a mutant choose the same steps every time, so that the outcome is one of the code.
const seed = "WLM_SEED=1"

// mutant is one broken line.
type mutant struct {
	file     string // from the root
	old, new string // old is found exactly once
	why      string // what it would mean to a user, or to an invariant
}

// result is what became of a mutant.
type result struct {
	killedBy string // a test; empty: it survived
	err      error  // it could not be tried
	took     time.Duration
}

func main() {
	jobs := flag.Int("j", 2, "how many are tried at once")
	pattern := flag.String("run", "", "try only those whose file or reason matches this regular expression")
	check := flag.Bool("check", false, "only look whether the list fits the code")
	flag.Parse()
	ok, err := run(*jobs, *pattern, *check)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run(jobs int, pattern string, check bool) (ok bool, err error) {
	chosen, err := regexp.Compile(pattern)
	if err != nil {
		return false, err
	}
	out, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return false, fmt.Errorf("finding the root of the tree: %w", err)
	}
	root := strings.TrimSpace(string(out))
	if err := checkList(root); err != nil || check {
		return err == nil, err
	}
	var todo []mutant
	for _, m := range list {
		if chosen.MatchString(m.file + ": " + m.why) {
			todo = append(todo, m)
		}
	}
	results, err := tryAll(root, todo, jobs)
	if err != nil {
		return false, err
	}
	return report(todo, results)
}

// checkList looks whether each mutant still fits the code.
func checkList(root string) error {
	var errs []error
	for _, m := range list {
		text, err := os.ReadFile(filepath.Join(root, m.file))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		switch n := strings.Count(string(text), m.old); {
		case n != 1:
			errs = append(errs, fmt.Errorf("%s: %q is there %d times, it must be once: mend list.go (%s)", m.file, m.old, n, m.why))
		case m.old == m.new:
			errs = append(errs, fmt.Errorf("%s: %q is not changed", m.file, m.old))
		}
	}
	return errors.Join(errs...)
}

// tryAll tries the mutants, in as many copies of the tree as jobs.
func tryAll(root string, todo []mutant, jobs int) ([]result, error) {
	temp, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	results := make([]result, len(todo))
	next := make(chan int)
	errs := make([]error, jobs)
	var workers sync.WaitGroup
	for j := range jobs {
		workers.Go(func() {
			tree := filepath.Join(temp, fmt.Sprint(j))
			if errs[j] = copyTree(root, tree); errs[j] == nil {
				errs[j] = soundTree(tree)
			}
			for i := range next {
				if errs[j] == nil {
					results[i] = try(tree, todo[i])
					fmt.Fprintf(os.Stderr, "%3d of %d: %s (%v)\n", i+1, len(todo), outcome(results[i]), results[i].took.Round(100*time.Millisecond))
				}
			}
		})
	}
	for i := range todo {
		next <- i
	}
	close(next)
	workers.Wait()
	return results, errors.Join(errs...)
}

// copyTree copies what git knows of, and what it would: the code as it is now, committed or not.
func copyTree(from, to string) error {
	files := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	files.Dir = from
	out, err := files.Output()
	if err != nil {
		return fmt.Errorf("listing the tree: %w", err)
	}
	for name := range strings.SplitSeq(strings.Trim(string(out), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(from, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, not committed
		}
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(target, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// soundTree looks whether the tests pass while nothing is broken: else every mutant would be killed by what is wrong anyway.
func soundTree(tree string) error {
	seen := map[string]bool{}
	for _, m := range list {
		seen[filepath.Dir(m.file)] = true
	}
	for folder := range seen {
		if out, err := test(tree, packages(folder)); err != nil {
			return fmt.Errorf("the tests of %s fail before anything is broken: %w\n%s", folder, err, out)
		}
	}
	return nil
}

// packages are those whose tests have to notice what is broken in a folder: its own, and for the state machines of the shared tier
// also those of the package that drives them.
func packages(folder string) []string {
	if folder == "internal/sharedtier" {
		return []string{"./internal/sharedtier", "./wlm"}
	}
	return []string{"./" + folder}
}

func test(tree string, packages []string) (output []byte, err error) {
	// Twice the tests' own timeout, in case that the test binary does not keep it.
	ctx, cancel := context.WithTimeout(context.Background(), 2*testTimeout)
	defer cancel()
	args := append([]string{"test", "-v", "-count=1", "-failfast", "-timeout", testTimeout.String()}, packages...)
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = tree
	c.Env = append(os.Environ(), seed)
	return c.CombinedOutput()
}

// try breaks the line in the tree, runs the tests, and mends it.
func try(tree string, m mutant) (r result) {
	file := filepath.Join(tree, m.file)
	sound, err := os.ReadFile(file)
	if err != nil {
		return result{err: err}
	}
	defer func() {
		if err := os.WriteFile(file, sound, 0o644); err != nil {
			r.err = err
		}
	}()
	if err := os.WriteFile(file, []byte(strings.Replace(string(sound), m.old, m.new, 1)), 0o644); err != nil {
		return result{err: err}
	}
	began := time.Now()
	out, err := test(tree, packages(filepath.Dir(m.file)))
	r.took = time.Since(began)
	if err == nil {
		return r
	}
	if bytes.Contains(out, []byte("[build failed]")) {
		r.err = fmt.Errorf("%s: it does not compile:\n%s", m.file, out)
		return r
	}
	r.killedBy = killer(string(out))
	return r
}

var (
	failed = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)
	begun  = regexp.MustCompile(`(?m)^=== RUN   (\w+)`)
)

// killer finds in the output which test failed first.
func killer(out string) string {
	if m := failed.FindStringSubmatch(out); m != nil {
		return m[1]
	}
	all := begun.FindAllStringSubmatch(out, -1)
	switch {
	case strings.Contains(out, "found unexpected goroutines"):
		return "TestMain: goroutines are left"
	case len(all) == 0:
		return "a panic"
	case strings.Contains(out, "panic: test timed out"):
		return all[len(all)-1][1] + " (hangs)"
	}
	return all[len(all)-1][1] + " (panic)"
}

func outcome(r result) string {
	switch {
	case r.err != nil:
		return "ERROR"
	case r.killedBy == "":
		return "SURVIVED"
	}
	return "killed by " + r.killedBy
}

// report shows what became of all. It is not ok when one survived or could not be tried.
func report(all []mutant, results []result) (ok bool, err error) {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	survived := 0
	var errs []error
	for i, m := range all {
		r := results[i]
		fmt.Fprintf(table, "%s\t%s\t%s\n", m.file, m.why, outcome(r))
		if r.err != nil {
			errs = append(errs, r.err)
		} else if r.killedBy == "" {
			survived++
		}
	}
	if err := table.Flush(); err != nil {
		return false, err
	}
	fmt.Printf("%d mutants, %d survived\n", len(all), survived)
	return survived == 0, errors.Join(errs...)
}
