//go:build !linux

package rest

import "syscall"

// canSeeDisconnects says whether hungUp can be true on this system: here net/http alone notices clients that go.
const canSeeDisconnects = false

type prober struct{}

func newProber() prober { return prober{} }

func (prober) hungUp(syscall.RawConn) bool { return false }
