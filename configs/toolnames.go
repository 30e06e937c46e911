package configs

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// named notes a name or pattern of tools that a rule of approvals has.
func (r *reader) named(at place, pattern string) { r.tools = append(r.tools, item{at, pattern}) }

// UnknownTools warns of names and patterns of tools in rules of approvals that fit
// none of the known tools of claybot itself: such a rule does nothing. What may be
// tools of a server of the group mcp, whose names begin with that of the server, is
// not judged, as nobody knows them before it is asked.
func (c Config) UnknownTools(known []string) []Warning {
	var all []Warning
	for _, it := range c.toolNames {
		fits := func(tool string) bool { ok, err := path.Match(it.text, tool); return ok && err == nil }
		if slices.ContainsFunc(known, fits) || slices.ContainsFunc(c.servers, func(s string) bool { return mayBegin(it.text, s+"_") }) {
			continue
		}
		all = append(all, Warning{
			File: it.at.file, Line: it.at.line, Key: it.at.key, Near: nearest(it.text, known),
			Text: fmt.Sprintf("there is no tool %s, so this rule does nothing", quote(it.text)),
			Next: "correct it; `claybot tools` lists all names",
		})
	}
	return all
}

// mayBegin reports whether a pattern fits a text that begins with prefix and goes on
// behind it. Patterns are those of glob: * and ? alone mean something.
func mayBegin(pattern, prefix string) bool {
	before, _, star := strings.Cut(pattern, "*")
	if star && len(before) <= len(prefix) { // the star takes what is left, and more
		return fitsEach(before, prefix[:len(before)])
	}
	return len(before) > len(prefix) && fitsEach(before[:len(prefix)], prefix)
}

// fitsEach reports whether texts of one length are the same, character by character,
// where ? is any.
func fitsEach(pattern, text string) bool {
	for i := range len(pattern) {
		if pattern[i] != '?' && pattern[i] != text[i] {
			return false
		}
	}
	return true
}
