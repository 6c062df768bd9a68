package compat_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// mutate damages a request, or makes it unusual.
func (g *gen) mutate(r *request) {
	switch g.IntN(10) {
	case 0:
		g.mutateMethod(r)
	case 1, 2:
		g.mutatePath(r)
	case 3, 4:
		g.mutateQuery(r)
	case 5, 6:
		g.mutateHeaders(r)
	default:
		if r.body == "" {
			g.mutateQuery(r)
		} else {
			g.mutateBody(r)
		}
	}
}

func (g *gen) mutateMethod(r *request) {
	r.method = g.one("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE")
	if r.method == "DELETE" && (r.path == "/" || r.path == "//") { // deletes all there is
		r.method = "HEAD"
	}
	if r.method == "HEAD" {
		r.body = ""
	}
}

func (g *gen) mutatePath(r *request) {
	at := g.IntN(len(r.path)) + 1
	switch g.IntN(9) {
	case 0:
		r.path += "/"
	case 1:
		if r.path != "/" {
			r.path = strings.Replace(r.path, "/", "//", 1)
		}
	case 2:
		r.path += "/" + g.one("nosuch", "_all", "_stats", "_search", "1")
	case 3:
		r.path = strings.ToUpper(r.path)
	case 4: // a character by its code; names of ids stay whole
		if at < len(r.path) && !strings.Contains(r.path, "«") && r.path[at] > ' ' && r.path[at] != '%' && r.path[at] != '/' && r.path[at] < 0x7f {
			r.path = fmt.Sprintf("%s%%%02x%s", r.path[:at], r.path[at], r.path[at+1:])
		}
	case 5:
		r.path += g.one("%20", "%2F", "%25", "%C3%A4", "+", "%2a", "%ff", "%00", "%zz", "%")
	case 6:
		r.path = r.path[:strings.LastIndexByte(r.path, '/')+1]
		if r.path == "/" && r.method == "DELETE" {
			r.path = "/nosuch"
		}
	case 7:
		r.path = "/" + g.one("_nosuch", "_cat/nosuch", "_wlm", "_wlm/query_group", "_nodes/_local/nosuch", "_cluster", "_cluster/nosuch", "nosuch/_nosuch", "_tasks/a/b/c")
		if r.method == "DELETE" {
			r.method = "GET"
		}
	default:
		if at < len(r.path) && !strings.Contains(r.path, "«") {
			r.path = r.path[:at] + r.path[at+1:]
		}
		if r.path == "/" && r.method == "DELETE" {
			r.path = "/nosuch"
		}
	}
}

func (g *gen) mutateQuery(r *request) {
	if len(r.query) > 0 && g.chance(0.5) {
		i := g.IntN(len(r.query))
		name, value, _ := strings.Cut(r.query[i], "=")
		if name == "" || name == "timeout" || strings.HasPrefix(name, "wait_for") { // so that nothing is waited for
			return
		}
		switch g.IntN(6) {
		case 0: // misspelt
			at := g.IntN(len(name))
			r.query[i] = name[:at] + name[at+1:] + "=" + value
		case 1:
			r.query[i] = name
		case 2:
			r.query[i] = name + "="
		case 3:
			r.query[i] = name + "=" + g.one("bogus", "-1", "0", "1.5", "99999999999", "true", "1x", "%20", "a,b", "null")
		case 4:
			r.query = append(r.query, name+"="+g.one("bogus", value, "1"))
		default:
			r.query = append(r.query[:i], r.query[i+1:]...)
		}
		return
	}
	r.query = append(r.query, g.one("pretty", "pretty=false", "pretty=maybe", "human", "human=false", "human=1", "error_trace", "error_trace=true", "error_trace=x",
		"format=yaml", "format=json", "format=bogus", "format=", "filter_path=**", "filter_path=*.nosuch", "filter_path=-*", "filter_path=", "filter_path=a,,b",
		"filter_path=status,error", "nosuch=1", "nosuch", "nosuch=1&alsonot=2", "=x", "=", "&", "a=b=c", "x=%zz", "x=%", "%20=1", "prety=true", "timeout=1s", "timeout=bogus",
		"cluster_manager_timeout=1m", "master_timeout=-5s", "source=%7B%7D&source_content_type=application/json", "source=%7B%7D", "pretty;human", "local=true", "v", "v=x", "h=nosuch"))
}

func (g *gen) mutateHeaders(r *request) {
	switch g.IntN(8) {
	case 0, 1:
		if r.body != "" {
			if g.chance(0.3) {
				r.drop(contentType)
				return
			}
			r.set(contentType, g.one("text/plain", "application/yaml", "application/JSON", "application/json; charset=utf-8", "application/json;charset=latin1",
				"garbage", "application/x-ndjson", "application/cbor", "application/smile", "application/vnd.opensearch+json", "application/xml", "*/*", "",
				"application/x-www-form-urlencoded", "application/json, text/plain", " application/json ", "application/json;"))
		} else {
			r.set(contentType, g.one("text/plain", "garbage", "application/json"))
		}
	case 2:
		r.set("Accept", g.one("application/json", "application/yaml", "text/plain", "*/*", "application/yaml, application/json", "garbage", "", "text/html",
			"application/vnd.opensearch+json; compatible-with=1"))
	case 3:
		r.set(g.one("X-Opaque-Id", "x-opaque-id"), g.one("me", "", "ä", strings.Repeat("x", 500), "a,b"))
	case 4:
		r.set("X-Request-Id", g.one("0123456789abcdef0123456789abcdef", "me", strings.Repeat("r", 128), strings.Repeat("r", 129)))
	case 5:
		r.set("Accept-Encoding", g.one("gzip", "gzip, deflate", "gzip;q=0", "identity", "br", "*"))
	case 6:
		r.set("X-Large", strings.Repeat("h", 1000*(1+g.IntN(20))))
	default:
		switch {
		case r.body == "":
			r.set("workloadGroupId", g.one("«group a»", "nosuch", "", "DEFAULT_WORKLOAD_GROUP"))
		case g.chance(0.3):
			r.chunked = true
		case g.chance(0.4):
			r.zipped = true
			r.set("Content-Encoding", g.one("gzip", "gzip", "GZIP"))
		case g.chance(0.5):
			r.set("Content-Encoding", g.one("gzip", "identity", "br"))
		default:
			r.set("Expect", g.one("100-continue", "100-Continue", "garbage"))
		}
	}
}

