package load

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/url"
	"strings"
	"time"
)

// DefaultIndex is searched when neither a path nor an index is named. Run makes it when it is missing, and then deletes it.
const DefaultIndex = "wlmserver-load"

// Options say what load is put on which server.
type Options struct {
	URL string // of the server: http or https, and maybe a path before all others

	Clients     int     // of a closed loop; DefaultClients when neither this nor Rate is given
	Rate        float64 // requests a second of an open loop
	MaxInFlight int     // of an open loop, DefaultMaxInFlight when 0; arrivals beyond are not sent, only counted
	Think       time.Duration

	Duration time.Duration // until when requests are sent; DefaultDuration when neither this nor Requests is given
	Requests int64         // how many are sent
	Grace    time.Duration // how long the last answers are waited for; what has none then is given up, with 0 at once

	Method, Path, Body string // Path with its query; the default is POST /{Index}/_search
	Index              string
	QueryTime          time.Duration // of the default body: what the search stub's search takes

	Groups []Weighted // workload groups by name or id; none is the default group
	Users  []Weighted // "name:password"; none is nobody
	Admin  string     // "name:password" for groups, statistics and cancelling; the first of Users when empty

	CancelShare, CancelAfterShare, DisconnectShare float64       // of the requests, 0 to 1 together
	GiveUp                                         time.Duration // when at the latest a request is cancelled or disconnected; at any time before alike
	CancelAfter                                    time.Duration // the cancel_after_time_interval of its share

	Seed     uint64
	Insecure bool // accept any certificate
	Shared   bool // others use the groups too, so that their counters may grow by more than this load

	Progress      func(Progress) // called every so often while the load runs, never twice at once; may be nil
	ProgressEvery time.Duration

	Dial func(ctx context.Context, network, address string) (net.Conn, error) // nil is the network itself
}

// What Options mean that leave these out.
const (
	DefaultClients     = 16
	DefaultMaxInFlight = 1000
	DefaultDuration    = 10 * time.Second
)

// FlagError is a value of the command line that cannot be used.
type FlagError struct{ Flag, Value, Remedy string }

func (e *FlagError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("%s: %s", e.Flag, e.Remedy)
	}
	return fmt.Sprintf("%s is %q: %s", e.Flag, e.Value, e.Remedy)
}

// complete checks the options and fills in what was left out.
func (o *Options) complete() (*url.URL, error) {
	u, err := parseURL(o.URL)
	if err != nil {
		return nil, err
	}
	for _, check := range []func() error{o.completeLoop, o.completeRequest, o.completeShares, o.checkCredentials} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	if o.ProgressEvery <= 0 {
		o.ProgressEvery = time.Second
	}
	return u, nil
}

func parseURL(s string) (*url.URL, error) {
	const remedy = "give the address of a server, such as http://127.0.0.1:9200"
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, &FlagError{"URL", s, remedy}
	case u.User != nil:
		return nil, &FlagError{"URL", u.Redacted(), "give users with --user name:password"}
	case u.RawQuery != "" || u.Fragment != "":
		return nil, &FlagError{"URL", s, remedy + ", and parameters with --path"}
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return u, nil
}

func (o *Options) completeLoop() error {
	switch {
	case o.Clients < 0 || o.Clients > maxClients:
		return &FlagError{"--clients", fmt.Sprint(o.Clients), fmt.Sprintf("give 1 to %d", maxClients)}
	case o.Clients > 0 && o.Rate != 0:
		return &FlagError{"--rate", fmt.Sprint(o.Rate), "leave out --clients: an open loop has arrivals, not clients; --max-in-flight bounds them"}
	case o.Rate != 0 && !(o.Rate > 0 && o.Rate <= maxRate):
		return &FlagError{"--rate", fmt.Sprint(o.Rate), fmt.Sprintf("give requests a second, above 0 and at most %d", maxRate)}
	case o.MaxInFlight < 0 || o.MaxInFlight > maxClients:
		return &FlagError{"--max-in-flight", fmt.Sprint(o.MaxInFlight), fmt.Sprintf("give 1 to %d", maxClients)}
	case o.MaxInFlight > 0 && o.Rate == 0:
		return &FlagError{"--max-in-flight", fmt.Sprint(o.MaxInFlight), "give --rate too: a closed loop is bounded by --clients"}
	case o.Think < 0:
		return &FlagError{"--think", o.Think.String(), "give a time such as 10ms"}
	case o.Think > 0 && o.Rate != 0:
		return &FlagError{"--think", o.Think.String(), "leave it out: only the clients of a closed loop pause"}
	case o.Duration < 0:
		return &FlagError{"--duration", o.Duration.String(), "give a time such as 30s"}
	case o.Requests < 0:
		return &FlagError{"--requests", fmt.Sprint(o.Requests), "give a number of requests"}
	case o.Grace < 0:
		return &FlagError{"--grace", o.Grace.String(), "give a time such as 30s"}
	}
	if o.Rate == 0 && o.Clients == 0 {
		o.Clients = DefaultClients
	}
	if o.MaxInFlight == 0 {
		o.MaxInFlight = DefaultMaxInFlight
	}
	if o.Duration == 0 && o.Requests == 0 {
		o.Duration = DefaultDuration
	}
	needed := o.connections() + spareFiles
	if limit := openFiles(); uint64(needed) > limit {
		flag := "--clients"
		if o.Rate != 0 {
			flag = "--max-in-flight"
		}
		return &FlagError{flag, fmt.Sprint(o.connections()), fmt.Sprintf("give at most %d, or raise the open files that a process may have (ulimit -n %d)",
			max(int64(limit)-spareFiles, 1), needed)}
	}
	return nil
}

