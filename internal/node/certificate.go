package node

import (
	"crypto/tls"
	"net/http"

	"github.com/wlmserver/wlmserver/internal/certificate"
)

// CertificateError: the certificate of the configuration or its key cannot be used.
type CertificateError = certificate.Error

// files are those of the certificate that HTTP clients see.
func (c HTTPConfig) files() certificate.Files {
	return certificate.Files{Keys: "http.ssl", Certificate: c.Certificate, Key: c.Key}
}

// protect has a server speak TLS 1.2 or later with this certificate, and HTTP/2 with clients that offer it.
func protect(s *http.Server, c *certificate.Source) {
	s.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.Certificate}
	s.Protocols.SetUnencryptedHTTP2(false)
	s.Protocols.SetHTTP2(true)
}
