package load_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/internal/load"
)

// TestOptionsThatDoNotFit: the message names the flag, the value and what to do, and never a password.
func TestOptionsThatDoNotFit(t *testing.T) {
	const url = "http://127.0.0.1:1"
	for name, c := range map[string]struct {
		options load.Options
		want    []string
	}{
		"no URL":             {load.Options{}, []string{"URL", "http://127.0.0.1:9200"}},
		"no scheme":          {load.Options{URL: "localhost:9200"}, []string{"URL", "localhost:9200"}},
		"another scheme":     {load.Options{URL: "ftp://h"}, []string{"ftp://h"}},
		"user in the URL":    {load.Options{URL: "http://u:secret@h"}, []string{"--user"}},
		"query in the URL":   {load.Options{URL: "http://h/?a=b"}, []string{"--path"}},
		"clients":            {load.Options{Clients: -1}, []string{"--clients", "-1"}},
		"too many clients":   {load.Options{Clients: 1_000_000}, []string{"--clients", "1000000", "60000"}},
		"both loops":         {load.Options{Clients: 1, Rate: 1}, []string{"--rate", "--clients"}},
		"rate":               {load.Options{Rate: math.Inf(1)}, []string{"--rate", "+Inf"}},
		"in flight":          {load.Options{Rate: 1, MaxInFlight: -1}, []string{"--max-in-flight", "-1"}},
		"in flight, closed":  {load.Options{MaxInFlight: 1}, []string{"--max-in-flight", "--rate"}},
		"think":              {load.Options{Think: -1}, []string{"--think", "-1ns"}},
		"think, open":        {load.Options{Think: 1, Rate: 1}, []string{"--think", "closed"}},
		"duration":           {load.Options{Duration: -time.Second}, []string{"--duration", "-1s", "30s"}},
		"requests":           {load.Options{Requests: -1}, []string{"--requests", "-1"}},
		"grace":              {load.Options{Grace: -1}, []string{"--grace"}},
		"path and index":     {load.Options{Path: "/a", Index: "b"}, []string{"--index", "--path"}},
		"relative path":      {load.Options{Path: "a"}, []string{"--path", `"a"`, "/books/_search"}},
		"path with an end":   {load.Options{Path: "/a\r\nX: y"}, []string{"--path"}},
		"index with a slash": {load.Options{Index: "a/b"}, []string{"--index", "a/b"}},
		"method":             {load.Options{Method: "GET /"}, []string{"--method"}},
		"query time":         {load.Options{QueryTime: 2 * time.Hour}, []string{"--query-time", "2h", "1h"}},
		"cost and body":      {load.Options{QueryTime: 1, Body: "{}"}, []string{"--query-time", "--body"}},
		"share":              {load.Options{CancelShare: 1.5}, []string{"--cancel-share", "1.5"}},
		"no number":          {load.Options{DisconnectShare: math.NaN()}, []string{"--disconnect-share", "NaN"}},
		"shares":             {load.Options{CancelShare: 0.6, CancelAfterShare: 0.6}, []string{"--cancel-after-share", "1.2", "at most 1"}},
		"give up":            {load.Options{GiveUp: -1}, []string{"--give-up"}},
		"cancel after":       {load.Options{CancelAfterShare: 0.1}, []string{"--cancel-after", "1ms"}},
		"user":               {load.Options{Users: []load.Weighted{{Name: "u", Weight: 1}}}, []string{"--user", `"u"`, "name:password"}},
		"admin":              {load.Options{Admin: ":secret"}, []string{"--admin", "name:password"}},
		"group":              {load.Options{Admin: "a:b", Groups: []load.Weighted{{Name: "a\nb", Weight: 1}}}, []string{"--group"}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.options.URL == "" && name != "no URL" {
				c.options.URL = url
			}
			_, err := load.Run(t.Context(), c.options)
			if _, ok := errors.AsType[*load.FlagError](err); !ok {
				t.Fatalf("%v", err)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not speak of %q", err, w)
				}
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("%q tells a password", err)
			}
		})
	}
}

func TestParseWeighted(t *testing.T) {
	for given, want := range map[string]load.Weighted{
		"a": {Name: "a", Weight: 1}, "a=3": {Name: "a", Weight: 3}, "a=0.5": {Name: "a", Weight: 0.5}, "a=b": {Name: "a=b", Weight: 1},
		"u:pass=word=2": {Name: "u:pass=word", Weight: 2}, "id==": {Name: "id==", Weight: 1},
	} {
		if got, err := load.ParseWeighted("--group", given); got != want || err != nil {
			t.Errorf("%q is %v, %v", given, got, err)
		}
	}
	for _, given := range []string{"", "=3", "a=0", "a=-1", "a=inf", "a=NaN"} {
		if got, err := load.ParseWeighted("--group", given); err == nil || !strings.Contains(err.Error(), "--group") {
			t.Errorf("%q is %v, %v", given, got, err)
		}
	}
}

func TestParseRate(t *testing.T) {
	for given, want := range map[string]float64{"200": 200, "0.5": 0.5, "200/s": 200, "1e3": 1000} {
		if got, err := load.ParseRate("--rate", given); got != want || err != nil {
			t.Errorf("%q is %v, %v", given, got, err)
		}
	}
	for _, given := range []string{"", "x", "0", "-1", "10/m", "NaN", "Inf", "1e9"} {
		if got, err := load.ParseRate("--rate", given); err == nil || !strings.Contains(err.Error(), "200/s") {
			t.Errorf("%q is %v, %v", given, got, err)
		}
	}
}
