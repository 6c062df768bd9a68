package trap_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/wlmserver/wlmserver/internal/cluster/peer/clusterpb"
	"github.com/wlmserver/wlmserver/test/cluster/trap"
	"github.com/wlmserver/wlmserver/test/faultproxy"
)

// frame is one of a session that is told from others by a number, and has so many bytes and a few.
func frame(number uint64, size int) *clusterpb.SessionFrame {
	e := &clusterpb.Envelope{Bucket: &clusterpb.Bucket{Value: strings.Repeat("x", size)}}
	b := &clusterpb.Batch{Revision: number, Envelopes: []*clusterpb.Envelope{e}}
	return &clusterpb.SessionFrame{Frame: &clusterpb.SessionFrame_Batch{Batch: b}}
}

// numbered reads the number of a session's frame; 0: it is something else.
func numbered(t *testing.T, m trap.Message) uint64 {
	t.Helper()
	var f clusterpb.SessionFrame
	if m.Method != clusterpb.Peer_Session_FullMethodName {
		return 0
	}
	if err := proto.Unmarshal(m.Body, &f); err != nil {
		t.Error(err)
	}
	return f.GetBatch().GetRevision()
}

// sizes are of messages that fit into one frame of HTTP/2, and of such that need several.
var sizes = []int{0, 1, 100, 16<<10 - 20, 16 << 10, 50_000, 300_000}

// TestNothingIsPicked: what passes is the same as without a trap, and each message has been seen once, each way.
func TestNothingIsPicked(t *testing.T) {
	r := newRig(t)
	var mu sync.Mutex
	seen := make(map[faultproxy.Way]map[string]int)
	for _, w := range []faultproxy.Way{faultproxy.Up, faultproxy.Down} {
		seen[w] = make(map[string]int)
	}
	lost := r.trap.Set(func(m trap.Message) bool {
		mu.Lock()
		defer mu.Unlock()
		seen[m.Way][m.Method+" "+string(m.Body)]++
		return false
	})
	const calls = 4 // beside one another, of each kind
	want := make(map[string]int)
	expect := func(method string, m proto.Message) {
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		want[method+" "+string(b)]++
	}
	var running sync.WaitGroup
	for i := range uint64(calls) {
		for n, size := range sizes {
			expect(clusterpb.Peer_Session_FullMethodName, frame(1+100*i+uint64(n), size))
			expect(clusterpb.Peer_Local_FullMethodName, &clusterpb.LocalRequest{Body: bytes.Repeat([]byte{byte(i)}, size)})
		}
		running.Go(func() {
			s := r.session()
			for n, size := range sizes {
				if err := s.Send(frame(1+100*i+uint64(n), size)); err != nil {
					t.Error(err)
				}
			}
			for n, size := range sizes {
				if got, err := s.Recv(); err != nil || !proto.Equal(got, frame(1+100*i+uint64(n), size)) {
					t.Errorf("message %d of session %d: %v", n, i, err)
				}
			}
			if err := s.CloseSend(); err != nil {
				t.Error(err)
			}
			if _, err := s.Recv(); !errors.Is(err, io.EOF) {
				t.Errorf("session %d ends with %v", i, err)
			}
		})
		running.Go(func() {
			for _, size := range sizes {
				body := bytes.Repeat([]byte{byte(i)}, size)
				if a, err := r.client.Local(t.Context(), &clusterpb.LocalRequest{Body: body}); err != nil || !bytes.Equal(a.GetBody(), body) {
					t.Errorf("%d bytes: %v", size, err)
				}
			}
		})
	}
	running.Wait()
	if n := r.proxy.Connections(); n != 1 {
		t.Errorf("%d connections", n)
	}
	select {
	case m := <-lost:
		t.Errorf("lost: %v", m)
	default:
	}
	for m, n := range want {
		if up := seen[faultproxy.Up][m]; up != n {
			t.Errorf("a message of %d bytes was seen %d times on its way up, want %d", len(m), up, n)
		}
	}
	up, down := 0, 0
	for m, n := range seen[faultproxy.Up] {
		up += n
		if want[m] == 0 {
			t.Errorf("a message of %d bytes was not sent", len(m))
		}
		if strings.HasPrefix(m, clusterpb.Peer_Session_FullMethodName) && seen[faultproxy.Down][m] != n {
			t.Errorf("a message of %d bytes was seen %d times on its way up and %d times down", len(m), n, seen[faultproxy.Down][m])
		}
	}
	for _, n := range seen[faultproxy.Down] {
		down += n
	}
	if all := 2 * calls * len(sizes); up != all || down != all {
		t.Errorf("%d and %d messages were seen, want %d each way", up, down, all)
	}
}

// TestOneIsLost: those before it arrive and it does not, both sides notice, and a connection made then has the same pass.
func TestOneIsLost(t *testing.T) {
	const picked = 5
	for name, x := range map[string]struct {
		way   faultproxy.Way
		size  int
		heard int // by the server
	}{
		"up":                   {faultproxy.Up, 10, picked - 1},
		"down":                 {faultproxy.Down, 10, picked},
		"up, several frames":   {faultproxy.Up, 200_000, picked - 1},
		"down, several frames": {faultproxy.Down, 200_000, picked},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			lost := r.trap.Set(func(m trap.Message) bool { return m.Way == x.way && numbered(t, m) == picked })
			s, other := r.session(), r.session()
			for n := uint64(1); n < picked; n++ {
				says(t, s, frame(n, x.size))
			}
			says(t, other, frame(100, x.size))
			if err := s.Send(frame(picked, x.size)); err != nil {
				t.Fatal(err)
			}
			for _, s := range []grpc.BidiStreamingClient[clusterpb.SessionFrame, clusterpb.SessionFrame]{s, other} {
				if f, err := s.Recv(); status.Code(err) != codes.Unavailable {
					t.Errorf("the client gets %v, %v", f.GetBatch().GetRevision(), err)
				}
			}
			for range 2 {
				select {
				case err := <-r.server.ends:
					if errors.Is(err, io.EOF) {
						t.Error("the server sees an end in order")
					}
				case <-time.After(soon):
					t.Fatal("the server does not hear of it")
				}
			}
			select {
			case m := <-lost:
				if m.Way != x.way || numbered(t, m) != picked || m.Beside != 0 {
					t.Errorf("lost was %d, %d beside it", numbered(t, m), m.Beside)
				}
			default:
				t.Error("nothing was lost")
			}
			if n := len(r.server.heard); n != x.heard+1 {
				t.Errorf("the server has heard %d messages", n)
			}
			for range x.heard + 1 {
				if n := (<-r.server.heard).GetBatch().GetRevision(); int(n) > x.heard && n != 100 {
					t.Errorf("the server has heard %d", n)
				}
			}
			again := r.session()
			says(t, again, frame(picked, x.size))
			says(t, again, frame(picked, x.size))
		})
	}
}

func says(t *testing.T, s grpc.BidiStreamingClient[clusterpb.SessionFrame, clusterpb.SessionFrame], f *clusterpb.SessionFrame) {
	t.Helper()
	if err := s.Send(f); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Recv(); err != nil || !proto.Equal(got, f) {
		t.Fatalf("said %d, heard %d, %v", f.GetBatch().GetRevision(), got.GetBatch().GetRevision(), err)
	}
}

func TestClear(t *testing.T) {
	r := newRig(t)
	r.trap.Set(func(trap.Message) bool { return true })
	r.trap.Clear()
	says(t, r.session(), frame(1, 1))
}
