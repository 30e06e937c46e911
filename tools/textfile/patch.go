package textfile

import (
	"fmt"
	"strings"
)

// Limits of a patch.
const (
	maxPatch      = 1 << 20 // bytes
	maxPatchFiles = 50
	maxHunks      = 500 // of one file
)

// The words of a patch.
const (
	beginPatch = "*** Begin Patch"
	endPatch   = "*** End Patch"
	endOfFile  = "*** End of File"
	moveTo     = "*** Move to:"
	addFile    = "*** Add File:"
	deleteFile = "*** Delete File:"
	updateFile = "*** Update File:"
)

// A Change is what a patch does to one file.
type Change struct {
	Kind string // addFile, deleteFile, updateFile
	Path string
	To   string // the new path of an updated file; empty: it stays
	Text string // of a file that is added

	line  int // of the patch
	hunks []hunk
}

// A hunk replaces lines of a file, at the one place where they stand.
type hunk struct {
	line    int      // of the patch
	anchors []string // lines that stand before it in the file, in this order
	lines   []hunkLine
	end     bool // it ends where the file ends
}

// A hunkLine is a line that stays (' '), goes ('-') or comes ('+').
type hunkLine struct {
	sign byte
	text string
}

// ParsePatch reads a patch: changes of files between *** Begin Patch and *** End Patch. Errors
// name the line of the patch.
func ParsePatch(patch string) ([]Change, error) {
	if len(patch) > maxPatch {
		return nil, fmt.Errorf("field patch: %d bytes, the limit is %d", len(patch), maxPatch)
	}
	if !IsText(patch) {
		return nil, fmt.Errorf("field patch: it is not text")
	}
	p := patchReader{lines: strings.Split(patch, "\n")}
	p.blank()
	if p.word() != beginPatch {
		return nil, p.errorf("want %q, not %.80q; unified diffs are not read", beginPatch, p.line())
	}
	p.at++
	var all []Change
	for p.blank(); p.word() != endPatch; p.blank() {
		c, err := p.change()
		if err != nil {
			return nil, err
		}
		if all = append(all, c); len(all) > maxPatchFiles {
			return nil, p.errorf("more than %d files; make several patches", maxPatchFiles)
		}
	}
	if len(all) == 0 {
		return nil, p.errorf("the patch changes no file")
	}
	p.at++
	if p.blank(); p.at < len(p.lines) {
		return nil, p.errorf("text after %q: %.80q", endPatch, p.line())
	}
	return all, nil
}

type patchReader struct {
	lines []string
	at    int
}

func (p *patchReader) errorf(format string, args ...any) error {
	return fmt.Errorf("field patch: line %d: %w", p.at+1, fmt.Errorf(format, args...))
}

// line is the current line; empty behind the last one.
func (p *patchReader) line() string {
	if p.at < len(p.lines) {
		return strings.TrimSuffix(p.lines[p.at], "\r")
	}
	return ""
}

// word is the current line as one of the words of a patch; empty if it is none.
func (p *patchReader) word() string {
	if l := p.line(); strings.HasPrefix(l, "***") {
		return strings.TrimRight(l, " \t")
	}
	return ""
}

// blank skips empty lines.
func (p *patchReader) blank() {
	for p.at < len(p.lines) && strings.TrimSpace(p.lines[p.at]) == "" {
		p.at++
	}
}

func (p *patchReader) change() (Change, error) {
	for _, kind := range []string{addFile, deleteFile, updateFile} {
		name, ok := strings.CutPrefix(p.word(), kind)
		if !ok {
			continue
		}
		c := Change{Kind: kind, Path: strings.TrimSpace(name), line: p.at + 1}
		if c.Path == "" {
			return c, p.errorf("%s names no file", kind)
		}
		p.at++
		var err error
		switch kind {
		case addFile:
			c.Text = p.added()
		case updateFile:
			err = p.updated(&c)
		}
		return c, err
	}
	if p.at >= len(p.lines) {
		return Change{}, p.errorf("the patch ends without %q", endPatch)
	}
	return Change{}, p.errorf("want %q, %q, %q with a path, or %q, not %.80q", addFile, updateFile, deleteFile, endPatch, p.line())
}

// added reads the content of a new file.
func (p *patchReader) added() string {
	var b strings.Builder
	for ; p.at < len(p.lines); p.at++ {
		text, ok := strings.CutPrefix(p.lines[p.at], "+")
		if !ok {
			break
		}
		b.WriteString(text)
		b.WriteByte('\n')
	}
	return b.String()
}

func (p *patchReader) updated(c *Change) error {
	if to, ok := strings.CutPrefix(p.word(), moveTo); ok {
		if c.To = strings.TrimSpace(to); c.To == "" {
			return p.errorf("%s names no file", moveTo)
		}
		p.at++
	}
	for p.blank(); p.at < len(p.lines) && p.word() == ""; p.blank() {
		h, err := p.hunk()
		if err != nil {
			return err
		}
		if c.hunks = append(c.hunks, h); len(c.hunks) > maxHunks {
			return p.errorf("more than %d changes of %.200q; make several patches", maxHunks, c.Path)
		}
	}
	if len(c.hunks) == 0 && c.To == "" {
		return p.errorf("no change of %.200q follows", c.Path)
	}
	return nil
}

func (p *patchReader) hunk() (hunk, error) {
	h := hunk{line: p.at + 1}
	for strings.HasPrefix(p.line(), "@@") {
		if a := anchor(p.line()); a != "" {
			h.anchors = append(h.anchors, a)
		}
		p.at++
	}
	changes, empty := false, 0 // empty: lines at the end that are nothing but that
	for ; p.at < len(p.lines) && p.word() == "" && !strings.HasPrefix(p.line(), "@@"); p.at++ {
		l := p.line()
		if l == "" {
			h.lines = append(h.lines, hunkLine{sign: ' '}) // written without its space
			empty++
			continue
		}
		if !strings.ContainsRune(" -+", rune(l[0])) {
			return h, p.errorf("a line begins with a space if it stays, - if it goes, + if it comes; this is %.80q", l)
		}
		h.lines = append(h.lines, hunkLine{l[0], l[1:]})
		changes, empty = changes || l[0] != ' ', 0
	}
	h.lines = h.lines[:len(h.lines)-empty]
	if h.end = p.word() == endOfFile; h.end {
		p.at++
	}
	if !changes {
		return h, fmt.Errorf("field patch: line %d: no line after it begins with - or +", h.line)
	}
	return h, nil
}

// anchor is the line that @@ names; empty for none. The numbers of unified diffs say nothing
// here.
func anchor(line string) string {
	text := strings.TrimSpace(strings.TrimPrefix(line, "@@"))
	if numbers, rest, ok := strings.Cut(text, "@@"); ok && strings.HasPrefix(numbers, "-") {
		text = strings.TrimSpace(rest)
	}
	return text
}
