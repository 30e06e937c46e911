package main

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/web"
)

type toolsCmd struct {
	Agent string `placeholder:"ID" help:"ID of the agent. Default: the tools of the default profile."`
	JSON  bool   `name:"json" help:"Print JSON."`
}

// Run lists tools.
func (c toolsCmd) Run(e *env) error {
	return show(e, c.JSON, to("/tools").with(url.Values{"agent": {c.Agent}}), func(out web.ToolList) error {
		err := e.list("NAME,GROUP,BYTES,EFFECT,REACHES,ASKS,LIMIT,DESCRIPTION", "The agent has no tools.\n", each(out.Tools, func(t web.ToolView) []string {
			bytes := "-"
			if t.InRequest > 0 {
				bytes = strconv.Itoa(t.InRequest)
			}
			return []string{t.Name, cmp.Or(t.Group, "-"), bytes, t.Effect, t.Class, t.Asks, t.Timeout.Round(time.Second).String(), firstSentence(t.Description)}
		}))
		if err != nil || len(out.Tools) == 0 {
			return err
		}
		tools, bytes, cost := 0, 0, int64(0)
		for _, t := range out.Tools {
			if bytes += t.InRequest; t.InRequest > 0 {
				tools++
			}
			cost += t.Cost
		}
		price := ""
		if cost > 0 {
			price = ", " + dollars(cost) + " unless the provider reads them from its cache"
		}
		return e.text(fmt.Sprintf("\nA request declares %d of %d tools: %d bytes, about %d tokens%s. The agent adds groups with find_tools.\n",
			tools, len(out.Tools), bytes, llm.Tokens(bytes), price))
	})
}

// firstSentence shortens a description for a list.
func firstSentence(s string) string {
	s, _, _ = strings.Cut(strings.Join(strings.Fields(s), " "), ". ")
	if r := []rune(s); len(r) > 70 {
		s = string(r[:69]) + "…"
	}
	return strings.TrimSuffix(s, ".")
}

type workspacesCmd struct {
	List   workspacesListCmd   `cmd:"" default:"withargs" eg:"workspaces" help:"List workspaces."`
	Remove workspacesRemoveCmd `cmd:"" eg:"workspaces remove WORKSPACE" help:"Remove a workspace; the next use creates a new one."`
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
		empty := "No workspaces. claybot creates one when an agent first uses a tool that needs it.\n"
		return e.list("KEY,PROVIDER,STATE,IMAGE,LAST USED,EXPIRES,PROBLEM", empty, each(out.Workspaces, func(w web.WorkspaceView) []string {
			expires := "never"
			if w.Expires != 0 {
				expires = moment(w.Expires.Time())
			}
			return []string{w.Key, w.Provider, w.State, cmp.Or(w.Image, "-"), moments(w.LastUsed), expires, cmp.Or(w.Problem, "-")}
		}))
	})
}

// Run removes a workspace.
func (c workspacesRemoveCmd) Run(e *env) error {
	path := "/workspaces/" + url.PathEscape(c.Key)
	if c.Data {
		return e.does("DELETE", to(path+"?data=true"), nil, "Workspace and its files removed.\n")
	}
	return e.does("DELETE", to(path), nil, "Workspace removed; the next one keeps its files.\n")
}

type skillsCmd struct {
	List   skillsListCmd   `cmd:"" default:"withargs" eg:"skills" help:"List the skills."`
	Show   skillsShowCmd   `cmd:"" eg:"skills show release-notes" help:"Show a skill and its changes since it was allowed."`
	Allow  skillsAllowCmd  `cmd:"" eg:"skills allow release-notes" help:"Allow agents to use a skill in its present version."`
	Forbid skillsForbidCmd `cmd:"" eg:"skills forbid release-notes" help:"Forbid a skill that was allowed."`
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
	if i := slices.IndexFunc(all.Skills, func(s web.SkillView) bool { return s.Name == name }); i >= 0 {
		return all.Skills[i], nil
	}
	return web.SkillView{}, fmt.Errorf("no skill %.64q; claybot skills lists them", name)
}

// Run lists the skills.
func (c skillsListCmd) Run(e *env) error {
	return show(e, c.JSON, to("/skills"), func(out web.SkillList) error {
		empty := "No skills. Put folders with a SKILL.md into the folder of skills; see docs/skills.md.\n"
		return e.list("NAME,STATE,TOOLS,DESCRIPTION", empty, each(out.Skills, func(s web.SkillView) []string {
			return []string{s.Name, s.State, cmp.Or(strings.Join(s.Tools, ","), "-"), firstSentence(cmp.Or(s.Problem, s.Description))}
		}))
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

// skillText shows a skill with what an operator must know to allow it.
func skillText(s web.SkillView) string {
	allowed, newTools, command := "", "", ""
	if s.Command != "" {
		command = "/" + s.Command
	}
	if s.AllowedBy != "" {
		allowed, newTools = fmt.Sprintf("by %s on %s", s.AllowedBy, moment(s.AllowedAt.Time())), strings.Join(s.NewTools, ", ")
	}
	var b strings.Builder
	for _, line := range [][2]string{
		{"skill", s.Name},
		{"state", s.State},
		{"problem", s.Problem},
		{"description", s.Description},
		{"command", command},
		{"wants tools", strings.Join(s.Tools, ", ")},
		{"hash", s.Hash},
		{"allowed", allowed},
		{"new files", strings.Join(s.Added, ", ")},
		{"changed", strings.Join(s.Changed, ", ")},
		{"removed", strings.Join(s.Removed, ", ")},
		{"new tools", newTools},
	} {
		if line[1] != "" {
			fmt.Fprintf(&b, "%-12s %s\n", line[0], line[1])
		}
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
		skillText(s)+"\nAgents may now use this version of the skill. Any change turns it off.\n")
}

// Run forbids a skill.
func (c skillsForbidCmd) Run(e *env) error {
	return e.does("POST", to("/skills/"+url.PathEscape(c.Name)+"/forbid"), nil, "Skill forbidden; agents can no longer use it.\n")
}
