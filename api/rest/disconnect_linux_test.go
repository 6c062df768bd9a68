package rest

import (
	"net"
	"syscall"
	"testing"
)

// To look at connections makes no garbage: ten thousand that wait are looked at twice a second.
func TestProberMakesNoGarbage(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	raw, err := server.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	p := newProber()
	if n := testing.AllocsPerRun(100, func() {
		if p.hungUp(raw) {
			t.Error("a client that is there has hung up")
		}
	}); n != 0 {
		t.Errorf("a look takes %v allocations", n)
	}
}
