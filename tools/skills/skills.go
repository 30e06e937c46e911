// Package skills lets agents use skills: folders with a SKILL.md that says how
// something is done, and files that go with it. Agents see names and descriptions,
// and read the rest on use.
//
// The operator did not write the text of a skill, so the skill is off until
// the operator allows exactly this content: a changed file turns it off again. It
// grants nothing. Where its manifest names tools, a run that uses it has only
// those from then on, of the ones that its agent has.
//
// Only cmd imports it.
package skills

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/tools"
)

// Pins keep which content of which skill an operator has allowed, by name.
type Pins interface {
	// Mark returns a value; empty for none.
	Checkpoint(ctx context.Context, key string) (string, error)
	SetCheckpoint(ctx context.Context, key, value string) error
}

// A Library is the skills of a folder. It is read anew with each call, so that a
// change counts at once. It is safe for concurrent use.
type Library struct {
	Dir  string // need not exist
	Pins Pins
	// Shelf has the skills of nodes that share a store, instead of Dir.
	Shelf *Shelf
}

// State says whether a skill may be used.
type State string

// The states of a skill.
const (
	Allowed State = "allowed"
	New     State = "new"     // not allowed yet
	Changed State = "changed" // it is not what was allowed
	Broken  State = "broken"  // it cannot be read, see Problem
)

// A Skill is one folder.
type Skill struct {
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Tools       []string          `json:"tools,omitempty"` // that it names; none: it says nothing about tools
	State       State             `json:"state"`
	Problem     string            `json:"problem,omitempty"`
	Hash        string            `json:"hash"`
	Files       map[string]string `json:"files"` // hash of each file by its path
	// Command is the chat command that uses the skill; empty for none. Arguments is a hint of what
	// follows it.
	Command   string `json:"command,omitempty"`
	Arguments string `json:"arguments,omitempty"`
	Pin       *Pin   `json:"pin,omitempty"`

	text string // of SKILL.md, without the frontmatter
}

// A Pin is what an operator has allowed.
type Pin struct {
	Hash  string            `json:"hash"`
	Files map[string]string `json:"files"`
	Tools []string          `json:"tools,omitempty"`
	By    string            `json:"by"`
	At    claybot.Time      `json:"at"`
}

// A Change is what is different between a skill and what was allowed.
type Change struct {
	Added, Changed, Removed []string // files
	Tools                   []string // that it names now and did not
}

// Difference tells what is new in a skill; all of it when nothing was allowed.
func (s Skill) Difference() Change {
	var old Pin
	if s.Pin != nil {
		old = *s.Pin
	}
	var c Change
	for name, hash := range s.Files {
		switch was, known := old.Files[name]; {
		case !known:
			c.Added = append(c.Added, name)
		case was != hash:
			c.Changed = append(c.Changed, name)
		}
	}
	for name := range old.Files {
		if _, ok := s.Files[name]; !ok {
			c.Removed = append(c.Removed, name)
		}
	}
	for _, t := range s.Tools {
		if !slices.Contains(old.Tools, t) {
			c.Tools = append(c.Tools, t)
		}
	}
	for _, list := range [][]string{c.Added, c.Changed, c.Removed} {
		slices.Sort(list)
	}
	return c
}

// pinKey is where the pin of a skill is kept.
func pinKey(name string) string { return "skill/" + name }

// Exists reports whether there is a folder of skills at all.
func (l Library) Exists() bool {
	if l.Shelf != nil {
		return l.Shelf.any()
	}
	info, err := os.Stat(l.Dir)
	return err == nil && info.IsDir()
}

// Skills lists all skills in the order of their names, those that cannot be used
// as well.
func (l Library) Skills(ctx context.Context) ([]Skill, error) {
	all, err := l.read(ctx)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if err := l.judge(ctx, &all[i]); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b Skill) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

func (l Library) read(ctx context.Context) ([]Skill, error) {
	if l.Shelf != nil {
		return l.Shelf.all(ctx)
	}
	return readAll(l.Dir)
}

// judge compares a skill with what was allowed.
func (l Library) judge(ctx context.Context, s *Skill) error {
	if s.State == Broken {
		return nil
	}
	raw, err := l.Pins.Checkpoint(ctx, pinKey(s.Name))
	if err != nil {
		return fmt.Errorf("what was allowed of skill %s: %w", s.Name, err)
	}
	s.State = New
	if raw == "" {
		return nil
	}
	var pin Pin
	if json.Unmarshal([]byte(raw), &pin) != nil || pin.Hash == "" {
		return nil // forbidden again, or damaged: nothing is allowed
	}
	s.Pin, s.State = &pin, Changed
	if pin.Hash == s.Hash {
		s.State = Allowed
	}
	return nil
}

