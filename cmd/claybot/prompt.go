package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/llm/prompts"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/memory"
)

// A prompter builds the system prompts of runs.
type prompter struct {
	config    *settings
	log       *slog.Logger
	stores    *stores
	system    *agentsystem.AgentSystem
	models    *models
	box       *toolbox
	templates templates
}

// prompt returns the system prompt for a run, with the skills and notes of its agent as
// they are now.
func (p *prompter) prompt(t *runs.Turn) (string, error) {
	text, err := p.fixed(t)
	if err != nil {
		return "", err
	}
	index, err := p.index(t)
	if err != nil {
		p.log.Warn("failed to list notes and skills", "agent", t.Agent.ID, "err", err)
	}
	return strings.TrimSpace(text + "\n\n" + strings.TrimSpace(index.Files+"\n\n"+index.Text)), nil
}

// loop is fixed for the engine react, where what an agent says may not be sent by itself.
func (p *prompter) loop(t *runs.Turn) (string, error) {
	text, err := p.fixed(t)
	if err == nil && p.unsent(t.Agent, t.Route()) {
		text += "\n\n" + unsentPrompt
	}
	return text, err
}

// unsent reports whether what an agent says is not sent by itself to a chat where it answers.
func (p *prompter) unsent(a claybot.Agent, to claybot.Route) bool {
	return !p.config.profile(a).AutoSend && to.Connector != ""
}

// fixed returns the part of the system prompt that is the same in all runs of a conversation,
// as long as its settings do not change.
func (p *prompter) fixed(t *runs.Turn) (string, error) {
	parts, err := p.parts(t)
	all := make([]string, len(parts))
	for i, part := range parts {
		all[i] = part.text
	}
	return strings.Join(all, "\n\n"), err
}

// instructions returns what an operator or the configuration sets for an agent, which is a
// template. Behind the prompt of its profile, a subagent has the one that its parent gave it, which is
// no template.
func (p *prompter) instructions(t *runs.Turn) (string, error) {
	a := t.Agent
	if own := p.system.Profiles.OwnSettings(a.ID).Prompt; own != "" {
		return p.render(t, "prompt of the agent", own)
	}
	task := ""
	switch bg := a.State.Background; {
	case bg != nil && bg.Prompt != "":
		task = bg.Prompt
	case a.Descriptor.Type == claybot.AgentSubagent:
		task = subagentPrompt
	}
	profile := p.config.profile(a)
	if profile.Prompt == "" {
		return cmp.Or(task, defaultPrompt), nil
	}
	text, err := p.render(t, "prompt of the profile "+profile.Name, profile.Prompt)
	return strings.TrimSpace(text + "\n\n" + task), err
}

// render fills a template for a run.
func (p *prompter) render(t *runs.Turn, name, text string) (string, error) {
	template, err := p.templates.parse(name, text)
	if err != nil || template.Plain() {
		return text, err
	}
	c := p.config.Load()
	filled, warnings, err := template.Render(p.data(t, c), prompts.Options{Strict: c.Agents.Prompts.Strict})
	for _, w := range warnings {
		p.log.Warn("prompt refers to a missing item", "agent", t.Agent.ID, "run", t.Run.ID, "what", w)
	}
	return filled, err
}

// checkPrompt reports why a prompt is not a valid template.
func checkPrompt(text string) error {
	_, err := prompts.Parse("", text)
	return err
}

// data returns what templates see of a run. Within a run only the finished nodes change.
func (p *prompter) data(t *runs.Turn, c *configs.Config) prompts.Data {
	desc := t.Agent.Descriptor
	data := prompts.Data{
		Agent: prompts.Agent{
			ID: string(t.Agent.ID), Type: string(desc.Type), Name: desc.Name, Profile: c.Profile(desc).Name,
			Connector: desc.Connector, Channel: desc.ChannelID, Engine: t.Run.Engine, Model: p.models.model(t.Agent).ID(),
		},
		Nodes: finishedNodes(t), Env: make(map[string]string), Now: t.Run.Started.Time().In(c.Schedule.Cron.Zone),
	}
	for _, name := range c.Agents.Prompts.Env {
		if v, ok := os.LookupEnv(name); ok {
			data.Env[name] = v
		}
	}
	if len(t.Messages) > 0 {
		m := t.Messages[0]
		person := prompts.User{ID: m.From.UserID, Name: m.From.Name}
		data.User = person
		data.Trigger = prompts.Trigger{
			Text: m.Text, Payload: payloadOf(m), Event: m.Event, Files: m.Files, User: person, Channel: desc.ChannelID, Connector: desc.Connector, At: m.At.Time().In(c.Schedule.Cron.Zone),
		}
	}
	return data
}

