package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"

	"golang.org/x/term"

	"github.com/wlmserver/wlmserver/auth"
	"github.com/wlmserver/wlmserver/internal/demo"
	"github.com/wlmserver/wlmserver/internal/node"
	"github.com/wlmserver/wlmserver/settings"
)

type demoCommand struct {
	Fast bool `help:"Take under a second instead of five to eight."`
}

func (c *demoCommand) Run(ctx context.Context, s streams) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	return demo.Run(ctx, demo.Options{Out: s.out, Fast: c.Fast})
}

type versionCommand struct{}

func (versionCommand) Run(s streams) error {
	v := node.Version()
	_, err := fmt.Fprintf(s.out, "wlmserver %s, speaks OpenSearch %s, built with %s\n", v.Build, v.Compatibility, v.Go)
	return err
}

type configCommand struct{}

// Run prints the table of keys, then the cluster settings that may be given a start value.
func (configCommand) Run(s streams) error {
	out := bufio.NewWriter(s.out)
	for _, k := range node.Keys() {
		fmt.Fprintf(out, "%s: %s   (%s)\n    %s\n", k.Name, shown(k), k.Kind, k.Doc)
	}

	fmt.Fprint(out, "\nStart values of cluster settings (what PUT /_cluster/settings stored wins over them):\n\n")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KEY\tKIND\tDEFAULT\tALLOWED\tACTS")
	for _, k := range settings.Catalogue() {
		if !k.Dynamic {
			continue
		}
		acts := "yes"
		if !k.Acts {
			acts = "not yet"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", k.Key, k.Type, k.Default, k.Bounds, acts)
	}
	w.Flush()
	fmt.Fprint(out, `
Each is given in a YAML file (dotted or nested; wlmserver -c FILE), as an environment variable
(http.port is WLMSERVER_HTTP_PORT), or with -E key=value; later ones win.
`)
	return out.Flush()
}

func shown(k node.Key) string {
	switch {
	case k.Default != "":
		return k.Default
	case k.Derived != "":
		return "<" + k.Derived + ">"
	}
	return "<none>"
}

type hashPasswordCommand struct{}

// Run reads one line, so that the password is in no argument list and no shell history.
func (hashPasswordCommand) Run(s streams) error {
	password, err := readPassword(s)
	if err != nil {
		return fmt.Errorf("cannot read the password: %w", err)
	}
	if password == "" {
		return &usageError{errors.New("no password on standard input; for example: wlmserver hash-password < file")}
	}
	hash, err := auth.HashPassword(password)
	if err != nil {
		return &usageError{err}
	}
	_, err = fmt.Fprintln(s.out, hash)
	return err
}

// readPassword asks on a terminal, without showing what is typed, and reads a line elsewhere.
func readPassword(s streams) (string, error) {
	if f, ok := s.in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprint(s.err, "Password: ")
		b, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(s.err)
		return string(b), err
	}
	line, err := bufio.NewReader(s.in).ReadString('\n')
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return strings.TrimRight(line, "\r\n"), err
}
