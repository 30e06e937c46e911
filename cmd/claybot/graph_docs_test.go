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
	claybot.EnginePlan:    "Plans, asks for input and approvals, then acts; see [plans.md](plans.md).",
	claybot.EngineUndo:    "Undoes the side effects of another run; see [plans.md](plans.md#undo).",
	claybot.EngineExplore: "Explores a web application and maps it; see [explorer.md](explorer.md).",
}

// The guide shows the graphs as they are. CLAYBOT_WRITE_DOCS=1 writes it anew.
func TestGraphsGuide(t *testing.T) {
	all := shapes()
	var b strings.Builder
	b.WriteString("# Graphs\n\n" +
		"Some engines work by a graph. A run moves from graph node to graph node and saves the changes of a graph node when it ends, so after a\n" +
		"crash the run resumes at the next one. A run can follow only the edges shown here. `claybot graph show` prints the same graphs.\n\n" +
		"`CLAYBOT_WRITE_DOCS=1 go test -run TestGraphsGuide ./cmd/claybot` generates this page from the edges of the engines.\n")
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
