package rest_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
)

// withIndices makes two indices of different sizes.
func withIndices(t *testing.T) *server {
	t.Helper()
	s := newServer(t)
	s.do("PUT", "/books", `{"settings":{"number_of_shards":12,"number_of_replicas":0}}`).want(200)
	s.do("PUT", "/ants", `{"settings":{"number_of_shards":2,"number_of_replicas":1}}`).want(200)
	s.do("PUT", "/ants/_doc/1", `{}`).want(201)
	return s
}

func TestTableText(t *testing.T) {
	s := withIndices(t)
	for query, want := range map[string]string{
		"v&h=health,index,pri,rep":       "health index pri rep\nyellow ants    2   1\ngreen  books  12   0\n",
		"h=index,pri":                    "ants   2\nbooks 12\n",
		"v&h=nope,pri,nope,index":        "pri index\n  2 ants\n 12 books\n",
		"v&h=i,p":                        "i      p\nants   2\nbooks 12\n", // an alias is the heading
		"v&h=docs.*":                     "docs.count docs.deleted\n         1            0\n         0            0\n",
		"h=index&s=pri:desc":             "books\nants\n", // by number, though 2 is after 12 as text
		"h=index&s=pri:asc,index":        "ants\nbooks\n",
		"h=index&s=health":               "books\nants\n",
		"h=index&s=docs.deleted,i:desc":  "books\nants\n",
		"h=index,store.size&bytes=kb":    "ants  0\nbooks 0\n",
		"h=index,store.size":             "ants  0b\nbooks 0b\n",
		"h=index&health=yellow":          "ants\n",
		"h=index&health=GREEN":           "books\n",
		"h=index&health=red":             "",
		"v&h=index&health=red":           "index\n",
		"h=index&format=text":            "ants\nbooks\n",
		"h=index&format=nonsense":        "ants\nbooks\n",
		"h=index,rep&v=false&local=true": "ants  1\nbooks 0\n",
	} {
		r := s.do("GET", "/_cat/indices?"+query, "").want(200)
		if r.body != want {
			t.Errorf("%s:\n%q, want\n%q", query, r.body, want)
		}
		if got := r.header.Get("Content-Type"); got != "text/plain; charset=UTF-8" {
			t.Errorf("%s: content type %q", query, got)
		}
	}
	if got := s.do("GET", "/_cat/indices/b*?h=index", "").want(200).body; got != "books\n" {
		t.Errorf("one index: %q", got)
	}
}

func TestTableObjects(t *testing.T) {
	s := withIndices(t)
	const want = `[{"index":"ants","p":"2"},{"index":"books","p":"12"}]`
	for accept, isJSON := range map[string]bool{
		"application/json": true, "application/vnd.opensearch+json; compatible-with=3": true, "*/*": false, "text/plain": false,
		"text/html, application/json;q=0.9": true,
	} {
		r := s.do("GET", "/_cat/indices?h=index,p", "", "Accept", accept).want(200)
		if (r.body == want) != isJSON {
			t.Errorf("Accept %s: %s", accept, r.body)
		}
	}
	for query, want := range map[string]string{
		"h=index,p&format=json":              want,
		"h=index&format=json&s=index:desc":   `[{"index":"books"},{"index":"ants"}]`,
		"h=index&format=json&health=red":     `[]`,
		"h=store.size&format=json&bytes=b":   `[{"store.size":"0"},{"store.size":"0"}]`,
		"h=nope&format=json&health=green":    `[{}]`,
		"h=pri&format=json&v&health=yellow":  `[{"pri":"2"}]`,
		"h=pri,rep&format=JSON&health=green": `[{"pri":"12","rep":"0"}]`,
	} {
		if r := s.do("GET", "/_cat/indices?"+query, "").want(200); r.body != want {
			t.Errorf("%s: %s, want %s", query, r.body, want)
		}
	}
	if got := s.do("GET", "/_cat/indices?h=index,p&format=yaml&filter_path=p", "").want(200); got.body != "---\n- p: \"2\"\n- p: \"12\"\n" {
		t.Errorf("%q", got.body)
	}
	if got := s.do("GET", "/_cat/indices?h=index,p&format=text", "", "Accept", "application/json").body; got != "ants   2\nbooks 12\n" {
		t.Errorf("format wins over Accept: %q", got)
	}
}

func TestTableHelp(t *testing.T) {
	s := newServer(t)
	lines := strings.Split(s.do("GET", "/_cat/thread_pool?help&v&format=json", "").want(200).body, "\n")
	if strings.TrimRight(lines[0], " ") != "node_name       | nn  | node name" {
		t.Errorf("%q", lines[0])
	}
	for _, line := range lines[:len(lines)-1] {
		if len(line) != len(lines[0]) {
			t.Errorf("%q is not as wide as the others", line)
		}
	}
}

