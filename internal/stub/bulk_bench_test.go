package stub_test

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkBulk stores a thousand documents, again and again the same.
func BenchmarkBulk(b *testing.B) {
	f := newFixture(b)
	f.index("logs", 5, "")
	var body strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&body, `{"index":{"_id":"%d"}}`+"\n"+`{"n":%d,"text":"some text"}`+"\n", i, i)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.engine.Bulk("logs", []byte(body.String())); err != nil {
			b.Fatal(err)
		}
	}
}
