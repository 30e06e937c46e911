package textfile

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const (
	maxHits    = 200
	maxHitLine = 300 // bytes of a line
)

// A Finder collects the lines that match an expression, up to the limits of one result.
type Finder struct {
	Full    bool // there are more lines
	Unseen  bool // some files were not searched
	Skipped int  // files that are not text or too long

	re    *regexp.Regexp
	only  Pattern
	lines []string
	names []string
	size  int
}

// NewFinder parses the arguments pattern, a regular expression, and glob, which may be
// empty.
func NewFinder(pattern, glob string) (*Finder, error) {
	if pattern == "" || len(pattern) > maxPattern {
		return nil, fmt.Errorf("field pattern: %d bytes, want 1 to %d", len(pattern), maxPattern)
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("field pattern: %w", err)
	}
	f := &Finder{re: re}
	if glob != "" {
		if f.only, err = NewPattern("glob", glob); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Wants reports whether to search the file with a path, seen from the folder that is
// searched.
func (f *Finder) Wants(path string) bool { return f.only == nil || f.only.Match(path) }

// Search adds the matching lines of the file with a name. Nothing happens once f is Full.
func (f *Finder) Search(name, text string) {
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\r\n")
		if f.Full || !f.re.MatchString(line) {
			continue
		}
		hit := fmt.Sprintf("%s:%d: %s", name, number, Cut(line, maxHitLine))
		if len(f.lines) == maxHits || f.size+len(hit)+1 > maxShown {
			f.Full = true
			return
		}
		f.lines = append(f.lines, hit)
		f.size += len(hit) + 1
		if !slices.Contains(f.names, name) {
			f.names = append(f.names, name)
		}
	}
}

// Names are the files with matching lines.
func (f *Finder) Names() []string { return f.names }

// String is the result, with notes about what is missing.
func (f *Finder) String() string {
	lines := slices.Clone(f.lines)
	if len(lines) == 0 {
		lines = []string{"(no line fits)"}
	}
	if f.Full {
		lines = append(lines, "[there are more lines; narrow it down]")
	}
	if f.Unseen {
		lines = append(lines, "[not all files were searched; name a folder with fewer]")
	}
	switch {
	case f.Skipped == 1:
		lines = append(lines, "[left out because they are not text or too long: 1 file]")
	case f.Skipped > 1:
		lines = append(lines, fmt.Sprintf("[left out because they are not text or too long: %d files]", f.Skipped))
	}
	return strings.Join(lines, "\n")
}
