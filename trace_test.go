package claybot

import (
	"strings"
	"testing"
)

// The rules of the header, and the examples of its specification.
func TestParseTrace(t *testing.T) {
	const id, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	whole := Trace{ID: id, Span: span}
	for _, tt := range []struct {
		header string
		want   Trace
	}{
		{"00-" + id + "-" + span + "-01", whole},
		{"00-" + id + "-" + span + "-00", Trace{ID: id, Span: span, Unsampled: true}},
		{"00-" + id + "-" + span + "-03", whole},
		{"cc-" + id + "-" + span + "-01", whole},
		{"cc-" + id + "-" + span + "-01-what-comes-later", whole},
		{"cc-" + id + "-" + span + "-01.what", Trace{}},
		{"00-" + id + "-" + span + "-01-more", Trace{}},
		{"ff-" + id + "-" + span + "-01", Trace{}},
		{"00-" + strings.Repeat("0", 32) + "-" + span + "-01", Trace{}},
		{"00-" + id + "-" + strings.Repeat("0", 16) + "-01", Trace{}},
		{"00-" + strings.ToUpper(id) + "-" + span + "-01", Trace{}},
		{"00-" + id + "-" + span + "-0A", Trace{}},
		{"00-" + id + "-" + span + "-zz", Trace{}},
		{"00_" + id + "-" + span + "-01", Trace{}},
		{"00-" + id + "-" + span, Trace{}},
		{"cc-" + id + "-" + span + "-01-" + strings.Repeat("x", 600), Trace{}},
		{"", Trace{}},
		{"é", Trace{}},
	} {
		got := ParseTrace(tt.header)
		if got != tt.want {
			t.Errorf("%q: %+v, want %+v", tt.header, got, tt.want)
		}
		if again := ParseTrace(got.String()); again != got {
			t.Errorf("%q becomes %q", tt.header, got.String())
		}
	}
}
