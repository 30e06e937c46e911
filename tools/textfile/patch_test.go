package textfile

import (
	"strings"
	"testing"
)

func update(lines ...string) string {
	return "*** Begin Patch\n*** Update File: a.txt\n" + strings.Join(lines, "\n") + "\n*** End Patch"
}

func TestApply(t *testing.T) {
	const file = "one\ntwo\nthree\n\ntwo\nfour\n"
	for _, tt := range []struct {
		name, text, patch, want string
		err                     string // part of it, in place of want
	}{
		{name: "replace", text: file, patch: update(" one", "-two", "+2", " three"), want: "one\n2\nthree\n\ntwo\nfour\n"},
		{name: "several", text: file, patch: update("-one", "+1", "@@", "-four", "+4", "+5"), want: "1\ntwo\nthree\n\ntwo\n4\n5\n"},
		{name: "after an anchor", text: file, patch: update("@@ three", "-two", "+2"), want: "one\ntwo\nthree\n\n2\nfour\n"},
		{name: "anchor repeated as context", text: file, patch: update("@@ three", " three", "", "-two", "+2"), want: "one\ntwo\nthree\n\n2\nfour\n"},
		{name: "anchors in a row", text: "a\nf\nx\nb\nf\nx\nc\nf\nx\n", patch: update("@@ b", "@@ f", "-x", "+y"), want: "a\nf\nx\nb\nf\ny\nc\nf\nx\n"},
		{name: "numbers of a unified diff", text: file, patch: update("@@ -1,3 +1,2 @@", " one", "-two", " three"), want: "one\nthree\n\ntwo\nfour\n"},
		{name: "insert after an anchor", text: file, patch: update("@@ three", "+3.5"), want: "one\ntwo\nthree\n3.5\n\ntwo\nfour\n"},
		{name: "at the end", text: file, patch: update("+five", endOfFile), want: file + "five\n"},
		{name: "the last of two", text: file, patch: update("-two", "+2", " four", endOfFile), want: "one\ntwo\nthree\n\n2\nfour\n"},
		{name: "empty line without its space", text: file, patch: update(" three", "", "-two"), want: "one\ntwo\nthree\n\nfour\n"},
		{name: "spaces at ends", text: "if x {  \n\tgo\n}\n", patch: update(" if x {", "-\tgo", "+\tstay"), want: "if x {  \n\tstay\n}\n"},
		{name: "carriage returns", text: "a\r\nb\r\n", patch: update(" a", "-b", "+c"), want: "a\r\nc\r\n"},
		{name: "a patch with carriage returns", text: "a\nb\n", patch: strings.ReplaceAll(update(" a", "-b", "+c"), "\n", "\r\n"), want: "a\nc\n"},
		{name: "no line end at the end", text: "a\nb", patch: update("-b", "+c", "+d"), want: "a\nc\nd"},
		{name: "more after a last line without an end", text: "a\nb", patch: update(" b", "+c"), want: "a\nb\nc"},
		{name: "into an empty file", text: "", patch: update("+a"), want: "a\n"},
		{name: "everything goes", text: "a\n", patch: update("-a"), want: ""},
		{name: "blank lines before the end", text: file, patch: update("-one", "+1", "", ""), want: "1\ntwo\nthree\n\ntwo\nfour\n"},

		{name: "twice", text: file, patch: update("-two", "+2"), err: `line 3: these lines stand in "a.txt" at line 2 and at line 5`},
		{name: "an anchor that is there twice", text: "f\nx\nf\nx\n", patch: update("@@ f", "-x", "+y"), err: "at line 2 and at line 4"},
		{name: "no anchor", text: file, patch: update("@@ nine", "-two", "+2"), err: `the line after @@, "nine", is not in "a.txt" behind line 0`},
		{name: "nearest", text: file, patch: update(" one", " TWO", "-three"), err: `line 3: these lines are not in "a.txt"; nearest: line 2 is another than "TWO"; read the file again`},
		{name: "two anchors, the first in two places", text: "A\nf\nx\ny\nB\nf\nx\ny\n", patch: update("@@ f", "@@ x", "-y", "+z"), err: `line 3: these lines stand in "a.txt" at line 4 and at line 8`},
		{name: "nearest before the file", text: file, patch: update(" zero", " one", "-two"), err: `line 1, but the patch has "zero" before it`},
		{name: "nearest at the end", text: file, patch: update(" four", "-five"), err: `line 6, but the file ends before "five"`},
		{name: "none", text: file, patch: update("-other"), err: "none of them; read the file again"},
		{name: "order", text: file, patch: update("-four", "+4", "@@", "-one", "+1"), err: `line 5: these lines stand in "a.txt" at line 1, before the place of an earlier change`},
		{name: "not at the end", text: file, patch: update("-three", endOfFile), err: `these lines are not at the end of "a.txt" but at line 3`},
		{name: "nowhere", text: file, patch: update("+five"), err: "unclear where"},

		{name: "unified", patch: "--- a/x\n+++ b/x\n", err: `line 1: want "*** Begin Patch", not "--- a/x"; unified diffs are not read`},
		{name: "nothing", patch: "", err: "want \"*** Begin Patch\""},
		{name: "no change", patch: "*** Begin Patch\n*** End Patch", err: "changes no file"},
		{name: "no end", patch: "*** Begin Patch\n*** Add File: a\n+x", err: `line 4: the patch ends without "*** End Patch"`},
		{name: "text behind", patch: update("-a") + "\nmore", err: "line 5: text after"},
		{name: "bad line", patch: update(" one", "two"), err: `line 4: a line begins with a space if it stays`},
		{name: "no path", patch: "*** Begin Patch\n*** Add File:\n*** End Patch", err: "line 2: *** Add File: names no file"},
		{name: "no new path", patch: update("*** Move to: "), err: "line 3: *** Move to: names no file"},
		{name: "no hunk", patch: "*** Begin Patch\n*** Update File: a\n*** End Patch", err: `line 3: no change of "a" follows`},
		{name: "hunk without changes", patch: update("@@ x", " y"), err: "line 3: no line after it begins with - or +"},
		{name: "lines of a deleted file", patch: "*** Begin Patch\n*** Delete File: a\n-x\n*** End Patch", err: "line 3: want"},
		{name: "NUL", patch: "*** Begin Patch\x00", err: "is not text"},
		{name: "long", patch: strings.Repeat("x", maxPatch+1), err: "1048577 bytes, the limit is 1048576"},
		{name: "many files", patch: "*** Begin Patch\n" + strings.Repeat("*** Delete File: a\n", 51), err: "more than 50 files"},
		{name: "many hunks", patch: update(strings.Repeat("@@\n-x\n", 501)), err: "more than 500 changes"},
	} {
		got, err := func() (string, error) {
			changes, err := ParsePatch(tt.patch)
			if err != nil {
				return "", err
			}
			return changes[0].Apply(tt.text)
		}()
		switch {
		case tt.err == "" && (err != nil || got != tt.want):
			t.Errorf("%s: %q, %v\nwant %q", tt.name, got, err, tt.want)
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("%s: %q, %v\nwant an error with %q", tt.name, got, err, tt.err)
		}
	}
}

