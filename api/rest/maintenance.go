package rest

import (
	"slices"
	"strconv"
	"strings"

	"github.com/wlmserver/wlmserver/internal/nearest"
	"github.com/wlmserver/wlmserver/internal/stub"
)

// expansion are the parameters that say what names and patterns of indices may come to.
const expansion = " ignore_unavailable allow_no_indices expand_wildcards"

// maintenanceRoutes are what clients and benchmarks do around an index: make its documents visible, write them out, merge them,
// and see what that has come to. Here a document is visible at once and there is nothing to write or to merge.
func (s *Server) maintenanceRoutes() []route {
	var routes []route
	for _, m := range []struct{ methods, action, params string }{
		{"GET POST", "_refresh", ""},
		{"GET POST", "_flush", " force wait_if_ongoing"},
		{"POST", "_forcemerge", " max_num_segments only_expunge_deletes flush primary_only"},
	} {
		for _, place := range []string{"/", "/{index}/"} {
			routes = append(routes, route{methods: m.methods, pattern: place + m.action, params: expansion + m.params, prepare: s.maintain(m.action == "_forcemerge")})
		}
	}
	const stats = expansion + " level fields completion_fields fielddata_fields groups include_segment_file_sizes include_unloaded_segments forbid_closed_indices"
	for _, pattern := range []string{"/_stats", "/_stats/{metrics}", "/{index}/_stats", "/{index}/_stats/{metrics}"} {
		routes = append(routes, route{methods: "GET", pattern: pattern, params: stats, prepare: s.indexStats})
	}
	return routes
}

// expansion reads the parameters of that name. What they do not say is as in x.
func (c *call) expansion(x stub.Expansion) (stub.Expansion, error) {
	for name := range strings.FieldsSeq(expansion) {
		if c.query.Has(name) {
			if err := x.Set(name, c.query.Get(name)); err != nil {
				return x, err
			}
		}
	}
	return x, nil
}

// copiesDTO counts copies of shards: all there should be, and those that are there to be reached.
type copiesDTO struct {
	Total      int `json:"total"`
	Successful int `json:"successful"`
	Failed     int `json:"failed"`
}

func copies(indices []stub.IndexInfo) copiesDTO {
	var d copiesDTO
	for _, x := range indices {
		d.Total += x.Shards * (1 + x.Replicas)
		d.Successful += x.Active()
	}
	return d
}

type maintainedDTO struct {
	Shards copiesDTO `json:"_shards"`
}

// maintain answers for work on the shards that is done as soon as it is asked for. Only what is assigned is counted for some.
func (s *Server) maintain(assignedOnly bool) func(*call) (action, error) {
	return func(c *call) (action, error) {
		rules, err := c.expansion(stub.Expansion{ForbidClosed: true})
		if err != nil {
			return nil, err
		}
		for _, name := range []string{"force", "wait_if_ongoing", "only_expunge_deletes", "flush", "primary_only"} {
			if _, err := c.flag(name, false); err != nil {
				return nil, err
			}
		}
		if _, err := c.number("max_num_segments", 1); err != nil {
			return nil, err
		}
		return func() (*answer, error) {
			found, err := s.cfg.Stub.Expand(c.param("index"), rules)
			if err != nil {
				return nil, err
			}
			d := maintainedDTO{copies(found)}
			if assignedOnly {
				d.Shards.Total = d.Shards.Successful
			}
			return ok(d)
		}, nil
	}
}

// indexMetrics are the parts of an index's statistics that may be asked for. Those from indexing on are OpenSearch's, of which this
// server has nothing to tell.
var indexMetrics = [...]string{"docs", "store", "merge", "refresh", "flush",
	"indexing", "get", "search", "warmer", "query_cache", "fielddata", "completion", "segments", "translog", "request_cache", "recovery", "suggest"}

type indexStatsDTO struct {
	Docs    *docsStatsDTO  `json:"docs,omitempty"`
	Store   *storeStatsDTO `json:"store,omitempty"`
	Merges  *mergesDTO     `json:"merges,omitempty"`
	Refresh *workDTO       `json:"refresh,omitempty"`
	Flush   *workDTO       `json:"flush,omitempty"`
}

type docsStatsDTO struct {
	Count   int `json:"count"`
	Deleted int `json:"deleted"`
}

type storeStatsDTO struct {
	Bytes    int64 `json:"size_in_bytes"`
	Reserved int64 `json:"reserved_in_bytes"`
}

// mergesDTO tells of work that never needs doing here: clients wait until current is zero.
type mergesDTO struct {
	Current int `json:"current"`
	workDTO
	Throttled int64 `json:"total_throttled_time_in_millis"`
}

type workDTO struct {
	Total  int   `json:"total"`
	Millis int64 `json:"total_time_in_millis"`
}

