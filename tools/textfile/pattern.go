package textfile

import (
	"fmt"
	"path"
	"strings"
)

const (
	maxPattern = 1000 // bytes
	maxParts   = 64
)

// A Pattern matches paths: * ? and [a-z] within a part, ** for any number of parts,
// none included.
type Pattern []string

// NewPattern parses the pattern in an argument named field.
func NewPattern(field, s string) (Pattern, error) {
	s = strings.TrimPrefix(s, "./")
	if s == "" {
		return nil, fmt.Errorf("field %s: must not be empty", field)
	}
	if len(s) > maxPattern {
		return nil, fmt.Errorf("field %s: %d bytes, the limit is %d", field, len(s), maxPattern)
	}
	if strings.HasPrefix(s, "/") {
		return nil, fmt.Errorf("field %s: %.200q must be relative, without a slash at the beginning", field, s)
	}
	p := Pattern(strings.Split(s, "/"))
	if len(p) > maxParts {
		return nil, fmt.Errorf("field %s: %d parts, the limit is %d", field, len(p), maxParts)
	}
	for _, part := range p {
		if part == "" || part == "." || part == ".." {
			return nil, fmt.Errorf("field %s: %.200q must not have parts that are empty, . or .. only", field, s)
		}
		if _, err := path.Match(part, ""); err != nil {
			return nil, fmt.Errorf("field %s: invalid pattern %.200q; [ needs a ], and \\ needs a character after it", field, s)
		}
	}
	return p, nil
}

// Match reports whether a clean path fits. Its time is bounded by the product of the
// numbers of parts, whatever the pattern.
func (p Pattern) Match(name string) bool {
	// fits[i] says that the first i parts of the pattern fit the parts of name
	// seen so far.
	fits := make([]bool, len(p)+1)
	fits[0] = true
	p.skip(fits)
	for part := range strings.SplitSeq(name, "/") {
		next := make([]bool, len(p)+1)
		for i, want := range p {
			if !fits[i] {
				continue
			}
			if want == "**" {
				next[i] = true
			} else if ok, _ := path.Match(want, part); ok { // checked by NewPattern
				next[i+1] = true
			}
		}
		fits = next
		p.skip(fits)
	}
	return fits[len(p)]
}

// skip lets each ** that is reached stand for nothing.
func (p Pattern) skip(fits []bool) {
	for i, part := range p {
		if fits[i] && part == "**" {
			fits[i+1] = true
		}
	}
}
