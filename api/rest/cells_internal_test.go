package rest

import (
	"math"
	"reflect"
	"testing"
	"time"
)

// TestCellsOnTheWay: a cell is on another node what it was, but for the type of a whole number.
func TestCellsOnTheWay(t *testing.T) {
	for _, c := range []struct{ sent, arrived any }{
		{nil, nil},
		{"", ""},
		{"ünl\"esbar\n", "ünl\"esbar\n"},
		{-1, int64(-1)},
		{int64(math.MinInt64), int64(math.MinInt64)},
		{uint64(math.MaxUint64), uint64(math.MaxUint64)},
		{uint64(7), int64(7)},
		{double(0.1 + 0.2), double(0.1 + 0.2)},
		{double(1e-6), double(1e-6)},
		{double(math.MaxFloat64), double(math.MaxFloat64)},
		{time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)},
		{bytesCell(1 << 60), bytesCell(1 << 60)},
	} {
		columns := []column{{name: "before"}, {name: "x"}}
		b, err := nodeRows{columns, [][]any{{"b", c.sent}}}.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		got, err := readRows(columns, b)
		if err != nil || len(got.cells) != 1 || !reflect.DeepEqual(got.cells[0], []any{"b", c.arrived}) {
			t.Errorf("%#v arrived as %#v, %v: %s", c.sent, got.cells, err, b)
		}
		v := &tableView{}
		if sent, arrived := v.render(c.sent), v.render(got.cells[0][1]); sent != arrived {
			t.Errorf("%#v is printed as %q, and after its way as %q", c.sent, sent, arrived)
		}
	}
}

// TestRowsOfOtherVersions: columns that only one node has do no harm.
func TestRowsOfOtherVersions(t *testing.T) {
	columns := []column{{name: "a"}, {name: "b"}}
	got, err := readRows(columns, []byte(`[{"later":{"kind":"new"},"b":1,"a":{"later":2}},{}]`))
	if want := [][]any{{nil, int64(1)}, {nil, nil}}; err != nil || !reflect.DeepEqual(got.cells, want) {
		t.Errorf("%#v, %v", got.cells, err)
	}
	for _, body := range []string{``, `{}`, `[1]`, `[{"a":1.5}]`, `[{"a":{"nanos":"x"}}]`, `[{"a":{"double":"x"}}]`, `[{"a":{"bytes":1e99}}]`} {
		if got, err := readRows(columns, []byte(body)); err == nil {
			t.Errorf("%s is read as %#v", body, got.cells)
		}
	}
}
