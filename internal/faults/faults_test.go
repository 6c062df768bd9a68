package faults_test

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/wlmserver/wlmserver/internal/faults"
	"github.com/wlmserver/wlmserver/internal/jsondoc"
)

func parse(t *testing.T, body string) []*faults.Fault {
	t.Helper()
	list, err := faults.Parse([]byte(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return list
}

func TestParse(t *testing.T) {
	list := parse(t, `{"faults":[
		{"method":"post","path":"/*/_search","after":1,"times":2,"delay":"300ms","status":429,"type":"x","reason":"y",
		 "headers":{"retry-after":3,"x-a":"b","Date":null},"damage":"half_answer","acted":1,"left":1},
		{"delay":"1h","method":null,"times":null}]}`)
	want := faults.Fault{Method: "POST", Path: "/*/_search", After: 1, Times: 2, Delay: 300 * time.Millisecond, Status: 429, Type: "x", Reason: "y",
		Headers: []faults.Header{{Name: "Retry-After", Value: "3"}, {Name: "X-A", Value: "b"}, {Name: "Date", Remove: true}}, Damage: faults.HalfAnswer}
	if got, want := fmt.Sprintf("%+v", *list[0]), fmt.Sprintf("%+v", want); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := fmt.Sprintf("%+v", *list[1]), fmt.Sprintf("%+v", faults.Fault{Delay: time.Hour}); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if list := parse(t, `{"faults":[]}`); len(list) != 0 {
		t.Errorf("%v", list)
	}
	h := http.Header{"Date": {"today"}, "X-a": {"a", "c"}}
	list[0].Apply(h)
	if got, want := fmt.Sprint(h), fmt.Sprint(http.Header{"Retry-After": {"3"}, "X-A": {"b"}}); got != want {
		t.Errorf("headers %s, want %s", got, want)
	}
}

// TestBadScripts: what cannot be read is refused, and the reason names where, what and the remedy.
func TestBadScripts(t *testing.T) {
	for _, c := range []struct{ body, parts string }{
		{`[]`, "wrong kind, array|faults"},
		{`{}`, "[faults] is missing"},
		{`{"fault":[]}`, "unknown key [fault]|faults"},
		{`{"faults":{}}`, "[faults]|wrong kind, object"},
		{`{"faults":[1]}`, "[faults[0]]|wrong kind, number"},
		{`{"faults":[{"delay":"1s"},{}]}`, "[faults[1]] does nothing|[status]"},
		{`{"faults":[{"path":"/a","times":2}]}`, "[faults[0]] does nothing"},
		{`{"faults":[{"headers":{}}]}`, "does nothing"},
		{`{"faults":[{"staus":429}]}`, "[faults[0].staus]|did you mean [status]?"},
		{`{"faults":[{"xyzzyxyzzyxyzzy":429}]}`, "[faults[0].xyzzyxyzzyxyzzy]|known are [method]"},
		{`{"faults":[{"status":429,"method":""}]}`, "[faults[0].method]|[]|POST"},
		{`{"faults":[{"status":429,"method":"A B"}]}`, "[faults[0].method]|[A B]|POST"},
		{`{"faults":[{"status":429,"method":["GET"]}]}`, "[faults[0].method]|[array]"},
		{`{"faults":[{"status":429,"path":"a/_search"}]}`, "[faults[0].path]|[a/_search]|begins with /"},
		{`{"faults":[{"status":429,"path":""}]}`, "[faults[0].path]|[]"},
		{`{"faults":[{"status":429,"after":-1}]}`, "[faults[0].after]|[-1]|from 0"},
		{`{"faults":[{"status":429,"times":0}]}`, "[faults[0].times]|[0]|from 1"},
		{`{"faults":[{"status":429,"times":1.5}]}`, "[faults[0].times]|[1.5]"},
		{`{"faults":[{"status":429,"times":"2"}]}`, "[faults[0].times]|[2]|whole number"},
		{`{"faults":[{"status":429,"times":1000000001}]}`, "[faults[0].times]|1000000000"},
		{`{"faults":[{"status":200}]}`, "[faults[0].status]|[200]|from 400 to 599"},
		{`{"faults":[{"status":600}]}`, "[faults[0].status]|[600]"},
		{`{"faults":[{"delay":"5"}]}`, "[faults[0].delay]|[5]|unit"},
		{`{"faults":[{"delay":5}]}`, "[faults[0].delay]|[5]|300ms"},
		{`{"faults":[{"delay":"0"}]}`, "[faults[0].delay]|[0]|above 0"},
		{`{"faults":[{"delay":"-1"}]}`, "[faults[0].delay]|[-1]|above 0"},
		{`{"faults":[{"delay":"61m"}]}`, "[faults[0].delay]|[61m]|1h"},
		{`{"faults":[{"type":"x","delay":"1s"}]}`, "[faults[0]]|[type]|no [status]"},
		{`{"faults":[{"reason":"x","delay":"1s"}]}`, "[reason]|no [status]"},
		{`{"faults":[{"status":429,"reason":true}]}`, "[faults[0].reason]|[true]"},
		{`{"faults":[{"headers":["a"]}]}`, "[faults[0].headers]|Retry-After"},
		{`{"faults":[{"headers":{"a":["b"]}}]}`, "[faults[0].headers.a]|[array]|null"},
		{`{"faults":[{"headers":{"a b":"c"}}]}`, "[faults[0].headers.a b]|[c]|letters"},
		{`{"faults":[{"headers":{"":"c"}}]}`, "[faults[0].headers.]"},
		{`{"faults":[{"headers":{"a":"b\r\nc: d"}}]}`, "[faults[0].headers.a]|line breaks"},
		{`{"faults":[{"headers":{"content-LENGTH":"5"}}]}`, "[faults[0].headers.content-LENGTH]|[5]|damage"},
		{`{"faults":[{"headers":{"Content-Type":null}}]}`, "[faults[0].headers.Content-Type]|[null]|damage"},
		{`{"faults":[{"headers":{"x":"1","X":"2"}}]}`, "[faults[0].headers.X]|twice"},
		{`{"faults":[{"damage":"broken"}]}`, "[faults[0].damage]|[broken]|no_answer, half_answer, truncated, not_json, html, wrong_type"},
		{`{"faults":[{"damage":""}]}`, "[faults[0].damage]"},
		{`{"faults":[` + strings.Repeat(`{"delay":"1s"},`, 1000) + `{"delay":"1s"}]}`, "[faults]|[1001]|[1000]"},
	} {
		_, err := faults.Parse([]byte(c.body))
		if _, ok := errors.AsType[*faults.InvalidError](err); !ok {
			t.Errorf("%.200s: %v", c.body, err)
			continue
		}
		for part := range strings.SplitSeq(c.parts, "|") {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%.200s: %q lacks %q", c.body, err, part)
			}
		}
	}
	if _, err := faults.Parse([]byte(`{"faults":[`)); err == nil {
		t.Error("half a script is read")
	} else if _, ok := errors.AsType[*jsondoc.SyntaxError](err); !ok {
		t.Errorf("%v", err)
	}
	if _, err := faults.Parse([]byte(`{"faults":[{"` + strings.Repeat("k", 9999) + `":1}]}`)); err == nil || len(err.Error()) > 500 {
		t.Errorf("a long key: %v", err)
	}
}

// TestTake: the first fault that is for a request and is due acts, and it alone.
func TestTake(t *testing.T) {
	var s faults.Script
	if f, place := s.Take("GET", "/"); f != nil || place != -1 {
		t.Errorf("an empty script gives %v at %d", f, place)
	}
	s.Set(parse(t, `{"faults":[
		{"method":"POST","path":"/*/_search","after":1,"times":2,"status":429},
		{"path":"/a/_search","times":1,"status":503},
		{"path":"/b*","delay":"1s"}]}`))
	for i, c := range []struct {
		method, path string
		place        int
	}{
		{"GET", "/", -1},
		{"POST", "/a/_search", 1}, // the first lets one go by
		{"GET", "/a/_search", -1}, // the second has acted
		{"POST", "/x/_search", 0},
		{"POST", "/b/_search", 0},
		{"POST", "/b/_search", 2},
		{"HEAD", "/b", 2},
		{"POST", "/a/_search", -1},
	} {
		f, place := s.Take(c.method, c.path)
		if place != c.place || (f != nil) != (c.place >= 0) {
			t.Errorf("request %d, %s %s: %d, want %d", i, c.method, c.path, place, c.place)
		}
	}
	var got []string
	for _, x := range s.States() {
		got = append(got, fmt.Sprintf("%d/%d", x.Acted, x.Left))
	}
	if strings.Join(got, " ") != "2/0 1/0 2/0" {
		t.Errorf("acted/left: %v", got)
	}
	s.Set(nil)
	if f, _ := s.Take("POST", "/b/_search"); f != nil || len(s.States()) != 0 {
		t.Error("faults are left")
	}
}

// TestTakeTogether: so many times is so many times, however many ask at once.
func TestTakeTogether(t *testing.T) {
	var s faults.Script
	s.Set(parse(t, `{"faults":[{"after":10,"times":100,"status":429},{"times":50,"status":503}]}`))
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		taken = map[int]int{}
	)
	for range 8 {
		wg.Go(func() {
			for range 100 {
				_, place := s.Take("GET", "/")
				mu.Lock()
				taken[place]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if taken[0] != 100 || taken[1] != 50 || taken[-1] != 650 {
		t.Errorf("%v", taken)
	}
}

// TestMatchModel compares with the same pattern as a regular expression.
func TestMatchModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[ab/*]{0,8}`).Draw(t, "pattern")
		text := rapid.StringMatching(`[ab/]{0,12}`).Draw(t, "text")
		model := regexp.MustCompile("^" + strings.ReplaceAll(pattern, "*", ".*") + "$")
		if got, want := faults.Match(pattern, text), model.MatchString(text); got != want {
			t.Errorf("%q and %q: %v, want %v", pattern, text, got, want)
		}
	})
}

// FuzzParse: whatever is sent is read or refused, and what is read does something.
func FuzzParse(f *testing.F) {
	for _, body := range []string{`{"faults":[{"path":"/*","status":429,"headers":{"a":null}}]}`, `{"faults":[{"delay":"1s","damage":"html"}]}`, `{"faults":null}`, `[`, "\xff"} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		list, err := faults.Parse(body)
		if err != nil && err.Error() == "" {
			t.Error("an error without a reason")
		}
		for _, x := range list {
			if x.Delay == 0 && x.Status == 0 && len(x.Headers) == 0 && x.Damage == faults.None {
				t.Errorf("%s does nothing", body)
			}
		}
	})
}
