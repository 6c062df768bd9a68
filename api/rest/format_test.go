package rest_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/wlmserver/wlmserver/api/rest"
	"github.com/wlmserver/wlmserver/internal/jsondoc"
)

// jsonOf is a document in YAML as JSON, as another reader understands it.
func jsonOf(t testing.TB, document string) []byte {
	t.Helper()
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(document), &n); err != nil {
		t.Fatalf("%v in\n%s", err, document)
	}
	var b []byte
	var add func(n *yaml.Node)
	add = func(n *yaml.Node) {
		switch n.Kind {
		case yaml.DocumentNode:
			add(n.Content[0])
		case yaml.MappingNode:
			b = append(b, '{')
			for i, x := range n.Content {
				switch {
				case i%2 == 1:
					b = append(b, ':')
					add(x)
					continue
				case i > 0:
					b = append(b, ',')
				}
				b = jsondoc.AppendString(b, x.Value)
			}
			b = append(b, '}')
		case yaml.SequenceNode:
			b = append(b, '[')
			for i, x := range n.Content {
				if i > 0 {
					b = append(b, ',')
				}
				add(x)
			}
			b = append(b, ']')
		default:
			if n.Style == yaml.DoubleQuotedStyle {
				b = jsondoc.AppendString(b, n.Value)
			} else {
				b = append(b, n.Value...)
			}
		}
	}
	add(&n)
	return b
}

// TestYAMLIsPrintedAsRecorded prints all recorded answers in YAML again.
func TestYAMLIsPrintedAsRecorded(t *testing.T) {
	files, err := filepath.Glob("../../test/golden/testdata/*.json")
	must(t, err)
	n := 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		must(t, err)
		var cases []struct {
			Name   string            `json:"name"`
			Answer map[string]string `json:"response_headers"`
			Text   string            `json:"text"`
		}
		must(t, json.Unmarshal(b, &cases))
		for _, c := range cases {
			if c.Answer["content-type"] != "application/yaml" {
				continue
			}
			n++
			if got := string(jsondoc.YAML(nil, jsonOf(t, c.Text))); got != c.Text+"\n" { // the recorder cut the last newline
				t.Errorf("%s: printed\n%s\nrecorded\n%s", c.Name, got, c.Text)
			}
		}
	}
	if n < 5 {
		t.Errorf("%d answers in YAML were recorded", n)
	}
}

// TestYAMLReadsAsItsJSON has another reader understand what is printed.
func TestYAMLReadsAsItsJSON(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[ -~é\n\t\x{1}\x{a0}\x{2028}\x{1F600}"\\]{0,200}`), rapid.StringMatching(`(true|no|~|null|[-?:#&*!|>%@] ?|0x1f|1\.5|a: b|a #b| a|a )`))
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		scalar := rapid.OneOf(rapid.Map(text, func(s string) any { return s }), rapid.SampledFrom([]any{nil, true, false, 1, -2.5, 1e-7}))
		if depth == 0 {
			return scalar
		}
		inner := rapid.Deferred(func() *rapid.Generator[any] { return value(depth - 1) })
		return rapid.OneOf(scalar,
			rapid.Map(rapid.SliceOfN(inner, 0, 3), func(l []any) any { return l }),
			rapid.Map(rapid.MapOfN(text, inner, 0, 3), func(m map[string]any) any { return m }))
	}
	rapid.Check(t, func(rt *rapid.T) {
		document, err := json.Marshal(value(3).Draw(rt, "document"))
		if err != nil {
			rt.Fatal(err)
		}
		out := jsondoc.YAML(nil, document)
		var want, have any
		if err := json.Unmarshal(document, &want); err != nil {
			rt.Fatal(err)
		}
		var n yaml.Node
		if err := yaml.Unmarshal(out, &n); err != nil {
			rt.Fatalf("%v of %s in\n%s", err, document, out)
		}
		if err := json.Unmarshal(jsonOf(t, string(out)), &have); err != nil {
			rt.Fatalf("%v of %s in\n%s", err, document, out)
		}
		if a, b := fmt.Sprintf("%#v", want), fmt.Sprintf("%#v", have); a != b {
			rt.Fatalf("%s reads %s, want %s", out, b, a)
		}
	})
}

