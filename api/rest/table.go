package rest

import (
	"bytes"
	"cmp"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/wlmserver/wlmserver/internal/units"
)

// tableParams are the query parameters that every table knows. local, pri, size and ts of tables that have no use for
// them are known all the same, as OpenSearch knows them.
const tableParams = managerTimeouts + " local " + rowParams

// rowParams are those of tables of what the node that is asked knows by itself.
const rowParams = "timeout h v s help time bytes ts pri size"

// column is one column of a table.
type column struct {
	name        string
	aliases     string // with commas between them
	description string
	right       bool // numbers stand under one another
	hidden      bool // shown only to those who ask for it
}

// bytesCell is a number of bytes in a cell. The other kinds of cells are strings, whole numbers, [double], times, and nil for
// what is not known.
type bytesCell int64

// tableView is how a request wants a table shown.
type tableView struct {
	shown      []shownColumn
	order      []sortKey
	disorder   error // why the rows cannot be sorted
	verbose    bool
	help       bool
	structured bool // as JSON
	columns    []column
	timeUnit   time.Duration // 0: the one that reads best
	byteUnit   int64         // 0: the one that reads best
}

// shownColumn is a column under the name that the request knows it by.
type shownColumn struct {
	column
	heading string
	index   int // in the table's rows
}

type sortKey struct {
	index      int
	descending bool
}

// tableView reads how a table of the given columns is to look.
func (c *call) tableView(columns []column) (*tableView, error) {
	v := &tableView{columns: columns, structured: c.wantsStructure()}
	var err error
	if v.help, err = c.flag("help", false); v.help || err != nil { // help minds nothing else
		return v, err
	}
	ts, err := c.flag("ts", true)
	if err != nil {
		return nil, err
	}
	if v.verbose, err = c.flag("v", false); err != nil {
		return nil, err
	}
	for _, name := range [...]string{"local", "pri"} {
		if _, err := c.flag(name, false); err != nil {
			return nil, err
		}
	}
	if err := c.checkTimeouts(); err != nil {
		return nil, err
	}
	if err := v.readUnits(c); err != nil {
		return nil, err
	}
	if names := c.list("h"); len(names) > 0 || !c.query.Has("h") { // an empty list chooses nothing
		v.choose(names, ts)
	}
	v.disorder = v.readOrder(c.list("s"))
	return v, nil
}

// wantsStructure says whether rows are to be objects. Unlike all other answers, a table is text unless told otherwise: where
// the parameter format names what there is not, such as text, that stands above what the client accepts.
func (c *call) wantsStructure() bool {
	if name := c.query.Get("format"); c.query.Has("format") {
		return formatNamed(name) != anyFormat
	}
	return c.format != anyFormat
}

// readUnits reads the units in which times and sizes are to be plain numbers.
func (v *tableView) readUnits(c *call) error {
	switch unit := c.query.Get("time"); unit {
	case "":
	case "nanos", "micros", "ms", "s", "m", "h", "d":
		d, err := units.ParseTime("time", "1"+unit)
		if err != nil {
			return err
		}
		v.timeUnit = d
	default:
		return illegalArgument("parameter [time] must be nanos, micros, ms, s, m, h or d, not [%s]", unit)
	}
	unit := c.query.Get("bytes")
	if unit == "" {
		return nil
	}
	power := strings.Index("bkmgtp", strings.ToLower(unit[:1]))
	if power < 0 || len(unit) > 2 || len(unit) == 2 && (power == 0 || unit[1]|0x20 != 'b') {
		return illegalArgument("parameter [bytes] must be b, k, m, g, t or p, not [%s]", unit)
	}
	v.byteUnit = 1 << (10 * power)
	return nil
}

// choose finds the columns that are asked for by name, alias or pattern, in that order; those that do not exist are left
// out. Without any, it takes those that are not hidden.
func (v *tableView) choose(wanted []string, timestamps bool) {
	if len(wanted) == 0 {
		for i, col := range v.columns {
			if !col.hidden && (timestamps || col.name != "epoch" && col.name != "timestamp") {
				v.shown = append(v.shown, shownColumn{col, col.name, i})
			}
		}
		return
	}
	add := func(i int, heading string) {
		if !slices.ContainsFunc(v.shown, func(x shownColumn) bool { return x.heading == heading }) {
			v.shown = append(v.shown, shownColumn{v.columns[i], heading, i})
		}
	}
	for _, name := range wanted {
		if i := v.find(name); i >= 0 {
			add(i, name)
			continue
		}
		for i, col := range v.columns {
			if matched, err := path.Match(name, col.name); err == nil && matched {
				add(i, col.name)
			}
		}
	}
}

// find is the place of a column by its name or one of its aliases; -1 if there is none.
func (v *tableView) find(name string) int {
	if i := slices.IndexFunc(v.columns, func(col column) bool { return col.name == name }); i >= 0 {
		return i
	}
	return slices.IndexFunc(v.columns, func(col column) bool { return slices.Contains(splitList(col.aliases), name) })
}

