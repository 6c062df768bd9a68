// Command demo shows a cluster on one machine: an etcd and three nodes, searches under a limit that all nodes share, the end of a
// node, and its return. Everything that it starts ends with it, and nothing is kept.
//
// It is a program of its own, so that the server does not come to know the server of etcd.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/wlmserver/wlmserver/internal/demo"
	"github.com/wlmserver/wlmserver/test/cluster/etcd"
)

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is the program; it returns its exit code. Called with the word node, it is one of the three nodes.
func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if len(args) > 0 && args[0] == nodeCommand {
		err = serve(ctx, args[1:], in, out, errs)
	} else {
		flags := flag.NewFlagSet("demo", flag.ContinueOnError)
		flags.SetOutput(errs)
		fast := flags.Bool("fast", false, "take about five seconds instead of fifteen")
		if flags.Parse(args) != nil || flags.NArg() > 0 {
			return 2
		}
		err = show(ctx, *fast, out)
	}
	if err != nil {
		fmt.Fprintf(errs, "demo: %v\n", err)
		return 1
	}
	return 0
}

// show starts the cluster and gives the demonstration on it.
func show(ctx context.Context, fast bool, out io.Writer) error {
	folder, err := os.MkdirTemp("", "wlmserver-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	metadata, err := etcd.New(filepath.Join(folder, "etcd"))
	if err != nil {
		return err
	}
	defer metadata.Close()

	o := demo.ClusterOptions{Out: out, Fast: fast, Lease: 2 * time.Second}
	if fast {
		o.Lease = time.Second
	}
	for i := range 3 {
		name := fmt.Sprintf("n%d", i+1)
		n := newNode(name, filepath.Join(folder, name), metadata.Endpoint(), o.Lease)
		if err := n.Start(ctx); err != nil {
			return err
		}
		defer func() { _ = n.Kill() }()
		o.Nodes = append(o.Nodes, n)
	}
	return demo.RunCluster(ctx, o)
}
