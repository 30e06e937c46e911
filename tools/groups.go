package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
)

// FindTools is the name of the tool that adds groups of tools to a conversation.
const FindTools = "find_tools"

// UseSkill is the name of the tool that reads how a skill works.
const UseSkill = "use_skill"

// findTools describes find_tools, with the groups that there are.
const findTools = "Adds tools: %s. Call it before you say that you cannot do it."

// AllGroups in a list of pinned groups means all.
const AllGroups = "all"

// A Group is tools that are declared to the model together. The tools of an MCP server are
// the group mcp:<server>.
type Group struct {
	Name    string
	Summary string
	// Words are further words that find it.
	Words string
	// Tools are those of the group in a set, and permitted now.
	Tools []Spec
}

// groups are the groups of claybot's own tools, by the first scope of a tool. A tool with
// another scope is in no group: it is in every request.
var groups = []Group{
	{Name: "agents", Summary: "other agents and subagents: start several, ask, write to, read, stop", Words: "parallel background delegate conversation chat"},
	{Name: "browser", Summary: "a browser: open pages, click, type, take screenshots", Words: "website internet form login screenshot url"},
	{Name: "chat", Summary: "this chat: read earlier messages, send files, react with an emoji", Words: "history thread channel attachment document picture image emoji upload share"},
	{Name: "clock", Summary: "wait for a while", Words: "time sleep pause delay seconds"},
	{Name: "files", Summary: "files of the workspace: list, search, read, write, edit", Words: "patch diff folder directory document code text grep save"},
	{Name: "memory", Summary: "notes: list, append, change, delete; search earlier conversations", Words: "remember forget knowledge note history past recall said find"},
	{Name: "permissions", Summary: "ask the person for a permission", Words: "allow access approve forbidden"},
	{Name: "questions", Summary: "ask the person with forms, choices, numbers and dates", Words: "input form select answer clarify"},
	{Name: "schedule", Summary: "reminders, tasks on a schedule, the heartbeat: list, add, change, delete", Words: "cron recurring daily weekly timer alarm later calendar"},
	{Name: ScopeShell, Summary: "run commands in the workspace", Words: "command bash program execute script python terminal install compute git"},
	{Name: ScopeWeb, Summary: "fetch web pages, search the web", Words: "internet online url link http website news weather download browse google"},
}

// GroupNames lists what a profile can pin, besides mcp:<server>: the groups of claybot's
// own tools, and AllGroups.
func GroupNames() []string {
	names := []string{AllGroups}
	for _, g := range groups {
		names = append(names, g.Name)
	}
	return names
}

func groupOf(name string) (Group, bool) {
	i := slices.IndexFunc(groups, func(g Group) bool { return g.Name == name })
	if i < 0 {
		return Group{Name: name}, false
	}
	return groups[i], true
}

// Group is the group of a tool; empty for a tool that is in every request.
func (s *Spec) Group() string {
	if s.Source != "" {
		return s.Source
	}
	if len(s.Scopes) == 0 {
		return ""
	}
	if _, known := groupOf(s.Scopes[0]); !known {
		return ""
	}
	return s.Scopes[0]
}

// brief is the declaration of a tool with the arguments of its Brief alone. The whole
// schema still decides what a call may have.
func brief(spec Spec) (llm.Tool, error) {
	short := spec.Tool
	var schema jsonschema.Schema
	if err := json.Unmarshal(spec.Parameters, &schema); err != nil {
		return short, err
	}
	kept := make(map[string]*jsonschema.Schema, len(spec.Brief))
	for _, name := range spec.Brief {
		p := schema.Properties[name]
		if p == nil {
			return short, fmt.Errorf("its brief form names the unknown argument %q", name)
		}
		if i := slices.Index(p.Types, "null"); i >= 0 && len(p.Types) == 2 {
			p.Type, p.Types = p.Types[1-i], nil
		}
		kept[name] = p
	}
	schema.Properties, schema.PropertyOrder, schema.AdditionalProperties = kept, spec.Brief, nil
	schema.Required = slices.DeleteFunc(schema.Required, func(name string) bool { return kept[name] == nil })
	var err error
	short.Parameters, err = json.Marshal(&schema)
	return short, err
}

// Pinned returns the set with groups that are in every request.
func (s *Set) Pinned(groups []string) *Set {
	part := *s
	part.pinned = append(slices.Clone(s.pinned), groups...)
	return &part
}

// Added are the groups that a conversation has added to its requests, in the order in which
// it did: by find_tools, and by calls of tools that were not shown.
func (s *Set) Added(history []claybot.Record) (groups []string) {
	add := func(name string) {
		if name != "" && !slices.Contains(groups, name) {
			groups = append(groups, name)
		}
	}
	for i := range history {
		r := &history[i]
		for _, c := range r.ToolCalls {
			if spec := &s.entry(c.Name).spec; spec.Brief == nil {
				add(spec.Group())
			}
		}
		for _, name := range r.Groups {
			add(name)
		}
	}
	return groups
}

