package compat_test

import (
	"fmt"
	"regexp"
)

// category is why two answers may differ for good.
type category string

const (
	decided    category = "differs by decision"
	later      category = "waits for resource limits and search backpressure"
	notOffered category = "not offered"
)

// known is one difference that is meant.
type known struct {
	category category
	why      string
	row      string         // what docs/differences.md says about it, word for word
	request  *regexp.Regexp // in which requests, see meeting; nil: in all
	what     *regexp.Regexp // which difference, as it prints
}

// list is all that may differ, with how often each of it was met.
type list struct {
	all []known
	met []int
}

func newList() *list {
	all := knownDifferences()
	return &list{all: all, met: make([]int, len(all))}
}

// meeting is a request with what became of it, as the list looks at it: its kind, the request as it prints, both outcomes, and what
// this server minds, where that matters.
func meeting(r *request, here, there answer) string {
	text := fmt.Sprintf("%s %s\n=> %s here, %s there", r.kind, r, kindOf(here), kindOf(there))
	switch {
	case unknownParameter.MatchString(here.body):
		text += "\n=> an unknown parameter here"
	case itemHeader.MatchString(here.body):
		text += "\n=> a header of an item here"
	}
	return text
}

// unknownParameter is how this server tells of a parameter that a path does not know, itemHeader of a header of a multi-search.
var (
	unknownParameter = regexp.MustCompile(`"request \[[^"]*\] has (an unknown parameter|unknown parameters): `)
	itemHeader       = regexp.MustCompile(`^\{"error":\{.*"key \[[^"]*\] (in|is not known in) the header of a search`)
)

// find is the place in the list of what explains a difference; -1 for nothing.
func (l *list) find(text string, d difference) int {
	what := d.String()
	for i, k := range l.all {
		if k.what.MatchString(what) && (k.request == nil || k.request.MatchString(text)) {
			return i
		}
	}
	return -1
}

// unlisted are the differences that nothing explains.
func (l *list) unlisted(text string, all []difference) []difference {
	var rest []difference
	for _, d := range all {
		if l.find(text, d) < 0 {
			rest = append(rest, d)
		}
	}
	return rest
}

func re(s string) *regexp.Regexp { return regexp.MustCompile(`(?s)` + s) }

