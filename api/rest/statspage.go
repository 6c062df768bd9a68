package rest

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// statsRow is what one node counts of one group.
type statsRow struct {
	node string
	groupStats
}

func (r statsRow) pair() string { return r.node + "|" + r.id }

// statsPaging is which page of the rows is wanted.
type statsPaging struct {
	size       int
	by         statsSort
	descending bool
	token      string // of the page before; empty for the first
}

// statsSort is by what the rows are sorted first; the other one decides among equals.
type statsSort string

const (
	byNodeID statsSort = "NODE_ID"
	byGroup  statsSort = "WORKLOAD_GROUP"
)

// page picks the page out of all rows, and makes the token for the next one, which is empty for the last. It fails with a
// *pageTokenError.
func (p statsPaging) page(rows []statsRow) (page []statsRow, next string, err error) {
	rows = slices.SortedFunc(slices.Values(rows), p.compare)
	start := 0
	if p.token != "" {
		if start, err = p.start(rows); err != nil {
			return nil, "", err
		}
	}
	end := min(start+p.size, len(rows))
	if end < len(rows) {
		next = p.tokenAfter(rows, rows[end-1])
	}
	return rows[start:end], next, nil
}

func (p statsPaging) compare(a, b statsRow) int {
	node, group := cmp.Compare(a.node, b.node), cmp.Compare(a.id, b.id)
	order := cmp.Or(node, group)
	if p.by == byGroup {
		order = cmp.Or(group, node)
	}
	if p.descending {
		return -order
	}
	return order
}

// tokenAfter is the token of the page that ends with a row: the row, how many rows there are in all, a hash of which they
// are, and the order.
func (p statsPaging) tokenAfter(rows []statsRow, last statsRow) string {
	pairs := make([]string, len(rows))
	for i, r := range rows {
		pairs[i] = r.pair()
	}
	slices.Sort(pairs)
	hash := sha256.Sum256([]byte(strings.Join(pairs, ",")))
	order := "ASC"
	if p.descending {
		order = "DESC"
	}
	parts := []string{last.node, last.id, strconv.Itoa(len(rows)), hex.EncodeToString(hash[:]), order, string(p.by)}
	return base64.StdEncoding.EncodeToString([]byte(strings.Join(parts, "|")))
}

// start is where the page begins: behind the row that the token names, among just the rows that it was made for.
func (p statsPaging) start(rows []statsRow) (int, error) {
	b, err := base64.StdEncoding.DecodeString(p.token)
	parts := strings.Split(string(b), "|")
	if err != nil || len(parts) != 6 {
		return 0, &pageTokenError{"next_token is none that an answer of this path held"}
	}
	i := slices.IndexFunc(rows, func(r statsRow) bool { return r.node == parts[0] && r.id == parts[1] })
	if i < 0 || p.tokenAfter(rows, rows[i]) != p.token {
		return 0, &pageTokenError{"next_token was made for other groups, other nodes or another order"}
	}
	return i + 1, nil
}

// pageTokenError is why there is no page that a token could lead to.
type pageTokenError struct{ details string }

func (e *pageTokenError) Error() string { return e.details }

// answer has a form of its own, as OpenSearch's has.
func (e *pageTokenError) answer() *answer {
	return &answer{status: http.StatusBadRequest, value: struct {
		Error   string `json:"error"`
		Details string `json:"details"`
	}{"there is no such page (any more): start again without next_token", e.details}}
}
