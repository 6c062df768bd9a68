package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestMain lets the test's own program be the nodes.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == nodeCommand {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// The demonstration tells of three acts, loses searches with the node that it kills and no others, and holds the limit.
func TestDemo(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"-fast"}, nil, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s\n%s", code, errs.String(), out.String())
	}
	text := out.String()
	for _, want := range []string{
		`(?m)^1\. Each node`, `(?m)^2\. .*killed`, `(?m)^3\. n3 is back`, // the acts
		`n1 running \d waiting +[1-9].*n2 running \d waiting +[1-9].*n3 running \d waiting +[1-9]`, // all wait
		`n3 killed .*running [1-4] of 4`,                        // and the others go on
		`(?m)^  n1 +[1-9]`, `(?m)^  n2 +[1-9]`, `(?m)^  n3 +\d`, // the statistics of each
		`✓ \d+ answered, [1-8] lost with their node; never more than 4 ran; 3 nodes again`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("nothing of the form %s in\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Error("escape sequences without a terminal")
	}
}

func TestDemoStopsWhenAsked(t *testing.T) {
	stop := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	var errs bytes.Buffer
	out := &onFirstWrite{do: func() { cancel(stop) }}
	if code := run(ctx, []string{"-fast"}, nil, out, &errs); code != 1 || !strings.Contains(errs.String(), stop.Error()) {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
}

// onFirstWrite calls do when something is shown.
type onFirstWrite struct{ do func() }

func (w *onFirstWrite) Write(p []byte) (int, error) {
	w.do()
	return len(p), nil
}

func TestWrongCalls(t *testing.T) {
	for _, args := range [][]string{{"-quick"}, {"now"}} {
		if code := run(t.Context(), args, nil, new(bytes.Buffer), new(bytes.Buffer)); code != 2 {
			t.Errorf("%v: exit code %d", args, code)
		}
	}
	var errs bytes.Buffer
	if code := run(t.Context(), []string{nodeCommand, "no.such.key=1"}, nil, new(bytes.Buffer), &errs); code != 1 || !strings.Contains(errs.String(), "no.such.key") {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
}