func TestFormats(t *testing.T) {
	s := newServer(t)
	const json, yaml = "application/json; charset=UTF-8", "application/yaml"
	for _, c := range []struct {
		path, accept string
		want         string
	}{
		{"/_cluster/settings", "", json},
		{"/_cluster/settings", "application/yaml", yaml},
		{"/_cluster/settings", "text/html, application/vnd.opensearch+yaml;q=0.5", yaml},
		{"/_cluster/settings", "application/xml", json},
		{"/_cluster/settings?format=json", "application/yaml", json},
		{"/_cluster/settings?format=YAML", "application/json", yaml},
		{"/_cluster/settings?format=application/yaml", "", yaml},
		{"/_cluster/settings?format=xml", "application/yaml", yaml},
		{"/_cluster/settings?format=smile", "", json},
		{"/_cluster/settings?format=yaml&pretty", "", yaml},
		{"/nosuch/_search", "application/yaml", yaml},
		{"/a/b/c", "application/yaml", yaml},
		{"/metrics", "application/yaml", "text/plain; version=0.0.4; charset=utf-8"},
	} {
		r := s.do("GET", c.path, "", "Accept", c.accept)
		if got := r.header.Get("Content-Type"); got != c.want {
			t.Errorf("%s, Accept %q: %s, want %s", c.path, c.accept, got, c.want)
		}
		if strings.HasPrefix(r.body, "---") != (c.want == yaml) {
			t.Errorf("%s, Accept %q: %q", c.path, c.accept, r.body)
		}
	}
	if r := s.do("GET", "/_cluster/settings?format=yaml&filter_path=nothing", "", "Accept", ""); r.body != "--- {}\n" {
		t.Errorf("filtered YAML: %q", r.body)
	}
	if r := s.do("HEAD", "/?format=yaml", ""); r.header.Get("Content-Type") != yaml || r.body != "" {
		t.Errorf("HEAD in YAML: %v %q", r.header, r.body)
	}
}

func TestFilterPathIsForSuccesses(t *testing.T) {
	s := newServer(t)
	s.do("GET", "/nosuch/_search?filter_path=nothing", "").wantError(404, "index_not_found_exception")
	if r := s.do("GET", "/_cluster/health?filter_path=status,-cluster_name", "").want(200); r.body != `{"status":"green"}` {
		t.Errorf("filtered: %s", r.body)
	}
	if r := s.do("GET", "/_cluster/health?pretty&filter_path=nothing", "").want(200); r.body != "{ }\n" {
		t.Errorf("nothing left: %q", r.body)
	}
	if r := s.do("GET", "/metrics?filter_path=nothing", "").want(200); !strings.HasPrefix(r.body, "#") {
		t.Errorf("what is no document was filtered: %q", r.body)
	}
}

