package groups_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/internal/jsondoc"
)

// base is the beginning of every body that creates a group and adds a part to it.
const base = `{"name":"x1","resiliency_mode":"soft","resource_limits":{"cpu":0.1}`

// What bodies mean: those of OpenSearch's recorded answers, and those of the blocks
// throttling and queue, of which there are none.
func TestCreateAccepts(t *testing.T) {
	const made = `{"resiliency_mode":"soft","resource_limits":{"cpu":0.1}` // of base
	for _, c := range []struct{ body, want string }{
		{base + `}`, made + `}`},
		{" \n" + base + " } \t", made + `}`},
		{base + `,"_id":"abc","updated_at":5}`, made + `}`},
		{base + `,"_id":null,"updated_at":null,"nosuch":null}`, made + `}`},
		{base + `,"settings":null,"throttling":null,"queue":null}`, made + `}`},
		{base + `,"settings":{},"throttling":{},"queue":{}}`, made + `}`},
		{base + `,"settings":[]}`, made + `}`},
		{base + `,"settings":{"search":{}}}`, made + `}`},
		{`{"name":"x","resiliency_mode":"ENFORCED","resource_limits":{"memory":0.2,"cpu":"0.25","native_memory":1}}`,
			`{"resiliency_mode":"enforced","resource_limits":{"cpu":0.25,"memory":0.2,"native_memory":1}}`},
		{`{"name":"x","resiliency_mode":"Monitor","resource_limits":{"cpu":1e-1,"memory":0.000001}}`,
			`{"resiliency_mode":"monitor","resource_limits":{"cpu":0.1,"memory":0.000001}}`},

		{base + `,"settings":{"search.cancel_after_time_interval":"5s"}}`, made + `,"settings":{"search.cancel_after_time_interval":"5s"}}`},
		{base + `,"settings":{"search.cancel_after_time_interval":"-1"}}`, made + `,"settings":{"search.cancel_after_time_interval":"-1"}}`},
		{base + `,"settings":{"search.cancel_after_time_interval":-1}}`, made + `,"settings":{"search.cancel_after_time_interval":"-1"}}`},
		{base + `,"settings":{"search.default_search_timeout":"0s"}}`, made + `,"settings":{"search.default_search_timeout":"0s"}}`},
		{base + `,"settings":{"search.max_concurrent_shard_requests":"7"}}`, made + `,"settings":{"search.max_concurrent_shard_requests":"7"}}`},
		{base + `,"settings":{"search.max_concurrent_shard_requests":1}}`, made + `,"settings":{"search.max_concurrent_shard_requests":"1"}}`},
		{base + `,"settings":{"search.batched_reduce_size":2}}`, made + `,"settings":{"search.batched_reduce_size":"2"}}`},
		{base + `,"settings":{"search.max_buckets":0}}`, made + `,"settings":{"search.max_buckets":"0"}}`},
		{base + `,"settings":{"search.max_buckets":2147483647}}`, made + `,"settings":{"search.max_buckets":"2147483647"}}`},
		{base + `,"settings":{"override_request_values":true}}`, made + `,"settings":{"override_request_values":"true"}}`},
		{base + `,"settings":{"override_request_values":"false"}}`, made + `,"settings":{"override_request_values":"false"}}`},
		{base + `,"settings":{"search":{"max_buckets":9,"default_search_timeout":"5s"}}}`,
			made + `,"settings":{"search.default_search_timeout":"5s","search.max_buckets":"9"}}`},
		{base + `,"settings":{"search.default_search_timeout":null}}`, made + `}`},

		{base + `,"throttling":{"attribute":"group","node_limit":1}}`, made + `,"throttling":{"attribute":"group","node_limit":1}}`},
		{base + `,"throttling":{"by":"username","node_limit":2147483647}}`, made + `,"throttling":{"attribute":"username","node_limit":2147483647}}`},
		{base + `,"throttling":{"attribute":"role","node_limit":0,"shared_limit":5}}`,
			made + `,"throttling":{"attribute":"role","node_limit":0,"shared_limit":5}}`},
		{base + `,"throttling":{"attribute":"group","shared_limit":"7"}}`, made + `,"throttling":{"attribute":"group","shared_limit":7}}`},
		{base + `,"throttling":{"attribute":"group","node_limit":3,"shared_limit":null}}`, made + `,"throttling":{"attribute":"group","node_limit":3}}`},
		{base + `,"throttling":{"attribute":null,"node_limit":null}}`, made + `}`},

		{base + `,"throttling":{"attribute":"group","node_limit":1},"queue":{"size_per_bucket":10000}}`,
			made + `,"throttling":{"attribute":"group","node_limit":1},"queue":{"size_per_bucket":10000}}`},
		{base + `,"queue":{"size_per_bucket":"5"},"throttling":{"attribute":"group","shared_limit":1}}`,
			made + `,"throttling":{"attribute":"group","shared_limit":1},"queue":{"size_per_bucket":5}}`},
		{base + `,"queue":{"size_per_bucket":0}}`, made + `,"queue":{"size_per_bucket":0}}`},
		{base + `,"queue":{"size_per_bucket":null}}`, made + `}`},
	} {
		r, _ := open(t)
		g, err := create(t, r, c.body)
		if err != nil {
			t.Errorf("%s: %v", c.body, err)
			continue
		}
		if got := show(t, g); got != normal(t, c.want) {
			t.Errorf("%s:\n got %s\nwant %s", c.body, got, normal(t, c.want))
		}
	}
}

