package textfile

import (
	"fmt"
	"slices"
	"strings"
)

// Apply returns the text of an updated file. Each hunk is applied where its lines stand in the
// file: at one place behind the hunk before it, also where spaces at the ends of lines differ.
// Line ends stay as they are; new lines have that of the first line. Errors name the line of
// the patch and the nearest place in the file.
func (c Change) Apply(text string) (string, error) {
	f := patched{path: c.Path, lines: splitLines(text), eol: "\n"}
	if len(f.lines) > 0 && strings.HasSuffix(f.lines[0], "\r\n") {
		f.eol = "\r\n"
	}
	f.forms = [][]string{mapped(f.lines, plainLine), mapped(f.lines, looseLine)}
	open := text != "" && !strings.HasSuffix(text, "\n")
	var b strings.Builder
	for _, h := range c.hunks {
		at, err := f.find(h)
		if err != nil {
			return "", fmt.Errorf("field patch: line %d: %w", h.line, err)
		}
		f.copy(&b, at)
		for _, l := range h.lines {
			switch l.sign {
			case '+':
				f.end(&b)
				b.WriteString(l.text + f.eol)
			case '-':
				f.next++
			default:
				f.copy(&b, f.next+1)
			}
		}
	}
	f.copy(&b, len(f.lines))
	if open {
		return strings.TrimSuffix(b.String(), f.eol), nil
	}
	return b.String(), nil
}

// patched is a file whose lines up to next are done.
type patched struct {
	path  string
	lines []string   // with their ends
	forms [][]string // the lines as they are compared: without their ends, and without spaces there
	eol   string
	next  int
	open  bool // the last line that was copied has no end
}

func splitLines(text string) []string {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// copy writes the lines of the file up to a line.
func (f *patched) copy(b *strings.Builder, to int) {
	for ; f.next < to; f.next++ {
		f.end(b)
		b.WriteString(f.lines[f.next])
		f.open = !strings.HasSuffix(f.lines[f.next], "\n")
	}
}

// end gives the last line of a file without a line end one, where others follow it.
func (f *patched) end(b *strings.Builder) {
	if f.open {
		b.WriteString(f.eol)
		f.open = false
	}
}

// find returns the line of the file at which a hunk applies.
func (f *patched) find(h hunk) (int, error) {
	var old []string
	for _, l := range h.lines {
		if l.sign != '+' {
			old = append(old, l.text)
		}
	}
	from, sure, err := f.anchored(h)
	if err != nil {
		return 0, err
	}
	if len(old) == 0 {
		switch {
		case h.end || len(f.lines) == 0:
			return len(f.lines), nil
		case len(h.anchors) > 0 && sure:
			return from + 1, nil
		}
		return 0, fmt.Errorf("it is unclear where these lines of %.200q go: give lines around them, or %q", f.path, endOfFile)
	}
	for i, form := range []func(string) string{plainLine, looseLine} {
		file, want := f.forms[i], mapped(old, form)
		var places []int
		if h.end {
			if at := len(file) - len(want); at >= from && slices.Equal(file[at:], want) {
				places = []int{at}
			}
		} else {
			places = occurrences(file, want, from, 2)
		}
		switch {
		case len(places) == 1 || len(places) > 1 && len(h.anchors) > 0 && sure:
			return places[0], nil
		case len(places) > 1:
			return 0, fmt.Errorf("these lines stand in %.200q at line %d and at line %d; give more lines around them, or a line before them after @@", f.path, places[0]+1, places[1]+1)
		}
	}
	return 0, f.missing(old, h.end)
}

// anchored returns where to look for the lines of a hunk; sure: the anchors fit one place.
func (f *patched) anchored(h hunk) (from int, sure bool, err error) {
	from, sure = f.next, true
	if len(h.anchors) == 0 {
		return from, sure, nil
	}
	file := mapped(f.lines, strings.TrimSpace)
	for i, a := range h.anchors {
		if i > 0 {
			from++
		}
		places := occurrences(file, []string{strings.TrimSpace(a)}, from, 2)
		if len(places) == 0 {
			return 0, false, fmt.Errorf("the line after @@, %.200q, is not in %.200q behind line %d", a, f.path, from)
		}
		from, sure = places[0], sure && (i > 0 || len(places) == 1)
	}
	return from, sure, nil
}

// missing says where lines nearly stand that are not in the file. It quotes the patch alone:
// what the file has may be untrusted, and an error taints nothing.
func (f *patched) missing(old []string, end bool) error {
	file, want := f.forms[1], mapped(old, looseLine)
	if before := occurrences(file, want, 0, 1); len(before) > 0 {
		if end {
			return fmt.Errorf("these lines are not at the end of %.200q but at line %d", f.path, before[0]+1)
		}
		return fmt.Errorf("these lines stand in %.200q at line %d, before the place of an earlier change or of @@; write changes in the order of the file", f.path, before[0]+1)
	}
	at, fits := nearest(file, want)
	if fits == 0 {
		return fmt.Errorf("these lines are not in %.200q, none of them; read the file again", f.path)
	}
	for i, w := range want {
		switch n := at + i; {
		case n < 0:
			return fmt.Errorf("these lines are not in %.200q; nearest: line 1, but the patch has %.200q before it", f.path, old[i])
		case n >= len(file):
			return fmt.Errorf("these lines are not in %.200q; nearest: line %d, but the file ends before %.200q", f.path, max(at, 0)+1, old[i])
		case file[n] != w:
			return fmt.Errorf("these lines are not in %.200q; nearest: line %d is another than %.200q; read the file again", f.path, n+1, old[i])
		}
	}
	return nil // not reached: they would fit at that place
}

// nearest returns where most of the wanted lines stand in a file, judged by lines that stand
// there once, and how many do; 0 for none.
func nearest(file, want []string) (at, fits int) {
	const most = 50 // lines that are tried
	where := make(map[string]int, len(file))
	for i, l := range file {
		if _, twice := where[l]; twice {
			i = -1
		}
		where[l] = i
	}
	tried := 0
	for i, w := range want {
		n, ok := where[w]
		if !ok || n < 0 || w == "" {
			continue
		}
		same := 0
		for k := range want {
			if p := n - i + k; p >= 0 && p < len(file) && file[p] == want[k] {
				same++
			}
		}
		if same > fits {
			at, fits = n-i, same
		}
		if tried++; tried == most {
			break
		}
	}
	return at, fits
}

func plainLine(l string) string { return strings.TrimRight(l, "\r\n") }
func looseLine(l string) string { return strings.TrimRight(l, " \t\r\n") }

func mapped(lines []string, fn func(string) string) []string {
	all := make([]string, len(lines))
	for i, l := range lines {
		all[i] = fn(l)
	}
	return all
}

// occurrences returns the first places, at most so many, at which want stands in lines, from a
// line on. Its time is linear, whatever the lines (Knuth, Morris, Pratt).
func occurrences(lines, want []string, from, most int) (places []int) {
	back := make([]int, len(want)+1) // the length of the longest border of each beginning
	for i, k := 1, 0; i < len(want); i++ {
		for k > 0 && want[i] != want[k] {
			k = back[k]
		}
		if want[i] == want[k] {
			k++
		}
		back[i+1] = k
	}
	k := 0
	for i := from; i < len(lines) && len(places) < most; i++ {
		for k > 0 && (k == len(want) || lines[i] != want[k]) {
			k = back[k]
		}
		if lines[i] == want[k] {
			k++
		}
		if k == len(want) {
			places = append(places, i+1-k)
		}
	}
	return places
}
