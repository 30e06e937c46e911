package main

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/tools"
	questions "github.com/claybot/claybot/tools/ask"
	"github.com/claybot/claybot/tools/clock"
	"github.com/claybot/claybot/tools/documents"
	"github.com/claybot/claybot/tools/files"
	"github.com/claybot/claybot/tools/messaging"
	"github.com/claybot/claybot/tools/schedule"
	"github.com/claybot/claybot/tools/send"
	"github.com/claybot/claybot/tools/shell"
	"github.com/claybot/claybot/tools/skills"
	"github.com/claybot/claybot/tools/todos"
	"github.com/claybot/claybot/web"
)

// A toolbox puts together what each agent may use. A set is made once for each
// profile and kind of agent, until the configuration changes.
type toolbox struct {
	d        *daemon
	tasks    web.Tasks         // nil: cron is off
	memories schedule.Memories // of tasks
	beats    web.Beats         // nil: the heartbeat is off
	more     []tools.Tool      // that a scene of the demo brings along

	mu     sync.Mutex
	config *configs.Config // that the sets were made for
	served uint64          // the generation of the servers' tools, likewise
	sets   map[boxKey]*tools.Set

	webTools []tools.Tool

	shelving sync.Once
	shelf    *skills.Shelf // of nodes that share their skills
}

type boxKey struct {
	profile string
	kind    claybot.AgentType
	beats   bool // with the tools of the heartbeat
	skills  bool // there may be some
	place   bool // with a workspace
}

// of returns the tools of an agent: of those that it is allowed, the ones that
// its own settings name, if they do.
func (b *toolbox) of(a claybot.Agent) *tools.Set {
	return b.given(a).Only(b.d.system.Profiles.OwnSettings(a.ID).Tools)
}

// allowed are the names of the tools that the settings of an agent may name.
func (b *toolbox) allowed(a claybot.Agent) []string { return toolNames(b.given(a)) }

// given returns the tools that an agent is allowed: those of its profile, and
// of them only what it was given when it was started.
func (b *toolbox) given(a claybot.Agent) *tools.Set {
	set := b.set(a.Descriptor, b.d.library().Exists())
	if bg := a.State.Background; bg != nil {
		set = set.Only(bg.Tools)
	}
	return set
}

// names are the tools of an agent by name.
func (b *toolbox) names(a claybot.Agent) []string { return toolNames(b.of(a)) }

func toolNames(set *tools.Set) []string {
	offered := set.Tools()
	names := make([]string, len(offered))
	for i, t := range offered {
		names[i] = t.Name
	}
	return names
}

// mayBeat reports whether an agent gets the tools of the heartbeat. The
// heartbeat belongs to nobody and reaches everybody, so they are for the
// operator's own chats, for the heartbeat, and where a profile names them.
func (b *toolbox) mayBeat(d claybot.Descriptor, p configs.Profile) bool {
	own := d.Type == claybot.AgentHeartbeat || d.Foreground() && slices.Contains(operatorChats, d.Connector)
	return own || slices.ContainsFunc(p.Tools, func(name string) bool { return strings.HasPrefix(name, "heartbeat_") })
}

// set is what the profile of an agent allows. The profile is of the configuration
// that the sets are made for, so that none is kept for the next one.
func (b *toolbox) set(d claybot.Descriptor, skills bool) *tools.Set {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, served := b.d.config.Load(), b.d.servers.Generation()
	p := c.Profile(d)
	key := boxKey{p.Name, d.Type, b.mayBeat(d, p), skills, p.Workspace.Provider != configs.Off}
	if b.config != c || b.served != served || b.sets == nil {
		if b.config != c || b.webTools == nil {
			b.webTools = b.d.webTools() // what they remember of rates lasts until the next change
		}
		b.config, b.served, b.sets = c, served, make(map[boxKey]*tools.Set)
	}
	if b.sets[key] == nil {
		set, err := tools.NewSet(b.all(key, p)...)
		if err != nil {
			b.d.log.Error("some tools unavailable", "profile", p.Name, "err", err)
		}
		set.Log, set.Redact = b.d.log, strings.NewReplacer(concealed(*b.d.config.Load())...).Replace
		b.sets[key] = set
	}
	return b.sets[key].Only(p.Tools)
}

