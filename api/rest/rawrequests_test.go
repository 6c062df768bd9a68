package rest_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"strings"
)

// rawWriter writes requests of all kinds, good and bad. A writer gives the same ones to the same random numbers.
type rawWriter struct {
	random *rand.Rand
	full   string // a group whose only permit is taken, and whose queue has room
	shut   string // one whose only permit is taken, without a queue
	bomb   string // a body that is small until it is inflated
}

// newRawWriter prepares a server for the requests of a writer: with an index, and with groups whose permits are taken until the test ends.
func newRawWriter(s *server, random *rand.Rand) *rawWriter {
	s.Helper()
	w := &rawWriter{random: random, bomb: string(gzipped(strings.Repeat(" ", 1<<20)))}
	s.do("PUT", "/i", `{"settings":{"number_of_shards":2}}`).want(200)
	s.do("PUT", "/i/_doc/1", `{"a":1}`).want(201)
	w.full = s.group("full", `,"throttling":{"attribute":"group","node_limit":1},"queue":{"size_per_bucket":5}`)
	w.shut = s.group("shut", `,"throttling":{"attribute":"group","node_limit":1}`)
	for i, id := range []string{w.full, w.shut} {
		s.background("POST", "/i/_search", `{"ext":{"stub":{"query_time":"1h"}}}`, "workloadGroupId", id)
		s.eventually("the permit is taken", func() bool { return s.admission.Totals().Tracked == int64(i+1) })
	}
	return w
}

// pick gives one of them.
func pick[T any](w *rawWriter, list ...T) T { return list[w.random.IntN(len(list))] }

// chance is true in one of n cases.
func (w *rawWriter) chance(n int) bool { return w.random.IntN(n) == 0 }

// next writes a request.
func (w *rawWriter) next() rawRequest {
	if w.chance(25) {
		return w.broken()
	}
	r := w.asked()
	return r.written(w)
}

// asked is what a request asks for, before it is known how it is written down.
type asked struct {
	method, path string
	headers      []string // lines
	body         string
	hasBody      bool
	status       int
	answers
	noVariants bool // it is wrong in a way that hides others
}

