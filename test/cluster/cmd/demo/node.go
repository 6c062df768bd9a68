package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/wlmserver/wlmserver/internal/node"
)

// nodeCommand makes the program one of the nodes.
const nodeCommand = "node"

// process is a node in a process of its own, so that it can be killed as a machine's failure would end it. It is not safe for
// concurrent use.
type process struct {
	name string
	keys []string // of its configuration, as key=value

	url    string
	cmd    *exec.Cmd      // nil while it does not run
	stdin  io.WriteCloser // its end tells the node that the demonstration is gone
	errors bytes.Buffer
}

func newNode(name, folder, etcd string, lease time.Duration) *process {
	return &process{name: name, keys: []string{
		"node.name=" + name, "cluster.name=demo", "path.data=" + folder, "http.port=0", "transport.port=0", "logger.level=error",
		"cluster.etcd.endpoints=" + etcd,
		fmt.Sprintf("cluster.member_ttl=%dms", lease.Milliseconds()), fmt.Sprintf("cluster.session_lease=%dms", lease.Milliseconds()),
		"thread_pool.search.size=8", // that it is the group's limit that holds searches back, on any machine
	}}
}

func (p *process) Name() string { return p.name }

func (p *process) URL() string { return p.url }

// Start starts the node and returns when it answers.
func (p *process) Start(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	p.errors.Reset()
	cmd := exec.Command(program, append([]string{nodeCommand}, p.keys...)...) //nolint:noctx // ctx bounds the start alone
	cmd.Stderr = &p.errors
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.cmd = cmd
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = p.Kill()
		return fmt.Errorf("node %s did not start: %s", p.name, bytes.TrimSpace(p.errors.Bytes()))
	}
	p.url = strings.TrimSpace(line)
	return nil
}

// Kill ends the node at once. One that does not run stays so.
func (p *process) Kill() error {
	if p.cmd == nil {
		return nil
	}
	err := p.cmd.Process.Kill()
	_ = p.cmd.Wait() // its error is that it was killed
	p.cmd = nil
	return err
}

// serve runs a node until ctx or standard input ends, and writes where it listens.
func serve(ctx context.Context, keys []string, in io.Reader, out, errs io.Writer) error {
	c, err := node.Load(node.Sources{Overrides: keys})
	if err != nil {
		return err
	}
	c.Log.Output = errs
	n, err := node.Start(ctx, c)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, n.URL())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, in) // nothing is sent: it ends with the demonstration
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	case <-n.Done():
	}
	return n.Close()
}
