package main

import (
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"text/template"
)

// The configurations of the servers that are not ours.
//
//go:embed haproxy.cfg nginx.conf
var configurations embed.FS

// place is what a configuration is filled in with.
type place struct {
	Port, Backend string
	Limit, Queue  int
	Timeout       string
	Processors    int
	Folder        string
}

// configure writes a configuration into a folder of its own and gives its path.
func (b *bench) configure(name string, p place) (string, error) {
	folder, err := os.MkdirTemp(b.folder, name)
	if err != nil {
		return "", err
	}
	p.Folder, p.Processors = folder, runtime.NumCPU()
	t, err := template.ParseFS(configurations, name)
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, name)
	file, err := os.Create(path)
	if err != nil {
		return "", err
	}
	if err := t.Execute(file, p); err != nil {
		_ = file.Close()
		return "", err
	}
	return path, file.Close()
}

// startHAProxy starts HAProxy before a backend, with a limit and a queue.
func (b *bench) startHAProxy(binary, backend string, limit, queue int, timeout string) (*process, error) {
	return b.start("HAProxy", "/control/parked", func(port string) (*exec.Cmd, error) {
		path, err := b.configure("haproxy.cfg", place{Port: port, Backend: backend, Limit: limit, Queue: queue, Timeout: timeout})
		return b.command(binary, "-f", path, "-db"), err
	})
}

// startNginx starts nginx before a backend, with a limit.
func (b *bench) startNginx(binary, backend string, limit int) (*process, error) {
	return b.start("nginx limit_conn", "/control/parked", func(port string) (*exec.Cmd, error) {
		path, err := b.configure("nginx.conf", place{Port: port, Backend: backend, Limit: limit})
		return b.command(binary, "-p", filepath.Dir(path), "-c", path), err
	})
}

// startOpenSearch starts a node by a script that takes a folder and a port.
func (b *bench) startOpenSearch(script string) (*process, error) {
	return b.start("OpenSearch", "/", func(port string) (*exec.Cmd, error) {
		folder, err := os.MkdirTemp(b.folder, "opensearch")
		if err != nil {
			return nil, err
		}
		fmt.Fprintln(os.Stderr, "starting OpenSearch: half a minute")
		return b.command(script, "start", folder, port), nil
	})
}
