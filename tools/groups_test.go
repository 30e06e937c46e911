package tools_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/tools"
)

// grouped is a set with tools of three groups, of an MCP server and of no group.
func grouped(t *testing.T, may func(name string) bool) *tools.Set {
	t.Helper()
	type input struct {
		Path  string   `json:"path"`
		Scope string   `json:"scope,omitempty"`
		Lines []string `json:"lines,omitempty"`
	}
	tool := func(name, about, scope string, brief ...string) tools.Tool {
		return tools.New(tools.Spec{Tool: llm.Tool{Name: name, Description: about}, Scopes: []string{scope}, Brief: brief}, nothing[input])
	}
	var set *tools.Set
	server := tools.New(tools.Spec{Tool: llm.Tool{Name: "tickets_list", Description: "Lists open tickets. Newest first."}, Source: "mcp:tickets", Scopes: []string{"mcp"}}, nothing[input])
	set, err := tools.NewSet(
		tool("note", "Reads a note.", "memory", "path", "lines"), tool("forget", "Deletes a note.", "memory"),
		tool("list_files", "Lists files of the workspace.", "files"), tool("fetch_url", "Fetches a page.", "web"),
		tool("todo", "Keeps a list.", "todos"), server, tools.Finder(func(claybot.Agent) *tools.Set { return set }),
	)
	if err != nil {
		t.Fatal(err)
	}
	if may != nil {
		set = set.Permitted(func() tools.Permit {
			return func(s tools.Spec, _ json.RawMessage) error {
				if !may(s.Name) {
					return &tools.Fault{Code: tools.FaultForbidden, Text: "no"}
				}
				return nil
			}
		})
	}
	return set
}

// nothing does nothing.
func nothing[In any](context.Context, tools.Env, In) (tools.Result, error) {
	return tools.Result{}, nil
}

func names(all []llm.Tool) string {
	list := make([]string, len(all))
	for i, t := range all {
		list[i] = t.Name
	}
	return strings.Join(list, " ")
}

func TestShown(t *testing.T) {
	t.Parallel()
	forbidden := func(name string) bool { return name != "fetch_url" && name != "forget" }
	for _, test := range []struct {
		name  string
		set   *tools.Set
		added []string
		want  string
	}{
		{"at first", grouped(t, nil), nil, "note todo find_tools"},
		{"with a group", grouped(t, nil), []string{"files"}, "note list_files todo find_tools"},
		{"in any order", grouped(t, nil), []string{"mcp:tickets", "memory", "gone"}, "note forget todo tickets_list find_tools"},
		{"pinned", grouped(t, nil).Pinned([]string{"web"}), nil, "note fetch_url todo find_tools"},
		{"all pinned", grouped(t, nil).Pinned([]string{tools.AllGroups}), nil, "note forget list_files fetch_url todo tickets_list"},
		{"named", grouped(t, nil).Only([]string{"list_files", "find_tools"}), nil, "list_files"},
		{"forbidden", grouped(t, forbidden), []string{"web", "memory"}, "note todo find_tools"},
	} {
		if got := names(test.set.Shown(test.added)); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// A brief declaration has its arguments alone, in their order; the group brings all.
func TestBrief(t *testing.T) {
	t.Parallel()
	set := grouped(t, nil)
	const brief = `{"type":"object","required":["path"],"properties":{"path":{"type":"string"},"lines":{"type":"array","items":{"type":"string"}}}}`
	var got, want any
	first := set.Shown(nil)[0].Parameters
	if json.Unmarshal(first, &got) != nil || json.Unmarshal([]byte(brief), &want) != nil || !equal(got, want) {
		t.Errorf("brief: %s", first)
	}
	if whole := set.Shown([]string{"memory"})[0].Parameters; !strings.Contains(string(whole), `"scope"`) {
		t.Errorf("whole: %s", whole)
	}
	if err := set.Check(claybot.ToolCall{Name: "note", Args: `{"path":"a","scope":"b"}`}); err != nil {
		t.Errorf("an argument that was not shown: %v", err)
	}
	bad := tools.New(tools.Spec{Tool: llm.Tool{Name: "bad"}, Brief: []string{"gone"}}, nothing[struct{}])
	if _, err := tools.NewSet(bad); err == nil || !strings.Contains(err.Error(), `"gone"`) {
		t.Errorf("a brief form with an unknown argument: %v", err)
	}
}

func equal(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

func TestFind(t *testing.T) {
	t.Parallel()
	set := grouped(t, func(name string) bool { return name != "fetch_url" })
	for query, want := range map[string]string{
		"files":                         "files",
		"I want to read documents":      "files",
		"open TICKETS":                  "mcp:tickets",
		"tickets_list":                  "mcp:tickets",
		"mcp:tickets":                   "mcp:tickets",
		"remember things, then folders": "files memory",
		"web":                           "", // not permitted
		"to be":                         "",
		"the tools for this":            "", // words that say nothing
		"":                              "",
	} {
		var got []string
		for _, g := range set.Find(query) {
			got = append(got, g.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q found %q, want %q", query, got, want)
		}
	}
	call := func(query string) claybot.Record {
		args, _ := json.Marshal(map[string]string{"query": query})
		r, _ := set.Call(t.Context(), tools.Env{}, claybot.ToolCall{ID: "1", Name: tools.FindTools, Args: string(args)})
		return r
	}
	if r := call("files"); !slices.Equal(r.Groups, []string{"files"}) || !strings.Contains(r.Text, "- list_files: Lists files of the workspace") {
		t.Errorf("found: %+v", r)
	}
	if r := call("xyzzy"); r.Groups != nil || !r.OK || !strings.Contains(r.Text, "- memory: ") {
		t.Errorf("nothing fits: %+v", r)
	}
}

func TestAdded(t *testing.T) {
	t.Parallel()
	set := grouped(t, nil)
	called := func(name string) claybot.Record {
		return claybot.Record{Type: claybot.RecordAssistant, ToolCalls: []claybot.ToolCall{{ID: "1", Name: name}}}
	}
	history := []claybot.Record{
		called("note"), // is shown
		called("todo"), called("nonsense"),
		{Type: claybot.RecordTool, Groups: []string{"web", "files"}},
		called("forget"), called("list_files"), called("tickets_list"),
	}
	want := []string{"web", "files", "memory", "mcp:tickets"}
	if got := set.Added(history); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := set.Added([]claybot.Record{{Type: claybot.RecordSummary, Groups: want}}); !slices.Equal(got, want) {
		t.Errorf("after a summary: %q", got)
	}
}