// readOrder reads by which columns the rows are to be sorted.
func (v *tableView) readOrder(keys []string) error {
	for _, key := range keys {
		name, descending := strings.CutSuffix(key, ":desc")
		if !descending {
			name = strings.TrimSuffix(name, ":asc")
		}
		i := v.find(name)
		if i < 0 {
			return &failure{status: http.StatusInternalServerError, typ: "unsupported_operation_exception",
				reason: "the table cannot be sorted by [" + name + "]: it has no such column; help lists those there are"}
		}
		v.order = append(v.order, sortKey{i, descending})
	}
	return nil
}

// answer shows rows, each with a cell for every column of the table.
func (v *tableView) answer(rows [][]any) (*answer, error) {
	switch {
	case v.help:
		return textAnswer(v.helpText())
	case v.disorder != nil:
		return nil, v.disorder
	case v.structured:
		return ok(v.objects(rows))
	default:
		return textAnswer(v.text(rows))
	}
}

func textAnswer(body []byte) (*answer, error) { return &answer{body: body, mediaType: textType}, nil }

// helpText lists all columns.
func (v *tableView) helpText() []byte {
	lines := make([][]string, len(v.columns))
	for i, col := range v.columns {
		lines[i] = []string{col.name, col.aliases, col.description}
	}
	widths := measure(lines, 3)
	var b bytes.Buffer
	for _, line := range lines {
		for i, text := range line {
			if i > 0 {
				b.WriteString(" | ")
			}
			pad(&b, text, widths[i], false)
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// text prints the rows below one another, with headings if that is wanted. The last column is not padded.
func (v *tableView) text(rows [][]any) []byte {
	var lines [][]string
	if v.verbose {
		headings := make([]string, len(v.shown))
		for i, col := range v.shown {
			headings[i] = col.heading
		}
		lines = append(lines, headings)
	}
	for _, row := range v.sorted(rows) {
		line := make([]string, len(v.shown))
		for i, col := range v.shown {
			line[i] = v.render(row[col.index])
		}
		lines = append(lines, line)
	}
	widths := measure(lines, len(v.shown))
	var b bytes.Buffer
	for _, line := range lines {
		for i, text := range line {
			if i > 0 {
				b.WriteByte(' ')
			}
			right := v.shown[i].right
			if i == len(line)-1 && !right {
				b.WriteString(text)
			} else {
				pad(&b, text, widths[i], right)
			}
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// objects gives each row as an object of strings. A heading that stands over several columns is there as often.
func (v *tableView) objects(rows [][]any) []members {
	all := make([]members, 0, len(rows))
	for _, row := range v.sorted(rows) {
		object := make(members, len(v.shown))
		for i, col := range v.shown {
			var value any
			if cell := row[col.index]; cell != nil {
				value = v.render(cell)
			}
			object[i] = member{col.heading, value}
		}
		all = append(all, object)
	}
	return all
}

func (v *tableView) sorted(rows [][]any) [][]any {
	if len(v.order) == 0 {
		return rows
	}
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b []any) int {
		for _, key := range v.order {
			order := compareCells(a[key.index], b[key.index])
			if key.descending {
				order = -order
			}
			if order != 0 {
				return order
			}
		}
		return 0
	})
	return rows
}

// compareCells puts what is not known first, then numbers, then text.
func compareCells(a, b any) int {
	x, xRank := rank(a)
	y, yRank := rank(b)
	if order := cmp.Or(cmp.Compare(xRank, yRank), cmp.Compare(x, y)); order != 0 {
		return order
	}
	s, _ := a.(string)
	t, _ := b.(string)
	return cmp.Compare(s, t)
}

// rank is the number in a cell, if there is one, and where its kind stands.
func rank(cell any) (number float64, kind int) {
	switch x := cell.(type) {
	case nil:
		return 0, 0
	case int:
		return float64(x), 1
	case int64:
		return float64(x), 1
	case uint64:
		return float64(x), 1
	case double:
		return float64(x), 1
	case time.Duration:
		return float64(x), 1
	case bytesCell:
		return float64(x), 1
	default:
		return 0, 2
	}
}

// render prints a cell.
func (v *tableView) render(cell any) string {
	switch x := cell.(type) {
	case nil:
		return ""
	case string:
		return x
	case int:
		return strconv.Itoa(x)
	case int64:
		return strconv.FormatInt(x, 10)
	case uint64:
		return strconv.FormatUint(x, 10)
	case double:
		b, err := x.MarshalJSON()
		if err != nil {
			return "NA"
		}
		return string(b)
	case time.Duration:
		if v.timeUnit > 0 {
			return strconv.FormatInt(int64(x/v.timeUnit), 10)
		}
		return units.HumanTime(x)
	case bytesCell:
		if v.byteUnit > 0 {
			return strconv.FormatInt(int64(x)/v.byteUnit, 10)
		}
		return units.HumanBytes(int64(x))
	default:
		panic("rest: a table cannot show this kind of cell")
	}
}

// measure is how wide each column must be, in characters.
func measure(lines [][]string, columns int) []int {
	widths := make([]int, columns)
	for _, line := range lines {
		for i, text := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(text))
		}
	}
	return widths
}

func pad(b *bytes.Buffer, text string, width int, right bool) {
	spaces := strings.Repeat(" ", width-utf8.RuneCountInString(text))
	if right {
		b.WriteString(spaces)
		b.WriteString(text)
	} else {
		b.WriteString(text)
		b.WriteString(spaces)
	}
}
