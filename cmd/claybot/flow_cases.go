package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs/flow"
	"github.com/claybot/claybot/runs/react"
	"github.com/claybot/claybot/tools"
)

type flowTestCmd struct {
	Names []string `arg:"" optional:"" name:"flow" help:"Workflows to test. Default: all that have a file NAME.test.yaml."`
	Crash bool     `help:"Play each case once more for every record, cut off behind it, and compare."`
	JUnit string   `name:"junit" placeholder:"FILE" help:"Write the results as JUnit XML."`

	Record string `placeholder:"RUN" help:"Add a case to NAME.test.yaml that takes the way of a run which has ended, without the texts on which that way does not depend. Needs the running daemon."`
}

// A caseResult is what came of a case.
type caseResult struct {
	flow, name string
	wrong      []string
}

// Run plays the cases.
func (c flowTestCmd) Run(e *env) error {
	conf, _, err := e.load()
	if err != nil {
		return err
	}
	dir := flowsDir(&conf)
	if c.Record != "" {
		return c.record(e, dir, &conf)
	}
	names := c.Names
	if len(names) == 0 {
		if names, err = testedFlows(dir); err != nil {
			return err
		}
	}
	if len(names) == 0 {
		return fmt.Errorf("no test cases in %s: write some into NAME.test.yaml beside NAME.yaml", dir)
	}
	var results []caseResult
	cuts := 0
	for _, name := range names {
		some, n, err := c.play(dir, name, &conf)
		if err != nil {
			return err
		}
		results, cuts = append(results, some...), cuts+n
	}
	if c.JUnit != "" {
		if err := writeJUnit(c.JUnit, results); err != nil {
			return err
		}
	}
	return report(e, results, cuts)
}

// report prints what came of the cases.
func report(e *env, results []caseResult, cuts int) error {
	var text strings.Builder
	failed := 0
	for _, r := range results {
		if len(r.wrong) == 0 {
			continue
		}
		failed++
		fmt.Fprintf(&text, "%s: %s\n", r.flow, r.name)
		for _, w := range r.wrong {
			fmt.Fprintf(&text, "  %s\n", w)
		}
	}
	fmt.Fprintf(&text, "%s, %d failed", count(len(results), "case"), failed)
	if cuts > 0 {
		fmt.Fprintf(&text, "; cut off %s", count(cuts, "time"))
	}
	if err := e.text(text.String() + ".\n"); err != nil {
		return err
	}
	if failed > 0 {
		return errors.New(count(failed, "case") + " failed")
	}
	return nil
}

// casesEnding ends the name of a file with test cases.
const casesEnding = ".test.yaml"

// testedFlows lists the flows of a folder that have test cases.
func testedFlows(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), casesEnding); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

// play plays the cases of one flow.
func (c flowTestCmd) play(dir, name string, conf *configs.Config) (results []caseResult, cuts int, err error) {
	text, err := os.ReadFile(filepath.Join(dir, name+".yaml"))
	if err != nil {
		return nil, 0, err
	}
	f, faults, err := oneFlow(dir, name, text, offlineWorld(conf))
	if err != nil {
		return nil, 0, err
	}
	if len(faults) > 0 {
		return nil, 0, configError{errors.New(faults[0].String())}
	}
	cases, err := readCases(filepath.Join(dir, name+casesEnding))
	if err != nil {
		return nil, 0, configError{err}
	}
	player := testPlayer(f)
	for _, x := range cases {
		wrong, _, err := player.Test(context.Background(), x)
		if err == nil && len(wrong) == 0 && c.Crash {
			var n int
			wrong, n, err = player.Crash(context.Background(), x)
			cuts += n
		}
		if err != nil {
			return nil, 0, err
		}
		results = append(results, caseResult{name, x.Name, wrong})
	}
	return results, cuts, nil
}

// testPlayer plays the cases of a flow, knowing of no daemon.
func testPlayer(f *flows.Flow) flow.Player {
	return flow.Player{Flow: f, Fill: fillTurn, Uses: namesIn, Settle: settleWith, Effect: builtinEffect}
}

// readCases reads a file with test cases.
func readCases(path string) (cases []flow.Case, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	raw, err := configs.ReadCases(path, text)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&cases); err != nil {
		return nil, fmt.Errorf("%s: %s", path, strings.TrimPrefix(err.Error(), "json: "))
	}
	for i := range cases {
		if cases[i].Name == "" {
			cases[i].Name = fmt.Sprintf("case %d", i+1)
		}
	}
	return cases, nil
}

// settleWith makes calls with the tools of a set as the loop of model and tools does.
func settleWith(set *tools.Set) flow.Settle {
	loop := &react.Loop{Tools: func(claybot.Agent) *tools.Set { return set }, Model: func(claybot.Agent) llm.Model { return nil }}
	return loop.Settle
}

// readOnlyTools are claybot's own that have no effect, for tests that know of no daemon.
var readOnlyTools = []string{
	"cron_list", "current_time", "fetch_url", "find_tools", "glob", "grep", "heartbeat_list", "list_agents", "list_files", "list_reminders", "ls", "memory_list", "memory_read",
	"memory_search", "read_agent_history", "read_chat", "read_file", "read_skill_file", "read_todos", "search_files", "search_history", "web_search",
}

// builtinEffect is the effect of a tool as far as it is known without a daemon.
func builtinEffect(tool string) tools.Effect {
	if slices.Contains(readOnlyTools, tool) {
		return tools.ReadOnly
	}
	return tools.Once
}

// writeJUnit writes results in the form that CI servers read.
func writeJUnit(path string, results []caseResult) error {
	type failure struct {
		Text string `xml:",chardata"`
	}
	type testcase struct {
		Name    string   `xml:"name,attr"`
		Class   string   `xml:"classname,attr"`
		Failure *failure `xml:"failure,omitempty"`
	}
	type suite struct {
		XMLName  xml.Name   `xml:"testsuite"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Cases    []testcase `xml:"testcase"`
	}
	byFlow := make(map[string]*suite)
	for _, r := range results {
		s := byFlow[r.flow]
		if s == nil {
			s = &suite{Name: r.flow}
			byFlow[r.flow] = s
		}
		x := testcase{Name: r.name, Class: r.flow}
		s.Tests++
		if len(r.wrong) > 0 {
			s.Failures++
			x.Failure = &failure{strings.Join(r.wrong, "\n")}
		}
		s.Cases = append(s.Cases, x)
	}
	all := struct {
		XMLName xml.Name `xml:"testsuites"`
		Suites  []*suite
	}{}
	for _, name := range slices.Sorted(maps.Keys(byFlow)) {
		all.Suites = append(all.Suites, byFlow[name])
	}
	b, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append([]byte(xml.Header), append(b, '\n')...), 0o644)
}