// Shown are the declarations of a request: the tools of no group, those that are always
// there in their brief form, and all of the pinned and the given groups. With the same
// groups, in any order, they are equal byte for byte. A tool that is permitted and not shown can be
// called all the same.
func (s *Set) Shown(added []string) []llm.Tool {
	all := s.Tools()
	if s.whole || slices.Contains(s.pinned, AllGroups) {
		return slices.DeleteFunc(all, func(t llm.Tool) bool { return t.Name == FindTools })
	}
	left := false
	var groups []string
	shown := make([]llm.Tool, 0, len(all))
	for _, t := range all {
		e := s.entries[t.Name]
		group := e.spec.Group()
		if group != "" && !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
		switch {
		case group == "" || slices.Contains(s.pinned, group) || slices.Contains(added, group):
			shown = append(shown, t)
		case e.spec.Brief != nil:
			shown = append(shown, e.brief)
			left = true
		default:
			left = true
		}
	}
	i := slices.IndexFunc(shown, func(t llm.Tool) bool { return t.Name == FindTools })
	switch {
	case i < 0:
	case !left && len(added) == 0: // nothing to find
		shown = slices.Delete(shown, i, i+1)
	default:
		slices.Sort(groups)
		shown[i].Description = fmt.Sprintf(findTools, strings.Join(groups, ", "))
	}
	return shown
}

// GroupOf returns the group of a tool of the set; empty for one that is in every request,
// and for one that is not in the set.
func (s *Set) GroupOf(tool string) string { return s.entry(tool).spec.Group() }

// Groups are the groups that have tools in the set which are permitted now, in the order
// of their names.
func (s *Set) Groups() []Group {
	var all []Group
	for _, t := range s.Tools() {
		spec := s.entries[t.Name].spec
		name := spec.Group()
		if name == "" {
			continue
		}
		i := slices.IndexFunc(all, func(g Group) bool { return g.Name == name })
		if i < 0 {
			g, own := groupOf(name)
			if !own {
				g.Summary = "tools of the MCP server " + strings.TrimPrefix(name, "mcp:")
			}
			i, all = len(all), append(all, g)
		}
		all[i].Tools = append(all[i].Tools, spec)
	}
	slices.SortFunc(all, func(a, b Group) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// Find returns the groups that fit a query, the best first, at most three. A query that has
// the name of a group or of a tool as a word finds just those groups.
func (s *Set) Find(query string) []Group {
	words := strings.FieldsFunc(strings.ToLower(query), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != ':' && r != '-'
	})
	type scored struct {
		Group
		score int
	}
	var found []scored
	for _, g := range s.Groups() {
		if slices.Contains(words, g.Name) || slices.ContainsFunc(g.Tools, func(t Spec) bool { return slices.Contains(words, t.Name) }) {
			found = append(found, scored{g, 1000})
			continue
		}
		if n := g.score(words); n > 0 {
			found = append(found, scored{g, n})
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int { return b.score - a.score })
	var best []Group
	for _, f := range found {
		if len(best) < 3 && 2*f.score >= found[0].score {
			best = append(best, f.Group)
		}
	}
	return best
}

// idleWords say nothing about a purpose.
var idleWords = []string{
	"the", "and", "for", "with", "from", "into", "this", "that", "then", "its", "own", "their", "your", "you", "can", "need", "want", "have", "use", "using",
	"tool", "tools", "server", "mcp", "words", "something", "some", "all", "how", "what", "when", "who", "are", "get", "not",
}

// score counts the words that a group fits: those of its own texts count more than those
// of the descriptions of its tools. Words of less than four letters fit whole words only.
func (g Group) score(words []string) (n int) {
	own, tools := strings.ToLower(g.Name+" "+g.Summary+" "+g.Words), ""
	for _, t := range g.Tools {
		tools += " " + strings.ToLower(t.Name+" "+t.Description)
	}
	for _, w := range words {
		stem := w
		if short, ok := strings.CutSuffix(w, "s"); ok && len(short) > 3 {
			stem = short
		} else if short, ok := strings.CutSuffix(w, "ing"); ok && len(short) > 3 {
			stem = short
		}
		switch {
		case len(w) < 3 || slices.Contains(idleWords, w):
		case has(own, stem):
			n += 3
		case has(tools, stem):
			n++
		}
	}
	return n
}

// has reports whether a text has a word that begins with a stem, or is it if it is short.
func has(text, stem string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }),
		func(w string) bool { return w == stem || len(stem) > 3 && strings.HasPrefix(w, stem) })
}

// Finder is the tool find_tools: it finds groups among the tools of the agent of a call,
// and adds them to its conversation.
func Finder(of func(claybot.Agent) *Set) Tool {
	spec := Spec{
		Tool: llm.Tool{
			Name: FindTools, Parameters: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}`),
			Description: fmt.Sprintf(findTools, "by their purpose"),
		},
		Effect: ReadOnly, Public: true,
	}
	type input struct {
		Query string `json:"query"`
	}
	return New(spec, func(_ context.Context, env Env, in input) (Result, error) {
		set := of(env.Agent)
		found := set.Find(in.Query)
		var b strings.Builder
		if len(found) == 0 {
			b.WriteString("Nothing fits. These groups exist; call find_tools with the name of one:\n")
			for _, g := range set.Groups() {
				fmt.Fprintf(&b, "- %s: %s\n", g.Name, g.Summary)
			}
			return Result{Text: b.String()}, nil
		}
		r := Result{}
		b.WriteString("Added. You can call these tools now:\n")
		for _, g := range found {
			r.Groups = append(r.Groups, g.Name)
			for _, t := range g.Tools {
				first, _, _ := strings.Cut(t.Description, ". ")
				fmt.Fprintf(&b, "- %s: %s\n", t.Name, strings.TrimSuffix(first, "."))
			}
		}
		r.Text = b.String()
		return r, nil
	})
}
