package configs

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
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
	Todos     bool
	ShowTodos bool   // at the place where the agent answers
	Files     string // state, filesystem, store or none
	Subagents []Helper
}

// A Helper is a subagent that a deep agent starts by its name.
type Helper struct {
	Name         string // unique in its list
	Description  string // for the model that chooses among them
	SystemPrompt string
	Model        string   // empty: that of the agent
	Tools        []string // that it may use; nil means those of the agent, empty none
}

// plainDeep is the Deep in which nothing was set.
func plainDeep() Deep { return Deep{Todos: true, ShowTodos: true, Files: FilesState} }

// setDeep reads a group, or true or false alone. What it changes is a copy, as
// profiles share the settings of the default one.
func setDeep(r *reader, at place, n *yaml.Node, p *draft) {
	d := plainDeep()
	if p.Engine.Deep != nil {
		d = *p.Engine.Deep
	}
	switch n.Kind {
	case yaml.MappingNode:
		group(r, at, n, &d, deepKeys())
		p.Engine.Deep = &d
	case yaml.ScalarNode:
		deep, ok := parseTruth(strings.TrimSpace(n.Value))
		switch {
		case !ok:
			r.warn(at, "%s is not one of true, false, nor a group of keys (%s); ignored", quote(n.Value), strings.Join(names(deepKeys()), ", "))
		case deep:
			p.Engine.Deep = &d
		default:
			p.Engine.Deep = nil
		}
	default:
		r.warn(at, "want a group of keys (%s), found %s; ignored", strings.Join(names(deepKeys()), ", "), kind(n))
	}
}

func deepKeys() []key[Deep] {
	return []key[Deep]{
		text("todos", func(r *reader, at place, v string, d *Deep) { r.truth(at, v, &d.Todos) }),
		text("show_todos", func(r *reader, at place, v string, d *Deep) { r.truth(at, v, &d.ShowTodos) }),
		text("files", func(r *reader, at place, v string, d *Deep) {
			word, ok := r.word(at, v, FilesState, FilesFilesystem, FilesStore, FilesNone)
			store(&d.Files, word, ok)
		}),
		{"subagents", setHelpers},
	}
}

// setHelpers reads the list of helpers and leaves out bad ones, whole: half a
// helper might do more than was meant.
func setHelpers(r *reader, at place, n *yaml.Node, d *Deep) {
	if n.Kind != yaml.SequenceNode {
		r.warn(at, "want a list of subagents, found %s; ignored", kind(n))
		return
	}
	d.Subagents = nil
	lines := make(map[string]int)
	for i, e := range n.Content {
		where := place{file: at.file, line: e.Line, key: fmt.Sprintf("%s[%d]", at.key, i)}
		h, ok := r.helper(where, e)
		switch {
		case !ok:
		case lines[h.Name] != 0:
			r.warn(where, "the name %s was given in line %d already; ignored", quote(h.Name), lines[h.Name])
			instead(r, len(r.warnings)-1, "the subagent is left out")
		default:
			lines[h.Name] = e.Line
			d.Subagents = append(d.Subagents, h)
		}
	}
}

// helper reads one entry, and returns false after a warning about it.
func (r *reader) helper(at place, n *yaml.Node) (h Helper, ok bool) {
	if n.Kind != yaml.MappingNode {
		r.warn(at, "want a group of keys (%s), found %s; ignored", strings.Join(names(helperKeys()), ", "), kind(n))
		instead(r, len(r.warnings)-1, "the subagent is left out")
		return h, false
	}
	before := len(r.warnings)
	group(r, at, n, &h, helperKeys())
	if len(r.warnings) == before {
		var missing []string
		for _, x := range []struct{ name, value string }{
			{"name", h.Name}, {"description", h.Description}, {"system_prompt", h.SystemPrompt},
		} {
			if x.value == "" {
				missing = append(missing, x.name)
			}
		}
		if missing == nil {
			return h, true
		}
		r.warn(at, "has no %s; ignored", strings.Join(missing, " and no "))
	}
	instead(r, before, "the subagent is left out")
	return h, false
}

var helperName = regexp.MustCompile(`^[a-z0-9_-]+$`) // and at most 64 bytes

func helperKeys() []key[Helper] {
	return []key[Helper]{
		text("name", func(r *reader, at place, v string, h *Helper) {
			if len(v) > 64 || !helperName.MatchString(v) {
				r.warn(at, "%s is not a name of at most 64 of a-z, 0-9, _ and -; ignored", quote(v))
				return
			}
			h.Name = v
		}),
		text("description", func(_ *reader, _ place, v string, h *Helper) { h.Description = v }),
		text("system_prompt", func(_ *reader, _ place, v string, h *Helper) { h.SystemPrompt = v }),
		text("model", func(r *reader, at place, v string, h *Helper) {
			var m Model
			r.model(at, v, &m)
			h.Model = m.Name
		}),
		{"tools", func(r *reader, at place, n *yaml.Node, h *Helper) {
			var list draft
			setTools(r, at, n, &list)
			h.Tools = list.Tools
		}},
	}
}