// all are the tools of a profile for agents of one kind.
func (b *toolbox) all(key boxKey, p configs.Profile) []tools.Tool {
	system, beats := b.d.system, b.beats
	if !key.beats {
		beats = nil
	}
	all := slices.Concat(clock.Tools(), messaging.Tools(system.Subagents, system.Subagents, system.Subagents), schedule.Tools(b.tasks, beats, system.Subagents), b.d.remembering(key, p.Notes.Off), b.more)
	if key.kind == claybot.AgentUser {
		all = append(all, questions.Tools(system.Questions)...)
	}
	if key.kind == claybot.AgentCron && b.memories != nil {
		all = append(all, schedule.MemoryTools(b.memories)...)
	}
	all = append(all, b.acting(key, p)...)
	deep := p.Engine.Deep
	if deep == nil {
		return append(all, b.d.servers.Tools(nil)...)
	}
	if deep.Todos {
		all = append(all, todos.Tools(b.d.db, system, func(tools.Env) bool { return deep.ShowTodos })...)
	}
	switch deep.Files {
	case configs.FilesState:
		all = append(all, documents.Tools(documents.State(b.d.db))...)
	case configs.FilesStore:
		all = append(all, documents.Tools(documents.Store(b.d.db))...)
	case configs.FilesFilesystem:
		source := documents.Filesystem(b.folder)
		if b.d.tree != nil { // the next run may be on another machine
			source = documents.Folder(b.d.db)
		}
		all = append(all, documents.Tools(source)...)
	}
	if len(deep.Subagents) > 0 {
		helpers := make([]messaging.Helper, len(deep.Subagents))
		for i, h := range deep.Subagents {
			helpers[i] = messaging.Helper{Name: h.Name, Description: h.Description, Prompt: h.SystemPrompt, Model: h.Model, Tools: h.Tools}
		}
		all = append(all, messaging.TaskTool(system.Subagents, helpers))
	}
	// Last, so that no server takes the name of another tool.
	return append(all, b.d.servers.Tools(nil)...)
}

// acting are the tools that reach files, commands, the chat and the web. The files
// of a deep agent have the names that those of its workspace would have.
func (b *toolbox) acting(key boxKey, p configs.Profile) []tools.Tool {
	if !key.place {
		return append(send.Tools(b.d.system, nil), b.webTools...)
	}
	all := append(shell.Tools(b.d.openPlace, func(env tools.Env) string { return b.d.settings(env.Agent).Workspace.Network }), send.Tools(b.d.system, b.d.openPlace)...)
	if p.Engine.Deep == nil || p.Engine.Deep.Files == configs.FilesNone {
		all = append(all, files.Tools(b.d.openPlace)...)
	}
	if p.Workspace.Browser {
		all = append(all, b.d.browsers.Tools()...)
	}
	return append(all, b.webTools...)
}

// folder is where the files of an agent are.
func (b *toolbox) folder(env tools.Env) (string, error) {
	return filepath.Join(b.d.config.Load().DataDir, "agents", string(env.Agent.ID), "files"), nil
}

// modelNames are the models that a subagent may be given: those that a
// configuration names.
func modelNames(c *configs.Config) []string {
	var names []string
	for _, p := range c.Agents.Profiles {
		if p.Model.Demo() {
			continue // it has no name that anybody could ask for
		}
		names = append(names, p.Model.ID())
		if p.Engine.Deep == nil {
			continue
		}
		for _, h := range p.Engine.Deep.Subagents {
			if h.Model != "" {
				names = append(names, h.Model)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
