package openapi_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// reference makes docs/rest-api.md of openapi.yaml. It reads the YAML itself, for everything to keep its order.
//
// Operations that are alike share an x-operation-group and become one section. What is to be said of all of them stands with
// the first: its description, its parameters, body and answers, and in x-request the request of the example. Of parameters,
// x-everywhere and x-told-under say that they are told of at the top and under the heading named, x-no-effect that there is
// nothing to tell.
func reference(source []byte) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(source, &document); err != nil {
		return nil, err
	}
	root := node{document.Content[0]}
	p := &page{root: root, told: make(map[string]section)}
	p.line("<!-- Made of openapi.yaml by make rest-reference. Change that file, not this one. -->")
	p.line("# REST API")
	p.paragraph(root.text("info", "description"))
	for _, tag := range root.at("tags").Content {
		p.tag(node{tag})
	}
	if p.err != nil {
		return nil, p.err
	}
	if twice := p.twice(); twice != "" {
		return nil, fmt.Errorf("two headings read %q: links could not tell them apart", twice)
	}
	return bytes.ReplaceAll(p.Bytes(), []byte("](docs/"), []byte("](")), nil
}

// page is what has been written of the page.
type page struct {
	bytes.Buffer
	root node
	told map[string]section // by the rows about fields
	err  error              // the first thing that is wrong with the source
}

func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

func (p *page) paragraph(text string) {
	if text != "" {
		p.line("\n%s", text)
	}
}

func (p *page) code(language, text string) {
	p.line("\n```%s\n%s\n```", language, strings.TrimSuffix(text, "\n"))
}

// table writes rows below a heading, unless there are none.
func (p *page) table(heading string, rows []string) {
	if len(rows) == 0 {
		return
	}
	p.line("\n%s\n%s", heading, "|"+strings.Repeat(" --- |", strings.Count(heading, "|")-1))
	for _, r := range rows {
		p.line("%s", r)
	}
}

// twice is a heading that there are two of; empty if there is none.
func (p *page) twice() string {
	seen := map[string]bool{}
	for line := range strings.Lines(p.String()) {
		level, text, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if !ok || level == "" || strings.Trim(level, "#") != "" {
			continue
		}
		if seen[text] {
			return text
		}
		seen[text] = true
	}
	return ""
}

// operation is one method of a path.
type operation struct {
	method, path string
	item         node
	node
}

// section is the operations of one x-operation-group.
type section []operation

func (s section) heading() string { return s[0].text("summary") }

func (s section) anchor() string { return anchor(s.heading()) }

// anchor is what a heading is called in a link.
func anchor(heading string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(heading) {
		switch {
		case r == ' ':
			b.WriteByte('-')
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_':
			b.WriteRune(r)
		}
	}
	return b.String()
}

func (p *page) tag(tag node) {
	p.line("\n## %s", tag.text("name"))
	p.paragraph(tag.text("description"))
	sections := p.sections(tag.text("name"))
	var rows []string
	for _, s := range sections {
		for _, r := range s.routes() {
			rows = append(rows, fmt.Sprintf("| %s | [%s](#%s) |", r.routes, r.does, s.anchor()))
		}
	}
	p.table("| method, path | does |", rows)
	for _, s := range sections {
		p.section(s)
	}
}

func (p *page) sections(tag string) []section {
	var all []section
	for path, item := range p.root.at("paths").members() {
		for method, op := range item.members() {
			if method == "parameters" || op.at("tags").Content[0].Value != tag {
				continue
			}
			x := operation{strings.ToUpper(method), path, item, op}
			i := slices.IndexFunc(all, func(s section) bool { return s[0].text("x-operation-group") == x.text("x-operation-group") })
			if i < 0 {
				all = append(all, section{x})
			} else {
				all[i] = append(all[i], x)
			}
		}
	}
	return all
}

// summed are routes that do the same.
type summed struct{ routes, does string }

