package rest

import (
	"bytes"

	"github.com/wlmserver/wlmserver/stats"
)

// metricsType is Prometheus' text format.
const metricsType = "text/plain; version=0.0.4; charset=utf-8"

func (s *Server) metricsRoutes() []route {
	return []route{{methods: "GET", pattern: "/metrics", prepare: s.metrics}}
}

func (s *Server) metrics(*call) (action, error) {
	return func() (*answer, error) {
		var b bytes.Buffer
		if err := s.cfg.Stats.WriteMetrics(&b, s.ownMetrics()...); err != nil {
			return nil, err
		}
		return &answer{body: b.Bytes(), mediaType: metricsType}, nil
	}, nil
}

// ownMetrics are the numbers of what only this package knows.
func (s *Server) ownMetrics() []stats.Metric {
	pool := s.cfg.Stub.PoolStats()
	metric := func(name, help string, kind stats.Kind, value float64) stats.Metric {
		return stats.Metric{Name: "wlmserver_" + name, Help: help, Kind: kind, Samples: []stats.Sample{{Value: value}}}
	}
	return []stats.Metric{
		metric("http_body_bytes", "Bytes that the bodies of requests in flight hold.", stats.Gauge, float64(s.bodies.used.Load())),
		metric("http_body_bytes_limit", "Bytes that the bodies of requests in flight may hold; 0 is no limit.", stats.Gauge, float64(s.bodies.limit)),
		metric("search_pool_threads", "Workers of the search thread pool that there are.", stats.Gauge, float64(pool.Threads)),
		metric("search_pool_active", "Workers of the search thread pool that work.", stats.Gauge, float64(pool.Active)),
		metric("search_pool_queue", "Pieces of work that wait for a worker of the search thread pool.", stats.Gauge, float64(pool.Queue)),
		metric("search_pool_rejected_total", "Pieces of work that the search thread pool had no room for.", stats.Counter, float64(pool.Rejected)),
		metric("search_pool_completed_total", "Pieces of work that the search thread pool has done.", stats.Counter, float64(pool.Completed)),
	}
}
