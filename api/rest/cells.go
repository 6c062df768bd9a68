package rest

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
)

// nodeRows are rows of a table, with a cell for every column of it. Between nodes each is an object with the names of the columns as keys, so
// that nodes of different versions, whose tables have not all columns in common, understand one another.
type nodeRows struct {
	columns []column
	cells   [][]any
}

// Keys of cells that are more than a string or a whole number.
const (
	doubleCell = "double"
	nanosCell  = "nanos"
	sizeCell   = "bytes"
)

// MarshalJSON prints all there is to know of each cell.
func (r nodeRows) MarshalJSON() ([]byte, error) {
	objects := make([]members, len(r.cells))
	for i, row := range r.cells {
		objects[i] = make(members, len(row))
		for j, cell := range row {
			objects[i][j] = member{r.columns[j].name, onTheWay(cell)}
		}
	}
	return encode(objects)
}

func onTheWay(cell any) any {
	switch x := cell.(type) {
	case double:
		return members{{doubleCell, x}}
	case time.Duration:
		return members{{nanosCell, int64(x)}}
	case bytesCell:
		return members{{sizeCell, int64(x)}}
	}
	return cell
}

// readRows reads what MarshalJSON has printed on another node. Cells that are not there are not known.
func readRows(columns []column, b []byte) (nodeRows, error) {
	r := nodeRows{columns: columns}
	var objects []map[string]json.RawMessage
	if err := json.Unmarshal(b, &objects); err != nil {
		return r, err
	}
	for _, object := range objects {
		row := make([]any, len(columns))
		for i, col := range columns {
			raw, ok := object[col.name]
			if !ok {
				continue
			}
			v, err := jsondoc.Parse(raw)
			if err != nil {
				return r, err
			}
			if row[i], err = arrived(v); err != nil {
				return r, err
			}
		}
		r.cells = append(r.cells, row)
	}
	return r, nil
}

// arrived is a cell as it was on the other node, but that all whole numbers have one type. What is of a kind that is not known here is
// not known.
func arrived(v *jsondoc.Value) (any, error) {
	switch v.Kind {
	case jsondoc.String:
		return v.Text, nil
	case jsondoc.Number:
		return wholeNumber(v.Text)
	case jsondoc.Object:
		if x := v.Member(doubleCell); x != nil {
			f, err := strconv.ParseFloat(x.Text, 64)
			return double(f), err
		}
		if x := v.Member(nanosCell); x != nil {
			n, err := strconv.ParseInt(x.Text, 10, 64)
			return time.Duration(n), err
		}
		if x := v.Member(sizeCell); x != nil {
			n, err := strconv.ParseInt(x.Text, 10, 64)
			return bytesCell(n), err
		}
	}
	return nil, nil
}

func wholeNumber(text string) (any, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	return strconv.ParseUint(text, 10, 64)
}
