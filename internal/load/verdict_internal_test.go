package load

import "testing"

func TestJudge(t *testing.T) {
	body := func(kind, reason, root string) string {
		return `{"error":{"root_cause":[{"type":"` + root + `","reason":"r","stack":{"type":"x"}},{"type":"second"}],"type":"` + kind + `","reason":"` + reason +
			`","failed_shards":[{"shard":0,"reason":{"type":"deep","reason":"throttled"}}],"caused_by":{"type":"cause"}},"status":429}`
	}
	for name, c := range map[string]struct {
		status   int
		body     string
		want     end
		wantKind string
	}{
		"success":            {200, ``, completed, ""},
		"created":            {201, ``, completed, ""},
		"throttled":          {429, body(isRejected, "Request throttled: workload group [g]", isRejected), throttled, isRejected},
		"the server stops":   {429, body(isRejected, "the node is shutting down", isRejected), refused, isRejected},
		"pool":               {429, body("search_phase_execution_exception", "all shards failed", isRejected), refused, "search_phase_execution_exception"},
		"memory":             {429, body("circuit_breaking_exception", "throttled", "x"), refused, "circuit_breaking_exception"},
		"evicted":            {500, body(isCancelled, "cancelled while queued in its workload group: x", isCancelled), evicted, isCancelled},
		"cancelled early":    {500, body(isCancelled, "cancelled before it was admitted: x", isCancelled), cancelled, isCancelled},
		"cancelled running":  {500, body("search_phase_execution_exception", "all shards failed", isCancelled), cancelled, "search_phase_execution_exception"},
		"bad request":        {400, body("parsing_exception", `with \"quotes\" and }`, "parsing_exception"), failed, "parsing_exception"},
		"no such path":       {400, `{"error":"no handler found for uri [/x] and method [GET]"}`, failed, ""},
		"spaces":             {400, "{ \"error\" :\n { \"type\" : \"a\" } }", failed, "a"},
		"an array":           {500, `[{"error":{"type":"a"}}]`, failed, ""},
		"something else":     {500, `{"warning":{"type":"a"},"error":{"type":"b"}}`, failed, "b"},
		"cut off":            {500, `{"error":{"type":"abc`, failed, "abc"},
		"cut off in escape":  {500, `{"error":{"type":"abc\`, failed, `abc\`},
		"HTML":               {502, `<html><body class="x">Bad Gateway</body></html>`, failed, ""},
		"more ends than may": {500, `}}}]]{"error":{"type":"a"}}`, failed, ""},
		"numbers":            {500, `{"status":500,"error":{"line":1,"type":"a","col":2}}`, failed, "a"},
		"null":               {500, `{"error":{"type":null,"reason":"type"}}`, failed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := readError([]byte(c.body))
			if got := judge(c.status, e); got != c.want || string(e.kind) != c.wantKind {
				t.Errorf("%d, type %q, reason %q, root %q", got, e.kind, e.reason, e.rootKind)
			}
		})
	}
	b := []byte(body(isRejected, "Request throttled", isRejected))
	if n := testing.AllocsPerRun(100, func() { judge(429, readError(b)) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzReadError: any body is read to its end, whatever it is.
func FuzzReadError(f *testing.F) {
	f.Add([]byte(`{"error":{"root_cause":[{"type":"a","reason":"b"}],"type":"a","reason":"b"},"status":400}`))
	f.Add([]byte(`{"error":"\`))
	f.Add([]byte(`}}}[[[{{{`))
	f.Fuzz(func(t *testing.T, b []byte) {
		e := readError(b)
		for _, s := range [][]byte{e.kind, e.reason, e.rootKind} {
			if len(s) > len(b) {
				t.Errorf("%q from %q", s, b)
			}
		}
	})
}
