package main

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/claybot/claybot/web"
)

type toolsCmd struct {
	Agent string `placeholder:"ID" help:"The tools of this agent; those of the default profile when left out."`
	JSON  bool   `name:"json" help:"Print JSON."`
}

// Run lists tools.
func (c toolsCmd) Run(e *env) error {
	path := "/tools"
	if c.Agent != "" {
		path += "?" + url.Values{"agent": {c.Agent}}.Encode()
	}
	var out web.ToolList
	if err := e.ask("GET", path, nil, &out); err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(out)
	}
	if len(out.Tools) == 0 {
		return e.text("It has no tools.\n")
	}
	rows := [][]string{{"NAME", "FROM", "EFFECT", "REACHES", "ASKS", "LIMIT", "WHAT IT DOES"}}
	for _, t := range out.Tools {
		rows = append(rows, []string{t.Name, t.Source, t.Effect, t.Class, t.Asks, t.Timeout.Round(time.Second).String(), firstSentence(t.Description)})
	}
	return e.table(rows)
}

// firstSentence is enough of a description for a list.
func firstSentence(s string) string {
	s, _, _ = strings.Cut(strings.Join(strings.Fields(s), " "), ". ")
	if r := []rune(s); len(r) > 70 {
		s = string(r[:69]) + "…"
	}
	return strings.TrimSuffix(s, ".")
}

type workspacesCmd struct {
	List   workspacesListCmd   `cmd:"" default:"withargs" help:"List the workspaces that there are."`
	Remove workspacesRemoveCmd `cmd:"" help:"Take a workspace away; the next use makes a new one."`
}

type (
	workspacesListCmd struct {
		JSON bool `name:"json" help:"Print JSON."`
	}
	workspacesRemoveCmd struct {
		Key  string `arg:"" help:"The key of the workspace, as the list shows it."`
		Data bool   `help:"Remove its files as well. They cannot be had back."`
	}
)

// Run lists the workspaces.
func (c workspacesListCmd) Run(e *env) error {
	var out web.WorkspaceList
	if err := e.ask("GET", "/workspaces", nil, &out); err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(out)
	}
	if len(out.Workspaces) == 0 {
		return e.text("There are no workspaces. One is made when an agent first uses a tool that needs it.\n")
	}
	rows := [][]string{{"KEY", "PROVIDER", "STATE", "IMAGE", "LAST USED", "EXPIRES", "PROBLEM"}}
	for _, w := range out.Workspaces {
		expires := "never"
		if w.Expires != 0 {
			expires = w.Expires.Time().Local().Format(time.DateTime)
		}
		used := "-"
		if w.LastUsed != 0 {
			used = w.LastUsed.Time().Local().Format(time.DateTime)
		}
		rows = append(rows, []string{w.Key, w.Provider, w.State, cmp.Or(w.Image, "-"), used, expires, cmp.Or(w.Problem, "-")})
	}
	return e.table(rows)
}

// Run removes a workspace.
func (c workspacesRemoveCmd) Run(e *env) error {
	path := "/workspaces/" + url.PathEscape(c.Key)
	if c.Data {
		path += "?data=true"
	}
	if err := e.ask("DELETE", path, nil, nil); err != nil {
		return err
	}
	if c.Data {
		return e.text("The workspace and its files are gone.\n")
	}
	return e.text("The workspace is gone; its files are kept for the next one.\n")
}

type skillsCmd struct {
	List   skillsListCmd   `cmd:"" default:"withargs" help:"List the skills."`
	Show   skillsShowCmd   `cmd:"" help:"Show a skill, and what is different from what was allowed."`
	Allow  skillsAllowCmd  `cmd:"" help:"Let agents use a skill as it is now."`
	Forbid skillsForbidCmd `cmd:"" help:"Take that back."`
}

type (
	skillsListCmd struct {
		JSON bool `name:"json" help:"Print JSON."`
	}
	skillsShowCmd struct {
		Name string `arg:"" help:"The skill."`
		JSON bool   `name:"json" help:"Print JSON."`
	}
	skillsAllowCmd struct {
		Name string `arg:"" help:"The skill."`
		Hash string `placeholder:"HASH" help:"Allow it only if this is its hash."`
	}
	skillsForbidCmd struct {
		Name string `arg:"" help:"The skill."`
	}
)

func (e *env) skills() ([]web.SkillView, error) {
	var out web.SkillList
	err := e.ask("GET", "/skills", nil, &out)
	return out.Skills, err
}

func (e *env) skill(name string) (web.SkillView, error) {
	all, err := e.skills()
	if err != nil {
		return web.SkillView{}, err
	}
	for _, s := range all {
		if s.Name == name {
			return s, nil
		}
	}
	return web.SkillView{}, fmt.Errorf("there is no skill %.64q; claybot skills lists them", name)
}

// Run lists the skills.
func (c skillsListCmd) Run(e *env) error {
	all, err := e.skills()
	if err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(web.SkillList{Skills: all})
	}
	if len(all) == 0 {
		return e.text("There are no skills. Put folders with a SKILL.md into the folder of skills; docs/skills.md says how.\n")
	}
	rows := [][]string{{"NAME", "STATE", "TOOLS", "DESCRIPTION"}}
	for _, s := range all {
		rows = append(rows, []string{s.Name, s.State, cmp.Or(strings.Join(s.Tools, ","), "-"), firstSentence(cmp.Or(s.Problem, s.Description))})
	}
	return e.table(rows)
}

// Run shows a skill.
func (c skillsShowCmd) Run(e *env) error {
	s, err := e.skill(c.Name)
	if err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(s)
	}
	return e.text(skillText(s))
}

// skillText is a skill with what an operator must know to allow it.
func skillText(s web.SkillView) string {
	var b strings.Builder
	line := func(label, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-12s %s\n", label, value)
		}
	}
	line("skill", s.Name)
	line("state", s.State)
	line("problem", s.Problem)
	line("description", s.Description)
	line("wants tools", strings.Join(s.Tools, ", "))
	line("hash", s.Hash)
	if s.AllowedBy != "" {
		line("allowed", fmt.Sprintf("by %s on %s", s.AllowedBy, s.AllowedAt.Time().Local().Format(time.DateTime)))
	}
	line("new files", strings.Join(s.Added, ", "))
	line("changed", strings.Join(s.Changed, ", "))
	line("removed", strings.Join(s.Removed, ", "))
	if s.AllowedBy != "" {
		line("new tools", strings.Join(s.NewTools, ", "))
	}
	return b.String()
}

// Run allows a skill, and shows what it allowed.
func (c skillsAllowCmd) Run(e *env) error {
	s, err := e.skill(c.Name)
	if err != nil {
		return err
	}
	if s.Hash == "" {
		return fmt.Errorf("skill %s cannot be used: %s", c.Name, s.Problem)
	}
	err = e.ask("POST", "/skills/"+url.PathEscape(c.Name)+"/allow", web.SkillAllow{Hash: cmp.Or(c.Hash, s.Hash)}, nil)
	if err != nil {
		return err
	}
	s.State = "allowed"
	return e.text(skillText(s) + "\nAgents may use this skill now, exactly as it is. A change turns it off.\n")
}

// Run forbids a skill.
func (c skillsForbidCmd) Run(e *env) error {
	if err := e.ask("POST", "/skills/"+url.PathEscape(c.Name)+"/forbid", nil, nil); err != nil {
		return err
	}
	return e.text("No agent may use this skill any more.\n")
}