// asked makes up a request that is one for HTTP, whatever this server thinks of it.
func (w *rawWriter) asked() asked {
	n := fmt.Sprint(w.random.IntN(5))
	get := func(path string, status int) asked { return asked{method: "GET", path: path, status: status} }
	send := func(method, path, body string, status int) asked {
		return asked{method: method, path: path, body: body, hasBody: true, status: status}
	}
	grouped := func(a asked, id string) asked {
		a.headers = append(a.headers, "workloadGroupId: "+id)
		return a
	}
	result := func(a asked) asked { a.answers = resultAnswer; return a }
	table := func(a asked) asked { a.answers = textAnswer; return a }
	all := []func() asked{
		// what is all right
		func() asked { return get("/", 200) },
		func() asked { return get("/i/_search?size=1", 200) },
		func() asked { return send("POST", "/i/_search", `{"query":{"match_all":{}},"size":`+n+`}`, 200) },
		func() asked { return send("GET", "/i/_count", `{"query":{"match_all":{}}}`, 200) },
		func() asked {
			return send("POST", "/_msearch", "{\"index\":\"i\"}\n{}\n{\"index\":\"nosuch\"}\n{}\n{}\n{\"size\":-1}\n", 0)
		},
		func() asked {
			return send("POST", "/i/_msearch", "{}\n{\"ext\":{\"stub\":{\"fail_shards\":9}}}\n{}\n{\"query\":{\"match_all\":{}}}\n", 200)
		},
		func() asked {
			return send("POST", "/i/_search", `{"ext":{"stub":{"query_time":"`+n+`ms","jitter":0.5}}}`, 200)
		},
		func() asked { return get("/_cluster/settings?include_defaults&flat_settings", 200) },
		func() asked { return get("/_nodes/stats", 200) },
		func() asked { return get("/_wlm/stats", 200) },
		func() asked { return get("/_wlm/check", 200) },
		func() asked { return get("/_tasks?detailed&group_by=parents", 200) },
		func() asked { return table(get("/_cat/nodes?v", 200)) },
		func() asked { return table(get("/_cat/tasks?detailed", 200)) },
		func() asked { return table(get("/metrics", 200)) },
		func() asked {
			return asked{method: "GET", path: "/_cluster/health?format=yaml", status: 200, answers: yamlAnswer}
		},
		func() asked {
			return asked{method: "OPTIONS", path: pick(w, "/i/_search", "/_wlm/workload_group/a", "/a/b/c"), status: 200, answers: emptyAnswer}
		},
		func() asked { return asked{method: "OPTIONS", path: "*", status: 200, answers: emptyAnswer} },
		func() asked { return asked{method: "HEAD", path: pick(w, "/", "/?pretty", "/i"), status: 200} },
		func() asked { return asked{method: "HEAD", path: "/nosuch", status: 404} },

		// what changes something, and may or may not be there
		func() asked { return result(send("PUT", "/i/_doc/"+n, `{"a":`+n+`}`, 0)) },
		func() asked { return result(get("/i/_doc/"+n, 0)) },
		func() asked { return result(asked{method: "DELETE", path: "/i/_doc/" + n}) },
		func() asked { return send("PUT", "/index-"+n, `{}`, 0) },
		func() asked { return asked{method: "DELETE", path: "/index-" + n} },
		func() asked {
			return send("POST", "/_bulk", "{\"index\":{\"_index\":\"i\"}}\n{\"a\":1}\n{\"delete\":{\"_index\":\"i\",\"_id\":\"9\"}}\n", 200)
		},
		func() asked {
			return send("PUT", "/_wlm/workload_group", `{"name":"g`+n+`","resiliency_mode":"soft","resource_limits":{"cpu":0.01}}`, 0)
		},
		func() asked { return send("PUT", "/_wlm/workload_group/g"+n, `{"resource_limits":{"cpu":0.02}}`, 0) },
		func() asked { return asked{method: "DELETE", path: "/_wlm/workload_group/g" + n} },
		func() asked {
			return send("PUT", rulesPath, `{"description":"d","index_pattern":["x`+n+`*"],"workload_group":"`+w.full+`"}`, 0)
		},
		func() asked {
			return send("PUT", "/_cluster/settings", `{"transient":{"search.max_buckets":`+pick(w, n, "null", `"x"`, "[1]")+`}}`, 0)
		},
		func() asked { return result(get("/i/_search?scroll=1m", 200)) },
		func() asked { return result(asked{method: "DELETE", path: "/_search/scroll/_all"}) },

		// limits, waits and cancelling
		func() asked { return grouped(send("POST", "/i/_search", `{}`, 429), w.shut) },
		func() asked { return grouped(send("POST", "/i/_count", `{}`, 429), w.shut) },
		func() asked {
			return grouped(send("POST", "/i/_search?cancel_after_time_interval=1ms", `{}`, 500), w.full)
		},
		func() asked { return grouped(send("POST", "/i/_msearch", "{}\n{}\n{}\n{}\n", 200), w.shut) },
		func() asked {
			return send("POST", "/i/_search?cancel_after_time_interval="+n+"ms", `{"ext":{"stub":{"query_time":"20ms"}}}`, 0)
		},
		func() asked {
			return send("POST", "/i/_search?timeout=1ms", `{"ext":{"stub":{"query_time":"5ms"}}}`, 200)
		},
		func() asked {
			return asked{method: "POST", path: "/_tasks/_cancel?actions=" + pick(w, "nosuch*", "*msearch*", "cluster:*"), status: 200}
		},
		func() asked {
			return asked{method: "POST", path: "/_tasks/" + nodeID + ":9999999/_cancel", status: 200}
		},
		func() asked {
			return asked{method: "POST", path: "/_tasks/" + pick(w, "x", "x:y", "%00:1", ":") + "/_cancel"}
		},
		func() asked { return get("/_tasks/"+nodeID+":9999999", 404) },
		func() asked { return result(get("/_cluster/health?wait_for_nodes=9&timeout=1ms", 408)) },

		// mistakes
		func() asked { return get(pick(w, "/a/b/c", "//", "/_nosuch/x", "/%C3%BC/%2F/x", "/_wlm", "/i/"), 0) },
		func() asked { return get("/nosuch/_search", 404) },
		func() asked {
			return asked{method: pick(w, "PUT", "DELETE", "PATCH", "TRACE", "get", "PRI", "X"), path: pick(w, "/_search", "/_tasks", "/_cat/nodes"), status: 405}
		},
		func() asked { return asked{method: "HEAD", path: pick(w, "/_search", "/_tasks"), status: 405} },
		func() asked {
			return get("/_cluster/health?"+pick(w, "nosuch", "levle=x", "pretty=maybe", "timeout=5", "%zz", "a=%", "wait_for_nodes=x"), 400)
		},
		func() asked { return get("/i/_search?source=%7B%7D", 500) },
		func() asked { return get("/_cat/nodes?s=nosuch", 500) },
		func() asked { return get("/_cluster/health?a="+strings.Repeat("b", 4096+w.random.IntN(4096)), 400) },
		func() asked {
			return asked{method: "GET", path: "/", headers: []string{"X-Long: " + strings.Repeat("y", 16<<10)}, status: 400}
		},
		func() asked {
			return asked{method: "GET", path: "/", headers: []string{"X-Request-Id: " + strings.Repeat("y", 129)}, status: 400}
		},
		func() asked {
			return send("POST", "/i/_search", pick(w, `{`, `{"size":`, "\xff", `{}{}`, `[]`, `null`, `"x"`, `{"size":1,"size":2}`, `{"query":{"nosuch":{}}}`, `{"size":-1}`,
				strings.Repeat(`{"a":`, 200), strings.Repeat("[", 2000)), 400)
		},
		func() asked { return send("POST", "/i/_search", `{"ext":{"stub":{"fail_shards":9}}}`, 500) },
		func() asked {
			return send("POST", "/_msearch", pick(w, "{}\n{}", "{}\n", "x\n{}\n", "{}\n[]\n", "{\"index\":{}}\n{}\n", "\xff\n\xff\n"), 400)
		},
		func() asked {
			return send("POST", "/_bulk", pick(w, "{}\n", "{\"index\":{}}\n", "x\n", "{\"index\":{}}\n{}"), 400)
		},
		func() asked {
			return send("PUT", "/_wlm/workload_group", pick(w, `{}`, `[]`, `{"name":1}`, `{"name":"x","queue":{"size_per_bucket":-1}}`), 400)
		},
		func() asked {
			return send("PUT", "/_cluster/settings", pick(w, `{}`, `{"transient":{"nosuch":1}}`, `x`), 400)
		},
		func() asked {
			return asked{method: "PUT", path: pick(w, "/_cluster/settings", "/_wlm/workload_group"), status: 400}
		}, // no body
		func() asked {
			a := send("POST", "/i/_search", `{}`, 406)
			a.headers, a.noVariants = []string{"Content-Type: " + pick(w, "text/plain", "application/xml; charset=UTF-8", "application/cbor")}, true
			return a
		},
		func() asked {
			a := send("POST", "/i/_search", `{}`, 400)
			a.headers, a.noVariants = pick(w, []string{"Content-Type: garbage"}, []string{"Content-Type: application/json", "Content-Type: application/json"}), true
			return a
		},
		func() asked {
			a := send("POST", "/i/_search", `{}`, 415)
			a.headers, a.noVariants = []string{"Content-Type: application/json", "Content-Encoding: br"}, true
			return a
		},
		func() asked {
			a := send("POST", "/i/_search", pick(w, "{}", string(gzipped(`{"size":1}`)[:20])), 400)
			a.headers, a.noVariants = []string{"Content-Type: application/json", "Content-Encoding: gzip"}, true
			return a
		},
		func() asked {
			a := send("POST", "/i/_search", strings.Repeat(" ", 4<<10+1+w.random.IntN(8<<10)), 413)
			a.answers = emptyAnswer
			return a
		},
		func() asked {
			a := send("POST", "/i/_search", w.bomb, 413)
			a.headers, a.noVariants = []string{"Content-Type: application/json", "Content-Encoding: gzip"}, true
			return a
		},
	}
	return all[w.random.IntN(len(all))]()
}