// maxClients is about as many connections as one address can have to another.
const maxClients = 60_000

// spareFiles are those that the process needs beside its connections.
const spareFiles = 32

// connections is how many the load may have at once.
func (o *Options) connections() int {
	if o.Rate != 0 {
		return o.MaxInFlight
	}
	return o.Clients
}

func (o *Options) completeRequest() error {
	switch {
	case o.Path != "" && o.Index != "":
		return &FlagError{"--index", o.Index, "leave it out: --path says what is searched"}
	case o.Path != "" && !strings.HasPrefix(o.Path, "/"):
		return &FlagError{"--path", o.Path, "begin it with a slash, such as /books/_search"}
	case strings.ContainsAny(o.Path, " \r\n"):
		return &FlagError{"--path", o.Path, "escape spaces as %20, and give no line ends"}
	case strings.ContainsAny(o.Index, "/? \r\n#"):
		return &FlagError{"--index", o.Index, "give the name of an index, or several with commas"}
	case strings.ContainsAny(o.Method, " \r\n"):
		return &FlagError{"--method", o.Method, "give a method such as POST"}
	case o.QueryTime < 0 || o.QueryTime > time.Hour:
		return &FlagError{"--query-time", o.QueryTime.String(), "give a time up to 1h"}
	case o.QueryTime > 0 && o.Body != "":
		return &FlagError{"--query-time", o.QueryTime.String(), "leave it out: --body says what a search costs"}
	}
	if o.Method == "" {
		o.Method = "POST"
	}
	if o.Path == "" {
		index := o.Index
		if index == "" {
			index = DefaultIndex
		}
		o.Path = "/" + index + "/_search"
		if o.Body == "" {
			o.Body = searchBody(o.QueryTime)
		}
	} else if o.QueryTime > 0 {
		o.Body = searchBody(o.QueryTime)
	}
	return nil
}

// searchBody is a search without hits. Only a cost makes it one for the search stub alone.
func searchBody(takes time.Duration) string {
	if takes == 0 {
		return `{"size":0,"query":{"match_all":{}}}`
	}
	return fmt.Sprintf(`{"size":0,"query":{"match_all":{}},"ext":{"stub":{"query_time":"%dmicros"}}}`, takes.Microseconds())
}

func (o *Options) completeShares() error {
	sum := 0.0
	for _, s := range []struct {
		flag  string
		share float64
	}{{"--cancel-share", o.CancelShare}, {"--cancel-after-share", o.CancelAfterShare}, {"--disconnect-share", o.DisconnectShare}} {
		if !(s.share >= 0 && s.share <= 1) { // NaN too
			return &FlagError{s.flag, fmt.Sprint(s.share), "give a share of the requests from 0 to 1, such as 0.1"}
		}
		sum += s.share
	}
	switch {
	case sum > 1+1e-9:
		return &FlagError{"--cancel-share, --cancel-after-share and --disconnect-share", fmt.Sprintf("%.4g together", sum), "a request has one fate: give at most 1 together"}
	case o.GiveUp < 0:
		return &FlagError{"--give-up", o.GiveUp.String(), "give a time such as 100ms"}
	case o.CancelAfter < 0 || o.CancelAfterShare > 0 && o.CancelAfter < time.Millisecond:
		return &FlagError{"--cancel-after", o.CancelAfter.String(), "give a time of at least 1ms"}
	}
	return nil
}

func (o *Options) checkCredentials() error {
	for _, u := range o.Users {
		if err := checkCredentials("--user", u.Name); err != nil {
			return err
		}
	}
	if o.Admin != "" {
		if err := checkCredentials("--admin", o.Admin); err != nil {
			return err
		}
	}
	for _, g := range o.Groups {
		if strings.ContainsAny(g.Name, "\r\n") {
			return &FlagError{"--group", g.Name, "give a name without line ends"}
		}
	}
	return nil
}

// checkCredentials never repeats a password.
func checkCredentials(flag, s string) error {
	name, _, ok := strings.Cut(s, ":")
	if !ok || name == "" {
		return &FlagError{flag, name, "give name:password"}
	}
	return nil
}

// userName is the part of credentials that may be shown.
func userName(credentials string) string {
	name, _, _ := strings.Cut(credentials, ":")
	return name
}

// fileLimit is what openFiles returns where nothing is known of a limit.
const fileLimit = math.MaxInt64