// routes lists methods and paths, those in one that have the same methods and the same summary.
func (s section) routes() []summed {
	type key struct{ methods, does string }
	var order []key
	paths := map[key][]string{}
	for i := 0; i < len(s); {
		n := i + 1
		methods := "`" + s[i].method + "`"
		for ; n < len(s) && s[n].path == s[i].path; n++ {
			methods += ", `" + s[n].method + "`"
		}
		k := key{methods, s[i].text("summary")}
		if paths[k] == nil {
			order = append(order, k)
		}
		paths[k] = append(paths[k], "`"+s[i].path+"`")
		i = n
	}
	var all []summed
	for _, k := range order {
		all = append(all, summed{k.methods + " " + strings.Join(paths[k], ", "), k.does})
	}
	return all
}

func (p *page) section(s section) {
	p.line("\n### %s", s.heading())
	p.paragraph(s[0].text("description"))
	p.parameters(s)
	body := s[0].at("requestBody")
	if body.Node != nil {
		p.fields("body", s, body.at("content").first().at("schema"))
	}
	p.request(s)
	p.answers(s)
}

// parameters writes the parameters that have an effect as a table, and names the others. Those of every route are told once, at
// the top.
func (p *page) parameters(s section) {
	var rows, idle []string
	elsewhere := "" // the heading under which more are told of
	seen := map[string]bool{}
	add := func(list node) {
		for _, ref := range list.items() {
			x := p.resolve(ref)
			name := x.text("name")
			switch {
			case x.text("x-everywhere") != "" || seen[x.text("in")+name]:
				continue
			case x.text("x-told-under") != "":
				elsewhere = x.text("x-told-under")
			case x.text("x-no-effect") != "":
				idle = append(idle, "`"+name+"`")
			default:
				if x.text("in") == "path" {
					name = "{" + name + "}"
				}
				rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |", name, value(p.resolve(x.at("schema"))), cell(x.text("description"))))
			}
			seen[x.text("in")+x.text("name")] = true
		}
	}
	for _, op := range s {
		add(op.item.at("parameters"))
	}
	add(s[0].at("parameters"))
	p.table("| parameter | value | meaning |", rows)
	if elsewhere != "" {
		p.paragraph(fmt.Sprintf("And the parameters of [%s](#%s).", strings.ToLower(elsewhere), anchor(elsewhere)))
	}
	if len(idle) > 0 {
		p.paragraph("Accepted, without effect: " + strings.Join(idle, ", ") + ".")
	}
}

// value says what a value may be.
func value(schema node) string {
	var text string
	switch {
	case schema.at("enum").Node != nil:
		var all []string
		for _, v := range schema.at("enum").items() {
			switch v.Value {
			case "", "null":
			default:
				all = append(all, "`"+v.Value+"`")
			}
		}
		text = strings.Join(all, ", ")
	case schema.text("type") == "integer" && schema.text("maximum") != "":
		text = schema.text("minimum") + " to " + schema.text("maximum")
	case schema.text("type") == "integer" && schema.text("minimum") != "":
		text = "from " + schema.text("minimum")
	case schema.text("type") == "string":
		text = "text"
		if most := schema.text("maxLength"); most != "" {
			text = most + " characters"
			if least := schema.text("minLength"); least != most {
				text = least + " to " + text
			}
		}
	case schema.text("type") == "array":
		text = "list"
	default:
		text = schema.text("type")
	}
	if d := schema.text("default"); d != "" {
		text += "; default `" + d + "`"
	}
	return text
}

func cell(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "|", `\|`), "\n", " ")
}

// fields writes those members of a document that are explained, wherever they stand in it, but for errors, which are told of at
// the top. A name goes back to the last object or list whose members have names of their own. What another section has
// told already is not told again.
func (p *page) fields(what string, s section, schema node) {
	f := &fields{page: p, seen: map[string]bool{"Cause": true, "ShardFailure": true, "Error": true}}
	f.walk("", schema)
	if len(f.rows) == 0 {
		return
	}
	all := strings.Join(f.rows, "\n")
	if before, ok := p.told[all]; ok {
		p.paragraph(fmt.Sprintf("The fields of the %s are told under [%s](#%s).", what, before.heading(), before.anchor()))
		return
	}
	p.told[all] = s
	p.table("| field of the "+what+" | value | meaning |", f.rows)
}