// Whatever a patch says, it is an error, or it can be applied to the file that it was made for:
// the lines that stay and go give the file, those that stay and come the result.
func FuzzPatch(f *testing.F) {
	f.Add(update(" one", "-two", "+2"))
	f.Add(update("@@ a", "@@ -1 +1 @@ b", "", "-x", endOfFile))
	f.Add("*** Begin Patch\r\n*** Add File: a\r\n+x\r\n*** Delete File: b\r\n*** Update File: c\n*** Move to: d\n@@\n+y\n*** End of File\n*** End Patch\n\n")
	f.Fuzz(func(t *testing.T, patch string) {
		changes, err := ParsePatch(patch)
		if err != nil {
			return
		}
		for _, c := range changes {
			if c.Path == "" {
				t.Fatal("a change without a path")
			}
			if c.Kind != updateFile {
				continue
			}
			var was, want []string
			anchored := false
			for _, h := range c.hunks {
				anchored = anchored || len(h.anchors) > 0
				for _, l := range h.lines {
					if l.sign != '+' {
						was = append(was, l.text)
					}
					if l.sign != '-' {
						want = append(want, l.text)
					}
				}
			}
			got, err := c.Apply(strings.Join(was, "\n") + "\n")
			if len(c.hunks) != 1 || anchored || err != nil || len(was) == 0 {
				continue
			}
			if w := strings.Join(want, "\n") + "\n"; len(want) > 0 && got != w {
				t.Fatalf("got %q, want %q", got, w)
			}
		}
	})
}

// Neither the file nor the patch makes a search long.
func TestLongRepetition(t *testing.T) {
	file := strings.Repeat("x\n", 1<<19)
	changes, err := ParsePatch(update(strings.Repeat(" x\n", 1<<17), "-y"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := changes[0].Apply(file); err == nil {
		t.Error("lines that are not there are found")
	}
}
