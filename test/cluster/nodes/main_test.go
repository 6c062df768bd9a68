package nodes_test

import (
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/wlmserver/wlmserver/test/cluster/etcd"
	"github.com/wlmserver/wlmserver/test/server"
)

var rounds = flag.Int("rounds", 1, "how often each kind of trouble is made; from 20 on, all that is counted is done in full")

// share is how much of n is done: a tenth where the rounds are few.
func share(n int) int {
	if *rounds < 20 {
		return max(n/10, 1)
	}
	return n
}

// keeper is the etcd of all tests that leave it alone; prefixes counts the clusters that are in it.
var (
	keeper   *etcd.Server
	prefixes atomic.Int64
)

func TestMain(m *testing.M) {
	server.Serve()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	flag.Parse()
	// The tests mostly wait for leases: more of them at once than there are processors take no longer.
	if err := flag.Set("test.parallel", "6"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	dir, err := os.MkdirTemp("", "wlmserver-etcd-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if keeper, err = etcd.New(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	keeper.Close()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}