// fields are rows about the members of a document.
type fields struct {
	page *page
	rows []string
	seen map[string]bool // names of schemas, and of rows
}

func (f *fields) walk(path string, s node) {
	if s.Node == nil {
		return
	}
	if ref := s.text("$ref"); ref != "" {
		name := ref[strings.LastIndex(ref, "/")+1:]
		if f.seen[name] {
			return
		}
		f.seen[name] = true
		s = f.page.resolve(s)
	}
	for name, member := range s.at("properties").members() {
		full := strings.TrimPrefix(path+"."+name, ".")
		if d := member.text("description"); d != "" && !f.seen["."+full] {
			f.rows = append(f.rows, fmt.Sprintf("| `%s` | %s | %s |", full, value(member), cell(d)))
			f.seen["."+full] = true
		}
		f.walk(full, member)
	}
	for _, one := range s.at("oneOf").items() {
		f.walk(path, one)
	}
	f.walk("", s.at("items"))
	f.walk("", s.at("additionalProperties"))
}

// answers says whether one of the operations could be meant by a request.
func (s section) answers(method, path string) bool {
	return slices.ContainsFunc(s, func(op operation) bool {
		return op.method == method && slices.EqualFunc(strings.Split(op.path, "/"), strings.Split(path, "/"), func(pattern, part string) bool {
			return pattern == part || strings.HasPrefix(pattern, "{")
		})
	})
}

// request writes the example of a request as a command.
func (p *page) request(s section) {
	op := s[0]
	method, target, ok := strings.Cut(op.text("x-request"), " ")
	if !ok {
		return
	}
	if path, _, _ := strings.Cut(target, "?"); p.err == nil && !s.answers(method, path) {
		p.err = fmt.Errorf("x-request %s is for none of the operations of %s", op.text("x-request"), op.text("x-operation-group"))
	}
	url := "localhost:9200" + target
	if strings.ContainsAny(url, "?*&[]") {
		url = "'" + url + "'"
	}
	command := "curl "
	if method != "GET" {
		command += "-X " + method + " "
	}
	command += url
	if body := op.at("requestBody"); body.Node != nil {
		content := body.at("content")
		kind, example := content.Content[0].Value, content.first().at("example")
		switch {
		case example.Node == nil:
		case example.Kind == yaml.ScalarNode: // lines
			command += " -H 'content-type: " + kind + "' --data-binary '\n" + example.Value + "'"
		default:
			command += " -H 'content-type: " + kind + "' -d '\n" + indent(layOut(example, 96, 0), "  ") + "'"
		}
	}
	p.code("sh", command)
}

// everyRoute are the answers that are told of once, at the top.
var everyRoute = []string{"BadRequest", "Unauthorized", "NotAcceptable", "BodyTimeout", "TooLarge", "UnsupportedCoding", "TooManyRequests", "InternalError"}

// answers writes what there may be for an answer, with the example of a good one.
func (p *page) answers(s section) {
	op := s[0]
	var lines []string
	var good node
	for status, ref := range op.at("responses").members() {
		name := ref.text("$ref")
		if slices.Contains(everyRoute, name[strings.LastIndex(name, "/")+1:]) {
			continue
		}
		x := p.resolve(ref)
		lines = append(lines, "- "+status+": "+strings.ReplaceAll(x.text("description"), "\n", " "))
		if status < "300" && good.at("content").first().at("example").Node == nil && x.at("content").Node != nil {
			good = x
		}
	}
	if len(lines) > 0 {
		p.line("\n%s", strings.Join(lines, "\n"))
	}
	for kind, content := range good.at("content").members() {
		example := content.at("example")
		switch {
		case example.Node == nil:
		case example.Kind == yaml.ScalarNode:
			p.code("", example.Value)
		default:
			p.code("json", layOut(example, 100, 0))
		}
		if kind == "application/json" {
			p.fields("answer", s, content.at("schema"))
		}
	}
}

func (p *page) resolve(n node) node {
	for {
		ref := n.text("$ref")
		if ref == "" {
			return n
		}
		n = p.root
		for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			n = n.at(part)
		}
	}
}
