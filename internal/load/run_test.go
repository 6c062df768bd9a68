package load_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/internal/load"
)

func near(got, want float64) bool { return got >= want && got <= want*1.01 }

// TestClosedLoop: four clients, each with ten answers of 100 ms in a second.
func TestClosedLoop(t *testing.T) {
	inBubble(t, searches(takes(100*time.Millisecond)), func(t bubble) {
		r := t.run(t.Context(), load.Options{Index: "index", Clients: 4, Duration: 950 * time.Millisecond})
		if r.Sent != 40 || r.Completed != 40 || r.Answered != 40 || r.Seconds != 1 || r.PerSecond != 40 || r.InFlightPeak != 4 {
			t.Errorf("%+v", r)
		}
		for _, ms := range []float64{r.Latency.P50, r.Latency.P999, r.Latency.Max, r.Latency.Mean} {
			if !near(ms, 100) {
				t.Errorf("latency %+v", r.Latency)
			}
		}
		if f := r.Fairness; len(f) != 1 || f[0] != (load.Fairness{Among: "all", Clients: 4, Jain: 1, Least: 10, Most: 10}) {
			t.Errorf("fairness %+v", f)
		}
		if r.Err() != nil || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "_wlm/stats") {
			t.Errorf("%v, notes %q", r.Err(), r.Notes)
		}
	})
}

func TestThink(t *testing.T) {
	inBubble(t, searches(takes(100*time.Millisecond)), func(t bubble) {
		r := t.run(t.Context(), load.Options{Index: "index", Clients: 1, Think: 100 * time.Millisecond, Duration: time.Second - 1})
		if r.Completed != 5 {
			t.Errorf("completed %d, wanted one each 200 ms of a second", r.Completed)
		}
	})
}

func TestNumberOfRequests(t *testing.T) {
	for name, o := range map[string]load.Options{"closed": {Clients: 3}, "open": {Rate: 100}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, searches(takes(time.Second)), func(t bubble) {
				o.Index, o.Requests = "index", 10
				if r := t.run(t.Context(), o); r.Sent != 10 || r.Completed != 10 {
					t.Errorf("%+v", r)
				}
			})
		})
	}
}

// TestOpenLoop: ten a second for two seconds, each takes 950 ms, five may be under way. Those of the first half second are
// sent, those of the second half find no room, and so again.
func TestOpenLoop(t *testing.T) {
	inBubble(t, searches(takes(950*time.Millisecond)), func(t bubble) {
		r := t.run(t.Context(), load.Options{Index: "index", Rate: 10, MaxInFlight: 5, Duration: 2 * time.Second})
		if r.Sent != 10 || r.Completed != 10 || r.Unsent != 10 || r.InFlightPeak != 5 || r.LagMax != 0 || len(r.Fairness) != 0 {
			t.Errorf("%+v", r)
		}
		if !near(r.Latency.P50, 950) || !near(r.Latency.Max, 950) {
			t.Errorf("latency %+v", r.Latency)
		}
	})
}

// TestLatencyCountsFromWhenItWasDue: what holds the driver up is part of the latency.
func TestLatencyCountsFromWhenItWasDue(t *testing.T) {
	inBubble(t, searches(takes(100*time.Millisecond)), func(t bubble) {
		slow := func(ctx context.Context, network, address string) (net.Conn, error) {
			time.Sleep(300 * time.Millisecond)
			return t.network.dial(ctx, network, address)
		}
		r := t.run(t.Context(), load.Options{Index: "index", Rate: 1, Requests: 1, Dial: slow})
		if !near(r.Latency.Max, 400) {
			t.Errorf("latency %+v", r.Latency)
		}
	})
}

// TestGrace: what has no answer some time after the end is given up, and is neither answered nor lost.
func TestGrace(t *testing.T) {
	for name, o := range map[string]load.Options{
		"duration":       {Clients: 3, Duration: time.Second},
		"requests":       {Clients: 3, Requests: 3},
		"open, duration": {Rate: 3, Duration: time.Second},
		"open, requests": {Rate: 3, Requests: 3},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, searches(takes(time.Hour)), func(t bubble) {
				o.Index, o.Grace = "index", 5*time.Second
				r := t.run(t.Context(), o)
				if r.Sent != 3 || r.Unanswered != 3 || r.Answered != 0 || r.Lost != 0 || r.Seconds > 6.1 {
					t.Errorf("%+v", r)
				}
			})
		})
	}
}

