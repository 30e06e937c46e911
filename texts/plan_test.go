package texts

import (
	"fmt"
	"strings"
	"testing"
)

// Each reason that is stored in English is said in another language, with its values, and none as another.
func TestPlanReason(t *testing.T) {
	german := Voice{Language: German}
	for _, text := range planReasons {
		values := []any{"a b", "c: %s", "d"}[:strings.Count(text, "%s")]
		english := fmt.Sprintf(text, values...)
		if got, want := german.PlanReason(english), german.Say(text, values...); got != want || got == english {
			t.Errorf("%q is %q, want %q", english, got, want)
		}
		if got := (Voice{}).PlanReason(english); got != english {
			t.Errorf("%q is %q in English", english, got)
		}
	}
	for english, want := range map[string]string{
		"not approved: it failed":  "nicht genehmigt: it failed",
		"":                         "",
		"a rule of the operator":   "a rule of the operator",
		"it is quiet until ":       "bis  ist Ruhezeit",
		"not approved by 2 people": "not approved by 2 people",
	} {
		if got := german.PlanReason(english); got != want {
			t.Errorf("%q is %q, want %q", english, got, want)
		}
	}
}