// mutateBody damages the text of a body, or the value that it stands for: of several lines, one.
func (g *gen) mutateBody(r *request) {
	lines := strings.SplitAfter(r.body, "\n")
	i := g.IntN(len(lines))
	if lines[i] == "" || lines[i] == "\n" {
		i = 0
	}
	ending := ""
	line := lines[i]
	if strings.HasSuffix(line, "\n") {
		line, ending = line[:len(line)-1], "\n"
	}
	t, err := parse(line)
	if err == nil && g.chance(0.6) {
		g.mutateTree(t)
		line = t.json()
	} else {
		line = g.mutateText(line)
	}
	lines[i] = line + ending
	r.body = strings.Join(lines, "")
}

func (g *gen) mutateText(s string) string {
	if s == "" {
		return "{}"
	}
	at := g.IntN(len(s))
	switch g.IntN(9) {
	case 0:
		return s[:at]
	case 1:
		if s[at] >= 0x80 {
			return s + "}"
		}
		return s[:at] + s[at+1:]
	case 2:
		return s[:at] + g.one(`"`, "{", "}", "[", "]", ",", ":", "x", "0", " ", "\t", "\\", "\x01", "//", "/**/", "'", "null") + s[at:]
	case 3:
		return s + g.one(" ", "\n", "\n\n", "x", "{}", s, "\x00", ",", "}", " garbage", "null", "[")
	case 4:
		return g.one("{}", "[]", "null", "true", "1", `"text"`, "", " ", "{", "[", "nul", "[{}]", "{]", "---\na: 1\n", "a: 1", "\xef\xbb\xbf{}", "\xff\xfe", "{'a':1}", "{a:1}",
			"NaN", "01", "1e400", "-", `"\u12"`, `{"a":1,"a":2}`, strings.Repeat("[", 600)+strings.Repeat("]", 600), "[1,2", `{"a"`, `{"a":}`, `{,}`, `{"a":1,}`)
	case 5:
		return g.one(" ", "\n", "\t", "x", "\xef\xbb\xbf", "\x00") + s
	case 6:
		return "[" + s + "]"
	case 7: // not UTF-8
		return s[:at] + "\xc3\x28" + s[at:]
	default:
		return strings.Replace(s, `"`, `'`, 2)
	}
}

func (g *gen) mutateTree(t *tree) {
	all := t.nodes()
	v := all[g.IntN(len(all))]
	switch {
	case v.kind == "object" && g.chance(0.7):
		g.mutateMembers(v)
	case v.kind == "array" && g.chance(0.5) && len(v.items) > 0:
		v.items = append(v.items, v.items[0])
	default:
		*v = *must(parse(g.one("null", "true", "false", "0", "1", "-1", "1.5", "1e3", "99999999999999999999", `""`, `"text"`, `"1"`, `"1.5"`, `"true"`, `"-1"`, `"5s"`, "[]", "{}",
			`["a"]`, `[1]`, `{"a":1}`, `[[]]`, `{"a":{"b":1}}`, `[null]`, `"ä€😀"`)))
	}
}

func (g *gen) mutateMembers(v *tree) {
	if len(v.members) == 0 || g.chance(0.3) {
		v.members = append(v.members, member{g.one("nosuch", "", "name", "query", "_id", "a.b", "ä"), must(parse(g.one("1", `"x"`, "{}", "[]", "null", "true")))})
		return
	}
	i := g.IntN(len(v.members))
	switch g.IntN(4) {
	case 0:
		v.members = append(v.members[:i], v.members[i+1:]...)
	case 1: // the same key twice
		v.members = append(v.members, v.members[i])
	case 2:
		if n := v.members[i].name; n != "" {
			at := g.IntN(len(n))
			v.members[i].name = strings.ToValidUTF8(n[:at]+n[at+1:], "")
		}
	default:
		v.members[i].name = strings.ToUpper(v.members[i].name)
	}
}

// must is for texts that stand in the tests.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// gen draws requests. The same seed draws the same ones.
type gen struct {
	*rand.Rand
	scrolls int // so far in this sequence
	made    int // documents with ids that the server made up
}

func (g *gen) chance(p float64) bool { return g.Float64() < p }

func (g *gen) one(of ...string) string { return of[g.IntN(len(of))] }

// some draws each of them with a chance of p.
func (g *gen) some(p float64, of ...string) []string {
	var all []string
	for _, s := range of {
		if g.chance(p) {
			all = append(all, s)
		}
	}
	return all
}
