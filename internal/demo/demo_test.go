package demo_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/wlmserver/wlmserver/internal/demo"
	"github.com/wlmserver/wlmserver/internal/node"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// show runs the demonstration and returns what it wrote.
func show(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	if err := demo.Run(t.Context(), demo.Options{Out: &out, Fast: true}); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return out.String()
}

// TestRun: every search is accounted for, some waited, some were refused, some cancelled, and all of it is shown.
func TestRun(t *testing.T) {
	out := show(t)
	tally := regexp.MustCompile(`(\d+) answered, (\d+) refused, (\d+) cancelled while they waited(?:, (\d+) while they ran)?\.`).FindStringSubmatch(out)
	if tally == nil {
		t.Fatalf("no tally in\n%s", out)
	}
	sum := 0
	for i, what := range []string{"answered", "refused", "cancelled"} {
		n := number(t, tally[i+1])
		if n == 0 {
			t.Errorf("none was %s\n%s", what, out)
		}
		sum += n
	}
	if sum += number(t, tally[4]); sum != 40 {
		t.Errorf("%d searches are accounted for, 40 were sent\n%s", sum, out)
	}
	for _, want := range []string{"total_queued", "queue_peak", "queue_wait_count", "total_throttled", "total_completions"} {
		if !regexp.MustCompile(`(?m)^  ` + want + ` +[1-9]`).MatchString(out) {
			t.Errorf("%s is not shown or is 0\n%s", want, out)
		}
	}
	if !regexp.MustCompile(`(?m)^ *\d\.\ds  running +\d+  waiting +\d+`).MatchString(out) {
		t.Errorf("no progress is shown\n%s", out)
	}
	if strings.Contains(out, "\x1b") {
		t.Error("escape sequences without a terminal")
	}
}

func number(t *testing.T, s string) (n int) {
	t.Helper()
	for _, d := range s {
		n = 10*n + int(d-'0')
	}
	return n
}

func TestRunStopsWhenAsked(t *testing.T) {
	stop := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	out := &onFirstWrite{do: func() { cancel(stop) }}
	if err := demo.Run(ctx, demo.Options{Out: out}); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
}

// onFirstWrite calls do when something is shown.
type onFirstWrite struct{ do func() }

func (w *onFirstWrite) Write(p []byte) (int, error) {
	w.do()
	return len(p), nil
}

// TestCommandsWork types the commands that the demonstration ends with, against a server elsewhere than they say.
func TestCommandsWork(t *testing.T) {
	for _, tool := range []string{"bash", "curl", "sed", "seq"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the commands need %s", tool)
		}
	}
	out := show(t)
	_, commands, ok := strings.Cut(out, "then\n\n")
	if !ok || !strings.Contains(commands, "127.0.0.1:9200") {
		t.Fatalf("no commands in\n%s", out)
	}

	c := node.Default()
	c.HTTP.Port = 0
	c.DataPath = t.TempDir()
	c.Log.Output = &bytes.Buffer{}
	c.SearchPool.Size = 8
	n, err := node.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	script := filepath.Join(t.TempDir(), "commands")
	commands = strings.ReplaceAll(commands, "http://127.0.0.1:9200", n.URL())
	commands = strings.ReplaceAll(commands, `"800ms"`, `"1500ms"`) // the queue fills also where processes start slowly
	if err := os.WriteFile(script, []byte(commands), 0o600); err != nil {
		t.Fatal(err)
	}
	typed, err := exec.CommandContext(t.Context(), "bash", "-eu", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, typed)
	}
	counts := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^ *(\d+) (200|429|500)$`).FindAllStringSubmatch(string(typed), -1) {
		counts[m[2]] = number(t, m[1])
	}
	if n := counts["200"] + counts["429"] + counts["500"]; n != 40 || counts["200"] == 0 || counts["429"] == 0 {
		t.Errorf("of 40 searches %d were answered with 200, %d with 429, %d with 500\n%s", counts["200"], counts["429"], counts["500"], typed)
	}
	for _, want := range []string{`"acknowledged"`, `"state" : "waiting"`, `"total_queued"`} {
		if !strings.Contains(string(typed), want) {
			t.Errorf("the commands do not show %s\n%s", want, typed)
		}
	}
}