func gzipped(text string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(text)) // a buffer takes everything
	_ = z.Close()
	return b.Bytes()
}

// written writes a request down, in one of the ways that there are.
func (a asked) written(w *rawWriter) rawRequest {
	r := rawRequest{name: a.method + " " + a.path, method: a.method, body: a.body, status: a.status, answers: a.answers}
	lines := a.headers
	if a.hasBody && !a.noVariants {
		lines = append(lines, "Content-Type: "+pick(w, "application/json", "application/json", "application/json; charset=utf-8", "Application/JSON"))
		if w.chance(8) {
			lines, r.body = append(lines, "Content-Encoding: gzip"), string(gzipped(a.body))
		}
	}
	switch {
	case !a.hasBody:
		if a.method != "OPTIONS" && w.chance(10) {
			lines = append(lines, "Content-Length: 0")
		}
	case w.chance(4):
		lines, r.body = append(lines, "Transfer-Encoding: chunked"), w.chunked(r.body)
	default:
		lines = append(lines, fmt.Sprintf("Content-Length: %d", len(r.body)))
	}
	if a.hasBody && w.chance(10) {
		lines = append(lines, "Expect: 100-continue")
		r.expects, r.waits = true, w.chance(2)
		if a.status == 0 || a.status >= 400 {
			r.ends = mayEnd // an answer before the body was asked for: what comes then, body or request, nobody could tell
		}
	}
	for _, extra := range []string{"X-Opaque-Id: a", "X-Opaque-Id: b", "Accept: application/json", "Accept-Encoding: gzip", "X-Empty:", "Cookie: a=b; c"} {
		if w.chance(12) && (a.answers != textAnswer || !strings.HasPrefix(extra, "Accept:")) {
			lines = append(lines, extra)
		}
	}
	version, host := "HTTP/1.1", "Host: x"
	switch w.random.IntN(40) {
	case 0:
		lines, r.ends = append(lines, "Connection: close"), mustEnd
	case 1:
		if !strings.Contains(strings.Join(lines, "\n"), "Expect") && !strings.Contains(strings.Join(lines, "\n"), "chunked") {
			version, r.ends = "HTTP/1.0", mustEnd
			if w.chance(2) {
				lines, r.ends = append(lines, "Connection: keep-alive"), staysOpen
			}
		}
	}
	w.random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	target := a.path
	if strings.HasPrefix(target, "/") && !strings.HasPrefix(target, "//") && w.chance(15) {
		target = "http://elsewhere" + target
	}
	newLine := "\r\n"
	if w.chance(20) {
		newLine = "\n"
	}
	r.head = a.method + " " + target + " " + version + newLine + strings.Join(append([]string{host}, lines...), newLine) + newLine + newLine
	return r
}

