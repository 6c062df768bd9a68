package rest

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// pages is any choice of rows and any way to page through them.
func pages(t *rapid.T) ([]statsRow, statsPaging) {
	pair := rapid.Custom(func(t *rapid.T) statsRow {
		id := rapid.StringMatching(`[A-Za-z0-9_-]{1,4}`)
		return statsRow{id.Draw(t, "node"), groupStats{id: id.Draw(t, "group")}}
	})
	rows := rapid.SliceOfNDistinct(pair, 0, 40, statsRow.pair).Draw(t, "rows")
	return rows, statsPaging{
		size:       rapid.IntRange(1, 15).Draw(t, "size"),
		by:         rapid.SampledFrom([]statsSort{byNodeID, byGroup}).Draw(t, "by"),
		descending: rapid.Bool().Draw(t, "descending"),
	}
}

// TestPagesHoldEachRowOnce: page by page, each row is there once, in order; all pages but the last are full.
func TestPagesHoldEachRowOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, paging := pages(t)
		var seen []statsRow
		for {
			page, next, err := paging.page(rapid.Permutation(rows).Draw(t, "as read"))
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, page...)
			if len(page) > paging.size || next != "" && len(page) != paging.size {
				t.Fatalf("a page of %d rows, next %q", len(page), next)
			}
			if next == "" {
				break
			}
			if len(page) == 0 || len(seen) >= len(rows) {
				t.Fatalf("another page is promised after %d of %d rows", len(seen), len(rows))
			}
			paging.token = next
		}
		if len(seen) != len(rows) {
			t.Fatalf("%d rows of %d", len(seen), len(rows))
		}
		key := func(r statsRow) string {
			if paging.by == byGroup {
				return r.id + "|" + r.node
			}
			return r.pair()
		}
		less := func(a, b statsRow) bool {
			x, y := strings.Split(key(a), "|"), strings.Split(key(b), "|")
			return slices.Compare(x, y) < 0
		}
		for i := 1; i < len(seen); i++ {
			a, b := seen[i-1], seen[i]
			if paging.descending {
				a, b = b, a
			}
			if !less(a, b) {
				t.Fatalf("%s stands before %s", seen[i-1].pair(), seen[i].pair())
			}
		}
	})
}

// TestPageTokenIsForItsRows: a token is refused once a row came or went, and in another order.
func TestPageTokenIsForItsRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, paging := pages(t)
		_, token, err := paging.page(rows)
		if err != nil || token == "" {
			t.Skip("one page")
		}
		paging.token = token
		refused := func(what string, rows []statsRow, p statsPaging) {
			if page, _, err := p.page(rows); err == nil {
				t.Errorf("%s: %d rows", what, len(page))
			}
		}
		gone := rapid.IntRange(0, len(rows)-1).Draw(t, "gone")
		refused("a row went", slices.Delete(slices.Clone(rows), gone, gone+1), paging)
		refused("a row came", append(slices.Clone(rows), statsRow{"another", rows[0].groupStats}), paging)
		turned, sorted := paging, paging
		turned.descending = !turned.descending
		refused("turned round", rows, turned)
		sorted.by = map[statsSort]statsSort{byNodeID: byGroup, byGroup: byNodeID}[sorted.by]
		refused("sorted by another column", rows, sorted)
	})
}

// TestRecordedPageToken: the token is the very one that OpenSearch makes.
func TestRecordedPageToken(t *testing.T) {
	const node = "sfctup0nQEajWfPJx1wEkg"
	var rows []statsRow
	for _, group := range []string{"okZdiRllQzi36CbaDqKtew", "DEFAULT_WORKLOAD_GROUP", "ndvMcmZ9Qjm9MrEe1aydrQ"} {
		rows = append(rows, statsRow{node, groupStats{id: group}})
	}
	_, got, err := statsPaging{size: 1, by: byNodeID}.page(rows)
	const want = "c2ZjdHVwMG5RRWFqV2ZQSngxd0VrZ3xERUZBVUxUX1dPUktMT0FEX0dST1VQfDN8ZTk1NGVlNDQyNWZmYmRkYjdhMWI3ZWMzZDEwODY0NmE4OWE3ZmE4YmEzNmY2ZjUyMWEzNWFhYTA1NTU1YmYwYXxBU0N8Tk9ERV9JRA=="
	if err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
}

func FuzzPageToken(f *testing.F) {
	rows := []statsRow{}
	for i := range 3 {
		rows = append(rows, statsRow{"n", groupStats{id: fmt.Sprint("g", i)}})
	}
	p := statsPaging{size: 1, by: byNodeID}
	_, token, err := p.page(rows)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(token)
	f.Add("garbage")
	f.Add(base64.StdEncoding.EncodeToString([]byte("n|g0|3|x|ASC|NODE_ID")))
	f.Fuzz(func(t *testing.T, token string) {
		p := p
		p.token = token
		page, _, err := p.page(rows)
		if err == nil && token != "" && (len(page) != 1 || p.tokenAfter(rows, rows[slices.IndexFunc(rows, func(r statsRow) bool { return r.pair() == page[0].pair() })-1]) != token) {
			t.Errorf("%q leads to %d rows", token, len(page))
		}
	})
}
