package rest_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/tasks"
)

var everything = tasks.Filter{}

// A client that goes takes its search with it, parked or running, also when bytes that it sent behind the request keep
// net/http from noticing.
func TestDisconnect(t *testing.T) {
	for _, c := range []struct {
		encrypted bool
		stray     string // what the client sends behind its request
		parked    bool
		size      int // of the body
	}{
		{false, "", false, 0},
		{false, "", true, 100},
		{false, "", true, 300 << 10},
		{false, "G", false, 300 << 10},
		{false, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", true, 100},
		{true, "", true, 100},
		{true, "G", true, 100},
	} {
		if c.stray != "" && runtime.GOOS != "linux" {
			continue // only net/http looks there
		}
		t.Run(fmt.Sprintf("tls %v, stray bytes %d, parked %v, body %d", c.encrypted, len(c.stray), c.parked, c.size), func(t *testing.T) {
			t.Parallel()
			testDisconnect(t, c.encrypted, c.stray, c.parked, c.size)
		})
	}
}

func testDisconnect(t *testing.T, encrypted bool, stray string, parked bool, size int) {
	t.Helper()
	hold := make(chan struct{})
	s := newServer(t, func(o *options) {
		o.executor = &gate{open: hold}
		o.tls = encrypted
	})
	id := s.group("g", `,"throttling":{"attribute":"group","node_limit":1},"queue":{"size_per_bucket":5}`)
	want := 1
	if parked {
		s.background("POST", "/_search", `{}`, "workloadGroupId", id)
		s.eventually("the first search runs", func() bool { return s.running("indices:data/read/search") == 1 })
		want = 2
	}
	var c net.Conn
	var err error
	if encrypted {
		c, err = tls.Dial("tcp", s.address, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // a test's own certificate
	} else {
		c, err = net.Dial("tcp", s.address)
	}
	must(t, err)
	defer c.Close()
	request := fmt.Sprintf("POST /_search HTTP/1.1\r\nHost: x\r\nworkloadGroupId: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", id, size, strings.Repeat(" ", size))
	_, err = io.WriteString(c, request)
	must(t, err)
	s.eventually("the search is there", func() bool { return s.running("indices:data/read/search") == want })
	if stray != "" {
		_, err = io.WriteString(c, stray)
		must(t, err)
	}
	if parked {
		s.eventually("the search is parked", func() bool { return s.admission.Totals().Waiters == 1 })
	}
	must(t, c.Close())
	left := time.Now()
	s.eventually("the search is gone", func() bool { return s.running("indices:data/read/search") == want-1 })
	if took := time.Since(left); took > 2*time.Second {
		t.Errorf("noticed after %v", took)
	}
	if n := s.admission.Totals().Waiters; n != 0 {
		t.Errorf("%d searches are still parked", n)
	}
	if totals := s.admission.Totals(); parked && len(totals.EvictedBy) == 0 {
		t.Errorf("no eviction is counted: %+v", totals)
	}
	close(hold)
}

// The watch leaves clients alone that are still there, stray bytes or not.
func TestNoDisconnect(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	s := newServer(t, func(o *options) { o.executor = &gate{open: hold} })
	c, br := s.dial()
	fmt.Fprint(c, "POST /_search HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\nGET /_cluster/settings HTTP/1.1\r\nHost: x\r\n\r\n")
	s.eventually("the search runs", func() bool { return s.running("indices:data/read/search") == 1 })
	<-time.After(1200 * time.Millisecond) // the watch has looked twice
	close(hold)
	readResponse(t, br, "POST", 200, `"took"`)
	readResponse(t, br, "GET", 200, "persistent")
}

// A request that waits for something else notices too.
func TestDisconnectWhileWaitingForHealth(t *testing.T) {
	s := newServer(t)
	c, _ := s.dial()
	fmt.Fprint(c, "GET /_cluster/health?wait_for_nodes=9&timeout=60s HTTP/1.1\r\nHost: x\r\n\r\n")
	s.eventually("it waits", func() bool { return s.running("cluster:monitor/health") == 1 })
	must(t, c.Close())
	s.eventually("it has given up", func() bool { return s.running("cluster:monitor/health") == 0 })
}
