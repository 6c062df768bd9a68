package rest

import (
	"strings"
	"testing"
)

// Of the patterns that match a path, the one that is fixed for longer wins.
func TestRouteTable(t *testing.T) {
	t.Parallel()
	table := newTable([]route{
		{methods: "GET", pattern: "/"},
		{methods: "GET PUT", pattern: "/{index}"},
		{methods: "POST", pattern: "/_search"},
		{methods: "GET", pattern: "/{index}/_doc"},
		{methods: "GET", pattern: "/{first}/{second}/c"},
		{methods: "GET", pattern: "/_nodes/{first}/{metrics}"},
		{methods: "GET", pattern: "/_nodes/{nodes}/stats"},
		{methods: "GET", pattern: "/_nodes/stats/{metrics}"},
		{methods: "GET", pattern: "/{index}/_doc/{id}"},
	})
	for request, want := range map[string]string{
		"GET /":                   "/",
		"PUT /":                   "",
		"GET /a":                  "/{index} index=a",
		"PUT /a%2Fb":              "/{index} index=a%2Fb",
		"DELETE /a":               "",
		"POST /_search":           "/_search",
		"GET /_search":            "", // and no index of that name
		"GET /a/_doc":             "/{index}/_doc index=a",
		"GET /a/_search":          "",
		"GET //_doc":              "",
		"GET /_nodes/stats/stats": "/_nodes/stats/{metrics} metrics=stats",
		"GET /_nodes/a/stats":     "/_nodes/{nodes}/stats nodes=a",
		"GET /_nodes/a/b":         "/_nodes/{first}/{metrics} first=a metrics=b",
		"GET /a/_doc/b":           "/{index}/_doc/{id} index=a id=b",
		"GET /a/b/c":              "/{first}/{second}/c first=a second=b",
		"GET /a/b/d":              "",
		"GET /a/b/":               "",
		"GET /a/b/c/d":            "",
		"GET /{index}":            "/{index} index={index}",
		"GET *":                   "",
		"GET a/_doc":              "",
		"GET ":                    "",
	} {
		var params [maxPathParams]pathParam
		method, path, _ := strings.Cut(request, " ")
		got := ""
		if m := table.find(method, path, &params); m != nil {
			got = m.pattern
			for _, p := range params {
				if p.name != "" {
					got += " " + p.name + "=" + p.value
				}
			}
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", request, got, want)
		}
	}
}
