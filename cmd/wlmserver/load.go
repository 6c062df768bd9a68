package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/wlmserver/wlmserver/internal/load"
)

type loadCommand struct {
	URL string `arg:"" name:"URL" help:"The server: any that speaks OpenSearch's REST API, such as http://127.0.0.1:9200."`

	Clients     int           `group:"How much" placeholder:"N" help:"Closed loop: so many clients, each of which sends when it has its answer (default: 16)."`
	Rate        string        `group:"How much" placeholder:"R/s" help:"Open loop instead: so many requests a second, whatever has been answered."`
	MaxInFlight int           `group:"How much" placeholder:"N" help:"Open loop: requests that may be under way; what is due beyond is counted and not sent (default: 1000)."`
	Duration    time.Duration `group:"How much" placeholder:"TIME" help:"Send for so long (default: 10s, unless --requests is given)."`
	Requests    int64         `group:"How much" placeholder:"N" help:"Send so many."`
	Think       time.Duration `group:"How much" placeholder:"TIME" help:"Closed loop: a client's pause after an answer."`
	Grace       time.Duration `group:"How much" default:"30s" help:"Wait so long for the last answers (${default})."`

	Index     string        `group:"What" help:"The index to search (default: wlmserver-load, made for the load when it is missing)."`
	QueryTime time.Duration `group:"What" placeholder:"TIME" help:"What a search takes on each shard; only the search stub knows this."`
	Path      string        `group:"What" help:"Path and parameters of the requests (default: /INDEX/_search)."`
	Method    string        `group:"What" default:"POST" help:"Their method (${default})."`
	Body      string        `group:"What" placeholder:"JSON|@FILE" help:"Their body, or where it is."`

	Group    []string `group:"Who" sep:"none" placeholder:"NAME[=WEIGHT]" help:"Name or id of a workload group; repeat for several."`
	User     []string `group:"Who" sep:"none" placeholder:"NAME:PASSWORD[=WEIGHT]" help:"A user; repeat for several."`
	Admin    string   `group:"Who" placeholder:"NAME:PASSWORD" help:"Who looks up groups, reads statistics and cancels (default: the first user)."`
	Insecure bool     `group:"Who" help:"Accept any certificate."`

	CancelShare      float64       `group:"Impatience" placeholder:"SHARE" help:"Share of the requests, 0 to 1, that are cancelled through _tasks/_cancel."`
	DisconnectShare  float64       `group:"Impatience" placeholder:"SHARE" help:"Share whose client closes the connection."`
	GiveUp           time.Duration `group:"Impatience" default:"100ms" help:"Both happen at some time up to this after sending (${default})."`
	CancelAfterShare float64       `group:"Impatience" placeholder:"SHARE" help:"Share that is sent with cancel_after_time_interval."`
	CancelAfter      time.Duration `group:"Impatience" default:"100ms" help:"Its value (${default})."`
	Seed             uint64        `group:"Impatience" default:"1" help:"Decides which requests these are (${default})."`

	Shared bool `group:"The end" help:"Others use the groups too: the server may have counted more than this load."`
	JSON   bool `group:"The end" name:"json" help:"Print the result as JSON."`
	Quiet  bool `group:"The end" short:"q" help:"Show no progress."`
}

// Run drives the load, shows its progress on standard error and prints the result on standard output.
func (c *loadCommand) Run(ctx context.Context, s streams) error {
	o, err := c.options()
	if err != nil {
		return &usageError{err}
	}
	meter := load.NewMeter(s.err)
	if !c.Quiet {
		o.Progress, o.ProgressEvery = meter.Show, meter.Every()
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once

	result, err := load.Run(ctx, o)
	meter.Close()
	if _, ok := errors.AsType[*load.FlagError](err); ok {
		return &usageError{err}
	}
	if err != nil {
		return err
	}
	if c.JSON {
		e := json.NewEncoder(s.out)
		e.SetIndent("", "  ")
		err = e.Encode(result)
	} else {
		err = result.WriteText(s.out, load.Colours(s.out))
	}
	if err != nil {
		return err
	}
	return result.Err()
}

// options are the flags as the load takes them.
func (c *loadCommand) options() (load.Options, error) {
	o := load.Options{URL: c.URL, Clients: c.Clients, MaxInFlight: c.MaxInFlight, Think: c.Think, Duration: c.Duration, Requests: c.Requests,
		Grace: c.Grace, Method: strings.ToUpper(c.Method), Path: c.Path, Index: c.Index, QueryTime: c.QueryTime, Admin: c.Admin,
		Insecure: c.Insecure, CancelShare: c.CancelShare, CancelAfterShare: c.CancelAfterShare, DisconnectShare: c.DisconnectShare,
		GiveUp: c.GiveUp, CancelAfter: c.CancelAfter, Seed: c.Seed, Shared: c.Shared}
	var err error
	if c.Rate != "" {
		if o.Rate, err = load.ParseRate("--rate", c.Rate); err != nil {
			return o, err
		}
	}
	if o.Groups, err = weighted("--group", c.Group); err != nil {
		return o, err
	}
	if o.Users, err = weighted("--user", c.User); err != nil {
		return o, err
	}
	o.Body = c.Body
	if name, ok := strings.CutPrefix(c.Body, "@"); ok {
		b, err := os.ReadFile(name)
		if err != nil {
			return o, fmt.Errorf("--body: %w", err)
		}
		o.Body = string(b)
	}
	return o, nil
}

func weighted(flag string, given []string) ([]load.Weighted, error) {
	var ws []load.Weighted
	for _, g := range given {
		w, err := load.ParseWeighted(flag, g)
		if err != nil {
			return nil, err
		}
		ws = append(ws, w)
	}
	return ws, nil
}