// chunked cuts a body into chunks.
func (w *rawWriter) chunked(body string) string {
	var b strings.Builder
	for len(body) > 0 {
		n := min(len(body), 1+w.random.IntN(2000))
		fmt.Fprintf(&b, pick(w, "%x\r\n", "%X\r\n", "00%x\r\n", "%x;name=value\r\n"), n)
		b.WriteString(body[:n] + "\r\n")
		body = body[n:]
	}
	return b.String() + pick(w, "0\r\n\r\n", "0\r\nX-Trailer: a\r\n\r\n", "000\r\n\r\n")
}

// broken writes a request that is none for HTTP, or whose body is framed in a way that nobody can rely on.
func (w *rawWriter) broken() rawRequest {
	foreign := func(head string, status int) rawRequest {
		return rawRequest{name: "broken", method: "GET", head: head, status: status, answers: foreignAnswer, ends: mustEnd}
	}
	const post = "POST /i/_search HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
	all := []rawRequest{
		foreign("GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400),
		foreign("GET /%/_search HTTP/1.1\r\nHost: x\r\n\r\n", 400),
		foreign("GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", 400),
		foreign("GET\r\n\r\n", 400),
		foreign("G@T / HTTP/1.1\r\nHost: x\r\n\r\n", 400),
		foreign("GET / HTTP/1.1\r\n\r\n", 400),
		foreign("GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400),
		foreign("GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n", 400),
		foreign("GET / HTTP/1.1\r\nHost: x\r\nA : b\r\n\r\n", 400),
		foreign("GET / HTTP/1.1\r\nHost: x\r\nA: \x00\r\n\r\n", 400),
		foreign("GET / HTTP/x\r\nHost: x\r\n\r\n", 400),
		foreign("GET / HTTP/3.0\r\nHost: x\r\n\r\n", 505),
		foreign(post+"Content-Length: -1\r\n\r\n", 400),
		foreign(post+"Content-Length: 99999999999999999999\r\n\r\n", 400),
		foreign(post+"Content-Length: 2\r\nContent-Length: 3\r\n\r\n", 400),
		foreign(post+"Transfer-Encoding: gzip, chunked\r\n\r\n", 501),
		{name: "an expectation that nobody knows", method: "POST", head: post + "Content-Length: 0\r\nExpect: more\r\n\r\n", status: 417, answers: emptyAnswer, ends: mustEnd},
		{name: "a long body that does not come", method: "POST", head: post + "Content-Length: 300000000\r\n\r\n", status: 413, answers: emptyAnswer, ends: mustEnd},
		{name: "a long body that waits", method: "POST", head: post + "Content-Length: 5000\r\nExpect: 100-continue\r\n\r\n", expects: true, waits: true,
			status: 413, answers: emptyAnswer, ends: mustEnd},
		{name: "broken chunks", method: "POST", head: post + "Transfer-Encoding: chunked\r\n\r\n", body: "xyz\r\n", status: 400, ends: mustEnd},
		{name: "chunks that are longer than they say", method: "POST", head: post + "Transfer-Encoding: chunked\r\n\r\n", body: "1\r\n{}\r\n0\r\n\r\n", status: 400, ends: mustEnd},
		{name: "the same length twice", method: "POST", head: post + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n", body: "{}", status: 200},
		{name: "a length and chunks", method: "POST", head: post + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n", body: "2\r\n{}\r\n0\r\n\r\n", ends: mayEnd, answers: resultAnswer},
		{name: "an unwanted body", method: "GET", head: "GET /_cluster/health HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n", body: "{}{}", status: 200},
		{name: "an unwanted body in broken chunks", method: "GET", head: "GET /_cluster/health HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", body: "zz\r\n", status: 200, ends: mustEnd},
		{name: "a folded header", method: "GET", head: "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n", status: 200},
		{name: "no name of a host", method: "GET", head: "GET / HTTP/1.1\r\nHost:\r\n\r\n", status: 200},
	}
	return all[w.random.IntN(len(all))]
}
