package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/wlmserver/wlmserver/auth"
	"github.com/wlmserver/wlmserver/internal/node"
)

type serveCommand struct {
	Config    string   `short:"c" placeholder:"FILE" help:"YAML file of the configuration."`
	Overrides []string `name:"set" short:"E" sep:"none" placeholder:"KEY=VALUE" help:"Set one key, over file and environment; may be repeated. The command config lists the keys."`
}

// Run serves until SIGTERM or SIGINT, then stops gently; a second signal ends the program at once.
func (c *serveCommand) Run(ctx context.Context, s streams) error {
	config, err := node.Load(node.Sources{File: c.Config, Environment: s.environment, Overrides: c.Overrides})
	if err != nil {
		return &usageError{err}
	}
	config.Log.Output = s.err
	floor := floorHeap(s.environment)
	defer runtime.KeepAlive(floor)

	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	defer signal.Stop(signals)

	n, err := node.Start(ctx, config)
	if err != nil {
		return startError(err)
	}
	fmt.Fprintf(s.out, "listening on %s\n", n.URL())

	select {
	case <-signals:
	case <-n.Done():
		return errors.Join(n.Err(), n.Close())
	}
	stopped := make(chan error, 1)
	go func() { stopped <- n.Shutdown(ctx) }()
	select {
	case err := <-stopped:
		return err
	case sig := <-signals:
		return fmt.Errorf("%v again: ended without waiting for what still runs", sig)
	}
}

// startError tells what only a change of the configuration helps against from what may be otherwise at the next try.
func startError(err error) error {
	_, public := errors.AsType[*node.PublicAddressError](err)
	_, users := errors.AsType[*auth.UsersFileError](err)
	_, combination := errors.AsType[*auth.ConfigError](err)
	_, certificate := errors.AsType[*node.CertificateError](err)
	_, clustered := errors.AsType[*node.ClusterConfigError](err)
	if public || users || combination || certificate || clustered {
		return &usageError{err}
	}
	return err
}
