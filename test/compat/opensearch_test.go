package compat_test

import (
	"bytes"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

// startTime is how long a node may take until it answers, on a machine that has other work.
const startTime = 2 * time.Minute

// startOpenSearch runs a node until the test ends, and gives its address.
func startOpenSearch(t *testing.T, launcher string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := exec.Command(launcher, "start", t.TempDir(), port,
		"cluster.name="+clusterName, "node.name="+nodeName, "node.roles=cluster_manager,data", "wlm.workload_group.mode=enabled")
	cmd.Env = append(os.Environ(), "UNTIL_EOF=yes")
	cmd.Stdout, cmd.Stderr = &out, &out
	alive, err := cmd.StdinPipe() // closed, should this process die, by the system
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // what it printed says more
	}()
	t.Cleanup(func() {
		_ = alive.Close() // its end is what is waited for
		select {
		case <-ended:
		case <-time.After(time.Minute):
			_ = cmd.Process.Kill()
			<-ended
			t.Error("the OpenSearch node did not stop by itself")
		}
	})
	for since := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		res, err := http.Get("http://" + address + "/")
		if err == nil {
			_ = res.Body.Close()
			return address
		}
		select {
		case <-ended:
			t.Fatalf("the OpenSearch node ended: %v\n%s", cmd.ProcessState, &out)
		default:
		}
		if time.Since(since) > startTime {
			t.Fatalf("the OpenSearch node does not answer on %s", address)
		}
	}
}
