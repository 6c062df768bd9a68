package openapi_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
)

// answering is a network that gives one answer.
type answering struct {
	body   string
	closed bool
}

func (a *answering) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {jsonType}}, Request: r,
		Body: io.NopCloser(iotest.OneByteReader(strings.NewReader(a.body))),
	}, nil
}

func (a *answering) CloseIdleConnections() { a.closed = true }

func get(t *testing.T, c *http.Client, path string, bytes int64) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(resp.Body, bytes)); err != nil {
		t.Fatal(err)
	}
}

const whole = 1 << 20

func TestWatch(t *testing.T) {
	network := &answering{body: count}
	w := load(t).Watch(network, "")
	c := &http.Client{Transport: w}
	get(t, c, "/_count", whole)
	if wrong := w.Wrong(); wrong != nil {
		t.Fatal(wrong)
	}
	network.body = "{}"
	get(t, c, "/_count", 1) // not read to its end
	if wrong := w.Wrong(); wrong != nil {
		t.Fatal(wrong)
	}
	get(t, c, "/_count", whole)
	get(t, c, "/_count", whole)
	get(t, c, "/books/_count", whole)
	if wrong := w.Wrong(); len(wrong) != 2 || !strings.HasPrefix(wrong[0].Error(), "GET /_count, status 200") {
		t.Errorf("the same mistake is told once: %v", wrong)
	}
	for i := range 20 {
		get(t, c, "/books/_count?q="+strings.Repeat("x", i), whole)
	}
	if wrong := w.Wrong(); len(wrong) != 10 {
		t.Errorf("%d mistakes are told", len(wrong))
	}
	c.CloseIdleConnections()
	if !network.closed {
		t.Error("idle connections stay open")
	}
}

// TestWatchBelow: only what is asked for is looked at.
func TestWatchBelow(t *testing.T) {
	w := load(t).Watch(&answering{body: "{}"}, "/_stub/")
	c := &http.Client{Transport: w}
	get(t, c, "/_count", whole)
	if wrong := w.Wrong(); wrong != nil {
		t.Error(wrong)
	}
	get(t, c, "/_stub/faults", whole)
	if wrong := w.Wrong(); len(wrong) != 1 {
		t.Error(wrong)
	}
}

// TestWatchSamples: of many answers that are alike some are looked at, and those of another kind all the same.
func TestWatchSamples(t *testing.T) {
	network := &answering{body: count}
	w := load(t).Watch(network, "")
	c := &http.Client{Transport: w}
	for range 250 {
		get(t, c, "/_count", whole)
	}
	network.body = "{}"
	get(t, c, "/_count", whole) // the 251st
	if wrong := w.Wrong(); wrong != nil {
		t.Error("all are looked at")
	}
	get(t, c, "/books/_count", whole)
	for range 64 {
		get(t, c, "/_count", whole)
	}
	if wrong := w.Wrong(); len(wrong) != 2 {
		t.Errorf("%d of 2 mistakes are found", len(wrong))
	}
}
