package connectorstest

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// document is where the table is, from the root of the repository; it ends the document.
const document = "docs/connectors.md"

var update = flag.Bool("update", false, "write the column of the connector to "+document)

// A table says which checks each connector lacks, and why: by connector, by check.
type table map[string]map[string]string

// compare checks the column of a connector in the document, and why it lacks what it lacks.
func compare(t *testing.T, h Harness) {
	t.Helper()
	path, err := find(document)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(b), "| check |")
	all := readTable(string(b))
	all[h.Name] = h.Lacks
	want := head + all.String()
	switch {
	case want == string(b):
	case *update:
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s does not show the checks of %s; run this test with -update", document, h.Name)
	}
}

// readTable reads what String wrote.
func readTable(text string) table {
	all := make(table)
	for line := range strings.Lines(text) {
		if names, ok := strings.CutPrefix(line, "| check |"); ok {
			for name := range strings.SplitSeq(strings.Trim(strings.TrimSpace(names), "|"), "|") {
				all[strings.TrimSpace(name)] = make(map[string]string)
			}
		}
		name, rest, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "- **"), "** ")
		why, list, found := strings.Cut(rest, ": ")
		if !ok || !found || all[name] == nil {
			continue
		}
		for check := range strings.SplitSeq(strings.TrimSuffix(list, "."), "; ") {
			all[name][check] = why
		}
	}
	return all
}

// String is the table in Markdown, and below it the reasons.
func (all table) String() string {
	var b strings.Builder
	names := slices.Sorted(maps.Keys(all))
	fmt.Fprintf(&b, "| check | %s |\n|---|%s\n", strings.Join(names, " | "), strings.Repeat("---|", len(names)))
	group := ""
	for _, c := range checks {
		if c.group != group {
			group = c.group
			fmt.Fprintf(&b, "| **%s** |%s\n", group, strings.Repeat(" |", len(names)))
		}
		fmt.Fprintf(&b, "| %s |", c.name)
		for _, name := range names {
			cell := "yes"
			if all[name][c.name] != "" {
				cell = "–"
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	for _, name := range names {
		var reasons []string // in the order of the checks
		lacking := make(map[string][]string)
		for _, c := range checks {
			if why := all[name][c.name]; why != "" {
				if lacking[why] == nil {
					reasons = append(reasons, why)
				}
				lacking[why] = append(lacking[why], c.name)
			}
		}
		for _, why := range reasons {
			fmt.Fprintf(&b, "- **%s** %s: %s.\n", name, why, strings.Join(lacking[why], "; "))
		}
	}
	return b.String()
}

// find returns the path of a file, given from the root of the module.
func find(name string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, name), nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", os.ErrNotExist
		}
		dir = parent
	}
}
