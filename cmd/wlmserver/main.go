// Command wlmserver runs a server that speaks OpenSearch's REST API and implements its workload management, and shows
// what that does.
//
// It exits with 0 when all went well, with 1 when something failed, and with 2 when it was called wrongly.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"
)

const (
	exitFailure = 1
	exitUsage   = 2
)

// commandLine is what can be written after the program's name.
type commandLine struct {
	Serve        serveCommand        `cmd:"" default:"withargs" help:"Run a server (this is what happens without a command)."`
	Demo         demoCommand         `cmd:"" help:"Show what admission control does: a group with a limit and a queue, and more searches than both."`
	Load         loadCommand         `cmd:"" help:"Drive a server with searches and tell what became of them."`
	Health       healthCommand       `cmd:"" help:"Ask a server how it is, once: for health checks of containers and for scripts."`
	Config       configCommand       `cmd:"" help:"List the keys of the configuration with their defaults."`
	HashPassword hashPasswordCommand `cmd:"" help:"Read a password from standard input and print its hash for auth.users_file."`
	Version      versionCommand      `cmd:"" help:"Print the version."`
}

// streams are the program's surroundings, so that nothing below reaches for the process.
type streams struct {
	in          io.Reader
	out, err    io.Writer
	environment []string
}

func main() {
	os.Exit(run(context.Background(), os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr, os.Environ()}))
}

// run carries out one command line and returns the exit code.
func run(ctx context.Context, args []string, s streams) int {
	exited := -1
	parser, err := kong.New(&commandLine{},
		kong.Name("wlmserver"),
		kong.Description("A light server with OpenSearch's REST API and its workload management: groups, limits, queues, cancellation, statistics."),
		kong.UsageOnError(),
		kong.Writers(s.out, s.err),
		kong.Exit(func(code int) { exited = code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(s),
	)
	if err != nil {
		panic(err) // the tags above are wrong: every run would end here
	}
	command, err := parser.Parse(args)
	if exited >= 0 { // --help
		return exited
	}
	if err != nil {
		fmt.Fprintf(s.err, "wlmserver: %v\nwlmserver --help tells how it is called.\n", err)
		return exitUsage
	}
	if err := command.Run(); err != nil {
		fmt.Fprintf(s.err, "wlmserver: %v\n", err)
		if _, ok := errors.AsType[*usageError](err); ok {
			return exitUsage
		}
		return exitFailure
	}
	return 0
}

// usageError: the program was called with a configuration that does not fit.
type usageError struct{ error }
