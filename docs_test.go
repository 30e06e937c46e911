package claybot_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// CONTRIBUTING quotes the example connector as it is compiled and run.
func TestContributingQuotesTheExample(t *testing.T) {
	source, err := os.ReadFile("connectors/example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, connector, found := strings.Cut(string(source), "// A Pager connects")
	connector, _, ends := strings.Cut(connector, "// The whole of a connector")
	if !found || !ends {
		t.Fatal("connectors/example_test.go has no Pager")
	}
	guide, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(guide), strings.TrimSpace(connector)) {
		t.Error("the connector in CONTRIBUTING.md is not the one of connectors/example_test.go")
	}
}

var link = regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)]*))?\)`)

// Links between documents lead to a file, and to a heading that it has.
func TestLinks(t *testing.T) {
	var documents []string
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, found...)
	}
	if len(documents) < 10 {
		t.Errorf("only %d documents: %v", len(documents), documents)
	}
	links, anchored := 0, 0
	known := make(map[string]map[string]bool)
	for _, document := range documents {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") || m[1] == "" && m[2] == "" {
				continue
			}
			links++
			to := filepath.Join(filepath.Dir(document), m[1])
			if m[1] == "" {
				to = document
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", document, m[1])
				continue
			}
			if m[2] == "" || filepath.Ext(to) != ".md" {
				continue
			}
			anchored++
			if known[to] == nil {
				known[to] = anchors(t, to)
			}
			if !known[to][m[2]] {
				t.Errorf("%s: %s has no heading #%s", document, to, m[2])
			}
		}
	}
	if links == 0 || anchored == 0 {
		t.Errorf("%d links and %d to headings found: the test does not see them", links, anchored)
	}
}

var (
	heading = regexp.MustCompile(`^#{1,6} +(.*?)[ #]*$`)
	named   = regexp.MustCompile(`^<a id="([^"]+)"></a>$`)
	inner   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`) // the text of a link
)

// anchors are the fragments that GitHub gives the headings of a document, and those that it names.
func anchors(t *testing.T, document string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	all, code := make(map[string]bool), false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		if m := named.FindStringSubmatch(line); m != nil {
			all[m[1]] = true
		}
		m := heading.FindStringSubmatch(line)
		if code || m == nil {
			continue
		}
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, inner.ReplaceAllString(m[1], "$1"))
		anchor := name
		for n := 1; all[anchor]; n++ {
			anchor = fmt.Sprintf("%s-%d", name, n)
		}
		all[anchor] = true
	}
	return all
}
