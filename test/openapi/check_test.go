package openapi_test

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/wlmserver/wlmserver/test/openapi"
)

const (
	jsonType = "application/json; charset=UTF-8"
	textType = "text/plain; charset=UTF-8"

	count  = `{"count":3,"_shards":{"total":2,"successful":2,"skipped":0,"failed":0}}`
	wrong  = `{"error":{"root_cause":[{"type":"t","reason":"r"}],"type":"t","reason":"r"},"status":400}`
	noPath = `{"error":"no handler found"}`
)

func load(t *testing.T) *openapi.Contract {
	t.Helper()
	c, err := openapi.Load()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func exchange(t *testing.T, method, target string, status int, body string, headers ...string) openapi.Exchange {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{"Content-Type": {jsonType}}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return openapi.Exchange{Method: method, URL: u, Status: status, Header: h, Body: []byte(body)}
}

// TestCheck: what the description allows passes, and of what it does not allow the error names the place.
func TestCheck(t *testing.T) {
	c := load(t)
	for _, x := range []struct {
		method, target string
		status         int
		body           string
		headers        []string
		wrong          string // parts of the error, with | between them; empty for none
	}{
		{"GET", "/_count", 200, count, nil, ""},
		{"GET", "/a%2Fb,c/_count/", 200, count, nil, ""},
		{"GET", "/_count", 200, strings.Replace(count, `"count":3,`, "", 1), nil, `GET /_count, status 200|"count" is missing`},
		{"GET", "/_count", 200, strings.Replace(count, `"failed":0`, `"failed":"0"`, 1), nil, "at /_shards/failed|integer"},
		{"GET", "/_count", 200, strings.Replace(count, `"failed":0`, `"failed":0,"more":1`, 1), nil, `at /_shards|"more"`},
		{"GET", "/_count", 200, count[:20], nil, "unexpected end of JSON"},
		{"GET", "/_count", 201, count, nil, "GET /_count has no such status"},
		{"GET", "/_count", 200, count, []string{"Content-Type", textType}, "Content-Type text/plain"},
		{"GET", "/_count", 200, count, []string{"Content-Type", ""}, "Content-Type"},
		{"GET", "/_count", 400, wrong, nil, ""},
		{"GET", "/_count", 400, `{"error":"x"}`, nil, "error"},
		{"GET", "/_count", 400, strings.Replace(wrong, `,"reason":"r"},"status"`, `},"status"`, 1), nil, `at /error|"reason"`},

		// Where several patterns fit, the one is meant that is fixed the longest, and then the one that is fixed sooner again.
		{"GET", "/_nodes/_local/stats", 200, `{"_nodes":{"total":1,"successful":1,"failed":0},"cluster_name":"c","nodes":{"n":{}}}`, nil, `"timestamp" is missing`},
		{"GET", "/_nodes/stats/http", 200, `{"_nodes":{"total":1,"successful":1,"failed":0},"cluster_name":"c","nodes":{"n":{}}}`, nil, `"timestamp" is missing`},
		{"GET", "/_nodes/_local/http", 200, `{"_nodes":{"total":1,"successful":1,"failed":0},"cluster_name":"c","nodes":{"n":{}}}`, nil, `"name" is missing`},
		{"GET", "/_search/scroll", 404, wrong, nil, ""},
		{"DELETE", "/_search/scroll", 404, `{"succeeded":true,"num_freed":0}`, nil, ""},
		{"PUT", "/_count", 405, `{"error":"not allowed","status":405}`, nil, ""},

		// Headers that an answer has to have.
		{"GET", "/_count", 429, wrong, []string{"Retry-After", "1"}, ""},
		{"GET", "/_count", 429, wrong, nil, "Retry-After"},
		{"GET", "/_count", 429, wrong, []string{"Retry-After", "soon"}, "Retry-After"},
		{"GET", "/_count", 429, wrong, []string{"Retry-After", "0"}, "Retry-After"},
		{"GET", "/_count", 401, wrong, nil, "Www-Authenticate|is missing"},

		// Forms of an answer.
		{"GET", "/_count?format=yaml", 200, "---\ncount: 3\n_shards: {total: 2, successful: 2, skipped: 0, failed: 0}\n", []string{"Content-Type", "application/yaml"}, ""},
		{"GET", "/_count?format=yaml", 200, "---\ncount: \"3\"\n_shards: {total: 2, successful: 2, skipped: 0, failed: 0}\n", []string{"Content-Type", "application/yaml"}, "at /count"},
		{"GET", "/_cat/indices?format=yaml", 200, "---\n- \"|\": \"|\"\n  index: \"books\"\n  \"|\": \"|\"\n", []string{"Content-Type", "application/yaml"}, ""},
		{"GET", "/_cat/indices?format=yaml", 200, "---\n- index: 1\n", []string{"Content-Type", "application/yaml"}, "at /0/index"},
		{"GET", "/_cat/indices?format=yaml", 200, "---\n- {", []string{"Content-Type", "application/yaml"}, "yaml"},
		{"GET", "/_cat/indices?format=yaml", 200, "", []string{"Content-Type", "application/yaml"}, "at /"},
		{"GET", "/_count", 200, zipped(t, count), []string{"Content-Encoding", "gzip"}, ""},
		{"GET", "/_count", 200, count, []string{"Content-Encoding", "gzip"}, "gzip"},
		{"GET", "/_count?filter_path=count", 200, `{"count":3}`, nil, ""},
		{"GET", "/_count?filter_path=count", 200, `{"count":3`, nil, "JSON"},
		{"GET", "/_count?filter_path=count", 400, `{"error":{}}`, nil, "error"},
		{"HEAD", "/books", 200, "", nil, ""},
		{"HEAD", "/books", 200, "", []string{"Content-Type", textType}, ""},
		{"GET", "/_cat/indices", 200, "books 3\n", []string{"Content-Type", textType}, ""},
		{"GET", "/_cat/indices?format=json", 200, `[{"index":"books","pri":null}]`, nil, ""},
		{"GET", "/_cat/indices?format=json", 200, `[{"index":"books","pri":1}]`, nil, "at /0/pri"},
		{"PUT", "/_bulk", 413, "", nil, ""},
		{"PUT", "/_bulk", 413, wrong, nil, "no body"},
		{"POST", "/_search", 417, "", nil, ""},

		// What no operation answers.
		{"GET", "/no/such/path/at/all", 400, noPath, nil, ""},
		{"GET", "/no/such/path/at/all", 400, `{"error":1}`, nil, "error"},
		{"GET", "/no/such/path/at/all", 200, count, nil, "no such operation"},
		{"GET", "/_search/scroll/", 405, noPath, nil, "no such status"},
		{"OPTIONS", "/_search", 200, "", []string{"Content-Type", textType}, ""},
		{"OPTIONS", "/_search", 200, "{}", nil, "no body"},
	} {
		err := c.Check(exchange(t, x.method, x.target, x.status, x.body, x.headers...))
		switch {
		case x.wrong == "" && err != nil:
			t.Error(err)
		case x.wrong != "" && err == nil:
			t.Errorf("%s %s, status %d: nothing is wrong with %s", x.method, x.target, x.status, x.body)
		case x.wrong != "":
			for part := range strings.SplitSeq(x.wrong, "|") {
				if !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(part)) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
		}
	}
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestCheckShortens: a long answer is not told whole.
func TestCheckShortens(t *testing.T) {
	err := load(t).Check(exchange(t, "GET", "/_count", 200, `{"`+strings.Repeat("x", 1<<20)+`":1}`, "Content-Type", textType))
	if err == nil || len(err.Error()) > 2000 {
		t.Errorf("%d characters", len(err.Error()))
	}
}
