package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

// checkInterval is how often, at most, the files are looked at. That happens when a connection begins, so that a server without
// connections does nothing.
const checkInterval = time.Second

// Files says where a certificate is kept.
type Files struct {
	Keys string // begins the names of the keys that name the files, for messages: "http.ssl"

	Certificate, Key string // PEM: the certificate with its chain, its private key; "" for all files = none

	// Mutual says that who connects shows a certificate too. Authorities is then the PEM file of those that sign all of them.
	Mutual      bool
	Authorities string
}

// Source is what there is in the files. What cannot be used is told once, and what there was before stays. It is safe for concurrent
// use.
type Source struct {
	files   Files
	log     zerolog.Logger
	current atomic.Pointer[material]

	mu   sync.Mutex // only ever tried: who does not get it uses what there is
	due  time.Time  // when the files are to be looked at again
	seen [3]fileState
}

// material is what was read at one time.
type material struct {
	pair        tls.Certificate
	authorities *x509.CertPool // nil unless Mutual
}

// fileState tells one state of a file from another.
type fileState struct {
	modified time.Time
	size     int64
}

// Error: a certificate of the configuration, its key or its authorities cannot be used.
type Error struct{ Err error }

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// Open reads the files. Without any the source is nil. Errors are *[Error].
func Open(f Files, log zerolog.Logger) (*Source, error) {
	given := map[bool]string{}
	for _, file := range f.list() {
		given[file.path != ""] = file.key
	}
	switch {
	case given[true] == "":
		return nil, nil
	case given[false] != "":
		return nil, &Error{fmt.Errorf("%s is given without %s: give both, or neither for no TLS", given[true], given[false])}
	}
	s := &Source{files: f, log: log, due: time.Now().Add(checkInterval)}
	s.seen = s.state()
	m, err := s.read()
	if err != nil {
		return nil, &Error{err}
	}
	s.use(m)
	return s, nil
}

type file struct{ key, path string }

// list are the files that have to be there.
func (f Files) list() []file {
	all := []file{{f.Keys + ".certificate", f.Certificate}, {f.Keys + ".key", f.Key}}
	if f.Mutual {
		all = append(all, file{f.Keys + ".certificate_authorities", f.Authorities})
	}
	return all
}

// read reads all files.
func (s *Source) read() (*material, error) {
	var contents [3][]byte
	for i, file := range s.files.list() {
		b, err := os.ReadFile(file.path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.key, err)
		}
		contents[i] = b
	}
	m := new(material)
	var err error
	if m.pair, err = tls.X509KeyPair(contents[0], contents[1]); err != nil {
		return nil, fmt.Errorf("%[1]s.certificate %[2]s and %[1]s.key %[3]s are no pair that can be used: %[4]w; "+
			"give a certificate with its chain and its private key, both PEM, the key without a passphrase", s.files.Keys, s.files.Certificate, s.files.Key, err)
	}
	if s.files.Mutual {
		m.authorities = x509.NewCertPool()
		if !m.authorities.AppendCertsFromPEM(contents[2]) {
			return nil, fmt.Errorf("%s.certificate_authorities %s has no certificate: give the PEM of those that sign the nodes' certificates", s.files.Keys, s.files.Authorities)
		}
	}
	return m, nil
}

// use makes what was read what connections see from now on.
func (s *Source) use(m *material) {
	s.current.Store(m)
	if now, leaf := time.Now(), m.pair.Leaf; now.After(leaf.NotAfter) || now.Before(leaf.NotBefore) {
		s.log.Warn().Str("file", s.files.Certificate).Time("not_before", leaf.NotBefore).Time("not_after", leaf.NotAfter).
			Msg("the certificate is not valid today: clients that check it will not connect")
	}
}

// state looks at the files. One that cannot be looked at counts as empty.
func (s *Source) state() [3]fileState {
	var all [3]fileState
	for i, file := range s.files.list() {
		if info, err := os.Stat(file.path); err == nil {
			all[i] = fileState{info.ModTime(), info.Size()}
		}
	}
	return all
}

// Certificate is for [tls.Config.GetCertificate].
func (s *Source) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.refresh()
	return &s.current.Load().pair, nil
}

// Mutual is the configuration of one connection between peers, for either side: both show the certificate, and trust what the
// authorities have signed. The source has to be of Files with Mutual.
func (s *Source) Mutual() (*tls.Config, error) {
	if !s.files.Mutual {
		return nil, errors.New("certificate: of files that are not mutual")
	}
	s.refresh()
	m := s.current.Load()
	return &tls.Config{
		MinVersion:             tls.VersionTLS12,
		Certificates:           []tls.Certificate{m.pair},
		RootCAs:                m.authorities,
		ClientCAs:              m.authorities,
		ClientAuth:             tls.RequireAndVerifyClientCert,
		SessionTicketsDisabled: true, // who resumed a session would not be looked at again
	}, nil
}

// refresh reads the files again if they have changed and it is time to look.
func (s *Source) refresh() {
	if !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	now := time.Now()
	if now.Before(s.due) {
		return
	}
	s.due = now.Add(checkInterval)
	state := s.state() // before reading: what changes meanwhile is seen the next time
	if state == s.seen {
		return
	}
	s.seen = state
	m, err := s.read()
	if err != nil {
		s.log.Error().Err(err).Msg("the certificate has changed and cannot be used: the one before stays")
		return
	}
	s.use(m)
	s.log.Info().Str("file", s.files.Certificate).Time("not_after", m.pair.Leaf.NotAfter).
		Msg("the certificate has changed: new connections see the new one")
}
