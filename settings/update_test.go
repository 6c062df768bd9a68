package settings_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
	"github.com/wlmserver/wlmserver/settings"
)

func entry(key, text string) settings.Entry { return settings.Entry{Key: key, Value: &text} }

func reset(key string) settings.Entry { return settings.Entry{Key: key} }

func TestParseUpdate(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       settings.Update
	}{
		{
			"flat", `{"persistent":{"search.cancel_after_time_interval":"9s"}}`,
			settings.Update{Persistent: []settings.Entry{entry("search.cancel_after_time_interval", "9s")}},
		},
		{
			"nested", `{"transient":{"search":{"cancel_after_time_interval":"9s"}}}`,
			settings.Update{Transient: []settings.Entry{entry("search.cancel_after_time_interval", "9s")}},
		},
		{
			"mixed, in order, numbers and booleans as written",
			`{"transient":{"b":{"c.d":0.70,"e":{"f":null}},"a":true},"persistent":{"z.*":null,"y":1e2}}`,
			settings.Update{
				Persistent: []settings.Entry{reset("z.*"), entry("y", "1e2")},
				Transient:  []settings.Entry{entry("b.c.d", "0.70"), reset("b.e.f"), entry("a", "true")},
			},
		},
		{
			"a scope of null and other top-level keys are passed over", `{"persistent":null,"other":[1],"transient":{"a":"x"}}`,
			settings.Update{Transient: []settings.Entry{entry("a", "x")}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := settings.ParseUpdate([]byte(c.body))
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestParseUpdateRefuses(t *testing.T) {
	for _, c := range []struct {
		body string
		want error // its type counts, and its fields where they are not zero
	}{
		{`{}`, &settings.NothingError{}},
		{`[1]`, &settings.NothingError{}},
		{`5`, &settings.NothingError{}},
		{`null`, &settings.NothingError{}},
		{`{"persistent":{}}`, &settings.NothingError{}},
		{`{"persistent":{},"other":{}}`, &settings.NothingError{Ignored: []string{"other"}}},
		{`{"permanent":{"search.max_buckets":1}}`, &settings.NothingError{Ignored: []string{"permanent"}}},
		{`{"persistent":{"search":{}},"transient":null}`, &settings.NothingError{}},
		{`{"persistent":5}`, &settings.ClassCastError{Scope: "persistent", Found: "number"}},
		{`{"transient":"x"}`, &settings.ClassCastError{Scope: "transient", Found: "string"}},
		{`{"persistent":[]}`, &settings.ClassCastError{Scope: "persistent", Found: "array"}},
		{`{"persistent":true,"transient":{"a":1}}`, &settings.ClassCastError{Scope: "persistent", Found: "boolean"}},
		{`{"persistent":{"wlm.workload_group.mode":{"a":1}}}`, &settings.InvalidError{Key: "wlm.workload_group.mode", Type: "settings_exception"}},
		{`{"persistent":{"wlm":{"workload_group":{"mode":{}}}}}`, &settings.InvalidError{Key: "wlm.workload_group.mode", Type: "settings_exception"}},
		{`{"persistent":{"wlm.workload_group.mode":["enabled"]}}`, &settings.InvalidError{Key: "wlm.workload_group.mode", Type: "settings_exception"}},
		{`{"persistent":{"wlm.workload_group.mode":"enabled"`, &jsondoc.SyntaxError{UnexpectedEnd: true}},
		{`{"persistent":{"a":1,"a":2}}`, &jsondoc.SyntaxError{DuplicateKey: "a"}},
		{`{"persistent":{"a":1}} x`, &jsondoc.SyntaxError{}},
		{``, &jsondoc.SyntaxError{}},
	} {
		u, err := settings.ParseUpdate([]byte(c.body))
		if reflect.TypeOf(err) != reflect.TypeOf(c.want) {
			t.Errorf("%s: error %T %v, want %T", c.body, err, err, c.want)
			continue
		}
		got, want := reflect.ValueOf(err).Elem(), reflect.ValueOf(c.want).Elem()
		for i := range want.NumField() {
			if !want.Field(i).IsZero() && !reflect.DeepEqual(got.Field(i).Interface(), want.Field(i).Interface()) {
				t.Errorf("%s: error %+v, want %+v", c.body, err, c.want)
			}
		}
		if u.Persistent != nil || u.Transient != nil {
			t.Errorf("%s is refused and gives %+v", c.body, u)
		}
	}
}

// A long name above many values would make keys of gigabytes out of a body of kilobytes.
func TestParseUpdateBoundsTheLengthOfKeys(t *testing.T) {
	long := strings.Repeat("k", 10_000)
	for _, body := range []string{
		fmt.Sprintf(`{"persistent":{%q:{"a":1,"b":2}}}`, long),
		fmt.Sprintf(`{"persistent":{%q:1}}`, long),
		fmt.Sprintf(`{"persistent":%s1%s}`, strings.Repeat(`{"abcdefgh":`, 900), strings.Repeat("}", 900)),
	} {
		_, err := settings.ParseUpdate([]byte(body))
		e, ok := errors.AsType[*settings.UnknownError](err)
		if !ok || e.Scope != "persistent" || len(e.Key) > 1100 {
			t.Errorf("error %T", err)
		}
	}
}
