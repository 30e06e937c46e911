package configs

import (
	"reflect"
	"strings"
	"testing"
)

// helpers is a file whose deep agent has one good subagent before and one after
// the entry given, which stands in line 7.
func helpers(entry string) string {
	return "agents:\n  work:\n    match: web\n    deep:\n      subagents:\n        - {name: a, description: d, system_prompt: s}\n        - " +
		entry + "\n        - {name: z, description: d, system_prompt: s, tools: []}\n"
}

const at = "agents.work.deep.subagents[1]"

var brokenDeep = []fault{
	{"deep", "agents:\n  default:\n    deep: very\n", []string{`3 agents.default.deep: "very" is not one of true, false, nor a group of keys (todos, show_todos, files, subagents); ignored ?`}},
	{"deep as list", "agents:\n  default:\n    deep: [todos]\n", []string{"3 agents.default.deep: want a group of keys (todos, show_todos, files, subagents), found a list; ignored ?"}},
	{"deep mistyped", "agents:\n  default:\n    deep: {todo: true}\n", []string{"3 agents.default.deep.todo: unknown key; ignored ?agents.default.deep.todos"}},
	{"todos", "agents:\n  default:\n    deep:\n      todos: some\n      show_todos: 3\n", []string{
		`4 agents.default.deep.todos: "some" is not one of true, false; ignored ?`, `5 agents.default.deep.show_todos: "3" is not one of true, false; ignored ?`,
	}},
	{"files", "agents:\n  default:\n    deep:\n      files: disk\n", []string{`4 agents.default.deep.files: "disk" is not one of state, filesystem, store, none; ignored ?`}},
	{"helpers as group", "agents:\n  default:\n    deep:\n      subagents: {name: a}\n", []string{"4 agents.default.deep.subagents: want a list of subagents, found a group of keys; ignored ?"}},
	{"helper as word", helpers("critic"), []string{"7 " + at + ": want a group of keys (name, description, system_prompt, model, tools), found a single value; the subagent is left out ?"}},
	{"helper as nothing", helpers(""), []string{"7 " + at + ": want a group of keys (name, description, system_prompt, model, tools), found a single value; the subagent is left out ?"}},
	{"helper as list", helpers("[a]"), []string{"7 " + at + ": want a group of keys (name, description, system_prompt, model, tools), found a list; the subagent is left out ?"}},
	{"helper as empty group", helpers("{}"), []string{"7 " + at + ": has no name and no description and no system_prompt; the subagent is left out ?"}},
	{"helper without name", helpers("{description: d, system_prompt: s}"), []string{"7 " + at + ": has no name; the subagent is left out ?"}},
	{"helper without description", helpers("{name: b, description: , system_prompt: s}"), []string{"7 " + at + ".description: has no value; remove the line or give it one; the subagent is left out ?"}},
	{"helper with blank prompt", helpers("{name: b, description: d, system_prompt: \"  \"}"), []string{"7 " + at + ": has no system_prompt; the subagent is left out ?"}},
	{"helper with bad name", helpers("{name: My Critic, description: d, system_prompt: s}"), []string{"7 " + at + `.name: "My Critic" is not a name of at most 64 of a-z, 0-9, _ and -; the subagent is left out ?`}},
	{"helper with long name", helpers("{name: " + strings.Repeat("x", 65) + ", description: d, system_prompt: s}"), []string{"7 " + at + `.name: "` + strings.Repeat("x", 65) + `" is not a name ?`}},
	{"helper twice", helpers("{name: a, description: other, system_prompt: s}"), []string{"7 " + at + `: the name "a" was given in line 6 already; the subagent is left out ?`}},
	{"helper with bad model", helpers("{name: b, description: d, system_prompt: s, model: sk-canary}"), []string{"7 " + at + ".model: a value that looks like a secret is not the name of a model; the subagent is left out ?"}},
	{"helper with bad tool", helpers("{name: b, description: d, system_prompt: s, tools: [ls, \"rm -rf\"]}"), []string{"7 " + at + `.tools: "rm -rf" is not the name of a tool; the subagent is left out ?`}},
	{"helper with tools as group", helpers("{name: b, description: d, system_prompt: s, tools: {ls: true}}"), []string{"7 " + at + ".tools: want a list, found a group of keys; the subagent is left out ?"}},
	{"helper mistyped", helpers("{name: b, description: d, system_prompt: s, tool: [ls]}"), []string{"7 " + at + ".tool: unknown key; the subagent is left out ?" + at + ".tools"}},
	{"helper with two mistakes", helpers("{name: B, description: d, system_promt: s}"), []string{
		"7 " + at + `.name: "B" is not a name of at most 64 of a-z, 0-9, _ and -; the subagent is left out ?`,
		"7 " + at + ".system_promt: unknown key; the subagent is left out ?" + at + ".system_prompt",
	}},
	{"helper key twice", helpers("{name: b, name: c, description: d, system_prompt: s}"), []string{"7 " + at + ".name: was given in line 7 already, which holds; the subagent is left out ?"}},
}

