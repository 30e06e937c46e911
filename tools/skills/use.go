package skills

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/tools"
)

// Tools are use_skill and read_skill_file. names are the skills that an agent may
// use, nil for all.
func Tools(l Library, names func(tools.Env) []string) []tools.Tool {
	return []tools.Tool{use(l, names), readFile(l, names)}
}

// own are the tools that a run has whatever the skills in it name.
var own = []string{"use_skill", "read_skill_file"}

func find(ctx context.Context, l Library, names []string, name string) (Skill, error) {
	all, err := l.usable(ctx, names)
	if err != nil {
		return Skill{}, fmt.Errorf("the skills cannot be read now: %w", err)
	}
	i := slices.IndexFunc(all, func(s Skill) bool { return s.Name == name })
	if i < 0 {
		known := make([]string, len(all))
		for j, s := range all {
			known[j] = s.Name
		}
		return Skill{}, &tools.Fault{Code: "not_found", Text: fmt.Sprintf("there is no skill %.64q that may be used; there are: %s", name, strings.Join(known, ", "))}
	}
	return all[i], nil
}

func use(l Library, names func(tools.Env) []string) tools.Tool {
	type input struct {
		Name string `json:"name" jsonschema:"the skill, by its name in the list"`
	}
	s := tools.Spec{
		Tool:   llm.Tool{Name: "use_skill", Description: "Reads how a skill works. Call it before you do a task that fits the skill."},
		Effect: tools.ReadOnly, Scopes: []string{"skills"},
	}
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		skill, err := find(ctx, l, names(env), in.Name)
		if err != nil {
			return tools.Result{}, err
		}
		var b strings.Builder
		b.WriteString(skill.text)
		if len(skill.Files) > 1 {
			b.WriteString("\n\nFiles of this skill, for read_skill_file:\n")
			for _, name := range slices.Sorted(maps.Keys(skill.Files)) {
				if name != manifest {
					fmt.Fprintf(&b, "- %s\n", name)
				}
			}
		}
		r := tools.Result{Text: b.String()}
		if skill.Tools != nil {
			r.Only = append(slices.Clone(own), skill.Tools...)
			fmt.Fprintf(&b, "\n\nFor the rest of this task you have, of your tools, those that this skill names: %s.", strings.Join(skill.Tools, ", "))
			r.Text = b.String()
		}
		return r, nil
	})
}

func readFile(l Library, names func(tools.Env) []string) tools.Tool {
	type input struct {
		Name string `json:"name" jsonschema:"the skill"`
		File string `json:"file" jsonschema:"the file, as use_skill lists it"`
	}
	s := tools.Spec{
		Tool:   llm.Tool{Name: "read_skill_file", Description: "Reads a file that belongs to a skill."},
		Effect: tools.ReadOnly, Scopes: []string{"skills"},
	}
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		skill, err := find(ctx, l, names(env), in.Name)
		if err != nil {
			return tools.Result{}, err
		}
		want, ok := skill.Files[in.File]
		if !ok {
			return tools.Result{}, &tools.Fault{Code: "not_found", Text: fmt.Sprintf("the skill %s has no file %.200q", skill.Name, in.File)}
		}
		content, err := l.file(ctx, skill.Name, in.File)
		if err != nil {
			return tools.Result{}, err
		}
		// What is read now must be what was allowed, whatever happened in between.
		if sum(content) != want {
			return tools.Result{}, &tools.Fault{Code: "changed", Text: "the skill was changed; it is off until the operator allows it again"}
		}
		if !utf8.Valid(content) {
			return tools.Result{Text: fmt.Sprintf("%s is not text (%d bytes)", in.File, len(content))}, nil
		}
		return tools.Result{Text: string(content)}, nil
	})
}

func (l Library) file(ctx context.Context, skill, rel string) ([]byte, error) {
	if l.Shelf != nil {
		return l.Shelf.file(ctx, skill, rel)
	}
	root, err := os.OpenRoot(l.Dir)
	if err != nil {
		return nil, fmt.Errorf("the skills cannot be read now: %w", err)
	}
	defer root.Close()
	return readRegular(root, path.Join(skill, rel), rel)
}