func knownDifferences() []known {
	const (
		searches  = `^(search|count|msearch|scroll) `
		evaluated = searches + `.*("(match|term|terms|range|bool|exists|ids|prefix|wildcard|query_string|simple_query_string|match_none|constant_score|match_phrase|multi_match|regexp|fuzzy|dis_max|function_score|boosting|nested|post_filter|min_score|terminate_after|suggest|collapse)":|[?&](q|min_score|terminate_after)=)`
	)
	return []known{
		{decided, "the queue has statistics", "more fields: see", nil, re(`(total_throttled|total_would_throttle|total_queued|total_queue_rejections|queued_current|queue_peak|queue_wait_count|total_queue_wait_millis|max_queue_wait_millis): something here, nothing there`)},
		{decided, "what counts as a completion", "`total_completions` leaves out", nil, re(`(?i)total_completions: `)},
		{decided, "the statistics table has help and takes columns", "and takes `help`", re(`^list-stats .*(help|[?&](h|timeout|local|cluster_manager_timeout|master_timeout|time|bytes|pri|ts)\b)`), re(`^(status: 200 here, 400|\.details|\.error|\.status|error: )`)},
		{decided, "queries are not evaluated", "is not evaluated", re(evaluated + `|` + searches + `.*"sort":`), re(`^\.(responses\.)?(hits\.(hits|total|max_score)|count|terminated_early)`)},
		{decided, "parts of a search body do nothing", "is not evaluated", re(searches), re(`^\.(responses\.)?(aggregations|profile|suggest|hits\.hits\.(_source|_id|_node|_shard|_score|sort|fields|highlight|_explanation|matched_queries)|hits\.max_score)\b`)},
		{decided, "parts of a search body are not read", "is not evaluated", re(searches + `.*"(agg|aggs|aggregations|highlight|suggest|rescore|script_fields|derived|collapse|indices_boost|search_pipeline|docvalue_fields|fields|stored_fields|sort|_source|post_filter|ext|stats|profile|explain|min_score|terminate_after)":`), re(`^(status: 200 here, [45]00|\.responses\.|\.terminated_early: nothing here)`)},
		{decided, "parts of a search body are not read, nor when there is no index", "is not evaluated", re(searches + `.*"(agg|aggs|aggregations|highlight|suggest|rescore|script_fields|derived|collapse|sort|_source|post_filter|query)":.*=> 40\d index_(closed|not_found)_exception here, 400`), re(`^(status: |\.error\.)`)},
		{decided, "parts of a search body are not read, nor when a parameter is wrong", "is not evaluated", re(searches + `.*"(agg|aggs|aggregations|highlight|suggest|rescore|script_fields|derived|collapse)":.*=> 400 illegal_argument_exception here, 400 parsing_exception there`), re(`^\.error\.`)},
		{decided, "sorting by what is not mapped, with a window that is too large", "sorting by a field that is not mapped", re(`^search .*("sort":|[?&]sort=).*=> 400 search_phase_execution_exception here, 400 search_phase_execution_exception there`), re(`^\.error\..*("query_shard_exception" there|"can_match" there|something here, nothing there|nothing here, something there|\.node: )`)},
		{decided, "parts of a search body that would mislead", "`search_after`, `slice` and `pit`", re(searches + `.*"(search_after|slice|pit)":`), re(`^(status: 400 illegal_argument_exception here|\.error\.)`)},
		{decided, "what a query needs of the mapping", "is not evaluated", re(searches + `.*"(nested|collapse|match|term|fuzzy|regexp|prefix|wildcard|function_score|bool|simple_query_string|query_string|multi_match|match_phrase|dis_max|boosting|constant_score|ids|sort)":|"range":\{"\w+":\{"\w+":\[|"sort":|[?&](q|sort)=`), re(`^(status: 200 here, [45]00|\.responses\.|\._shards)`)},
		{decided, "which part of a document is shown", "choose no part of a document", re(`^(doc (GET|HEAD)|bulk|update) .*(_source|stored_fields)`), re(`^(\._source|\.fields|\.(items\.update\.)?get: nothing here|\.found|status: 200 here, 404)`)},
		{decided, "a syntax error wins", "a syntax error wins", re(`=> 400 (json_parse_exception|unexpected_end_of_input_exception) here, 400`), re(`^\.error\.(root_cause\.)?(type|line|col): ("(json_parse|unexpected_end_of_input)_exception" here|nothing here)|^\.error\.caused_by\.caused_by: nothing here|^\.error\.caused_by(\.type)?: (something here, nothing|"stream_read_exception" here|"unexpected_end_of_input_exception" here)`)},
		{decided, "a syntax error wins, in a line or a scroll", "a syntax error wins", re(`^(bulk|scroll) `), re(`^status: 400 json_parse_exception here, 200 there|^\.error\.type: "illegal_argument_exception" here, "action_request_validation_exception" there`)},
		{decided, "a syntax error wins, in a document", "a syntax error wins", re(`=> 400 (mapper_parsing_exception|parse_exception|parsing_exception) here, 400`), re(`^\.error\.caused_by\.type: "(json_parse|unexpected_end_of_input)_exception" here|^\.error\.caused_by\.caused_by: something here`)},
		{decided, "text behind a document", "text after the JSON object: 400", re(`^(group|settings|index|index-settings|update) `), re(`^status: 400 (json_parse|unexpected_end_of_input|parse)_exception here, (20\d|404 (index_not_found|document_missing|resource_not_found)_exception) there`)},
		{decided, "text behind a query that is to be validated", "text after the JSON object: 400", re(`^validate .*\n\n\s*\{\}\s*\S.*\n=> 200 here, 400 action_request_validation_exception there$`), re(`^status: `)},
		{decided, "an action of a bulk request with something beside it", "an action of a bulk request with something beside it", re(`^bulk .*\{"(index|create|delete|update)":\{[^{}]*\},"`), re(`^status: 400 illegal_argument_exception here, 200 there`)},
		{decided, "text behind the body of a scroll", "text after the JSON object: 400", re(`^scroll .*\n\n\s*\{[^{}]*\}\s*\S.*\n=> 400`), re(`^status: 400 illegal_argument_exception here, (200|404 \w+|404) there`)},
		{decided, "what is no gzip", "that is not the gzip", re(`Content-Encoding: gzip`), re(`^status: 400 illegal_argument_exception here, no answer there`)},
		{decided, "broken escapes", "a broken request line, header or escape in the path", re(`^\S+ \S+ ([^\s?«]|«[^»]*»)*%([0-9a-fA-F]?[^0-9a-fA-F])`), re(`.`)},
		{decided, "ext is for the stub", "parts of `ext`", re(searches + `.*"ext":`), re(`^(\.error\.|status: )`)},
		{notOffered, "routing is not kept", "`routing` is neither followed nor kept", nil, re(`_routing: nothing here`)},
		{notOffered, "routing is not followed", "`routing` is neither followed nor kept", re(`[?&]routing\b|"routing"`), re(`^Location: |^\.(responses\.)?(_shards\.(total|successful|skipped)|hits\.(hits|total|total\.value|max_score)|count): `)},
		{notOffered, "results of tasks", "results of tasks", re(`^tasks `), re(`^(status: 405|Allow: )`)},
		{decided, "a space in Location", "a space in `Location`", re(`%20`), re(`^Location: `)},
		{decided, "the version of a document that was deleted", "begins at 1 again", re(`^(doc|bulk|update|search|cat) `), re(`(_version: |^status: 20\d here, 409 version_conflict)`)},
		{notOffered, "mappings that come of documents", "no field is added", nil, re(`mappings(\.properties\S*)?: nothing here`)},
		{notOffered, "what does not fit mappings that come of documents", "no field is added", re(`^(doc|bulk|update) `), re(`^(status: (20\d|409 version_conflict_engine_exception) here, 400 mapper_parsing_exception there|\.items\..*|\.errors: "false" here)`)},
		{notOffered, "lists of several types in mappings that come of documents", "no field is added", re(`^(doc|bulk|update) .*:\[[^\]]*,[^\]]*\]`), re(`^status: 20\d here, 400 illegal_argument_exception there`)},
		{decided, "a doubled slash", "a doubled slash", re(`^\S+ \S+ [^\s?]*//`), re(`^(status|Content-Type|Allow|body|rows|row): `)},
		{notOffered, "ignore_throttled", "`ignore_throttled`", re(`ignore_throttled`), re(`^status: 400 illegal_argument_exception here`)},
		{decided, "units of a table", "an unknown unit in", re(`^cat .*(bytes|time|timeout)=|^cat .*[?&](v|ts|pri)=`), re(`^status: 400 illegal_argument_exception here, (200|500 unsupported_operation_exception) there`)},
		{notOffered, "levels of the statistics of nodes", "only what exists here", re(`^nodes-stats .*([?&](level|types)\b|/stats/[\w%,]+/)`), re(`^(status: 400|\.error: string here|\.status: nothing here)`)},
		{notOffered, "columns that are there for h=*", "only what exists here", re(`^cat .*[?&]h=\*`), re(`^(\.|row)`)},
		{decided, "nothing is left of a list", "a filter that leaves nothing", re(`^(cat|list-stats) .*filter_path`), re(`^(status: 200 here, 500 jackson|body: \[\]\s* here,  there)`)},
		{decided, "a byte order mark", "a byte order mark", re("\ufeff"), re(`^status: 400`)},
		{decided, "several patterns that find nothing", "several patterns that find nothing", re(`allow_no_indices=(false)?|^(validate|index-settings) `), re(`^\.(responses\.)?error\.(root_cause\.)?(index|index_uuid|resource)`)},
		{decided, "text behind the query of a count", "text after the JSON object: 400", re(`^count `), re(`^status: 400 parsing_exception here, 200 there`)},
		{decided, "a null in the settings of a new group", "`null` in the settings", re(`^group `), re(`^\.(workload_groups\.)?settings\.[\w.]+: nothing here, something there`)},
		{decided, "an unknown field that is an array", "an unknown field that is an array: 400", re(`^group .*:\[`), re(`^status: 400 illegal_argument_exception here`)},
		{decided, "headers that are too long are echoed", "too long are echoed", re(`X-Large`), re(`^X-(Opaque|Request)-Id: `)},
		{decided, "settings of an index that are not known", "unknown settings of an index", re(`^index(-settings)? `), re(`(^status: 200 here, 400 (settings|illegal_argument)_exception there|settings_exception" there|400 settings_exception there|^\.error\.(root_cause\.)?index(_uuid)?: something here)`)},
		{decided, "a value of the wrong kind", "a value of the wrong kind", nil, re(`(^\.error\.(root_cause\.|caused_by\.)?type: "illegal_argument_exception" here, "(input_coercion|number_format)_exception" there|^\.error\.caused_by: something here)`)},
		{decided, "what is checked before shards are asked", "before any shard is asked", re(`track_total_hits"?[:=]-`), re(`^(\.error|status: 400 illegal_argument_exception here, 200 there)`)},
		{decided, "HEAD has the headers of GET", "HEAD has the headers", re(`^\w+ HEAD .*Accept-Encoding`), re(`^(Content-Encoding|body|rows): `)},
		{decided, "the form of a scroll's total", "the first page's", re(`^scroll `), re(`^\.hits\.total: (number|object) here`)},
		{decided, "the format of what is not read", "in JSON, whatever was sent", re(`Content-Type: application/yaml`), re(`^(body|Content-Type): `)},
		{notOffered, "CBOR and SMILE", "no CBOR and no SMILE", re(`application/(cbor|smile)`), re(`^(status: 406 here|body: |Content-Type: )`)},
		{notOffered, "thread pools but that of searches", "only what exists here", re(`^cat \w+ /_cat/thread_pool`), re(`^(rows: |: \d+ items)`)},
		{notOffered, "parts of a node that do not exist here", "only what exists here", re(`^nodes(-stats)? `), re(`^\.nodes\.«node»\.`)},
		{decided, "a list in Accept", "a list in `Accept`", re(`Accept: [^\n]*,`), re(`^(Content-Type|body|layout): `)},
		{decided, "a group that lacks a part", "missing `name`, `resiliency_mode`", re(`^group `), re(`^status: 400 \w+ here, 500 (null_pointer|illegal_state|class_cast)_exception`)},
		{decided, "a scroll without a time is none", "opens no scroll", re(`[?&]scroll=(0|-1)\b`), re(`^(\._scroll_id: nothing|status: |\.error\..* "action_request_validation_exception" there|\.error\.(root_cause\.)?(index|index_uuid): something here, nothing)`)},
		{decided, "a scroll is one context", "one context", re(`^scroll `), re(`^(\.error\.(root_cause|failed_shards|caused_by|grouped)|\.num_freed|status: (404|200) here, (404|200) there)`)},
		{decided, "a page without a time is the last of a scroll of several shards, too", "one context", re(`^scroll (GET|POST) /_search/scroll`), re(`^status: 404 search_phase_execution_exception here, 200 there`)},
		{decided, "help of a table", "`help` of a table", re(`^cat .*help`), re(`^status: 200 here, 400 illegal_argument_exception`)},
		{decided, "a header of an item of a multi-search that is no object", "an item's header that", re(`^msearch `), re(`^status: 400 (parsing|action_request_validation|json_parse)_exception here, 200 there|^\.error\.(root_cause\.)?(type: "action_request_validation_exception" here, "parsing_exception" there|(line|col): nothing here)`)},
		{decided, "names of indices in a header of a multi-search that are none", "or names its indices by something else than text", re(`^msearch .*"(index|indices)":(\{|\[[^\]]*([\[{]|null))`), re(`^status: 400 illegal_argument_exception here, (200|500 null_pointer_exception) there`)},
		{decided, "a time too long for a scroll, of an index that cannot be searched", "of several mistakes in a request", re(`^scroll .*[?&]scroll=.*=> 400 search_phase_execution_exception here, 40[04] index_(closed|not_found)_exception there`), re(`^(status: |\.error\.)`)},
		{decided, "a header of a multi-search that is wrong, behind a search that is", "of several mistakes in a request", re(`^msearch .*\n=> 400 illegal_argument_exception here, 400 parsing_exception there\n=> a header of an item here$`), re(`^\.error\.`)},
		{decided, "which of several mistakes is told", "of several mistakes in a request", re(`\n=> 400 illegal_argument_exception here, 400 \w+ there\n=> an unknown parameter here$`), re(`^\.error\.`)},
		{decided, "the format of an error of the statistics table", "in the format that was asked for", re(`^list-stats .*format=yaml`), re(`^(Content-Type|layout|body): `)},
		{decided, "a body in another coding", "a body in another coding", re(`Content-Encoding: br`), re(`^status: 415 here`)},
		{notOffered, "defaults of the settings of an index", "every setting that an index could have", re(`^(index|index-settings) .*include_defaults`), re(`^\.[^.]+\.defaults: nothing here, something there`)},
		{decided, "which of several paths is meant", "the one with the longer fixed beginning", re(`^\S+ \w+ /_\w+/_(search|count|mapping|settings|stats|doc|close|open|bulk|msearch)(\?|\s|$)`), re(`^(status: .* 400 invalid_index_name_exception there|\.error\.(root_cause\.)?(type: .*"invalid_index_name_exception" there|(index|index_uuid): nothing here))`)},
		{notOffered, "single settings of an index", "settings of an index by their names", re(`^\S+ \w+ \S*/_settings/[^/?\s]`), re(`^(status: 40[05] here|Allow|\.error)`)},
		{decided, "queries are not validated in all", "is not evaluated", re(`^validate .*([?&](q|source)=|"query":)`), re(`^status: 500 illegal_state_exception here, 200|^\.(valid|_shards|_shards\.\w+|explanations(\.\w+)?|error): `)},
		{decided, "a number out of range", "a value of the wrong kind", re(`"(size|from)":(-?\d{10}|true|false)`), re(`^\.error\.caused_by: nothing here`)},
		{decided, "an empty allow_partial_search_results", "an empty `allow_partial_search_results`", re(`[?&]allow_partial_search_results(=[^&\w]*)?([&\s]|$)`), re(`^status: (200|400 illegal_argument_exception) here, 500 null_pointer_exception there`)},
		{decided, "null in the header of an item of a multi-search", "null in the header of an item", re(`^msearch .*":null`), re(`^status: 200 here, (500 null_pointer|400 illegal_argument)_exception there`)},
		{decided, "comments", "comments in a body", re(`/\*|//`), re(`^status: 400 \w+ here, 200 there`)},
		{decided, "suppressed errors", "`suppressed`", re(`flat_settings`), re(`\.suppressed: nothing here`)},
		{decided, "human=false", "`human=false` is false", re(`human=`), re(`_string: nothing here`)},
		{notOffered, "awareness attributes", "awareness attributes", re(`^health .*level=awareness_attributes`), re(`^\.awareness_attributes: nothing here`)},
		{decided, "the phases of reduction", "reduced in one go", nil, re(`num_reduce_phases: nothing here`)},
		{decided, "a task of the number -1", "the number -1", re(`^tasks .*:-1`), re(`^status: 400`)},
		{notOffered, "pipelines of documents", "nor ingest pipelines", re(`pipeline`), re(`^status: 400 illegal_argument_exception here, (500 illegal_state_exception|200) there`)},
		{notOffered, "waiting for copies", "nobody waits for copies", re(`wait_for_active_shards=`), re(`^(status: (20\d here, 503 unavailable_shards|404 here, 503 unavailable_shards)|\.shards_acknowledged: "true" here, "false" there)`)},
		{notOffered, "names with date math", "date math", re(`^\w+ \w+ [^\n]*(%3C|%3c|<)`), re(`^(status: |\.error\.|\._shards\.|\.hits\.|\.count: )`)},
		{decided, "all indices cannot be deleted at once", "`DELETE /`", re(`^\S+ \w+ /(\?\S*)?(\n|$)`), re(`^Allow: `)},
		{decided, "only gzip", "no other compression", re(`Accept-Encoding: (\*|.*br|.*deflate)`), re(`^(Content-Encoding|body|rows?): `)},
		{notOffered, "shard indexing pressure", "only what exists here", nil, re(`attributes\.shard_indexing_pressure_enabled: nothing here`)},
		{notOffered, "tables that are not offered are not listed", "most tables of `_cat`", re(`^\S+ \w+ /_(cat|list)/?(\?|\s)`), re(`^(rows: |status: 400 invalid_index_name_exception here, 200)`)},
		{notOffered, "columns that are not offered are not listed", "only what exists here", re(`^cat .*help`), re(`^rows?: `)},
		{notOffered, "columns of _cat/nodes that are not measured", "CPU percentages are -1", re(`^cat \w+ /_cat/nodes`), re(`^row: `)},
	}
}
