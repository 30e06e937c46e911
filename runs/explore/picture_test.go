package explore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/claybot/claybot/devices"
	"github.com/claybot/claybot/runs/explore"
)

var hostile = []string{
	`<script>alert(1)</script>`, `"><image href="http://evil.test/x"/>`, "a\x00b\x1b[2J\u202e\ufffe\uffff", "]]>&amp;", "\xff\xfe", strings.Repeat("é", 5000),
}

// Whatever screens are called, the picture is one XML document that loads nothing
// and runs nothing.
func TestPictureIsXML(t *testing.T) {
	var out explore.Output
	for i, bad := range hostile {
		id := fmt.Sprint("s", i)
		out.Screens = append(out.Screens, explore.FoundScreen{ID: id, Title: bad, URL: "http://a.test/" + bad, Depth: i - 1, Dead: i%2 == 0})
		out.Transitions = append(out.Transitions, explore.Transition{From: "s0", To: id, Label: bad}, explore.Transition{From: id, To: bad, Label: bad})
		out.Errors = append(out.Errors, explore.Fault{Screen: id, Text: bad})
	}
	out.URL = hostile[0]
	svg := explore.Picture(out)
	wellFormed(t, svg)
	for _, bad := range []string{"<script", "<image", "\x00", "xlink", "url(http"} {
		if strings.Contains(string(svg), bad) {
			t.Errorf("the picture has %q", bad)
		}
	}
	contains(t, string(svg), "dead end", "&lt;script&gt;")
	wellFormed(t, explore.Picture(explore.Output{}))
}

// Boxes do not lie on each other, and 200 screens are drawn.
func TestPictureLayout(t *testing.T) {
	var out explore.Output
	for i := range 230 {
		out.Screens = append(out.Screens, explore.FoundScreen{ID: fmt.Sprint("s", i), Title: fmt.Sprint("Screen ", i), Depth: i % 7})
		out.Transitions = append(out.Transitions, explore.Transition{From: "s0", To: fmt.Sprint("s", i), Kind: devices.Click})
	}
	svg := string(explore.Picture(out))
	wellFormed(t, []byte(svg))
	seen := make(map[[2]int]bool)
	for _, line := range strings.Split(svg, "\n") {
		var x, y, width, height int
		if _, rect, ok := strings.Cut(line, "<rect "); ok {
			if _, err := fmt.Sscanf(rect[strings.Index(rect, "x="):], `x="%d" y="%d" width="%d" height="%d"`, &x, &y, &width, &height); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if seen[[2]int{x, y}] {
				t.Errorf("two boxes at %d, %d", x, y)
			}
			seen[[2]int{x, y}] = true
		}
	}
	if len(seen) != 200 {
		t.Errorf("%d boxes", len(seen))
	}
	for a := range seen {
		for b := range seen {
			if a != b && a[1] == b[1] && max(a[0]-b[0], b[0]-a[0]) < 176 {
				t.Fatalf("boxes at %v and %v overlap", a, b)
			}
		}
	}
}
