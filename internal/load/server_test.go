package load_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/wlmserver/wlmserver/internal/load"
	"github.com/wlmserver/wlmserver/wlmtest"
)

const reports = `{"name": "reports", "resiliency_mode": "enforced", "resource_limits": {"cpu": 0.2},
	"throttling": {"attribute": "group", "node_limit": 3}, "queue": {"size_per_bucket": 8}}`

// TestAgainstTheServer: whatever becomes of the requests, client and server count the same.
func TestAgainstTheServer(t *testing.T) {
	for name, o := range map[string]load.Options{
		"closed": {Clients: 20, Requests: 400, Groups: []load.Weighted{{Name: "reports", Weight: 3}, {Name: "dash", Weight: 1}}},
		"open":   {Rate: 2000, Requests: 400, MaxInFlight: 50, Groups: []load.Weighted{{Name: "reports", Weight: 3}, {Name: "dash", Weight: 1}}},
		"impatient": {Clients: 11, Requests: 60, QueryTime: 20 * time.Millisecond, Groups: []load.Weighted{{Name: "reports", Weight: 1}},
			CancelShare: 0.2, CancelAfterShare: 0.2, DisconnectShare: 0.2, GiveUp: 30 * time.Millisecond, CancelAfter: 10 * time.Millisecond},
		"nobody": {Clients: 4, Requests: 40},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := wlmtest.Start(t)
			s.CreateGroup(reports)
			s.CreateGroup(strings.NewReplacer("reports", "dash", `"node_limit": 3`, `"node_limit": 1`, "8", "0").Replace(reports))
			o.URL, o.QueryTime, o.Seed, o.Grace = s.URL, max(o.QueryTime, 3*time.Millisecond), 42, time.Minute
			r, err := load.Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			// That requests were sent late tells of the machine, not of the server.
			notes := slices.DeleteFunc(r.Notes, func(n string) bool { return strings.Contains(n, "ms late:") })
			if err := r.Err(); err != nil || len(r.Conservation) != 7*len(r.Groups) || len(notes) > 0 {
				t.Errorf("%v, notes %q\n%+v", err, r.Notes, r.Conservation)
			}
			if r.Sent+r.Unsent != o.Requests || r.Lost+r.Unanswered+r.Failed > 0 || r.Completed == 0 {
				t.Errorf("%+v", r)
			}
			switch name {
			case "closed":
				if r.Throttled == 0 || r.Groups[0].Server.Waits == 0 || r.Groups[0].Server.Peak > 8 {
					t.Errorf("nothing was refused or nobody waited: %+v", r)
				}
			case "impatient":
				if r.Disconnected == 0 || r.Evicted+r.Cancelled == 0 || r.CancelsDone == 0 || r.CancelsDone+r.CancelsLate != r.CancelsAsked {
					t.Errorf("nobody was impatient: %+v", r)
				}
			}
			if status, body := s.Do("GET", "/wlmserver-load", ""); status != 404 {
				t.Errorf("the index is left: %d %s", status, body)
			}
		})
	}
}

// TestUsers: searches are sent by users with their passwords, and each has a bucket.
func TestUsers(t *testing.T) {
	hash, err := bcrypt.GenerateFromPassword([]byte("pw=1"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	users := filepath.Join(t.TempDir(), "users.yml")
	if err := os.WriteFile(users, fmt.Appendf(nil, "alice:\n  hash: %q\n  roles: [admin]\nbob:\n  hash: %q\n", hash, hash), 0o600); err != nil {
		t.Fatal(err)
	}
	s := wlmtest.Start(t, wlmtest.With("auth.users_file", users))
	o := load.Options{URL: s.URL, Clients: 3, Requests: 60, Grace: time.Minute,
		Users: []load.Weighted{{Name: "alice:pw=1", Weight: 1}, {Name: "bob:pw=1", Weight: 2}}}
	r, err := load.Run(t.Context(), o)
	if err != nil || r.Err() != nil || r.Completed != 60 || len(r.Users) != 2 || r.Users[0].Completed+r.Users[1].Completed != 60 {
		t.Errorf("%v, %+v", err, r)
	}

	o.Users = []load.Weighted{{Name: "alice:wrong", Weight: 1}}
	o.Clients, o.Requests = 1, 2
	r, err = load.Run(t.Context(), o)
	if err != nil || r.Failed != 2 || len(r.Conservation) > 0 || !slices.Equal(r.Answers, []load.AnswerCount{{Status: 401, Type: "security_exception", Count: 2}}) {
		t.Errorf("with a wrong password: %v, %+v", err, r)
	}
	for _, n := range r.Notes {
		if strings.Contains(n, "--admin") {
			return
		}
	}
	t.Errorf("that the statistics may not be read is not said: %q", r.Notes)
}
