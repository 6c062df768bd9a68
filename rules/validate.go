package rules

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Validate checks everything that can be said of a rule without regard to others and to
// groups. The error is an *InvalidError with all that is wrong.
func (r *Rule) Validate() error {
	if problems := r.problems(); problems != nil {
		return invalid(problems...)
	}
	return nil
}

func (r *Rule) problems() []string {
	var all []string
	switch n := utf8.RuneCountInString(r.Description); {
	case n == 0:
		all = append(all, "[description] is missing or empty; say in a few words what the rule is for")
	case n > MaxDescriptionLength:
		all = append(all, fmt.Sprintf("the value [%s] of [description] has %d characters; give at most %d", abridge(r.Description), n, MaxDescriptionLength))
	}
	if len(r.Indices) == 0 && !r.named() {
		all = append(all, "the rule has no attribute; give at least one of [index_pattern], [principal.username] and [principal.role]")
	}
	for _, attribute := range []string{IndexPattern, Username, Role} {
		all = append(all, problemsOf(attribute, r.Values(attribute))...)
	}
	if r.Group == "" {
		all = append(all, "[workload_group] is missing or empty; give the _id of a workload group")
	}
	return all
}

// problemsOf checks the patterns of one attribute.
func problemsOf(attribute string, values []string) []string {
	var all []string
	if len(values) > MaxValues {
		all = append(all, fmt.Sprintf("[%s] has more than %d patterns; make two rules", attribute, MaxValues))
		values = values[:MaxValues]
	}
	for _, value := range values {
		if n := utf8.RuneCountInString(value); n < 1 || n > MaxValueLength {
			all = append(all, fmt.Sprintf("the pattern [%s] of [%s] has %d characters; give 1 to %d", abridge(value), attribute, n, MaxValueLength))
		}
		if i := strings.Index(value, wildcard); i >= 0 && i != len(value)-1 {
			all = append(all, fmt.Sprintf("the pattern [%s] of [%s] has a * before its end; only one * may be in it, as its last character", abridge(value), attribute))
		}
	}
	return all
}