// Every refusal names the key, the value and a remedy, and changes nothing.
func TestCreateRefuses(t *testing.T) {
	const limit, remedy = `"resiliency_mode":"soft","resource_limits":`, "above 0 and at most 1.0"
	for _, c := range []struct {
		body string
		says []string
	}{
		{`[]`, []string{"[…]", "object"}},
		{`"x"`, []string{"[x]", "object"}},
		{`5`, []string{"object"}},
		{`null`, []string{"object"}},
		{`{}`, []string{"[name]", "[resiliency_mode]", "[resource_limits]"}},
		{`{"resiliency_mode":"soft","resource_limits":{"cpu":0.1}}`, []string{"[name]", "missing"}},
		{`{"name":null,` + limit + `{"cpu":0.1}}`, []string{"[name]", "null"}},
		{`{"name":"x","resource_limits":{"cpu":0.1}}`, []string{"[resiliency_mode]"}},
		{`{"name":"x","resiliency_mode":null,"resource_limits":{"cpu":0.1}}`, []string{"[resiliency_mode]"}},
		{`{"name":"x","resiliency_mode":"soft"}`, []string{"[resource_limits]"}},
		{`{"name":"x",` + limit + `null}`, []string{"[resource_limits]"}},

		{`{"name":{},` + limit + `{"cpu":0.1}}`, []string{"[name]", "{…}", "string"}},
		{`{"name":["x"],` + limit + `{"cpu":0.1}}`, []string{"[name]", "[…]", "string"}},
		{`{"name":"",` + limit + `{"cpu":0.1}}`, []string{"[name]", "[]", "1 to 50"}},
		{`{"name":"` + strings.Repeat("ü", 51) + `",` + limit + `{"cpu":0.1}}`, []string{"[name]", "51 characters", "1 to 50"}},
		{`{"name":"x","resiliency_mode":"hard","resource_limits":{"cpu":0.1}}`, []string{"[resiliency_mode]", "[hard]", "enforced, soft or monitor"}},
		{`{"name":"x","resiliency_mode":"","resource_limits":{"cpu":0.1}}`, []string{"[resiliency_mode]", "[]"}},
		{`{"name":"x","resiliency_mode":5,"resource_limits":{"cpu":0.1}}`, []string{"[resiliency_mode]", "[5]"}},
		{`{"name":"x","resiliency_mode":{},"resource_limits":{"cpu":0.1}}`, []string{"[resiliency_mode]", "object"}},

		{`{"name":"x",` + limit + `"x"}`, []string{"[resource_limits]", "[x]", "object"}},
		{`{"name":"x",` + limit + `[0.1]}`, []string{"[resource_limits]", "array"}},
		{`{"name":"x",` + limit + `{}}`, []string{"[resource_limits]", "at least one"}},
		{`{"name":"x",` + limit + `{"cpu":0}}`, []string{"[resource_limits.cpu]", "[0]", remedy}},
		{`{"name":"x",` + limit + `{"cpu":-0.1}}`, []string{"[resource_limits.cpu]", "[-0.1]", remedy}},
		{`{"name":"x",` + limit + `{"memory":5}}`, []string{"[resource_limits.memory]", "[5]", remedy}},
		{`{"name":"x",` + limit + `{"native_memory":1.0000001}}`, []string{"[resource_limits.native_memory]", "[1.0000001]", remedy}},
		{`{"name":"x",` + limit + `{"cpu":1e999}}`, []string{"[resource_limits.cpu]", remedy}},
		{`{"name":"x",` + limit + `{"cpu":1e-999}}`, []string{"[resource_limits.cpu]", remedy}},
		{`{"name":"x",` + limit + `{"cpu":"NaN"}}`, []string{"[resource_limits.cpu]", "[NaN]", remedy}},
		{`{"name":"x",` + limit + `{"cpu":"Infinity"}}`, []string{"[resource_limits.cpu]", remedy}},
		{`{"name":"x",` + limit + `{"cpu":NaN}}`, []string{"resource_limits.cpu"}},
		{`{"name":"x",` + limit + `{"cpu":0.01,"cpu":0.02}}`, []string{"resource_limits", "duplicate key [cpu]"}},
		{`{"name":"x",` + limit + `{"cpu":true}}`, []string{"[resource_limits.cpu]", "boolean", remedy}},
		{`{"name":"x",` + limit + `{"cpu":null}}`, []string{"[resource_limits.cpu]", "null", remedy}},
		{`{"name":"x",` + limit + `{"cpu":{}}}`, []string{"[resource_limits.cpu]", "object", remedy}},
		{`{"name":"x",` + limit + `{"disk":0.1}}`, []string{"Unknown resource type", "[disk]", "[0.1]", "cpu, memory and native_memory"}},
		{`{"name":"x",` + limit + `{"CPU":0.1}}`, []string{"Unknown resource type", "[CPU]"}},

		{base + `,"nosuch":1}`, []string{"[nosuch]", "[1]", "not a valid field"}},
		{base + `,"nosuch":"a"}`, []string{"[nosuch]", "[a]", "not a valid field"}},
		{base + `,"nosuch":{"a":1}}`, []string{"[nosuch]", "not a valid object"}},
		{base + `,"nosuch":[]}`, []string{"[nosuch]", "not a valid array"}},
		{base + `,"search_settings":{"timeout":"5s"}}`, []string{"[search_settings]", "not a valid object"}},
		{base + `,"_id":{}}`, []string{"[_id]", "leave it out"}},
		{base + `,"updated_at":[1]}`, []string{"[updated_at]", "leave it out"}},

		{base + `,"settings":{"timeout":"5s"}}`, []string{"Unknown WLM setting", "[timeout]", "[5s]", "search.default_search_timeout"}},
		{base + `,"settings":{"search.timeout":"5s"}}`, []string{"Unknown WLM setting", "[search.timeout]"}},
		{base + `,"settings":{"max_concurrent_shard_requests":"7"}}`, []string{"Unknown WLM setting"}},
		{base + `,"settings":{"nosuch":null}}`, []string{"Unknown WLM setting", "[nosuch]"}},
		{base + `,"settings":{"nosuch":[]}}`, []string{"Unknown WLM setting", "[nosuch]", "[…]"}},
		{base + `,"settings":{"search":{"a key that is longer than any of the known ones":{}}}}`, []string{"Unknown WLM setting", "[search.a key"}},
		{base + `,"settings":{"search":5}}`, []string{"Unknown WLM setting", "[search]", "[5]"}},
		{base + `,"settings":{"search.default_search_timeout":"soon"}}`, []string{"[settings.search.default_search_timeout]", "[soon]", "unit"}},
		{base + `,"settings":{"search.default_search_timeout":5}}`, []string{"[settings.search.default_search_timeout]", "[5]", "unit"}},
		{base + `,"settings":{"search.default_search_timeout":true}}`, []string{"[settings.search.default_search_timeout]", "[true]"}},
		{base + `,"settings":{"search.default_search_timeout":["5s"]}}`, []string{"[settings.search.default_search_timeout]", "array"}},
		{base + `,"settings":{"search.cancel_after_time_interval":"-5s"}}`, []string{"[settings.search.cancel_after_time_interval]", "[-5s]", "negative"}},
		{base + `,"settings":{"search.cancel_after_time_interval":"1.5s"}}`, []string{"[1.5s]", "fractions"}},
		{base + `,"settings":{"search.max_buckets":"x"}}`, []string{"[settings.search.max_buckets]", "[x]", "integer from 0"}},
		{base + `,"settings":{"search.max_buckets":-1}}`, []string{"[settings.search.max_buckets]", "[-1]", "integer from 0"}},
		{base + `,"settings":{"search.max_buckets":2147483648}}`, []string{"[2147483648]", "2147483647"}},
		{base + `,"settings":{"search.max_concurrent_shard_requests":0}}`, []string{"[0]", "integer from 1"}},
		{base + `,"settings":{"search.max_concurrent_shard_requests":1.5}}`, []string{"[1.5]", "integer from 1"}},
		{base + `,"settings":{"search.batched_reduce_size":1}}`, []string{"[1]", "integer from 2"}},
		{base + `,"settings":{"override_request_values":"maybe"}}`, []string{"[settings.override_request_values]", "[maybe]", "true or false"}},
		{base + `,"settings":{"override_request_values":"TRUE"}}`, []string{"[TRUE]"}},
		{base + `,"settings":{"search.max_buckets":1,"search":{"max_buckets":2}}}`, []string{"[settings.search.max_buckets]", "twice", "[2]"}},

		{base + `,"throttling":5}`, []string{"[throttling]", "[5]", "object"}},
		{base + `,"throttling":[]}`, []string{"[throttling]", "array"}},
		{base + `,"throttling":{"node_limits":5}}`, []string{"Unknown throttle setting", "[node_limits]", "[5]", "node_limit"}},
		{base + `,"throttling":{"attribute":"user","node_limit":5}}`, []string{"[throttling.attribute]", "[user]", "group, username or role"}},
		{base + `,"throttling":{"attribute":"GROUP","node_limit":5}}`, []string{"[throttling.attribute]", "[GROUP]"}},
		{base + `,"throttling":{"by":5,"node_limit":5}}`, []string{"[throttling.by]", "[5]", "group, username or role"}},
		{base + `,"throttling":{"by":"group","attribute":"group","node_limit":5}}`, []string{"[throttling.by]", "[throttling.attribute]", "[group]", "one of them"}},
		{base + `,"throttling":{"attribute":null,"by":"group","node_limit":5}}`, []string{"[throttling.by]", "[throttling.attribute]"}},
		{base + `,"throttling":{"attribute":"group","node_limit":0}}`, []string{"Effective throttle ceiling is 0", "node_limit [0]", "at least 1"}},
		{base + `,"throttling":{"attribute":"group","node_limit":0,"shared_limit":0}}`, []string{"Effective throttle ceiling is 0"}},
		{base + `,"throttling":{"attribute":"group"}}`, []string{"Effective throttle ceiling is 0", "not set"}},
		{base + `,"throttling":{"node_limit":5}}`, []string{"[throttling.attribute]", "required when a throttle limit is set", "node_limit [5]"}},
		{base + `,"throttling":{"shared_limit":0}}`, []string{"required when a throttle limit is set"}},
		{base + `,"throttling":{"attribute":"group","node_limit":-1}}`, []string{"[throttling.node_limit]", "[-1]", "must be non-negative"}},
		{base + `,"throttling":{"attribute":"group","node_limit":"-5"}}`, []string{"[throttling.node_limit]", "[-5]", "must be non-negative"}},
		{base + `,"throttling":{"attribute":"group","node_limit":1.5}}`, []string{"[throttling.node_limit]", "[1.5]", "must be an integer"}},
		{base + `,"throttling":{"attribute":"group","node_limit":5.0}}`, []string{"[5.0]", "must be an integer"}},
		{base + `,"throttling":{"attribute":"group","node_limit":"x"}}`, []string{"[x]", "must be an integer"}},
		{base + `,"throttling":{"attribute":"group","node_limit":""}}`, []string{"[]", "must be an integer"}},
		{base + `,"throttling":{"attribute":"group","node_limit":true}}`, []string{"[true]", "must be an integer"}},
		{base + `,"throttling":{"attribute":"group","node_limit":[1]}}`, []string{"[…]", "must be an integer"}},
		{base + `,"throttling":{"attribute":"group","shared_limit":2147483648}}`, []string{"[throttling.shared_limit]", "must not exceed 2147483647"}},
		{base + `,"throttling":{"attribute":"group","shared_limit":99999999999999999999}}`, []string{"must not exceed 2147483647"}},
		{base + `,"throttling":{"attribute":"group","shared_limit":-99999999999999999999}}`, []string{"must be non-negative"}},

		{base + `,"queue":5}`, []string{"[queue]", "[5]", "object"}},
		{base + `,"queue":[]}`, []string{"[queue]", "array"}},
		{base + `,"queue":{"size_per_bucket":5}}`, []string{"[queue.size_per_bucket]", "[5]", "throttling off must clear [queue] in the same request"}},
		{base + `,"throttling":{"attribute":"group","node_limit":1},"queue":{"size_per_bucket":10001}}`, []string{"[10001]", "must not exceed 10000"}},
		{base + `,"throttling":{"attribute":"group","node_limit":1},"queue":{"size_per_bucket":-1}}`, []string{"[-1]", "must be non-negative"}},
		{base + `,"throttling":{"attribute":"group","node_limit":1},"queue":{"size_per_bucket":"many"}}`, []string{"[many]", "must be an integer"}},
		{base + `,"queue":{"timeout":"5s"}}`, []string{"Unknown queue setting", "[timeout]", "[5s]", "cancel_after_time_interval"}},
		{base + `,"queue":{"size":5}}`, []string{"Unknown queue setting", "[size]", "[5]", "size_per_bucket"}},
		{base + `,"queue":{"size":null}}`, []string{"Unknown queue setting", "[size]"}},
		{base + `,"queue":{"nosuch":5}}`, []string{"Unknown queue setting", "[nosuch]", "size_per_bucket"}},
	} {
		r, m := open(t)
		_, err := create(t, r, c.body)
		var invalid *groups.InvalidError
		if !errors.As(err, &invalid) {
			t.Errorf("%s: error %v, want an *InvalidError", c.body, err)
			continue
		}
		if invalid.Type != "" || invalid.Line != 0 || invalid.Column != 0 {
			t.Errorf("%s: %+v, want a plain illegal argument", c.body, *invalid)
		}
		for _, part := range c.says {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not say %q", c.body, err, part)
			}
		}
		if r.Snapshot().Len() != 0 || len(m.Dump()) != 0 {
			t.Errorf("%s: refused, yet something changed", c.body)
		}
	}
}

