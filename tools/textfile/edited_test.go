package textfile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/claybot/claybot/tools"
)

func TestEdited(t *testing.T) {
	for _, tt := range []struct {
		text, from, to string
		all            bool
		want           tools.Probed
	}{
		{"one two", "one", "1", false, tools.NotDone},
		{"1 two", "one", "1", false, tools.Done},
		{"one two", "one", "one and", false, tools.NotDone},
		{"one and two", "one", "one and", false, tools.Unknown}, // it may be the second edit
		{"one two", "one", "", false, tools.Unknown},
		{"two", "one", "", false, tools.Done},
		{"three", "one", "two", false, tools.Unknown}, // neither
		{"a a", "a", "b", false, tools.Unknown},       // it was refused
		{"a a b", "a", "b", true, tools.Unknown},
		{"a a", "a", "b", true, tools.NotDone},
		{"b b", "a", "b", true, tools.Done},
		{"one\r\ntwo", "one\ntwo", "1\n2", false, tools.Unknown},
		{strings.Repeat("b", 200), "a", "b", false, tools.Done},
	} {
		if got := Edited("f", tt.text, tt.from, tt.to, tt.all, 1000); got != tt.want {
			t.Errorf("%q, %q for %q, all %v: %v, want %v", tt.text, tt.to, tt.from, tt.all, got, tt.want)
		}
	}
}

// For all short texts: after an edit the file never says that it was not made, and before it never that it was.
func TestEditedOfAll(t *testing.T) {
	texts := []string{""}
	for i := 0; len(texts[i]) < 5; i++ {
		texts = append(texts, texts[i]+"a", texts[i]+"b")
	}
	for _, text := range texts {
		for _, from := range texts[1:15] {
			for _, to := range texts[:15] {
				for _, all := range []bool{false, true} {
					after, _, err := Edit("f", text, from, to, all, 1000)
					if err != nil {
						continue
					}
					what := fmt.Sprintf("%q, %q for %q, all %v", text, to, from, all)
					if Edited("f", after, from, to, all, 1000) == tools.NotDone {
						t.Errorf("%s: %q counts as not edited", what, after)
					}
					if Edited("f", text, from, to, all, 1000) == tools.Done {
						t.Errorf("%s counts as edited", what)
					}
				}
			}
		}
	}
}
