package settings_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/wlmserver/wlmserver/records"
	"github.com/wlmserver/wlmserver/settings"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, repository records.Repository, start map[string]string) *settings.Registry {
	t.Helper()
	r, err := settings.Open(t.Context(), repository, start)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return r
}

// put parses a body and applies it.
func put(t *testing.T, r *settings.Registry, body string) (settings.Applied, error) {
	t.Helper()
	u, err := settings.ParseUpdate([]byte(body))
	if err != nil {
		return settings.Applied{}, err
	}
	return r.Apply(t.Context(), u)
}

func mustPut(t *testing.T, r *settings.Registry, body string) settings.Applied {
	t.Helper()
	a, err := put(t, r, body)
	if err != nil {
		t.Fatalf("PUT %s: %v", body, err)
	}
	return a
}

// refused applies a body that must fail with an error of type E and change nothing.
func refused[E error](t *testing.T, r *settings.Registry, body string) E {
	t.Helper()
	before := r.Snapshot()
	_, err := put(t, r, body)
	e, ok := errors.AsType[E](err)
	if !ok {
		t.Fatalf("PUT %s: error %T %v, want %T", body, err, err, e)
	}
	if r.Snapshot() != before {
		t.Fatalf("PUT %s was refused and changed the settings", body)
	}
	return e
}

func wantPairs(t *testing.T, what string, got []settings.KV, want ...settings.KV) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// refuse is a repository's answer to every change.
func refuse(err error) func(context.Context) error {
	return func(context.Context) error { return err }
}
