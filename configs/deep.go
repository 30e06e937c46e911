package configs

import (
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/claybot/claybot"
)

// The values of Deep.Files.
const (
	FilesState      = "state"      // the agent's own, gone with the conversation
	FilesFilesystem = "filesystem" // a folder of the agent
	FilesStore      = "store"      // shared by all agents of the person
	FilesNone       = "none"       // no file tools
)

// Deep makes an agent one that plans: with todos, files and named helpers.
type Deep struct {
	Todos     bool     `key:"todos" class:"harmless"`
	ShowTodos bool     `key:"show_todos" class:"harmless"` // at the place where the agent answers
	Files     string   `key:"files" words:"state,filesystem,store,none" bad:"none" off:"there are no file tools"`
	Subagents []Helper `key:"subagents" kind:"subagents" bad:"zero" off:"there are no named subagents"`
}

// A Helper is a subagent that a deep agent starts by its name.
type Helper struct {
	Name         string   `key:"name" kind:"name"` // unique in its list
	Description  string   `key:"description"`      // for the model that chooses among them
	SystemPrompt string   `key:"system_prompt"`
	Model        string   `key:"model" class:"destination" kind:"model name"` // empty: that of the agent
	Tools        []string `key:"tools" kind:"tools"`                          // that it may use; nil means those of the agent, empty none
}

// Settings are d as agents have them.
func (d Deep) Settings() *claybot.Deep {
	all := make([]claybot.Helper, len(d.Subagents))
	for i, h := range d.Subagents {
		all[i] = claybot.Helper(h)
	}
	return &claybot.Deep{Todos: d.Todos, ShowTodos: d.ShowTodos, Files: d.Files, Subagents: all}
}

func (d *Deep) off(string, string) string {
	d.Files = FilesNone
	return "there are no file tools"
}

func (*Deep) on(string) {}

// plainDeep is the Deep in which nothing was set.
func plainDeep() Deep { return Deep{Todos: true, ShowTodos: true, Files: FilesState} }

// setDeep reads a group, or true or false alone. What it changes is a copy, as
// profiles share the settings of the default one.
func setDeep(r *reader, at place, n *yaml.Node, p *draft) {
	d := plainDeep()
	if p.Engine.Deep != nil {
		d = *p.Engine.Deep
	}
	if n.Kind != yaml.ScalarNode {
		if r.group(at, n, &d); n.Kind == yaml.MappingNode {
			p.Engine.Deep = &d
		}
		return
	}
	switch deep, ok := parseTruth(strings.TrimSpace(n.Value)); {
	case !ok:
		keys := names(keysOf(reflect.TypeFor[Deep]()))
		r.warn(at, "%s is not one of true, false, nor a group of keys (%s); ignored", quote(n.Value), strings.Join(keys, ", "))
	case deep:
		p.Engine.Deep = &d
	default:
		p.Engine.Deep = nil
	}
}

func (h *Helper) fault() string {
	var missing []string
	for _, x := range []struct{ name, value string }{
		{"name", h.Name}, {"description", h.Description}, {"system_prompt", h.SystemPrompt},
	} {
		if x.value == "" {
			missing = append(missing, x.name)
		}
	}
	if missing == nil {
		return ""
	}
	return "has no " + strings.Join(missing, " and no ")
}

func setHelpers(r *reader, at place, n *yaml.Node, list *[]Helper) {
	if all, ok := entries(r, at, n, "subagent", (*Helper).fault, func(h Helper) string { return h.Name }); ok {
		*list = all
	}
}
