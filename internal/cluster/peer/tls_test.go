package peer_test

import (
	"strings"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/internal/certificate/certificatetest"
	"github.com/wlmserver/wlmserver/internal/cluster/peer"
)

func TestTLS(t *testing.T) {
	ours, theirs := certificatetest.NewAuthority(t), certificatetest.NewAuthority(t)
	b := start(t, "b", peer.Handlers{Sessions: sessions(echo), Metadata: metadata(1)}, secured(t, ours))
	a := start(t, "a", peer.Handlers{}, secured(t, ours))
	if err := a.peers.Await(t.Context(), b.self, 1); err != nil {
		t.Fatal(err)
	}
	s, err := a.peers.Session(t.Context(), b.self, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Send(beats(0, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Receive(); err != nil {
		t.Fatal(err)
	}

	plain := start(t, "c", peer.Handlers{Metadata: metadata(1)})
	trusting := ours.Issue(t, t.TempDir(), 2)
	stranger := theirs.Issue(t, t.TempDir(), 3)
	stranger.Authorities = trusting.Authorities // it would trust us
	for name, n := range map[string]*node{
		"of an unknown authority, distrusting": start(t, "d", peer.Handlers{}, secured(t, theirs)),
		"of an unknown authority, trusting":    start(t, "e", peer.Handlers{}, certified(t, stranger)),
		"without a certificate":                plain,
	} {
		if err := n.peers.Await(t.Context(), b.self, 1); !isUnreachable(err) {
			t.Errorf("%s: %#v", name, err)
		}
	}
	// Who is refused tries on; the log is told once.
	until(t, "the log tells of refusals", func() bool { return strings.Contains(b.log.String(), "calls of another node are refused") })
	if n := strings.Count(b.log.String(), "calls of another node are refused"); n != 1 {
		t.Errorf("the log tells of refusals %d times: %s", n, b.log)
	}
	if err := a.peers.Await(t.Context(), plain.self, 1); !isUnreachable(err) {
		t.Errorf("a node that speaks no TLS: %#v", err)
	}
	wrongName := b.self
	wrongName.Transport = strings.Replace(b.self.Transport, "127.0.0.1", "127.0.0.2", 1)
	if err := a.peers.Await(t.Context(), wrongName, 1); !isUnreachable(err) {
		t.Errorf("an address that the certificate does not name: %#v", err)
	}
}

// A cluster changes its authority and all certificates without a restart.
func TestTLSRotation(t *testing.T) {
	before, after := certificatetest.NewAuthority(t), certificatetest.NewAuthority(t)
	folderA, folderB := t.TempDir(), t.TempDir()
	a := start(t, "a", peer.Handlers{}, certified(t, before.Issue(t, folderA, 1)))
	b := start(t, "b", peer.Handlers{Sessions: sessions(echo), Metadata: metadata(1)}, certified(t, before.Issue(t, folderB, 1)))
	s, err := a.peers.Session(t.Context(), b.self, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	after.Issue(t, folderA, 2)
	after.Issue(t, folderB, 2)
	fresh := start(t, "c", peer.Handlers{}, secured(t, after))
	until(t, "the new certificate is shown and the new authority trusted", func() bool { return fresh.peers.Await(t.Context(), b.self, 1) == nil })
	if err := s.Send(beats(0, 1)); err != nil {
		t.Errorf("the session that was open: %v", err)
	}
	if _, err := s.Receive(); err != nil {
		t.Errorf("the session that was open: %v", err)
	}
	a.peers.Update(nil) // the next connection is a new one
	began := time.Now()
	until(t, "the one whose files changed is known again", func() bool { return a.peers.Await(t.Context(), b.self, 1) == nil })
	t.Logf("after %v", time.Since(began))
}
