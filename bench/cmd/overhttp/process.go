package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a server that runs as a child.
type process struct {
	name    string
	address string
	cmd     *exec.Cmd
	started time.Duration // from its start until it first answered
}

// bench starts servers, and keeps what they leave in one folder.
type bench struct {
	context.Context
	folder string
	binary string // of wlmserver
	self   string // this program
	count  int
}

func (b *bench) command(binary string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(b, binary, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	return cmd
}

// build builds the server from the tree around this module, with that tree's dependencies.
func (b *bench) build() error {
	root, err := b.command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/wlmserver/wlmserver").Output()
	if err != nil {
		return err
	}
	b.binary = filepath.Join(b.folder, "wlmserver")
	cmd := b.command("go", "build", "-o", b.binary, "./cmd/wlmserver")
	cmd.Dir = strings.TrimSpace(string(root))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// startBare starts one of the servers of serve.
func (b *bench) startBare(name string, args ...string) (*process, error) {
	p := &process{name: name, cmd: b.command(b.self, append([]string{"serve"}, args...)...)}
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p.address = strings.TrimSpace(line)
	return p, p.awaitAnswer(begun, "/control/parked")
}

// start starts any other server on a port that is free now.
func (b *bench) start(name, probe string, command func(port string) (*exec.Cmd, error)) (*process, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &process{name: name, address: l.Addr().String()}
	_ = l.Close() // it has to be free
	_, port, err := net.SplitHostPort(p.address)
	if err != nil {
		return nil, err
	}
	if p.cmd, err = command(port); err != nil {
		return nil, err
	}
	b.count++
	log, err := os.Create(filepath.Join(b.folder, fmt.Sprintf("%d-%s.log", b.count, filepath.Base(p.cmd.Path))))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd.Stdout, p.cmd.Stderr = log, log
	begun := time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	if err := p.awaitAnswer(begun, probe); err != nil {
		p.stop()
		text, _ := os.ReadFile(log.Name()) // the error says enough without
		return nil, fmt.Errorf("%w\n%s", err, text)
	}
	return p, nil
}

// startOurs starts wlmserver with its data in a new folder; overrides are configuration, key=value each.
func (b *bench) startOurs(overrides ...string) (*process, error) {
	return b.start("wlmserver", "/", func(port string) (*exec.Cmd, error) {
		data, err := os.MkdirTemp(b.folder, "data")
		if err != nil {
			return nil, err
		}
		args := []string{"serve"}
		for _, o := range append([]string{"http.port=" + port, "path.data=" + data}, overrides...) {
			args = append(args, "-E", o)
		}
		return b.command(b.binary, args...), nil
	})
}

// awaitAnswer waits for the first answer.
func (p *process) awaitAnswer(begun time.Time, probe string) error {
	text := request(http.MethodGet, probe, "")
	for time.Since(begun) < 2*time.Minute {
		if c, err := connect(p.address, ""); err == nil {
			_, err = c.do(text)
			c.drop()
			if err == nil {
				p.started = time.Since(begun)
				return nil
			}
		}
		time.Sleep(200 * time.Microsecond)
	}
	return fmt.Errorf("%s does not answer on %s", p.name, p.address)
}

// stop ends the process.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // may have ended by itself
	ended := time.AfterFunc(15*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer ended.Stop()
	_ = p.cmd.Wait() // "signal: terminated"
}

// kill ends the process at once: there is nothing to wait for.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // may have ended by itself
	_ = p.cmd.Wait()         // "signal: killed"
}

// family is the process with its children.
func (p *process) family() []string {
	pid := strconv.Itoa(p.cmd.Process.Pid)
	children, _ := os.ReadFile("/proc/" + pid + "/task/" + pid + "/children") // without it, there are none
	return append([]string{pid}, strings.Fields(string(children))...)
}

// cpu is the processor time that the process has used, in seconds.
func (p *process) cpu() float64 {
	const ticks = 100 // USER_HZ, the same on every Linux that Go runs on
	var sum float64
	for _, pid := range p.family() {
		text, _ := os.ReadFile("/proc/" + pid + "/stat") // without it, the figure is 0 and looks so
		if _, rest, ok := bytes.Cut(text, []byte(") ")); ok {
			fields := strings.Fields(string(rest))
			user, _ := strconv.ParseFloat(fields[11], 64)
			system, _ := strconv.ParseFloat(fields[12], 64)
			sum += (user + system) / ticks
		}
	}
	return sum
}

// resident is the process's resident memory in bytes.
func (p *process) resident() float64 {
	var sum float64
	for _, pid := range p.family() {
		text, _ := os.ReadFile("/proc/" + pid + "/statm") // as above
		if fields := strings.Fields(string(text)); len(fields) > 1 {
			pages, _ := strconv.ParseFloat(fields[1], 64)
			sum += pages * float64(os.Getpagesize())
		}
	}
	return sum
}

// call sends one request of the set-up and gives the answer, which has to be 200.
func (p *process) call(method, path, body string) ([]byte, error) {
	r, err := http.NewRequest(method, "http://"+p.address+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s %s: %d %s", p.name, method, path, res.StatusCode, text)
	}
	return text, err
}

// createIndex makes an index of one shard whose query takes as long as said.
func (p *process) createIndex(name, queryTime string) error {
	stub := ""
	if queryTime != "" {
		stub = fmt.Sprintf(`,"index.stub.query_time":%q`, queryTime)
	}
	_, err := p.call(http.MethodPut, "/"+name, `{"settings":{"number_of_shards":1,"number_of_replicas":0`+stub+`}}`)
	return err
}

// createGroup makes a group that is throttled as a whole and gives its id.
func (p *process) createGroup(name string, limit, queue int) (string, error) {
	text, err := p.call(http.MethodPut, "/_wlm/workload_group", fmt.Sprintf(
		`{"name":%q,"resiliency_mode":"enforced","resource_limits":{"cpu":0.01},"throttling":{"attribute":"group","node_limit":%d},"queue":{"size_per_bucket":%d}}`,
		name, limit, queue))
	if err != nil {
		return "", err
	}
	var g struct {
		ID string `json:"_id"`
	}
	return g.ID, json.Unmarshal(text, &g)
}

// metric reads one line of wlmserver's metrics.
func (p *process) metric(name string) (float64, error) {
	text, err := p.call(http.MethodGet, "/metrics", "")
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(string(text), "\n"+name+" ")
	if !found {
		return 0, fmt.Errorf("there is no metric %s", name)
	}
	line, _, _ := strings.Cut(rest, "\n")
	return strconv.ParseFloat(line, 64)
}

// control reads a number of one of the servers of serve.
func (p *process) control(what string) (float64, error) {
	text, err := p.call(http.MethodGet, "/control/"+what, "")
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(string(text), 64)
}

// await waits until a number that the server tells has reached want.
func await(want float64, read func() (float64, error)) error {
	deadline := time.Now().Add(time.Minute)
	for {
		n, err := read()
		if err != nil || n >= want {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after a minute there are %v of %v", n, want)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