func TestTableMistakes(t *testing.T) {
	s := newServer(t)
	s.do("GET", "/_cat/indices?s=nope", "").wantError(500, "unsupported_operation_exception")
	for _, query := range []string{"v=maybe", "help=maybe", "ts=maybe", "pri=maybe", "time=weeks", "bytes=x", "bytes=kx", "bytes=bb", "bytes=kbb", "health=pink", "nosuch=1", "timeout=x"} {
		s.do("GET", "/_cat/indices?"+query, "").wantError(400, "illegal_argument_exception")
	}
	s.do("GET", "/_cat/nodes?full_id=maybe", "").wantError(400, "illegal_argument_exception")
	s.do("GET", "/_cat/tasks?detailed=maybe", "").wantError(400, "illegal_argument_exception")
	s.do("GET", "/_cat/tasks?parent_task_id=maybe", "").wantError(400, "illegal_argument_exception")
	for _, path := range []string{"/_cat/nosuch", "/_cat/nodes/a", "/_cat/tasks/a", "/_cat/indices/a/b"} {
		if r := s.do("GET", path, ""); r.status != 400 || r.at("error") != "no handler found for uri ["+path+"] and method [GET]" {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	s.do("POST", "/_cat/nodes", "").want(405)
}

func TestCatList(t *testing.T) {
	s := newServer(t)
	lines := strings.Split(strings.TrimSuffix(s.do("GET", "/_cat", "").want(200).body, "\n"), "\n")
	if lines[0] != "=^.^=" || len(lines) < 5 {
		t.Fatalf("%q", lines)
	}
	for _, path := range lines[1:] {
		s.do("GET", strings.NewReplacer("{index}", "*", "{pools}", "search").Replace(path), "").want(200)
	}
}

func TestCatNodes(t *testing.T) {
	s := newServer(t)
	got := s.do("GET", "/_cat/nodes?h=id,port,http_address,version,heap.max,node.role,name&bytes=mb", "").want(200).body
	_, port, _ := strings.Cut(s.address, ":")
	if want := nodeID[:4] + " " + port + " " + s.address + " 3.7.0 1024 dimr " + nodeName + "\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := s.do("GET", "/_cat/nodes?h=id&full_id", "").want(200).body; got != nodeID+"\n" {
		t.Errorf("%q", got)
	}
}

func TestCatThreadPool(t *testing.T) {
	s := newServer(t)
	s.do("PUT", "/idx", `{"settings":{"number_of_shards":3,"number_of_replicas":0}}`).want(200)
	s.do("POST", "/idx/_search?size=0", `{}`).want(200)
	for path, want := range map[string]string{
		"/_cat/thread_pool/s*,nope":                     nodeName + " search 0 0 0\n",
		"/_cat/thread_pool/nope":                        "",
		"/_cat/thread_pool?h=n,completed,queue_size,sz": "search 3 100 8\n",
	} {
		if got := s.do("GET", path, "").want(200).body; got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// TestCatTasks: every task stands below its parent, with times in the unit that is asked for.
func TestCatTasks(t *testing.T) {
	s := newServer(t)
	s.do("PUT", "/idx", `{"settings":{"number_of_shards":1,"number_of_replicas":0}}`).want(200)
	s.background("POST", "/idx/_search", `{"ext":{"stub":{"query_time":"1m"}}}`, "X-Opaque-Id", "client-7")
	s.eventually("the shard works", func() bool { return s.running("*phase/query*") == 1 })

	lines := strings.Split(s.do("GET", "/_cat/tasks?h=action,parent_task_id,x_opaque_id,description&detailed&actions=*search*", "").want(200).body, "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "indices:data/read/search ") || !strings.Contains(lines[0], " client-7 indices[idx]") ||
		!strings.HasPrefix(lines[1], "indices:data/read/search[phase/query] "+nodeID+":") {
		t.Errorf("%q", lines)
	}
	if got := s.do("GET", "/_cat/tasks?v&h=id,description&actions=*search*", "").want(200).body; strings.Contains(got, "description") {
		t.Errorf("a column of detailed tables: %q", got)
	}
	var row []struct {
		Millis string `json:"running_time"`
		Nanos  string `json:"running_time_ns"`
	}
	must(t, json.Unmarshal([]byte(s.do("GET", "/_cat/tasks?format=json&h=running_time,running_time_ns&time=ms&actions=*search", "").want(200).body), &row))
	millis, err := strconv.ParseInt(row[0].Millis, 10, 64)
	must(t, err)
	if nanos, err := strconv.ParseInt(row[0].Nanos, 10, 64); err != nil || nanos/1e6 != millis {
		t.Errorf("%v: %+v", err, row[0])
	}
	if got := s.do("GET", "/_cat/tasks?nodes=nosuch", "").want(200).body; got != "" {
		t.Errorf("%q", got)
	}
	s.do("POST", "/_tasks/_cancel?actions=*search", "").want(200)
}

// TestCatTasksKeepsSecrets: what others search is for administrators.
func TestCatTasksKeepsSecrets(t *testing.T) {
	s := newServer(t, withUsers)
	ann, bob := []string{"X-User", "ann", "X-Roles", "admin"}, []string{"X-User", "bob", "X-Roles", "analyst"}
	s.do("PUT", "/idx", "", ann...).want(200)
	s.background("POST", "/idx/_search", `{"ext":{"stub":{"query_time":"1m"}}}`, ann...)
	s.eventually("the shard works", func() bool { return s.running("*phase/query*") == 1 })
	const path = "/_cat/tasks?detailed&h=description&actions=*search"
	if got := s.do("GET", path, "", ann...).want(200).body; !strings.HasPrefix(got, "indices[idx]") {
		t.Errorf("the own task: %q", got)
	}
	if got := s.do("GET", path, "", bob...).want(200).body; got != "\n" {
		t.Errorf("somebody else's task: %q", got)
	}
	s.do("POST", "/_tasks/_cancel?actions=*search", "", ann...).want(200)
}
