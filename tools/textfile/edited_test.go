package textfile

import (
	"strings"
	"testing"
)

func TestUntouched(t *testing.T) {
	for _, tt := range []struct {
		text, from, to string
		all            bool
		want           bool
	}{
		{"one two", "one", "1", false, true},
		{"1 two", "one", "1", false, false},
		{"one two", "one", "one and", false, true},
		{"one and two", "one", "one and", false, false}, // it may be the second edit
		{"one two", "one", "", false, false},
		{"two", "one", "", false, false},
		{"three", "one", "two", false, false}, // neither
		{"a a", "a", "b", false, false},       // it was refused
		{"a a b", "a", "b", true, false},
		{"a a", "a", "b", true, true},
		{"b b", "a", "b", true, false},
		{"one\r\ntwo", "one\ntwo", "1\n2", false, false},
		{strings.Repeat("b", 200), "a", "b", false, false},
	} {
		if got := Untouched("f", tt.text, tt.from, tt.to, tt.all, 1000); got != tt.want {
			t.Errorf("%q, %q for %q, all %v: %v, want %v", tt.text, tt.to, tt.from, tt.all, got, tt.want)
		}
	}
}

// For all short texts: after an edit the file never says that it was not made.
func TestUntouchedOfAll(t *testing.T) {
	texts := []string{""}
	for i := 0; len(texts[i]) < 5; i++ {
		texts = append(texts, texts[i]+"a", texts[i]+"b")
	}
	for _, text := range texts {
		for _, from := range texts[1:15] {
			for _, to := range texts[:15] {
				for _, all := range []bool{false, true} {
					after, _, err := Edit("f", text, from, to, all, 1000)
					if err == nil && Untouched("f", after, from, to, all, 1000) {
						t.Errorf("%q, %q for %q, all %v: %q counts as not edited", text, to, from, all, after)
					}
				}
			}
		}
	}
}
