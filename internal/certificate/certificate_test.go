package certificate_test

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/wlmserver/wlmserver/internal/certificate"
	"github.com/wlmserver/wlmserver/internal/certificate/certificatetest"
)

func open(t *testing.T, f certificate.Files) *certificate.Source {
	t.Helper()
	s, err := certificate.Open(f, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// shake has both sides shake hands and returns their errors.
func shake(t *testing.T, server, client *certificate.Source) (serverErr, clientErr error) {
	t.Helper()
	accept, err := server.Mutual()
	if err != nil {
		t.Fatal(err)
	}
	connect, err := client.Mutual()
	if err != nil {
		t.Fatal(err)
	}
	connect.ServerName = "127.0.0.1"
	a, b := net.Pipe()
	done := make(chan error)
	go func() {
		c := tls.Server(a, accept)
		err := c.Handshake()
		if err == nil {
			_, err = c.Write([]byte{1}) // what a client of TLS 1.3 hears of a refusal comes after its handshake
		}
		a.Close()
		done <- err
	}()
	c := tls.Client(b, connect)
	_, clientErr = c.Read(make([]byte, 1))
	b.Close()
	return <-done, clientErr
}

func TestMutual(t *testing.T) {
	ours, theirs := certificatetest.NewAuthority(t), certificatetest.NewAuthority(t)
	a, b := open(t, ours.Issue(t, t.TempDir(), 1)), open(t, ours.Issue(t, t.TempDir(), 2))
	if s, c := shake(t, a, b); s != nil || c != nil {
		t.Errorf("of one authority: %v, %v", s, c)
	}
	stranger := open(t, theirs.Issue(t, t.TempDir(), 3))
	if s, c := shake(t, a, stranger); s == nil && c == nil {
		t.Error("a stranger is let in")
	}
	// Each side looks: one that trusts everybody is refused by the other all the same.
	f := theirs.Issue(t, t.TempDir(), 4)
	f.Authorities = ours.Issue(t, t.TempDir(), 5).Authorities
	trusting := open(t, f)
	if s, _ := shake(t, a, trusting); s == nil {
		t.Error("a client whose certificate an unknown authority has signed is let in")
	}
	if _, c := shake(t, trusting, a); c == nil {
		t.Error("a server whose certificate an unknown authority has signed is trusted")
	}
}

// The authorities are read again too: a cluster changes them without a restart.
func TestMutualRotation(t *testing.T) {
	before, after := certificatetest.NewAuthority(t), certificatetest.NewAuthority(t)
	folder := t.TempDir()
	now := time.Now()
	old := before.Issue(t, t.TempDir(), 1)
	s := open(t, before.Issue(t, folder, 1))
	after.Issue(t, folder, 2)
	fresh := open(t, after.Issue(t, t.TempDir(), 3))
	for {
		_, c := shake(t, s, fresh)
		if c == nil {
			break
		}
		if time.Since(now) > 10*time.Second {
			t.Fatalf("the new files are not read: %v", c)
		}
	}
	if server, _ := shake(t, s, open(t, old)); server == nil {
		t.Error("what the authority of before has signed is still trusted")
	}
}

func TestWhatCannotBeUsed(t *testing.T) {
	a := certificatetest.NewAuthority(t)
	good := a.Issue(t, t.TempDir(), 1)
	for name, c := range map[string]struct {
		change func(*certificate.Files)
		want   []string
	}{
		"no authorities":    {func(f *certificate.Files) { f.Authorities = "" }, []string{"transport.ssl.certificate_authorities"}},
		"only authorities":  {func(f *certificate.Files) { f.Certificate, f.Key = "", "" }, []string{"transport.ssl.certificate_authorities", "without transport.ssl.key"}},
		"no file of them":   {func(f *certificate.Files) { f.Authorities += "x" }, []string{"transport.ssl.certificate_authorities", good.Authorities + "x"}},
		"a key instead":     {func(f *certificate.Files) { f.Authorities = f.Key }, []string{"transport.ssl.certificate_authorities", "no certificate"}},
		"no key":            {func(f *certificate.Files) { f.Key = "" }, []string{"without transport.ssl.key"}},
		"the key of others": {func(f *certificate.Files) { f.Key = a.Issue(t, t.TempDir(), 2).Key }, []string{"no pair"}},
	} {
		f := good
		c.change(&f)
		s, err := certificate.Open(f, zerolog.Nop())
		if e, ok := errors.AsType[*certificate.Error](err); !ok || s != nil {
			t.Errorf("%s: %v, %v", name, s, err)
		} else {
			for _, part := range c.want {
				if !strings.Contains(e.Error(), part) {
					t.Errorf("%s: %v does not say %q", name, e, part)
				}
			}
		}
	}
	if s, err := certificate.Open(certificate.Files{Keys: "x", Mutual: true}, zerolog.Nop()); s != nil || err != nil {
		t.Errorf("nothing given: %v, %v", s, err)
	}
}

// The files are looked at once a second at most, and what cannot be used is told once.
func TestLooksSeldomAndTellsOnce(t *testing.T) {
	a := certificatetest.NewAuthority(t)
	folder := t.TempDir()
	f := a.Issue(t, folder, 1)
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		s, err := certificate.Open(f, zerolog.New(&log))
		if err != nil {
			t.Fatal(err)
		}
		log.Reset() // of what the bubble's clock makes of the dates
		serial := func() int64 {
			c, err := s.Certificate(nil)
			if err != nil {
				t.Fatal(err)
			}
			return c.Leaf.SerialNumber.Int64()
		}
		a.Issue(t, folder, 2)
		if got := serial(); got != 1 {
			t.Errorf("looked at once: serial %d", got)
		}
		time.Sleep(time.Second)
		if got := serial(); got != 2 {
			t.Errorf("not looked at after a second: serial %d", got)
		}
		if err := os.WriteFile(f.Key, []byte("no key"), 0o600); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			time.Sleep(time.Second)
			if got := serial(); got != 2 {
				t.Errorf("serial %d", got)
			}
		}
		if n := strings.Count(log.String(), "the one before stays"); n != 1 {
			t.Errorf("told %d times: %s", n, log.String())
		}
	})
}