// sidesDTO are the statistics of the primaries and of all copies.
type sidesDTO struct {
	UUID      string        `json:"uuid,omitempty"`
	Primaries indexStatsDTO `json:"primaries"`
	Total     indexStatsDTO `json:"total"`
	Shards    members       `json:"shards,omitzero"`
}

type shardStatsDTO struct {
	Routing routingDTO `json:"routing"`
	indexStatsDTO
}

type routingDTO struct {
	State   string `json:"state"`
	Primary bool   `json:"primary"`
	Node    string `json:"node"`
}

type allStatsDTO struct {
	Shards  copiesDTO `json:"_shards"`
	All     sidesDTO  `json:"_all"`
	Indices members   `json:"indices,omitzero"`
}

func (s *Server) indexStats(c *call) (action, error) {
	metrics := splitTrimmed(c.param("metrics"))
	if err := c.checkMetricsOf("an index", metrics, indexMetrics[:]); err != nil {
		return nil, err
	}
	forbid, err := c.flag("forbid_closed_indices", true)
	if err != nil {
		return nil, err
	}
	rules, err := c.expansion(stub.Expansion{ForbidClosed: forbid})
	if err != nil {
		return nil, err
	}
	level := c.query.Get("level")
	if !slices.Contains([]string{"", "cluster", "indices", "shards"}, level) {
		return nil, illegalArgument("parameter [level] must be cluster, indices or shards, not [%s]", level)
	}
	return func() (*answer, error) {
		found, err := s.cfg.Stub.Expand(c.param("index"), rules)
		if err != nil {
			return nil, err
		}
		s.cfg.Stub.Measure(c.r.Context(), found)
		d := allStatsDTO{Shards: copies(found), All: sides(found, metrics)}
		if level != "cluster" {
			d.Indices = members{}
			for i, x := range found {
				of := sides(found[i:i+1], metrics)
				of.UUID = x.UUID
				if level == "shards" {
					of.Shards = shardStats(x, metrics)
				}
				d.Indices = append(d.Indices, member{x.Name, of})
			}
		}
		return ok(d)
	}, nil
}

func shardStats(x stub.IndexInfo, metrics []string) members {
	shards := members{}
	for n, store := range x.Stores {
		all := []shardStatsDTO{}
		for i, copy := range x.Copies[n] {
			if copy.Started {
				all = append(all, shardStatsDTO{routingDTO{"STARTED", i == 0, copy.Node}, statsOfStores([]stub.StoreInfo{store}, metrics)})
			}
		}
		if len(all) > 0 {
			shards = append(shards, member{strconv.Itoa(n), all})
		}
	}
	return shards
}

// sides sums what indices hold. Copies of a shard hold the same.
func sides(indices []stub.IndexInfo, metrics []string) sidesDTO {
	var primaries, all []stub.StoreInfo
	for _, x := range indices {
		for n, store := range x.Stores {
			for i, copy := range x.Copies[n] {
				if i == 0 {
					primaries = append(primaries, store)
				}
				if copy.Started {
					all = append(all, store)
				}
			}
		}
	}
	return sidesDTO{Primaries: statsOfStores(primaries, metrics), Total: statsOfStores(all, metrics)}
}

// statsOfStores sums what shards hold; without metrics, all of it. Where there is no shard there is nothing to tell.
func statsOfStores(stores []stub.StoreInfo, metrics []string) indexStatsDTO {
	var d indexStatsDTO
	if len(stores) == 0 {
		return d
	}
	wanted := func(m string) bool {
		return len(metrics) == 0 || slices.Contains(metrics, m) || slices.Contains(metrics, everyMetric)
	}
	var docs docsStatsDTO
	var store storeStatsDTO
	for _, s := range stores {
		docs.Count += s.Documents
		store.Bytes += s.Bytes
	}
	if wanted("docs") {
		d.Docs = &docs
	}
	if wanted("store") {
		d.Store = &store
	}
	if wanted("merge") {
		d.Merges = &mergesDTO{}
	}
	if wanted("refresh") {
		d.Refresh = &workDTO{}
	}
	if wanted("flush") {
		d.Flush = &workDTO{}
	}
	return d
}

// checkMetricsOf refuses what is no part of the statistics of something, and all of them together with single ones.
func (c *call) checkMetricsOf(what string, metrics, known []string) error {
	if slices.Contains(metrics, everyMetric) {
		if len(metrics) > 1 {
			return illegalArgument("request [%s] names [_all] beside other metrics: leave out one or the other", c.r.URL.Path)
		}
		return nil
	}
	var unknown []string
	for _, m := range metrics {
		if slices.Contains(known, m) {
			continue
		}
		text := "[" + m + "]"
		if near := nearest.Name(m, known...); near != "" {
			text += " -> did you mean [" + near + "]?"
		}
		unknown = append(unknown, text)
	}
	if unknown != nil {
		return illegalArgument("request [%s] names metrics of %s that do not exist: %s", c.r.URL.Path, what, strings.Join(unknown, ", "))
	}
	return nil
}
