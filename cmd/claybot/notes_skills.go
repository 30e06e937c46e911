package main

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/memory"
	"github.com/claybot/claybot/tools/skills"
)

// readTime bounds what a prompt waits for its notes and skills.
const readTime = 10 * time.Second

// library is the skills of this installation. Nodes that share a store have them
// there, unless the configuration names a folder, which all of them need then.
func (d *daemon) library() skills.Library {
	c := d.config.Load()
	dir := c.Agents.Skills
	if dir == "" && d.tree != nil {
		d.box.shelving.Do(func() { d.box.shelf = skills.NewShelf(d.tree) })
		return skills.Library{Pins: d.db, Shelf: d.box.shelf}
	}
	if dir == "" {
		dir = filepath.Join(c.DataDir, "skills")
	}
	return skills.Library{Dir: dir, Pins: d.db}
}

// remembering are the tools for notes and skills that agents of a kind have.
func (d *daemon) remembering(key boxKey, off bool) []tools.Tool {
	var own []tools.Tool
	if key.skills {
		own = skills.Tools(d.library(), func(env tools.Env) []string { return d.settings(env.Agent).Notes.Skills })
	}
	if off {
		return own
	}
	return append(own, memory.Tools(memory.Config{
		Notes: d.db, Versions: d.db, Global: func(env tools.Env) bool { return d.settings(env.Agent).Notes.Global },
	})...)
}

// withNotes adds to a prompt which skills and notes an agent has. An agent that
// has none has the prompt as it is.
func (d *daemon) withNotes(a claybot.Agent, prompt string) string {
	p := d.settings(a).Notes
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	parts := []string{prompt}
	add := func(part string, err error) {
		switch {
		case err != nil:
			d.log.Warn("failed to add notes or skills to prompt", "agent", a.ID, "err", err)
		case part != "":
			parts = append(parts, strings.TrimSpace(part))
		}
	}
	add(d.library().Prompt(ctx, p.Skills))
	if !p.Off {
		add(memory.Index(ctx, d.db, a))
	}
	return strings.Join(parts, "\n\n")
}