// TestInterrupted: no more is sent, and what is under way gets its answer.
func TestInterrupted(t *testing.T) {
	for name, o := range map[string]load.Options{"closed": {Clients: 2}, "open": {Rate: 2}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, searches(takes(3*time.Second)), func(t bubble) {
				ctx, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
				defer cancel()
				o.Index, o.Duration, o.Grace = "index", time.Hour, time.Minute
				if r := t.run(ctx, o); r.Sent != 2 || r.Completed != 2 || r.Seconds > 4 {
					t.Errorf("%+v", r)
				}
			})
		})
	}
}

// TestLostConnections: requests without an answer are counted by reason, and the next try comes ever later.
func TestLostConnections(t *testing.T) {
	inBubble(t, searches(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), func(t bubble) {
		r := t.run(t.Context(), load.Options{Index: "index", Clients: 1, Duration: time.Second})
		// At 0, 10, 30, 70, 150, 310 and 630 ms.
		want := []load.LossCount{{Reason: "the connection ended before the answer", Count: 7}}
		if r.Lost != 7 || !slices.Equal(r.Losses, want) || r.Answered != 0 {
			t.Errorf("lost %d: %+v", r.Lost, r.Losses)
		}
		if err := r.Err(); err == nil || !strings.Contains(err.Error(), "no request was answered") {
			t.Errorf("%v", err)
		}
	})
}

// TestServerGoesAway: a server that cannot be connected to any more.
func TestServerGoesAway(t *testing.T) {
	var (
		requests atomic.Int64
		network  *network
	)
	h := searches(func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) == 5 {
			network.Close()
			w.Header().Set("Connection", "close")
		}
	})
	inBubble(t, h, func(t bubble) {
		network = t.network
		r := t.run(t.Context(), load.Options{Index: "index", Clients: 1, Requests: 6})
		if r.Completed != 5 || r.Lost != 1 || len(r.Losses) != 1 || r.Losses[0].Reason != "cannot connect: connection refused" {
			t.Errorf("%+v", r)
		}
		if r.Err() != nil {
			t.Error(r.Err())
		}
	})
}

func TestUnreachable(t *testing.T) {
	refuses := func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("connection refused") }
	_, err := load.Run(t.Context(), load.Options{URL: address, Dial: refuses})
	if err == nil || !strings.Contains(err.Error(), "connection refused") || !strings.Contains(err.Error(), "running") {
		t.Errorf("%v", err)
	}
}

// TestDisconnects: the server sees its clients leave, in the time that they have patience for.
func TestDisconnects(t *testing.T) {
	var left, stayed atomic.Int64
	h := searches(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server watches the connection from then on
		select {
		case <-time.After(time.Second):
			stayed.Add(1)
		case <-r.Context().Done():
			left.Add(1)
		}
	})
	inBubble(t, h, func(t bubble) {
		r := t.run(t.Context(), load.Options{Index: "index", Clients: 5, Requests: 200, DisconnectShare: 0.5, GiveUp: 100 * time.Millisecond})
		time.Sleep(time.Second)
		if r.Disconnected != left.Load() || r.Completed != stayed.Load() || r.Disconnected+r.Completed != 200 {
			t.Errorf("disconnected %d, the server saw %d; completed %d and %d", r.Disconnected, left.Load(), r.Completed, stayed.Load())
		}
		if r.Disconnected < 65 || r.Disconnected > 135 { // five standard deviations about one half
			t.Errorf("disconnected %d of 200", r.Disconnected)
		}
	})
}

// TestQuickAnswersComeFirst: who would leave later than the answer comes does not leave, and the connection serves on.
func TestQuickAnswersComeFirst(t *testing.T) {
	var connections atomic.Int64
	inBubble(t, searches(takes(0)), func(t bubble) {
		counts := func(ctx context.Context, network, address string) (net.Conn, error) {
			connections.Add(1)
			return t.network.dial(ctx, network, address)
		}
		r := t.run(t.Context(), load.Options{Index: "index", Clients: 1, Requests: 50, Think: time.Second, DisconnectShare: 1, GiveUp: time.Hour, Dial: counts})
		if r.Completed != 50 {
			t.Errorf("%+v", r)
		}
		if got := connections.Load(); got != 2 { // one for the statistics
			t.Errorf("%d connections", got)
		}
	})
}

