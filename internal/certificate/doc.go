// Package certificate has what TLS shows and trusts: PEM files, read again when they have changed, so that a certificate is renewed
// without a restart.
package certificate