// A bad entry costs itself only.
func TestBrokenHelpers(t *testing.T) {
	for _, tt := range brokenDeep {
		if !strings.HasPrefix(tt.file, "agents:\n  work:") {
			continue
		}
		c, _ := load(t, tt.file, nil)
		want := []Helper{{Name: "a", Description: "d", SystemPrompt: "s"}, {Name: "z", Description: "d", SystemPrompt: "s", Tools: []string{}}}
		if got := c.Agents.Profiles["work"].Engine.Deep.Subagents; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", tt.name, got, want)
		}
	}
}

func TestDeep(t *testing.T) {
	c, warnings := load(t, `
agents:
  default:
    deep:
      files: store
      show_todos: off
      subagents:
        - name: critic_1-x
          description: finds mistakes
          system_prompt: |
            You find
            mistakes.
          model: small
          tools: [ls, read_file]
  same: {match: web}
  plain: {match: slack, deep: false}
  again: {match: terminal, deep: on}
  other: {match: cron, deep: {todos: false, files: none, subagents: []}}
  empty: {match: heartbeat, deep: }
`, nil)
	if len(warnings) != 0 {
		t.Errorf("warnings: %v", warnings)
	}
	critic := Helper{"critic_1-x", "finds mistakes", "You find\nmistakes.", "small", []string{"ls", "read_file"}}
	def := &Deep{Todos: true, Files: FilesStore, Subagents: []Helper{critic}}
	for name, want := range map[string]*Deep{
		DefaultProfile: def, "same": def, "again": def, "empty": def, "plain": nil,
		"other": {Files: FilesNone},
	} {
		if got := c.Agents.Profiles[name].Engine.Deep; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// What makes an agent deep, and with which defaults.
func TestDeepByDefault(t *testing.T) {
	plain := plainDeep()
	for deep, want := range map[string]*Deep{
		"": nil, "false": nil, "no": nil, "nonsense": nil, "[]": nil, "{}": &plain, "true": &plain, "{files: nonsense}": {Todos: true, ShowTodos: true, Files: FilesNone},
	} {
		c, _ := load(t, "agents: {default: {deep: "+deep+"}}\n", nil)
		if got := c.Agents.Profiles[DefaultProfile].Engine.Deep; !reflect.DeepEqual(got, want) {
			t.Errorf("deep: %s makes %+v, want %+v", deep, got, want)
		}
	}
}

// checkDeep reports settings that break their rules.
func checkDeep(t *testing.T, d Deep) {
	t.Helper()
	if d.Files != FilesState && d.Files != FilesFilesystem && d.Files != FilesStore && d.Files != FilesNone {
		t.Errorf("files %q", d.Files)
	}
	seen := make(map[string]bool)
	for _, h := range d.Subagents {
		if !forms["name"].looks.MatchString(h.Name) || h.Description == "" || h.SystemPrompt == "" || seen[h.Name] {
			t.Errorf("subagent %+v", h)
		}
		seen[h.Name] = true
	}
}
