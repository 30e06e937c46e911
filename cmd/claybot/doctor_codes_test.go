package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/storage/postgres"
)

// Every finding has a code of the catalogue, every code of the catalogue is one of a finding, and
// docs/doctor.md lists them all with their meaning.
func TestDoctorCodes(t *testing.T) {
	var known []string
	var rows strings.Builder
	form := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	for _, c := range doctorCodes {
		if slices.Contains(known, c.code) || !form.MatchString(c.code) || c.means == "" {
			t.Errorf("%+v is twice in the catalogue, or malformed", c)
		}
		known = append(known, c.code)
		fmt.Fprintf(&rows, "| `%s` | %s |\n", c.code, c.means)
	}
	sources := []string{"default_budget.go", "model.go", "probes.go"}
	for _, pattern := range []string{"doctor*.go", "../../storage/postgres/examine*.go", "../../overview/readiness.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, slices.DeleteFunc(found, func(name string) bool { return strings.HasSuffix(name, "_test.go") })...)
	}
	said := regexp.MustCompile(`\b[dx]\.(?:warn|problem|advice|say|setup)\(("[^"]*")`)
	quoted := map[string]int{postgres.CodeOK: 2, configs.CodeKey: 2, configs.CodeValue: 2, configs.CodeSecret: 2, configs.CodeVariable: 2, configs.CodeMissing: 2, configs.CodeTool: 2, configs.CodeMalformed: 2, configs.CodeQuoted: 2, configs.CodeTemplate: 2}
	for _, name := range sources {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range said.FindAllSubmatch(text, -1) {
			if code, err := strconv.Unquote(string(m[1])); err != nil || !slices.Contains(known, code) {
				t.Errorf("%s has a finding with the code %s, which the catalogue does not have", name, m[1])
			}
		}
		for _, code := range known {
			quoted[code] += strings.Count(string(text), strconv.Quote(code))
		}
	}
	for _, code := range known {
		if quoted[code] < 2 { // the catalogue has it once
			t.Errorf("no finding has the code %s", code)
		}
	}
	docs, err := os.ReadFile("../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(docs), "| code | meaning |\n|---|---|\n"+rows.String()+"\n") {
		t.Errorf("docs/doctor.md does not list exactly these codes:\n%s", rows.String())
	}
}
