package wlm_test

import (
	"testing"
	"testing/synctest"

	"github.com/wlmserver/wlmserver/wlm"
)

// TestSurveyBesideArrivals: one who parks after the line was walked is behind it.
func TestSurveyBesideArrivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		defer h.done()
		r := wlm.Request{Group: h.create("g", limits("group", 1, -1, 5))}
		all := h.startAll(3, r)
		survey := h.Survey()
		if s, ok := survey.Status(all[2].ticket); !ok || s.Position != 2 {
			t.Errorf("status %+v, %v", s, ok)
		}
		all = append(all, h.startAll(1, r)...)
		if s, ok := survey.Status(all[3].ticket); !ok || s.Position != 3 {
			t.Errorf("status of the one that has just come: %+v, %v", s, ok)
		}
		finishAll(all)
	})
}