func TestYAMLBodies(t *testing.T) {
	s := newServer(t)
	const group = "/_wlm/workload_group"
	yaml := []string{"Content-Type", "application/yaml"}
	r := s.do("PUT", group, "# a comment\nname: y1\nresiliency_mode: enforced\nresource_limits: {cpu: 0.01}\nsettings:\n  search.cancel_after_time_interval: 30s\n", yaml...).want(200)
	if !strings.HasPrefix(r.body, "---\n_id: \"") || !strings.Contains(r.body, "\nresource_limits:\n  cpu: 0.01\n") {
		t.Errorf("the answer to YAML: %s", r.body)
	}
	if r := s.do("GET", group+"/y1", ""); r.at("workload_groups", 0, "settings", "search.cancel_after_time_interval") != "30s" {
		t.Errorf("what was created: %s", r.body)
	}
	if r := s.do("POST", group+"/y1?format=json", "resource_limits: {cpu: 0.02}", yaml...).want(200); !strings.HasPrefix(r.body, "{") {
		t.Errorf("the answer in JSON: %s", r.body)
	}
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
	for _, c := range []struct {
		name, body string
		status     int
		part       string
	}{
		{"aliases", bomb, 400, "[*a]"},
		{"syntax", "a: [1", 400, "malformed YAML"},
		{"two documents", "a: 1\n---\nb: 2\n", 400, "follows the document"},
		{"a list as a key", "[1]: 2\n", 400, "key"},
		{"a list", "- 1\n", 400, "illegal_argument_exception"},
		{"a key twice", "name: a\nname: b\n", 400, "name"},
		{"not a number", "name: z\nresource_limits: {cpu: .nan}\n", 400, ".nan"},
		{"only a comment", "# nothing\n", 400, "needs a body"},
		{"deep", strings.Repeat("[", 1200) + strings.Repeat("]", 1200), 400, "deep"},
		{"long", "a: " + strings.Repeat("x", 1<<20), 400, "longer than"},
	} {
		r := s.do("PUT", group+"?format=json", c.body, yaml...)
		if r.status != c.status || !strings.Contains(r.body, c.part) {
			t.Errorf("%s: %d %.300s", c.name, r.status, r.body)
		}
	}
	if r := s.do("GET", "/_search?source=size:%200&source_content_type=application/yaml", "").want(200); r.at("hits") == nil {
		t.Errorf("source in YAML: %s", r.body)
	}
}

func inflate(t testing.TB, r response) string {
	t.Helper()
	z, err := gzip.NewReader(strings.NewReader(r.body))
	must(t, err)
	b, err := io.ReadAll(z)
	must(t, err)
	return string(b)
}

func deflate(t testing.TB, s string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, s)
	must(t, err)
	must(t, w.Close())
	return b.String()
}

func TestCompressedAnswers(t *testing.T) {
	s := newServer(t)
	for i := range 20 {
		s.group(fmt.Sprint("group-", i), "")
	}
	for _, path := range []string{"/_cluster/settings", "/a/b/c", "/_wlm/stats", "/_wlm/stats?pretty&format=yaml", "/metrics"} {
		plain := s.do("GET", path, "")
		for _, accept := range []string{"gzip", "deflate, GZIP;q=0.5", "*", "x-gzip"} {
			r := s.do("GET", path, "", "Accept-Encoding", accept)
			if r.header.Get("Content-Encoding") != "gzip" || r.header.Get("Content-Length") != fmt.Sprint(len(r.body)) {
				t.Errorf("%s, %s: %v", path, accept, r.header)
				continue
			}
			if got := inflate(t, r); path != "/metrics" && got != plain.body {
				t.Errorf("%s: %q, uncompressed %q", path, got, plain.body)
			}
			if len(plain.body) > 2000 && len(r.body) > len(plain.body)/2 {
				t.Errorf("%s: %d bytes are %d when compressed", path, len(plain.body), len(r.body))
			}
		}
		for _, accept := range []string{"identity", "gzip;q=0", "*;q=0", "br, gzip; q=0.0, *", "gzip;q=x"} {
			if r := s.do("GET", path, "", "Accept-Encoding", accept); r.header.Get("Content-Encoding") != "" {
				t.Errorf("%s, %s: compressed", path, accept)
			}
		}
	}
	get, head := s.do("GET", "/", "", "Accept-Encoding", "gzip"), s.do("HEAD", "/", "", "Accept-Encoding", "gzip")
	if fmt.Sprint(get.header) != fmt.Sprint(head.header) || head.body != "" {
		t.Errorf("HEAD: %v %q, GET: %v", head.header, head.body, get.header)
	}
	if r := s.do("OPTIONS", "/", "", "Accept-Encoding", "gzip"); r.header.Get("Content-Encoding") != "" || r.body != "" {
		t.Errorf("an empty answer is compressed: %v", r.header)
	}
}