// ErrUnknown: there is no such skill.
var ErrUnknown = errors.New("there is no such skill")

// Skill finds one by its name; ErrUnknown.
func (l Library) Skill(ctx context.Context, name string) (Skill, error) {
	all, err := l.Skills(ctx)
	if err != nil {
		return Skill{}, err
	}
	i := slices.IndexFunc(all, func(s Skill) bool { return s.Name == name })
	if i < 0 {
		return Skill{}, fmt.Errorf("%w: %.64q", ErrUnknown, name)
	}
	return all[i], nil
}

// Allow lets agents use a skill as it is now. hash is what the operator has seen;
// when the skill is another one meanwhile, nothing is allowed.
func (l Library) Allow(ctx context.Context, name, hash, by string) (Skill, error) {
	s, err := l.Skill(ctx, name)
	switch {
	case err != nil:
		return s, err
	case s.State == Broken:
		return s, fmt.Errorf("skill %s cannot be used: %s", name, s.Problem)
	case s.Hash != hash:
		return s, fmt.Errorf("skill %s has changed since you looked; look at it again", name)
	}
	pin := Pin{Hash: s.Hash, Files: s.Files, Tools: s.Tools, By: by, At: claybot.Now()}
	raw, err := json.Marshal(pin)
	if err != nil {
		return s, err
	}
	if err := l.Pins.SetCheckpoint(ctx, pinKey(name), string(raw)); err != nil {
		return s, fmt.Errorf("allow skill %s: %w", name, err)
	}
	s.Pin, s.State = &pin, Allowed
	return s, nil
}

// Forbid takes that back. A skill that is not there is forbidden all the same.
func (l Library) Forbid(ctx context.Context, name string) error {
	if err := l.Pins.SetCheckpoint(ctx, pinKey(name), ""); err != nil {
		return fmt.Errorf("forbid skill %s: %w", name, err)
	}
	return nil
}

// usable are the skills that an agent may use, of those named; nil names all.
func (l Library) usable(ctx context.Context, names []string) ([]Skill, error) {
	all, err := l.Skills(ctx)
	return slices.DeleteFunc(all, func(s Skill) bool {
		return s.State != Allowed || names != nil && !slices.Contains(names, s.Name)
	}), err
}

// maxListed is the most bytes that a list of skills takes in a prompt.
const maxListed = 8 << 10

// Prompt is the part of an agent's prompt that tells which skills it has, of those
// named; nil names all. It is empty for none.
func (l Library) Prompt(ctx context.Context, names []string) (string, error) {
	all, err := l.usable(ctx, names)
	if err != nil || len(all) == 0 {
		return "", err
	}
	var b strings.Builder
	b.WriteString("Skills that you have. When a task fits one, call use_skill first and do as it says:\n")
	for _, s := range all {
		line := fmt.Sprintf("- %s: %s\n", s.Name, s.Description)
		if b.Len()+len(line) > maxListed {
			b.WriteString("- and others; use_skill knows them by name\n")
			break
		}
		b.WriteString(line)
	}
	return b.String(), nil
}

// Commands are the chat commands of the skills that an agent may use, of those named; nil names
// all.
func (l Library) Commands(ctx context.Context, names []string) (all []connectors.Command, err error) {
	list, err := l.usable(ctx, names)
	for _, s := range list {
		if s.Command != "" {
			all = append(all, connectors.Command{Name: s.Command, Help: s.Description, Arguments: s.Arguments})
		}
	}
	return all, err
}

// Tools are use_skill and read_skill_file. names are the skills that an agent may
// use, nil for all.
func Tools(l Library, names func(tools.Env) []string) []tools.Tool {
	return []tools.Tool{use(l, names), readFile(l, names)}
}

// own are the tools that a run has whatever the skills in it name.
var own = []string{tools.UseSkill, "read_skill_file"}

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
		Tool:   llm.Tool{Name: tools.UseSkill, Description: "Reads how a skill works. Call it before you do a task that fits the skill."},
		Public: true, Effect: tools.ReadOnly, Scopes: []string{"skills"},
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
		Tool: llm.Tool{Name: "read_skill_file", Description: "Reads a file that belongs to a skill."}, Public: true,
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
