package load_test

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"github.com/wlmserver/wlmserver/test/server"
)

// BenchmarkSearch is a search that costs nothing through the whole server, in a group without limits, one with a limit that is never
// reached, and beside them a bare net/http handler. Clients and server share the machine.
func BenchmarkSearch(b *testing.B) {
	run := func(b *testing.B, p *server.Process, headers ...string) {
		b.ReportAllocs() // of the client: the server is another process
		b.SetParallelism(16)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if a := p.Send(b.Context(), http.MethodPost, "/docs/_search", "{}", headers...); a.Err != nil || a.Status != http.StatusOK {
					b.Fatalf("answered %d: %s, %v", a.Status, a.Body, a.Err)
				}
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
	}
	b.Run("bare handler", func(b *testing.B) { run(b, server.StartBare(b)) })
	for name, block := range map[string]string{"unlimited": `"settings":{}`, "limited": throttling("group", 1000, 1000)} {
		b.Run(name, func(b *testing.B) {
			p := server.StartPlain(b)
			p.CreateIndex("docs", "")
			run(b, p, "workloadGroupId", p.CreateGroup("g", block))
		})
	}
}

// BenchmarkParked is the resident memory that a parked search takes, beside that of a bare handler which blocks. The connections are
// new ones. Enough are parked that what the process has anyway does not matter.
func BenchmarkParked(b *testing.B) {
	const searches = 4000
	measure := func(b *testing.B, p *server.Process, path string, parked func() bool, headers ...string) (bytes int64) {
		before := p.Resident()
		ctx, leave := context.WithCancel(b.Context())
		var wg sync.WaitGroup
		for range searches {
			wg.Go(func() { p.Send(ctx, http.MethodPost, path, "{}", headers...) })
		}
		p.Await("all are parked", parked)
		taken := p.Resident() - before
		leave()
		wg.Wait()
		p.Stop()
		return taken
	}
	b.Run("bare handler", func(b *testing.B) {
		var taken int64
		for b.Loop() {
			p := server.StartBare(b)
			taken += measure(b, p, "/park", func() bool { return p.OpenFiles() >= searches })
		}
		b.ReportMetric(float64(taken)/float64(b.N)/searches, "B/parked")
	})
	b.Run("search", func(b *testing.B) {
		var taken int64
		for b.Loop() {
			p := server.StartPlain(b)
			p.CreateIndex("docs", `"index.stub.query_time":"10m"`)
			id := p.CreateGroup("g", throttling("group", 1, 10_000))
			taken += measure(b, p, "/docs/_search", func() bool { return p.Stats(id).QueuedCurrent == searches-1 }, "workloadGroupId", id)
		}
		b.ReportMetric(float64(taken)/float64(b.N)/searches, "B/parked")
	})
}
