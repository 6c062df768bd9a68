package stub_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/internal/shard"
	"github.com/wlmserver/wlmserver/internal/stub"
	"github.com/wlmserver/wlmserver/search"
)

// handle is a reader as a transport between nodes hands it out.
type handle struct{ of shard.Reader }

// keeping is a transport that keeps readers as another node would: none that nobody said was wanted.
type keeping struct {
	shard.Transport

	mu     sync.Mutex
	open   map[*handle]time.Duration
	opened int
	wrong  int // closed or asked for, but not open
}

func (k *keeping) Query(ctx context.Context, r *shard.QueryRequest, done func(*shard.QueryResult, error)) {
	q := *r
	h := k.use(r.Reader)
	if h != nil {
		q.Reader = h.of
	}
	k.Transport.Query(ctx, &q, func(result *shard.QueryResult, err error) {
		if err == nil {
			switch {
			case h != nil:
				result.Reader = h
			case r.Keep > 0:
				h := &handle{result.Reader}
				k.mu.Lock()
				k.open[h] = r.Keep
				k.opened++
				k.mu.Unlock()
				result.Reader = h
			default:
				result.Reader = nil
			}
		}
		done(result, err)
	})
}

func (k *keeping) Fetch(ctx context.Context, r *shard.FetchRequest, done func(*shard.FetchResult, error)) {
	f := *r
	if h := k.use(r.Reader); h != nil {
		f.Reader = h.of
	}
	k.Transport.Fetch(ctx, &f, done)
}

func (k *keeping) Close(r shard.Reader) {
	h := k.use(r)
	k.mu.Lock()
	delete(k.open, h)
	k.mu.Unlock()
}

func (k *keeping) use(r shard.Reader) *handle {
	if r == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	h := r.(*handle)
	if k.open[h] == 0 {
		k.wrong++
	}
	return h
}

// A shard elsewhere keeps what a search has read for as long as the search needs it, and not longer.
func TestReadersAreKeptAndClosed(t *testing.T) {
	var k *keeping
	bubble(t, func(f *fixture) {
		f.golden()
		f.index("one", 1, "")
		f.put("one", "1", `{}`)
		check := func(what string, opened int) {
			f.Helper()
			if k.opened != opened || len(k.open) != 0 || k.wrong != 0 {
				f.Errorf("%s: %d readers were opened, %d are open, %d uses were wrong; want %d opened", what, k.opened, len(k.open), k.wrong, opened)
			}
			k.opened = 0
		}
		f.search("golden", "{}")
		check("two shards", 2)
		f.search("golden?size=0", "{}")
		check("no hits wanted", 0)
		f.search("one", "{}")
		check("one shard, whose documents come with the query", 0)
		if err := f.searchFails("golden?allow_partial_search_results=false", `{"ext":{"stub":{"fail_shards":1}}}`); err.Error() == "" {
			f.Error("an error without a text")
		}
		check("one of two shards fails", 1)

		r := request("golden?size=1", `{"sort":"n"}`)
		r.ScrollKeepAlive, r.ScrollID = time.Hour, "the-scroll"
		c, err := f.prepare(r)
		if err != nil {
			f.Fatal(err)
		}
		for range 3 {
			if _, err := c.run(search.Limits{}); err != nil {
				f.Fatal(err)
			}
		}
		if k.opened != 2 || len(k.open) != 2 {
			f.Errorf("an open scroll of two shards: %d readers were opened, %d are open", k.opened, len(k.open))
		}
		for _, keep := range k.open {
			if keep <= time.Hour {
				f.Errorf("a reader of a scroll is wanted for %v", keep)
			}
		}
		c.end()
		check("a scroll", 2)
	}, func(c *stub.Config) {
		c.Shards = func(local shard.Transport) shard.Transport {
			k = &keeping{Transport: local, open: make(map[*handle]time.Duration)}
			return k
		}
	})
}
