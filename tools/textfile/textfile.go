// Package textfile is the file tools over every kind of files: read_file, write_file and
// edit_file as a Set, and for the tools that list and search, lines with numbers, patterns of
// paths and searches, all within the size of one result. Errors name the argument at fault,
// for the model.
package textfile

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits of what one call shows. A result above 32 KiB would be cut in the middle; the
// rest is room for the text around it.
const (
	maxShown = 31 << 10
	maxLines = 2000
	maxLine  = 2000 // bytes of one line
)

// ErrTooLong means that an edit would make a file longer than allowed.
var ErrTooLong = errors.New("too long")

// IsText reports whether s is valid UTF-8 without NUL.
func IsText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// Numbered shows up to limit lines of a text with their numbers, from line offset on, as
// far as there is room, and says what it left out. 0 is the default of both: 1 and 2000.
func Numbered(path, text string, offset, limit int) (string, error) {
	if offset < 0 {
		return "", fmt.Errorf("field offset: %d, want 1 or more", offset)
	}
	if limit < 0 || limit > maxLines {
		return "", fmt.Errorf("field limit: %d, want 1 to %d", limit, maxLines)
	}
	if text == "" {
		return "(the file is empty)", nil
	}
	first := max(offset, 1)
	total := strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1
	if first > total {
		return "", fmt.Errorf("field offset: %d, but %.200q has %d lines", first, path, total)
	}
	if limit == 0 {
		limit = maxLines
	}
	var b strings.Builder
	number := 0
	for line := range strings.Lines(text) {
		if number++; number < first {
			continue
		}
		l := fmt.Sprintf("%6d\t%s\n", number, Cut(strings.TrimRight(line, "\r\n"), maxLine))
		if number-first >= limit || b.Len()+len(l) > maxShown {
			fmt.Fprintf(&b, "[lines %d to %d of %d; go on with offset %d]", first, number-1, total, number)
			break
		}
		b.WriteString(l)
	}
	return b.String(), nil
}

// Cut shortens a line to limit bytes and says by how much.
func Cut(line string, limit int) string {
	if len(line) <= limit {
		return line
	}
	end := limit
	for !utf8.RuneStart(line[end]) {
		end--
	}
	return fmt.Sprintf("%s [… %d more bytes]", line[:end], len(line)-end)
}

// Edit replaces from by to in the text of a file, at one place or at all, and returns the
// number of places. ErrTooLong when the result would exceed limit bytes.
func Edit(path, text, from, to string, all bool, limit int) (string, int, error) {
	if from == "" {
		return "", 0, errors.New("field old_text: must not be empty")
	}
	if from == to {
		return "", 0, errors.New("field new_text: is the same as old_text")
	}
	if !strings.Contains(text, from) && strings.Contains(text, "\r\n") && !strings.Contains(from, "\r") {
		// Results show no carriage returns, so a model cannot know of them.
		from, to = strings.ReplaceAll(from, "\n", "\r\n"), strings.ReplaceAll(to, "\n", "\r\n")
	}
	first := strings.Index(text, from)
	if first < 0 {
		return "", 0, fmt.Errorf("field old_text: %.200q has no such text", path)
	}
	n := 1
	if all {
		n = strings.Count(text, from)
	} else if strings.LastIndex(text, from) != first {
		return "", 0, fmt.Errorf("field old_text: occurs more than once in %.200q; give more of the text around it, or all: true", path)
	}
	if len(text)+n*(len(to)-len(from)) > limit { // before it is made
		return "", 0, fmt.Errorf("%.200q would become longer than %d bytes: %w", path, limit, ErrTooLong)
	}
	return strings.Replace(text, from, to, n), n, nil
}

// Untouched reports whether an edit was surely not made: Edit can be made now, and the text of the
// file cannot be what Edit has made of it.
func Untouched(path, text, from, to string, all bool, limit int) bool {
	if strings.Contains(text, "\r\n") { // Edit may have changed from and to
		return false
	}
	_, _, err := Edit(path, text, from, to, all, limit)
	return err == nil && !mayResult(text, from, to, all)
}

// maxTrials is how many places of a text mayResult looks at; of more, it says that one may be it.
const maxTrials = 100

// mayResult reports whether a text may be the result of an edit: where to stands, from may have stood.
func mayResult(text, from, to string, all bool) bool {
	if to == "" || all {
		return strings.Contains(text, to)
	}
	for at, n := 0, 0; ; n++ {
		i := strings.Index(text[at:], to)
		if i < 0 || n == maxTrials {
			return i >= 0
		}
		i += at
		if was := text[:i] + from + text[i+len(to):]; strings.Index(was, from) == i && strings.LastIndex(was, from) == i {
			return true
		}
		at = i + 1
	}
}

// Shown joins lines as far as there is room and says how many are missing; none stands
// for no lines.
func Shown(lines []string, none string) string {
	if len(lines) == 0 {
		return none
	}
	var b strings.Builder
	for i, l := range lines {
		if b.Len()+len(l)+1 > maxShown {
			fmt.Fprintf(&b, "[%d more left out; narrow it down]", len(lines)-i)
			return b.String()
		}
		b.WriteString(l)
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}