func TestCompressedBodies(t *testing.T) {
	s := newServer(t, func(o *options) { o.limits = rest.Limits{MaxContentLength: 100_000, MaxInFlightBytes: 150_000} })
	gz := []string{"Content-Encoding", "gzip"}
	for _, c := range []struct {
		name, body string
		headers    []string
		status     int
		part       string
	}{
		{"small", deflate(t, `{"size":0}`), gz, 200, `"hits":[]`},
		{"in two parts", deflate(t, `{"size"`) + deflate(t, `:0}`), gz, 200, `"hits":[]`},
		{"as large as may be", deflate(t, `{}`+strings.Repeat(" ", 99_998)), gz, 200, `hits`},
		{"too large", deflate(t, `{}`+strings.Repeat(" ", 99_999)), gz, 413, ""},
		{"a bomb", deflate(t, strings.Repeat(" ", 50<<20)), gz, 413, ""},
		{"cut", deflate(t, `{"size":0}`)[:20], gz, 400, "not the gzip"},
		{"followed by something", deflate(t, `{"size":0}`) + "xyz", gz, 400, "not the gzip"},
		{"a bad sum", strings.Replace(deflate(t, `{"size":0}`), "\x00\x00\x00", "\x00\x00\x01", 1), gz, 200, ""},
		{"yaml", deflate(t, "size: 0"), []string{"Content-Encoding", "gzip", "Content-Type", "application/yaml"}, 200, "hits: []"},
		{"nothing inside", deflate(t, ""), gz, 200, "hits"},
	} {
		r := s.do("POST", "/_search", c.body, c.headers...)
		if r.status != c.status || !strings.Contains(r.body, c.part) {
			t.Errorf("%s: %d %.200s", c.name, r.status, r.body)
		}
	}
	bounded := newServer(t, func(o *options) { o.limits.MaxInFlightBytes = 50_000 })
	bounded.do("POST", "/_search", deflate(t, `{}`+strings.Repeat(" ", 99_998)), gz...).wantError(429, "circuit_breaking_exception")
	bounded.do("POST", "/_search", deflate(t, `{}`), gz...).want(200)
}

func TestErrorTrace(t *testing.T) {
	s := newServer(t)
	trace := func(r response, path ...any) {
		t.Helper()
		if got, _ := r.at(path...).(string); got == "" {
			t.Errorf("no stack trace at %v: %s", path, r.body)
		}
	}
	r := s.do("GET", "/_msearch?error_trace&max_concurrent_searches=x&source=%7B%7D%0A%7B%7D%0A&source_content_type=application/json", "").want(400)
	trace(r, "error", "root_cause", 0, "stack_trace")
	trace(r, "error", "stack_trace")
	trace(r, "error", "caused_by", "stack_trace")
	if got, want := r.at("error", "stack_trace").(string), "\nCaused by: number_format_exception: "; !strings.HasPrefix(got, "illegal_argument_exception: ") || !strings.Contains(got, want) {
		t.Errorf("stack trace %q", got)
	}
	s.do("PUT", "/failing", `{"settings":{"number_of_shards":2}}`).want(200)
	r = s.do("POST", "/failing/_search?error_trace=true", `{"ext":{"stub":{"fail_shards":2}}}`)
	trace(r, "error", "root_cause", 0, "stack_trace")
	trace(r, "error", "failed_shards", 0, "reason", "stack_trace")
	if r := s.do("GET", "/nosuch/_search?error_trace=false", ""); strings.Contains(r.body, "stack_trace") {
		t.Errorf("a stack trace that nobody wants: %s", r.body)
	}
	if r := s.do("GET", "/a/b/c?error_trace", ""); strings.Contains(r.body, "stack_trace") {
		t.Errorf("a plain error has a stack trace: %s", r.body)
	}
}
