package main

import (
	"context"
	"net/url"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools/mcp"
	"github.com/claybot/claybot/tools/skills"
	"github.com/claybot/claybot/web"
)

// Runs implements mcp.Library.
func (a mcpAgents) Runs(ctx context.Context, before string) ([]mcp.RunInfo, string, error) {
	var page web.RunList
	if err := a.get(ctx)("/agents/runs?"+url.Values{"limit": {"100"}, "before": {before}}.Encode(), &page); err != nil {
		return nil, "", err
	}
	all := make([]mcp.RunInfo, len(page.Runs))
	for i, r := range page.Runs {
		all[i] = mcp.RunInfo{ID: r.ID, Agent: r.Agent, State: r.State}
	}
	return all, page.Next, nil
}

// Notes implements mcp.Library.
func (a mcpAgents) Notes(ctx context.Context, scope string) ([]mcp.Note, error) {
	var page web.NoteList
	if err := a.get(ctx)("/notes?"+url.Values{"scope": {scope}}.Encode(), &page); err != nil {
		return nil, err
	}
	all := make([]mcp.Note, len(page.Notes))
	for i, n := range page.Notes {
		all[i] = noteOf(n)
	}
	return all, nil
}

// Note implements mcp.Library.
func (a mcpAgents) Note(ctx context.Context, scope, path string) (mcp.Note, error) {
	var n storage.Memory
	err := a.get(ctx)("/notes/note?"+url.Values{"scope": {scope}, "path": {path}}.Encode(), &n)
	return noteOf(n), err
}

func noteOf(n storage.Memory) mcp.Note {
	return mcp.Note{Path: n.Path, Title: n.Title, Text: n.Text, Tainted: n.Tainted}
}

// Skills implements mcp.Library.
func (a mcpAgents) Skills(ctx context.Context) ([]mcp.Skill, error) {
	var page web.SkillList
	if err := a.get(ctx)("/skills", &page); err != nil {
		return nil, err
	}
	var all []mcp.Skill
	for _, s := range page.Skills {
		if s.State == string(skills.Allowed) {
			all = append(all, mcp.Skill{Name: s.Name, Description: s.Description})
		}
	}
	return all, nil
}
