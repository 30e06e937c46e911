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
	Agent string `placeholder:"ID" help:"ID of the agent. Default: the tools of the default profile."`
	JSON  bool   `name:"json" help:"Print JSON."`
}

// Run lists tools.
func (c toolsCmd) Run(e *env) error {
	path := "/tools"
	if c.Agent != "" {
		path += "?" + url.Values{"agent": {c.Agent}}.Encode()
	}
	return show(e, c.JSON, to(path), func(out web.ToolList) error {
		rows := [][]string{{"NAME", "FROM", "EFFECT", "REACHES", "ASKS", "LIMIT", "WHAT IT DOES"}}
		for _, t := range out.Tools {
			rows = append(rows, []string{t.Name, t.Source, t.Effect, t.Class, t.Asks, t.Timeout.Round(time.Second).String(), firstSentence(t.Description)})
		}
		return e.list(rows, "The agent has no tools.\n")
	})
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
	List   workspacesListCmd   `cmd:"" default:"withargs" help:"List workspaces."`
	Remove workspacesRemoveCmd `cmd:"" help:"Remove a workspace; the next use creates a new one."`
}

type (
	workspacesListCmd struct {
		JSON bool `name:"json" help:"Print JSON."`
	}
	workspacesRemoveCmd struct {
		Key  string `arg:"" help:"Key of the workspace, as listed by workspaces."`
		Data bool   `help:"Remove its files as well, permanently."`
	}
)

// Run lists the workspaces.
func (c workspacesListCmd) Run(e *env) error {
	return show(e, c.JSON, to("/workspaces"), func(out web.WorkspaceList) error {
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
		return e.list(rows, "No workspaces. claybot creates one when an agent first uses a tool that needs it.\n")
	})
}

// Run removes a workspace.
func (c workspacesRemoveCmd) Run(e *env) error {
	path := "/workspaces/" + url.PathEscape(c.Key)
	if c.Data {
		path += "?data=true"
	}
	words := "Workspace removed; its files are kept for the next one.\n"
	if c.Data {
		words = "Workspace and its files removed.\n"
	}
	return e.does("DELETE", to(path), nil, words)
}

type skillsCmd struct {
	List   skillsListCmd   `cmd:"" default:"withargs" help:"List the skills."`
	Show   skillsShowCmd   `cmd:"" help:"Show a skill and its changes since it was allowed."`
	Allow  skillsAllowCmd  `cmd:"" help:"Allow agents to use a skill in its present version."`
	Forbid skillsForbidCmd `cmd:"" help:"Forbid a skill that was allowed."`
}

type (
	skillsListCmd struct {
		JSON bool `name:"json" help:"Print JSON."`
	}
	skillsShowCmd struct {
		Name string `arg:"" help:"Name of the skill."`
		JSON bool   `name:"json" help:"Print JSON."`
	}
	skillsAllowCmd struct {
		Name string `arg:"" help:"Name of the skill."`
		Hash string `placeholder:"HASH" help:"Expected hash of the skill; any other is refused."`
	}
	skillsForbidCmd struct {
		Name string `arg:"" help:"Name of the skill."`
	}
)

func (e *env) skill(name string) (web.SkillView, error) {
	all, err := ask[web.SkillList](e, "GET", to("/skills"), nil)
	if err != nil {
		return web.SkillView{}, err
	}
	for _, s := range all.Skills {
		if s.Name == name {
			return s, nil
		}
	}
	return web.SkillView{}, fmt.Errorf("there is no skill %.64q; claybot skills lists them", name)
}

// Run lists the skills.
func (c skillsListCmd) Run(e *env) error {
	return show(e, c.JSON, to("/skills"), func(all web.SkillList) error {
		rows := [][]string{{"NAME", "STATE", "TOOLS", "DESCRIPTION"}}
		for _, s := range all.Skills {
			rows = append(rows, []string{s.Name, s.State, cmp.Or(strings.Join(s.Tools, ","), "-"), firstSentence(cmp.Or(s.Problem, s.Description))})
		}
		return e.list(rows, "There are no skills. Put folders with a SKILL.md into the folder of skills; docs/skills.md says how.\n")
	})
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
	s.State = "allowed"
	return e.does("POST", to("/skills/"+url.PathEscape(c.Name)+"/allow"), web.SkillAllow{Hash: cmp.Or(c.Hash, s.Hash)},
		skillText(s)+"\nAgents may use this skill now, exactly as it is. A change turns it off.\n")
}

// Run forbids a skill.
func (c skillsForbidCmd) Run(e *env) error {
	return e.does("POST", to("/skills/"+url.PathEscape(c.Name)+"/forbid"), nil, "Skill forbidden; agents can no longer use it.\n")
}