func TestRefusalTypes(t *testing.T) {
	for _, c := range []struct {
		body         string
		kind         string
		line, column int
	}{
		{base + `,"settings":"x"}`, groups.TypeParsing, 1, 80},
		{"{\n \"settings\":5}", groups.TypeParsing, 2, 13},
		{`{"settings":[1]}`, groups.TypeParsing, 1, 13},
		{`{"settings":true}`, groups.TypeParsing, 1, 13},
		{`{"resource_limits":{"cpu":"abc"}}`, groups.TypeNumberFormat, 0, 0},
		{`{"resource_limits":{"cpu":""}}`, groups.TypeNumberFormat, 0, 0},
		{`{"resource_limits":{"cpu":"0x1p-2"}}`, groups.TypeNumberFormat, 0, 0},
		{`{"resource_limits":{"cpu":"0_1"}}`, groups.TypeNumberFormat, 0, 0},
	} {
		_, err := groups.ParsePatch([]byte(c.body))
		var invalid *groups.InvalidError
		if !errors.As(err, &invalid) || invalid.Type != c.kind || invalid.Line != c.line || invalid.Column != c.column {
			t.Errorf("%s: %#v, want %s at %d, %d", c.body, err, c.kind, c.line, c.column)
		}
	}
}

func TestSyntaxErrors(t *testing.T) {
	for _, c := range []struct {
		body string
		end  bool
	}{
		{``, true},
		{`{"name":"x1",`, false},
		{`{"name":"x1","resiliency_mode":"soft"`, true},
		{base + `} trailing`, false},
		{base + `}{"name":"x2"}`, false},
		{`{"name":"a","name":"b"}`, false},
		{`{"settings":{"search.max_buckets":1,"search.max_buckets":1}}`, false},
	} {
		_, err := groups.ParsePatch([]byte(c.body))
		var syntax *jsondoc.SyntaxError
		if !errors.As(err, &syntax) || syntax.UnexpectedEnd != c.end {
			t.Errorf("%s: %#v, want a *SyntaxError with UnexpectedEnd %v", c.body, err, c.end)
		}
	}
}

