package stub_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/tasks"
)

func TestScroll(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.golden()
		for _, sort := range []string{"", `,"sort":"n"`} {
			r := request("golden?size=1", `{"ext":{"stub":{"query_time":"1s","fetch_time":"1s"}}`+sort+`}`)
			r.ScrollKeepAlive, r.ScrollID = time.Minute, "the-scroll"
			c, err := f.prepare(r)
			if err != nil {
				f.Fatal(err)
			}
			var ids []string
			for page := range 5 {
				f.endedSince()
				start := time.Now()
				body, err := c.run(search.Limits{ScrollKeepAlive: time.Minute})
				if err != nil {
					f.Fatal(err)
				}
				if !strings.HasPrefix(tookless(body), `{"_scroll_id":"the-scroll","took":0,"timed_out":false,`) {
					f.Errorf("page %d begins %s", page, body)
				}
				a := parse(f, body)
				if a.Hits.Total.Value != 3 || a.Shards.Total != 2 {
					f.Errorf("page %d: %s", page, body)
				}
				ids = append(ids, a.ids()...)
				want := map[string]int{"[phase/query]": 2, "[phase/fetch/id]": 1}
				took := 2 * time.Second
				if page > 0 {
					want = map[string]int{"[phase/query/scroll]": 2, "[phase/fetch/id/scroll]": 1}
				}
				if page >= 3 {
					delete(want, "[phase/fetch/id/scroll]")
					took = time.Second
				}
				if got := f.endedSince(); !maps.Equal(got, want) || time.Since(start) != took {
					f.Errorf("page %d ends the tasks %v after %v, want %v after %v", page, got, time.Since(start), want, took)
				}
				// What happens to the documents meanwhile is not seen.
				f.put("golden", "later-"+itoa(page), `{"n":0}`)
				if page == 0 {
					if _, err := f.engine.DeleteDocument("golden", "3"); err != nil {
						f.Fatal(err)
					}
				}
			}
			want := "1 3 Jg3vKKIB7LZ-4g7f2SD0"
			if sort != "" {
				want = "1 Jg3vKKIB7LZ-4g7f2SD0 3"
			}
			if got := strings.Join(ids, " "); got != want {
				f.Errorf("pages of %q: %s, want %s", sort, got, want)
			}
			c.end()
			if err := f.engine.DeleteIndex("golden"); err != nil {
				f.Fatal(err)
			}
			f.golden()
		}
	})
}

// A page that fails can be asked for again.
func TestAFailedPageIsNotLost(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.golden()
		r := request("golden?size=2", "")
		r.ScrollKeepAlive, r.ScrollID = time.Minute, "s"
		x, err := f.engine.Prepare(r)
		if err != nil {
			f.Fatal(err)
		}
		page := func(cancel bool) (answer, error) {
			t, err := f.tasks.Register(f.context(), tasks.Spec{Action: search.ScrollAction, Cancellable: true})
			if err != nil {
				f.Fatal(err)
			}
			defer t.End()
			if cancel {
				t.Cancel(tasks.UserCause())
			}
			r, err := x.Execute(t.Context(), t, search.Limits{})
			if err != nil {
				return answer{}, err
			}
			return parse(f, string(r.Body)), nil
		}
		if a, err := page(false); err != nil || strings.Join(a.ids(), " ") != "1 3" {
			f.Errorf("page 1: %v, %v", a.ids(), err)
		}
		if _, err := page(true); err == nil {
			f.Error("a cancelled page is answered")
		}
		if a, err := page(false); err != nil || strings.Join(a.ids(), " ") != "Jg3vKKIB7LZ-4g7f2SD0" {
			f.Errorf("page 2: %v, %v", a.ids(), err)
		}
		x.Close()
	})
}

func TestScrollOfOneShard(t *testing.T) {
	f := newFixture(t)
	f.index("one", 1, "")
	f.put("one", "1", `{}`)
	f.put("one", "2", `{}`)
	r := request("one?size=1", "")
	r.ScrollKeepAlive, r.ScrollID = time.Minute, "s"
	c, err := f.prepare(r)
	if err != nil {
		t.Fatal(err)
	}
	defer c.end()
	for page, want := range []string{"1", "2", ""} {
		f.endedSince()
		body, err := c.run(search.Limits{})
		if err != nil || strings.Join(parse(t, body).ids(), " ") != want {
			t.Errorf("page %d: %s, %v, want %s", page, body, err, want)
		}
		action := "[phase/query]"
		if page > 0 {
			action = "[phase/query+fetch/scroll]"
		}
		if got := f.endedSince(); !maps.Equal(got, map[string]int{action: 1}) {
			t.Errorf("page %d ends the tasks %v, want one %s", page, got, action)
		}
	}
}

func TestRefusedScrolls(t *testing.T) {
	f := newFixture(t)
	for path, text := range map[string]string{
		"?size=0":                 "1: [size]",
		"?from=1":                 "1: [from]",
		"?track_total_hits=false": "1: [track_total_hits]",
		"?request_cache=true":     "1: [request_cache]",
		"?size=0&from=1":          "2: [from]",
	} {
		r := request(path, "")
		r.ScrollKeepAlive = time.Minute
		_, err := f.engine.Prepare(r)
		if _, ok := errors.AsType[*search.ValidationError](err); !ok || !strings.Contains(err.Error(), text) {
			t.Errorf("scroll with %s: %v, want a ValidationError with %q", path, err, text)
		}
	}
	r := request("?request_cache=false", "")
	r.ScrollKeepAlive = time.Minute
	if _, err := f.engine.Prepare(r); err != nil {
		t.Errorf("a scroll that asks for no cache: %v", err)
	}
	if _, err := f.engine.Prepare(&search.Request{Kind: search.ScrollPage}); err == nil {
		t.Error("the page of a scroll can be prepared")
	}
	f.index("a", 1, "")
	r = request("a?size=10001", "")
	r.ScrollKeepAlive = time.Minute
	if _, err := f.try(r); err == nil || !strings.Contains(err.Error(), "[10001]") {
		t.Errorf("pages of 10,001 hits: %v", err)
	}
}
