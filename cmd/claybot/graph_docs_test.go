package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
)

// graphsGuide is the file that is made of the graphs themselves.
const graphsGuide = "../../docs/graphs.md"

// aboutGraphs is what the guide says about each graph.
var aboutGraphs = map[string]string{
	claybot.EnginePlan:    "Plans, asks, then acts; see [plans.md](plans.md).",
	claybot.EngineUndo:    "Takes back what another run did.",
	claybot.EngineExplore: "Walks through an application and draws a map of it; see [explorer.md](explorer.md).",
}

// The guide shows the graphs as they are. CLAYBOT_WRITE_DOCS=1 writes it anew.
func TestGraphsGuide(t *testing.T) {
	all := shapes()
	var b strings.Builder
	b.WriteString("# The graphs\n\n" +
		"Made from the edges of the engines, by `CLAYBOT_WRITE_DOCS=1 go test -run TestGraphsGuide ./cmd/claybot`. `claybot graph show` prints the same.\n\n" +
		"A run of such an engine goes from node to node. What a node changed is saved when it ends, so after a crash the run goes on at the next\n" +
		"node. An edge that is not drawn here cannot be taken.\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if aboutGraphs[name] == "" {
			t.Errorf("the guide says nothing about the graph %s", name)
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n```mermaid\n%s\n```\n", name, aboutGraphs[name], strings.TrimSpace(all[name].Mermaid()))
	}
	if os.Getenv("CLAYBOT_WRITE_DOCS") != "" {
		if err := os.WriteFile(graphsGuide, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(graphsGuide)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != b.String() {
		t.Errorf("%s is not what the edges say; write it with CLAYBOT_WRITE_DOCS=1", graphsGuide)
	}
}