// finishedNodes returns the graph nodes that have ended in the run, with their output.
func finishedNodes(t *runs.Turn) map[string]any {
	all := make(map[string]any)
	for _, r := range t.History {
		if r.Run != t.Run.ID || r.Type != claybot.RecordNode || r.Next == r.Name {
			continue
		}
		output := make(map[string]json.RawMessage)
		if r.Change != nil {
			maps.Copy(output, r.Change.Scratch)
			maps.Copy(output, r.Change.Output)
		}
		var used claybot.Usage
		if r.Tokens != nil {
			used = *r.Tokens
		}
		all[r.Name] = map[string]any{"output": output, "messages": []any{}, "token_usage": used}
	}
	return all
}

// templates caches parsed templates by their texts. The zero value is ready.
type templates struct {
	mu  sync.Mutex
	all map[string]*prompts.Template
}

// maxTemplates bounds the cache; the settings of agents may hold many.
const maxTemplates = 200

func (c *templates) parse(name, text string) (*prompts.Template, error) {
	key := name + "\x00" + text
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.all[key]; t != nil {
		return t, nil
	}
	t, err := prompts.Parse(name, text)
	if err != nil {
		return nil, fmt.Errorf("template: %w", err)
	}
	if c.all == nil || len(c.all) >= maxTemplates {
		c.all = make(map[string]*prompts.Template)
	}
	c.all[key] = t
	return t, nil
}

// warnPrompts logs invalid prompts before a run uses them, and files that no run will use.
func warnPrompts(c configs.Config, log *slog.Logger) {
	warned := make(map[string]bool)
	for _, name := range slices.Sorted(maps.Keys(c.Agents.Profiles)) {
		if err := checkPrompt(c.Agents.Profiles[name].Prompt); err != nil {
			log.Error("invalid profile prompt; its agents do not reply until it is fixed", "profile", name, "err", err)
		}
		dir := c.Agents.Profiles[name].PromptDir
		if dir == "" || warned[dir] {
			continue
		}
		warned[dir] = true
		if _, err := os.Stat(dir); err != nil {
			log.Warn("folder of prompts cannot be used", "profile", name, "err", err)
		} else if _, err := os.Lstat(filepath.Join(dir, userFile)); err == nil {
			log.Warn("USER.md is not read here, where it is of no person; put it into a folder such as telegram/4711", "profile", name, "folder", dir)
		}
	}
}

// readTime bounds how long a prompt waits for its notes and skills.
const readTime = 10 * time.Second

// notesStopped stands in a prompt in place of the list of notes while an operator has stopped them.
const notesStopped = "An operator has stopped your notes: none can be read or written until an operator starts them again. Say so where that matters."

// index returns SOUL.md and USER.md, and lists the skills and notes of an agent for a run. Where others read as well, the
// notes of its person are among them only if that person has approved for good that it
// lists them.
func (p *prompter) index(t *runs.Turn) (claybot.Index, error) {
	a, notes := t.Agent, p.config.profile(t.Agent).Notes
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	text, err := "", error(nil)
	if p.stores.orders.Stopped(skillsNode) == nil {
		text, err = p.stores.skills().Prompt(ctx, notes.Skills)
	}
	files, unread := p.box.promptFiles(ctx, a, t.Place())
	err = errors.Join(err, unread)
	index := claybot.Index{Text: strings.TrimSpace(text), Files: files.text, Person: files.person, Private: files.private, Unread: files.unread}
	if notes.Off {
		return index, err
	}
	index.Owner = showsOwnerNotes(ctx, p.system, a, t.Place())
	if p.stores.orders.Stopped(notesNode) != nil {
		index.Text = strings.TrimSpace(index.Text + "\n\n" + notesStopped)
		return index, err
	}
	text, private, failed := memory.Index(ctx, p.stores.db, a, index.Owner)
	index.Text, index.Private = strings.TrimSpace(index.Text+"\n\n"+strings.TrimSpace(text)), private || index.Private
	return index, errors.Join(err, failed)
}

// showsOwnerNotes reports whether the notes of its person are in the prompt of an agent,
// for a run whose place is r, see runs.Turn.
func showsOwnerNotes(ctx context.Context, system *agentsystem.AgentSystem, a claybot.Agent, r claybot.Route) bool {
	return system.Subagents.Directory.DisclosesNotes(ctx, tools.Env{Agent: a, Place: r}, false) == nil ||
		slices.Contains(system.Profiles.OwnSettings(a.ID).Approved, memory.ListsOwner)
}