// TestServersWithoutWorkloadManagement: whatever they answer, the load goes on and says what is missing.
func TestServersWithoutWorkloadManagement(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"nothing":       func(http.ResponseWriter, *http.Request) {},
		"text":          func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") },
		"another shape": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"ok":true}`) },
		"a list":        func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `[]`) },
		"bad request":   func(w http.ResponseWriter, _ *http.Request) { http.Error(w, `{"error":"no handler found"}`, 400) },
		"not found":     http.NotFound,
		"forbidden":     func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) },
	} {
		t.Run(name, func(t *testing.T) {
			m := http.NewServeMux()
			m.HandleFunc("POST /index/_search", func(http.ResponseWriter, *http.Request) {})
			m.HandleFunc("/_wlm/stats", answer)
			if name != "forbidden" {
				m.HandleFunc("/_wlm/", answer)
			} else {
				m.HandleFunc("/_wlm/workload_group/g", func(w http.ResponseWriter, _ *http.Request) {
					fmt.Fprint(w, `{"workload_groups":[{"name":"g","_id":"i"}]}`)
				})
			}
			inBubble(t, m, func(t bubble) {
				r := t.run(t.Context(), load.Options{Index: "index", Requests: 3, Groups: []load.Weighted{{Name: "g", Weight: 1}}})
				if r.Completed != 3 || len(r.Conservation) != 0 || r.Err() != nil || len(r.Notes) == 0 {
					t.Errorf("%+v", r)
				}
			})
		})
	}
}

// TestServerThatMiscounts: a counter that does not move fails the load, unless others are at work in a way that explains it.
func TestServerThatMiscounts(t *testing.T) {
	for name, c := range map[string]struct {
		counted int // of three refusals
		shared  bool
		fails   bool
	}{
		"right": {3, false, false}, "too many": {4, false, true}, "too few": {2, false, true},
		"too many, shared": {4, true, false}, "too few, shared": {2, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			throttled := 0
			m := http.NewServeMux()
			m.HandleFunc("GET /_wlm/stats", func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprintf(w, `{"_nodes":{"total":1},"cluster_name":"c","n":{"workload_groups":{"DEFAULT_WORKLOAD_GROUP":{"total_throttled":%d,"total_queued":0}}}}`, throttled)
				throttled = c.counted
			})
			m.HandleFunc("POST /index/_search", func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(429)
				fmt.Fprint(w, `{"error":{"type":"rejected_execution_exception","reason":"Request throttled"},"status":429}`)
			})
			inBubble(t, m, func(t bubble) {
				r := t.run(t.Context(), load.Options{Index: "index", Requests: 3, Shared: c.shared})
				if r.Throttled != 3 || r.Completed != 0 || r.Refusals.Count != 3 || r.Latency.Count != 0 {
					t.Errorf("%+v", r)
				}
				if err := r.Err(); (err != nil) != c.fails {
					t.Errorf("%v\n%+v", err, r.Conservation)
				}
			})
		})
	}
}

// TestSeveralNodes: counters are summed over the nodes.
func TestSeveralNodes(t *testing.T) {
	n := 0
	m := http.NewServeMux()
	m.HandleFunc("GET /_wlm/stats", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"_nodes":{"total":2},"cluster_name":"c","a":{"workload_groups":{"DEFAULT_WORKLOAD_GROUP":{"total_completions":%d}}},
			"b":{"workload_groups":{"DEFAULT_WORKLOAD_GROUP":{"total_completions":%d}}}}`, n/2, n-n/2)
	})
	m.HandleFunc("POST /index/_search", func(http.ResponseWriter, *http.Request) { n++ })
	inBubble(t, m, func(t bubble) {
		r := t.run(t.Context(), load.Options{Index: "index", Clients: 1, Requests: 5})
		if r.Err() != nil || len(r.Conservation) != 2 { // a server without throttling has but two laws
			t.Errorf("%v: %+v", r.Err(), r.Conservation)
		}
	})
}

func TestTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(searches(takes(0)))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake that is meant to fail
	s.StartTLS()
	defer s.Close()
	o := load.Options{URL: s.URL, Index: "index", Clients: 2, Requests: 10, Grace: time.Minute}
	if _, err := load.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "--insecure") {
		t.Errorf("a certificate that nobody knows: %v", err)
	}
	o.Insecure = true
	if r, err := load.Run(t.Context(), o); err != nil || r.Completed != 10 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestProgress(t *testing.T) {
	inBubble(t, searches(takes(300*time.Millisecond)), func(t bubble) {
		var told []load.Progress
		t.run(t.Context(), load.Options{Index: "index", Clients: 2, Duration: 2500 * time.Millisecond,
			Progress: func(p load.Progress) { told = append(told, p) }})
		if len(told) != 2 {
			t.Fatalf("%v", told)
		}
		if p := told[1]; p.Elapsed != 2*time.Second || p.Sent != 14 || p.Completed != 12 || p.InFlight != 2 || p.Others != 0 || p.P50 < 300*time.Millisecond {
			t.Errorf("%+v", p)
		}
		if s := told[1].String(); !strings.Contains(s, "sent 14") || !strings.Contains(s, "ok 12 (6/s)") {
			t.Error(s)
		}
	})
}
