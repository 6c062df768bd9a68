// Command publish puts what was measured into a page: it replaces each block
//
//	<!-- measured: ID -->
//	...
//	<!-- end -->
//
// by the table of that id, and that of the id goals by how the figures compare with what they ought to be. It draws the plot of
// admission.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"

	"github.com/wlmserver/wlmserver/bench/internal/report"
)

func main() {
	page := flag.String("page", "", "the Markdown `file` to fill in")
	plot := flag.String("plot", "", "the SVG `file` to draw, from the report of peers")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: publish [-page FILE] [-plot FILE] REPORT.json...\nprints the goals when the reports have all that they need")
		flag.PrintDefaults()
	}
	flag.Parse()
	if err := publish(*page, *plot, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "publish:", err)
		os.Exit(1)
	}
}

func publish(page, plot string, files []string) error {
	var reports []*report.Report
	for _, file := range files {
		r, err := report.Read(file)
		if err != nil {
			return err
		}
		reports = append(reports, r)
		if plot != "" && r.Program == "peers" {
			var b bytes.Buffer
			draw(&b, r)
			if err := os.WriteFile(plot, b.Bytes(), 0o644); err != nil {
				return err
			}
		}
	}
	goals := goalTable(reports)
	fmt.Print(goals)
	if page == "" {
		return nil
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	for _, r := range reports {
		text = r.Fill(text)
	}
	if goals != "" {
		text = report.Replace(text, "goals", goals)
	}
	return os.WriteFile(page, text, 0o644)
}
