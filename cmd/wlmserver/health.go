package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

type healthCommand struct {
	URL string `arg:"" optional:"" name:"URL" default:"http://127.0.0.1:9200" help:"The server (${default})."`

	Status   string        `enum:"any,red,yellow,green" default:"any" placeholder:"STATUS" help:"Fail when the cluster is worse than this: green, yellow or red (default: whatever it is, as long as the server answers)."`
	User     string        `placeholder:"NAME:PASSWORD" help:"Who asks. Without a user, a server that asks for one is told to be there, which is all that can be seen."`
	Insecure bool          `help:"Accept any certificate."`
	Timeout  time.Duration `default:"5s" help:"Wait so long for the answer (${default})."`
}

// healthAnswer is what is read of GET _cluster/health.
type healthAnswer struct {
	Status  string   `json:"status"`
	Nodes   int      `json:"number_of_nodes"`
	Reasons []string `json:"reasons"`
}

// statuses are those of a cluster, from bad to good; any is none.
var statuses = []string{"any", "red", "yellow", "green"}

// Run asks once and prints what the server says. The error is that it does not answer, or is not as it should be.
func (c *healthCommand) Run(ctx context.Context, s streams) error {
	base, err := url.Parse(c.URL)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return &usageError{fmt.Errorf("%q is no address of a server, such as http://127.0.0.1:9200", c.URL)}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.Timeout, fmt.Errorf("no answer within %v", c.Timeout))
	defer cancel()
	status, body, err := c.ask(ctx, base.JoinPath("_cluster/health"))
	var h healthAnswer
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("%s: %w", c.URL, context.Cause(ctx))
	case err != nil:
		return err
	case status == http.StatusUnauthorized && c.User == "" && c.Status == "any":
		_, err := fmt.Fprintln(s.out, "the server answers; it asks for a user")
		return err
	case status != http.StatusOK:
		return fmt.Errorf("%s answered %d: %s", c.URL, status, strings.TrimSpace(string(body)))
	}
	if err := json.Unmarshal(body, &h); err != nil || h.Status == "" {
		return fmt.Errorf("%s is no server of this kind: it answered %.200s", c.URL, body)
	}
	fmt.Fprintf(s.out, "%s, %d %s\n", h.Status, h.Nodes, plural(h.Nodes, "node"))
	for _, reason := range h.Reasons {
		fmt.Fprintf(s.out, "  %s\n", reason)
	}
	if slices.Index(statuses, h.Status) < slices.Index(statuses, c.Status) {
		return fmt.Errorf("the cluster is %s, not %s", h.Status, c.Status)
	}
	return nil
}

// mostHealth bounds what is read of an answer, in bytes.
const mostHealth = 1 << 20

// ask sends the one request.
func (c *healthCommand) ask(ctx context.Context, to *url.URL) (status int, body []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return 0, nil, err
	}
	if name, password, given := strings.Cut(c.User, ":"); given {
		r.SetBasicAuth(name, password)
	} else if c.User != "" {
		return 0, nil, &usageError{errors.New("--user wants NAME:PASSWORD")}
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: c.Insecure}} //nolint:gosec // who asks says so
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, mostHealth))
	return resp.StatusCode, body, err
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}
