package node

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// PublicAddressError: everyone would be let in from other machines and nothing says that this is meant.
type PublicAddressError struct{ Host string }

func (e *PublicAddressError) Error() string {
	return fmt.Sprintf("http.host = %q can be reached from other machines and nobody has to sign in: "+
		"give auth.users_file or auth.proxy.user_header, or bind a loopback address such as 127.0.0.1, "+
		"or set auth.allow_anonymous: true if everyone may do everything", e.Host)
}

// listen binds the HTTP address. Where everyone is anonymous, only a loopback address will do unless the configuration
// allows it.
func listen(ctx context.Context, c Config, anonymous bool) (net.Listener, error) {
	address, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(c.HTTP.Host, strconv.Itoa(c.HTTP.Port)))
	if err != nil {
		return nil, fmt.Errorf("http.host = %q is no address of this machine: %w", c.HTTP.Host, err)
	}
	if anonymous && !c.AllowAnonymous && !address.IP.IsLoopback() {
		return nil, &PublicAddressError{Host: c.HTTP.Host}
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address.String())
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s (http.host, http.port; port 0 takes any free one): %w", address, err)
	}
	return l, nil
}

// writeAddressFile puts the address into the file, whole or not at all: a reader never sees half of it.
func writeAddressFile(path, address string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("http.address_file: %w", err)
	}
	_, err = f.WriteString(address + "\n")
	if err == nil {
		err = f.Chmod(0o644)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("http.address_file: %w", err)
	}
	return nil
}

// removeAddressFile removes the file if it still holds this address: another server may have taken the file over.
func removeAddressFile(path, address string) {
	if b, err := os.ReadFile(path); err == nil && string(b) == address+"\n" {
		os.Remove(path)
	}
}