func TestNames(t *testing.T) {
	for body, want := range map[string]string{
		`5`:                                 "5",
		`1.50`:                              "1.50",
		`true`:                              "true",
		`"a b"`:                             "a b",
		`"a/b"`:                             "a/b",
		`"AbC"`:                             "AbC",
		`"-a"`:                              "-a",
		`"_a"`:                              "_a",
		`"gr\u00fcn"`:                       "grün",
		`"a,b*"`:                            "a,b*",
		`"a\nb"`:                            "a\nb",
		`"DEFAULT_WORKLOAD_GROUP"`:          "DEFAULT_WORKLOAD_GROUP",
		`"` + strings.Repeat("😀", 50) + `"`: strings.Repeat("😀", 50),
	} {
		r, _ := open(t)
		g := mustCreate(t, r, `{"name":`+body+`,"resiliency_mode":"soft","resource_limits":{"cpu":0.1}}`)
		if g.Name != want || r.Snapshot().ByName(want) != g {
			t.Errorf("name %s became %q, want %q", body, g.Name, want)
		}
	}
}

// A message quotes no more than the beginning of a hostile value, whole characters of it.
func TestMessagesStayShort(t *testing.T) {
	long := strings.Repeat("ü", 100_000)
	for _, body := range []string{
		`{"name":"` + long + `"}`,
		`{"` + long + `":1}`,
		`{"` + long + `":{}}`,
		`{"resiliency_mode":"` + long + `"}`,
		`{"resource_limits":{"` + long + `":1}}`,
		`{"resource_limits":{"cpu":"` + long + `"}}`,
		`{"settings":"` + long + `"}`,
		`{"settings":{"` + long + `":1}}`,
		`{"settings":{"search.max_buckets":"` + long + `"}}`,
		`{"settings":{"override_request_values":"` + long + `"}}`,
		`{"settings":{"search.default_search_timeout":"` + long + `"}}`,
		`{"settings":{"search.default_search_timeout":"` + long + `s"}}`,
		`{"throttling":{"` + long + `":1}}`,
		`{"throttling":{"node_limit":"` + long + `"}}`,
		`{"throttling":{"node_limit":1` + strings.Repeat("0", 100_000) + `}}`,
		`{"throttling":{"attribute":"` + long + `"}}`,
		`{"queue":{"` + long + `":1}}`,
	} {
		_, err := groups.ParsePatch([]byte(body))
		if err == nil || len(err.Error()) > 1000 || !utf8.ValidString(err.Error()) {
			t.Errorf("%.60s…: a message of %d bytes", body, len(err.Error()))
		}
	}
}
