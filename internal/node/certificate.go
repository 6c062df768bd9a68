package node

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

// certificateCheck is how often, at most, the files of the certificate are looked at. That happens when a client
// connects, so that a server without clients does nothing.
const certificateCheck = time.Second

// certificate is what the server shows to clients that connect: a pair of PEM files, read again when one of them has
// changed. A new pair that cannot be used is told once, and the old one stays. It is safe for concurrent use.
type certificate struct {
	certFile, keyFile string
	log               zerolog.Logger
	current           atomic.Pointer[tls.Certificate]

	mu    sync.Mutex // only ever tried: who does not get it uses what there is
	due   time.Time  // when the files are to be looked at again
	files [2]fileState
}

// fileState tells one state of a file from another.
type fileState struct {
	modified time.Time
	size     int64
}

// CertificateError: the certificate of the configuration or its key cannot be used.
type CertificateError struct{ Err error }

func (e *CertificateError) Error() string { return e.Err.Error() }

func (e *CertificateError) Unwrap() error { return e.Err }

// openCertificate reads the pair of the configuration; nil when there is none.
func openCertificate(c HTTPConfig, log zerolog.Logger) (*certificate, error) {
	switch {
	case c.Certificate == "" && c.Key == "":
		return nil, nil
	case c.Key == "":
		return nil, &CertificateError{errors.New("http.ssl.certificate is given without http.ssl.key: give both, or neither for plain HTTP")}
	case c.Certificate == "":
		return nil, &CertificateError{errors.New("http.ssl.key is given without http.ssl.certificate: give both, or neither for plain HTTP")}
	}
	x := &certificate{certFile: c.Certificate, keyFile: c.Key, log: log, due: time.Now().Add(certificateCheck)}
	x.files = x.state()
	pair, err := x.read()
	if err != nil {
		return nil, &CertificateError{err}
	}
	x.use(pair)
	return x, nil
}

// read reads the pair.
func (x *certificate) read() (*tls.Certificate, error) {
	cert, err := os.ReadFile(x.certFile)
	if err != nil {
		return nil, fmt.Errorf("http.ssl.certificate: %w", err)
	}
	key, err := os.ReadFile(x.keyFile)
	if err != nil {
		return nil, fmt.Errorf("http.ssl.key: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("http.ssl.certificate %s and http.ssl.key %s are no pair that can be used: %w; "+
			"give a certificate with its chain and its private key, both PEM, the key without a passphrase", x.certFile, x.keyFile, err)
	}
	return &pair, nil
}

// use makes a pair the one that clients see from now on.
func (x *certificate) use(pair *tls.Certificate) {
	x.current.Store(pair)
	if now := time.Now(); now.After(pair.Leaf.NotAfter) || now.Before(pair.Leaf.NotBefore) {
		x.log.Warn().Str("file", x.certFile).Time("not_before", pair.Leaf.NotBefore).Time("not_after", pair.Leaf.NotAfter).
			Msg("the certificate is not valid today: clients that check it will not connect")
	}
}

// state looks at the files. One that cannot be looked at counts as empty.
func (x *certificate) state() [2]fileState {
	var all [2]fileState
	for i, name := range [...]string{x.certFile, x.keyFile} {
		if info, err := os.Stat(name); err == nil {
			all[i] = fileState{info.ModTime(), info.Size()}
		}
	}
	return all
}

// get is for [tls.Config.GetCertificate].
func (x *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	x.refresh()
	return x.current.Load(), nil
}

// refresh reads the files again if they have changed and it is time to look.
func (x *certificate) refresh() {
	if !x.mu.TryLock() {
		return
	}
	defer x.mu.Unlock()
	now := time.Now()
	if now.Before(x.due) {
		return
	}
	x.due = now.Add(certificateCheck)
	files := x.state() // before reading: what changes meanwhile is seen the next time
	if files == x.files {
		return
	}
	x.files = files
	pair, err := x.read()
	if err != nil {
		x.log.Error().Err(err).Msg("the certificate has changed and cannot be used: the one before stays")
		return
	}
	x.use(pair)
	x.log.Info().Str("file", x.certFile).Time("not_after", pair.Leaf.NotAfter).Msg("the certificate has changed: new connections see the new one")
}

// protect has a server speak TLS 1.2 or later with this certificate, and HTTP/2 with clients that offer it.
func (x *certificate) protect(s *http.Server) {
	s.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: x.get}
	s.Protocols.SetUnencryptedHTTP2(false)
	s.Protocols.SetHTTP2(true)
}
