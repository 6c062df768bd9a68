// Package certificatetest makes authorities and certificates for tests.
package certificatetest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/internal/certificate"
)

// Authority signs certificates of this machine's loopback addresses.
type Authority struct {
	cert *x509.Certificate
	key  crypto.Signer
	pem  []byte
}

// NewAuthority makes one that nobody else trusts.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of a test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a := &Authority{key: newKey(t)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

// Issue writes a new certificate, its key and the authority into the folder, and returns the files as those of mutual TLS. Files that
// are there already are replaced, and seen to be different at once.
func (a *Authority) Issue(t testing.TB, folder string, serial int64) certificate.Files {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "node of a test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}, DNSNames: []string{"localhost"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	f := certificate.Files{
		Keys: "transport.ssl", Mutual: true,
		Certificate: filepath.Join(folder, "node.pem"), Key: filepath.Join(folder, "node.key"), Authorities: filepath.Join(folder, "authorities.pem"),
	}
	write(t, f.Certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), serial)
	write(t, f.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), serial)
	write(t, f.Authorities, a.pem, serial)
	return f
}

// write gives the file a time of its own: two writes may fall into one tick of a file system.
func write(t testing.TB, name string, content []byte, serial int64) {
	t.Helper()
	at := time.Now().Add(-time.Hour + time.Duration(serial)*time.Second)
	for _, err := range []error{os.WriteFile(name, content, 0o600), os.Chtimes(name, at, at)} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
