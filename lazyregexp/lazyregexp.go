// Package lazyregexp compiles regular expressions when they are first used. It is for
// package-level patterns: a start compiles the few that it matches, not the hundred
// that the process may match one day. It follows internal/lazyregexp of the standard
// library. It imports nothing of claybot, so every package may use it.
package lazyregexp

import (
	"os"
	"regexp"
	"strings"
	"sync"
)

// A Regexp is a regular expression that is compiled once, by the first call of a method.
// It is safe for concurrent use.
type Regexp struct {
	expr string
	once func() *regexp.Regexp
}

// inTest makes New compile at once, so that tests find every invalid pattern.
var inTest = len(os.Args) > 0 && strings.HasSuffix(strings.TrimSuffix(os.Args[0], ".exe"), ".test")

// New returns the regular expression expr. Its first use panics if expr is invalid; in
// tests New does.
func New(expr string) *Regexp {
	re := &Regexp{expr, sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })}
	if inTest {
		re.once()
	}
	return re
}

// String returns the text that New was called with.
func (re *Regexp) String() string { return re.expr }

// FindAllStringIndex is the method of [regexp.Regexp].
func (re *Regexp) FindAllStringIndex(s string, n int) [][]int {
	return re.once().FindAllStringIndex(s, n)
}

// FindAllStringSubmatch is the method of [regexp.Regexp].
func (re *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return re.once().FindAllStringSubmatch(s, n)
}

// FindAllStringSubmatchIndex is the method of [regexp.Regexp].
func (re *Regexp) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return re.once().FindAllStringSubmatchIndex(s, n)
}

// FindString is the method of [regexp.Regexp].
func (re *Regexp) FindString(s string) string { return re.once().FindString(s) }

// FindStringSubmatch is the method of [regexp.Regexp].
func (re *Regexp) FindStringSubmatch(s string) []string { return re.once().FindStringSubmatch(s) }

// FindStringSubmatchIndex is the method of [regexp.Regexp].
func (re *Regexp) FindStringSubmatchIndex(s string) []int {
	return re.once().FindStringSubmatchIndex(s)
}

// Match is the method of [regexp.Regexp].
func (re *Regexp) Match(b []byte) bool { return re.once().Match(b) }

// MatchString is the method of [regexp.Regexp].
func (re *Regexp) MatchString(s string) bool { return re.once().MatchString(s) }

// ReplaceAllString is the method of [regexp.Regexp].
func (re *Regexp) ReplaceAllString(s, repl string) string { return re.once().ReplaceAllString(s, repl) }

// ReplaceAllStringFunc is the method of [regexp.Regexp].
func (re *Regexp) ReplaceAllStringFunc(s string, repl func(string) string) string {
	return re.once().ReplaceAllStringFunc(s, repl)
}
