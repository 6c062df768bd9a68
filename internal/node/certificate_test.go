package node_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/internal/node"
)

// pair is a certificate for this machine and its key, in files.
type pair struct {
	cert, key string // names of files
	modified  time.Time
}

func newPair(t *testing.T) *pair {
	t.Helper()
	dir := t.TempDir()
	p := &pair{cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem"), modified: time.Now().Add(-time.Hour)}
	p.issue(t, 1)
	return p
}

// issue writes a new pair. Each time the files are a minute younger: two writes may fall into one tick of a file system.
func (p *pair) issue(t *testing.T, serial int64) {
	t.Helper()
	cert, key := makePair(t, serial, time.Now().Add(time.Hour))
	p.write(t, p.cert, cert)
	p.write(t, p.key, key)
}

func (p *pair) write(t *testing.T, name string, content []byte) {
	t.Helper()
	p.modified = p.modified.Add(time.Minute)
	for _, err := range []error{os.WriteFile(name, content, 0o600), os.Chtimes(name, p.modified, p.modified)} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func makePair(t *testing.T, serial int64, until time.Time) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "wlmserver"},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

func (p *pair) overrides() []string {
	return []string{"http.ssl.certificate=" + p.cert, "http.ssl.key=" + p.key}
}

// trusting is a client that trusts what is in the certificate's file.
func (p *pair) trusting(t *testing.T) *http.Client {
	t.Helper()
	b, err := os.ReadFile(p.cert)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(b) {
		t.Fatal("no certificate in the file")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// handshake connects and returns what was agreed on.
func handshake(t *testing.T, n *node.Node, change func(*tls.Config)) (tls.ConnectionState, error) {
	t.Helper()
	c := &tls.Config{InsecureSkipVerify: true} // which one it is, is looked at
	if change != nil {
		change(c)
	}
	conn, err := tls.Dial("tcp", n.Addr(), c)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer conn.Close()
	return conn.ConnectionState(), nil
}

// serial is the number of the certificate that the node shows.
func serial(t *testing.T, n *node.Node) int64 {
	t.Helper()
	state, err := handshake(t, n, nil)
	if err != nil {
		t.Fatal(err)
	}
	return state.PeerCertificates[0].SerialNumber.Int64()
}

func TestTLS(t *testing.T) {
	p := newPair(t)
	c := config(t, p.overrides()...)
	var log logBuffer
	c.Log.Output = &log
	n := start(t, c)
	if !strings.HasPrefix(n.URL(), "https://127.0.0.1:") {
		t.Errorf("URL %s", n.URL())
	}
	if !strings.Contains(log.String(), `"tls":true`) {
		t.Errorf("the log does not say it: %s", log.String())
	}

	resp, err := p.trusting(t).Get(n.URL() + "/_search")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 200 || !bytes.Contains(b, []byte("hits")) {
		t.Errorf("%s %s %v", resp.Status, b, err)
	}
	if resp.ProtoMajor != 2 {
		t.Errorf("a client that offers HTTP/2 gets %s", resp.Proto)
	}

	if state, err := handshake(t, n, func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }); err != nil || state.NegotiatedProtocol != "http/1.1" {
		t.Errorf("HTTP/1.1: %q %v", state.NegotiatedProtocol, err)
	}
	if _, err := handshake(t, n, func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
	if state, err := handshake(t, n, func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }); err != nil || state.Version != tls.VersionTLS12 {
		t.Errorf("TLS 1.2: %v", err)
	}
	if status, _ := ask(t, "GET", "http://"+n.Addr(), ""); status != 400 {
		t.Errorf("plain HTTP got %d", status)
	}
}

// TestTLSDisconnect: the server sees through TLS that a waiting client has gone.
func TestTLSDisconnect(t *testing.T) {
	p := newPair(t)
	n := start(t, config(t, append(p.overrides(), "stub.query_time=10m")...))
	client := p.trusting(t)
	put, err := http.NewRequest("PUT", n.URL()+"/slow", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(put)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()

	conn, err := tls.Dial("tcp", n.Addr(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "GET /slow/_search HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	searches := func() string {
		resp, err := client.Get(n.URL() + "/_tasks?actions=indices:data/read/search")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return string(b)
	}
	until(t, "the search runs", func() bool { return strings.Contains(searches(), "indices:data/read/search") })
	if _, err := io.WriteString(conn, "G"); err != nil { // keeps net/http from seeing the end of the connection
		t.Fatal(err)
	}
	conn.Close()
	until(t, "the search is cancelled", func() bool { return !strings.Contains(searches(), "indices:data/read/search") })
}

func TestCertificateRotation(t *testing.T) {
	p := newPair(t)
	c := config(t, p.overrides()...)
	var log logBuffer
	c.Log.Output = &log
	n := start(t, c)
	if got := serial(t, n); got != 1 {
		t.Fatalf("serial %d", got)
	}
	open := p.trusting(t)
	resp, err := open.Get(n.URL())
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()

	p.issue(t, 2)
	until(t, "the new certificate is shown", func() bool { return serial(t, n) == 2 })

	p.write(t, p.key, []byte("no key"))
	until(t, "a bad pair is told", func() bool { return serial(t, n) == 2 && strings.Contains(log.String(), "the one before stays") })
	looked := time.Now()
	until(t, "the files were looked at again", func() bool { return serial(t, n) == 2 && time.Since(looked) > 1200*time.Millisecond })
	if got := strings.Count(log.String(), "the one before stays"); got != 1 {
		t.Errorf("told %d times", got)
	}

	p.issue(t, 3)
	until(t, "the repaired pair is shown", func() bool { return serial(t, n) == 3 })
	if resp, err = open.Get(n.URL()); err != nil {
		t.Errorf("a connection that was open: %v", err)
	} else {
		resp.Body.Close()
	}
	if strings.Contains(log.String(), "PRIVATE") {
		t.Error("the log holds a key")
	}
}

func TestCertificateErrors(t *testing.T) {
	p, other := newPair(t), newPair(t)
	none := filepath.Join(t.TempDir(), "none.pem")
	for name, c := range map[string]struct {
		cert, key string
		want      []string
	}{
		"no key":             {p.cert, "", []string{"http.ssl.certificate is given without http.ssl.key"}},
		"no certificate":     {"", p.key, []string{"http.ssl.key is given without http.ssl.certificate"}},
		"no such file":       {none, p.key, []string{"http.ssl.certificate", none}},
		"no such key":        {p.cert, none, []string{"http.ssl.key", none}},
		"the other way":      {p.key, p.cert, []string{p.cert, "PEM"}},
		"of two pairs":       {p.cert, other.key, []string{other.key, "no pair"}},
		"a folder, not file": {filepath.Dir(p.cert), p.key, []string{"http.ssl.certificate"}},
	} {
		conf := config(t)
		conf.HTTP.Certificate, conf.HTTP.Key = c.cert, c.key
		n, err := node.Start(t.Context(), conf)
		if err == nil {
			n.Close()
			t.Errorf("%s: it starts", name)
			continue
		}
		if _, ok := errors.AsType[*node.CertificateError](err); !ok {
			t.Errorf("%s: %v is no CertificateError", name, err)
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v does not say %q", name, err, part)
			}
		}
	}
}

func TestExpiredCertificateIsTold(t *testing.T) {
	p := newPair(t)
	cert, key := makePair(t, 9, time.Now().Add(-time.Hour))
	p.write(t, p.cert, cert)
	p.write(t, p.key, key)
	c := config(t, p.overrides()...)
	var log logBuffer
	c.Log.Output = &log
	n := start(t, c)
	if !strings.Contains(log.String(), "not valid today") || serial(t, n) != 9 {
		t.Errorf("log: %s", log.String())
	}
}

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("never came true: %s", what)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// logBuffer collects log lines.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
