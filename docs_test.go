package claybot_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
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

var link = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)

// Links between documents lead somewhere.
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
	links := 0
	for _, document := range documents {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			if _, err := os.Stat(filepath.Join(filepath.Dir(document), m[1])); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", document, m[1])
			}
		}
	}
	if links == 0 {
		t.Error("no links found: the test does not see them")
	}
}
