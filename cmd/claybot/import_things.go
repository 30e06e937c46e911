package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/cron"
	"github.com/claybot/claybot/imports"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools/skills"
	"github.com/claybot/claybot/web"
)

// things imports skills, notes, tasks and the heartbeat: what the daemon keeps.
func (a *adoption) things() error {
	a.skills()
	if a.owner == "" && len(a.Notes) > 0 {
		a.Leave("notes", "it is unknown whose they are; say so, such as with --owner telegram/123456789")
		a.Notes = nil
	}
	if len(a.Notes)+len(a.Tasks) == 0 && a.Heartbeat == nil {
		return nil
	}
	stop, err := a.connected()
	if err != nil {
		return errors.Join(err, stop())
	}
	for _, do := range []func() error{a.notes, a.tasks, a.heartbeat} {
		if err == nil && a.ctx.Err() == nil {
			err = do()
		}
	}
	return errors.Join(err, stop())
}

// outcome reports that a thing is imported, or why that failed.
func (a *adoption) outcome(name, shown string, err error) {
	if err != nil {
		a.failed = append(a.failed, []string{name, err.Error()})
		return
	}
	a.todo = append(a.todo, []string{name, shown})
}

// skills copies skills into the folder of skills. They are off until an operator allows them.
func (a *adoption) skills() {
	to := a.config.Agents.Skills
	if to == "" && a.config.Storage.Shared() {
		for _, dir := range a.Skills {
			a.Leave(dir, "a cluster keeps its skills in the database; see docs/skills.md")
		}
		return
	}
	to = cmp.Or(to, filepath.Join(a.config.DataDir, "skills"))
	seen := make(map[string]bool)
	for _, dir := range a.Skills {
		all, err := skills.Read(dir)
		if err != nil {
			a.Leave(dir, err.Error())
		}
		for _, s := range all {
			name := "skill " + s.Name
			there, same := skills.Matches(to, s)
			switch {
			case seen[s.Name]:
				continue
			case s.State == skills.Broken:
				a.Leave(name, s.Problem)
				continue
			case there:
				a.stay(name, to, same)
			case a.flags.Apply:
				_, err = skills.Import(dir, to, s)
				fallthrough
			default:
				a.outcome(name, "off until you allow it: claybot skills allow "+s.Name, err)
			}
			seen[s.Name] = true
		}
	}
}

// notes writes the notes of the owner.
func (a *adoption) notes() error {
	for _, n := range a.Notes {
		name, path := "note "+n.Path, "/notes/note?"+url.Values{"scope": {"owner/" + a.owner}, "path": {n.Path}}.Encode()
		shown := fmt.Sprintf("for %s, %d bytes", a.owner, len(n.Text))
		if a.calls == nil {
			a.outcome(name, shown, nil)
			continue
		}
		var now storage.Memory
		err := a.calls.call(a.ctx, "GET", path, nil, &now)
		var no *refusal
		switch {
		case err == nil:
			a.stay(name, "the notes of "+a.owner, strings.TrimSpace(now.Text) == n.Text)
			continue
		case !errors.As(err, &no) || no.status != http.StatusNotFound:
			return err
		}
		if err = nil; a.flags.Apply {
			err = a.calls.call(a.ctx, "PUT", path, web.NoteText{Text: n.Text}, nil)
		}
		a.outcome(name, shown, err)
	}
	return nil
}

// tasks creates the scheduled tasks. The description of one says of which job it is.
func (a *adoption) tasks() error {
	var list web.TaskList
	if a.calls != nil && len(a.Tasks) > 0 {
		if err := a.calls.call(a.ctx, "GET", "/cron", nil, &list); err != nil {
			return fmt.Errorf("tasks: %w", err)
		}
	}
	for _, t := range a.Tasks {
		name := "task " + t.Name
		if at := slices.IndexFunc(list.Tasks, func(x connectors.Task) bool { return x.Description == t.Description }); at >= 0 {
			now := list.Tasks[at]
			a.stay(name, "claybot cron show "+now.Slug, now.Prompt == t.Prompt && now.Schedule == t.Schedule && now.Every == t.Every && now.At == t.At)
			continue
		}
		t.Owner = a.owner
		if own, ok := strings.CutPrefix(a.owner, "telegram/"); ok && t.Chat {
			t.Route = "telegram/" + own // a private chat of Telegram has the id of the person
		}
		if connector, _, ok := strings.Cut(t.Route, "/"); ok && !a.bot(connector) {
			t.Route = ""
		}
		var err error
		if t.Schedule != "" {
			err = cron.CheckSchedule(t.Schedule)
		}
		if err == nil && a.flags.Apply {
			err = a.calls.call(a.ctx, "POST", "/cron", web.TaskRequest{TaskSpec: t.TaskSpec}, nil)
		}
		a.outcome(name, taskShown(t), err)
	}
	return nil
}

// bot reports whether claybot has a connector of a name, or gets it.
func (a *adoption) bot(connector string) bool {
	_, there := a.config.Connectors.Instance(connector)
	return there || slices.ContainsFunc(a.Accounts, func(x imports.Account) bool { return x.Connector == connector })
}

// taskShown says when a task runs, and where it answers.
func taskShown(t imports.Task) string {
	shown := timing(t.TaskSpec)
	if t.Timezone != "" {
		shown += " " + t.Timezone
	}
	switch t.Route {
	case "":
		return shown + "; it answers in no chat: set one with claybot cron edit --route"
	case "none":
		return shown + "; it answers in no chat, as there"
	}
	return shown + "; it answers in " + t.Route
}

// heartbeat creates the task of the heartbeat.
func (a *adoption) heartbeat() error {
	b := a.Heartbeat
	if b == nil {
		return nil
	}
	var list web.HeartbeatList
	if a.calls != nil {
		if err := a.calls.call(a.ctx, "GET", "/heartbeat", nil, &list); err != nil {
			return fmt.Errorf("heartbeat: %w", err)
		}
	}
	if at := slices.IndexFunc(list.Heartbeats, func(x connectors.HeartbeatTask) bool { return x.ID == b.ID }); at >= 0 {
		a.stay("heartbeat", "claybot heartbeat, "+b.ID, list.Heartbeats[at].Prompt == b.Prompt)
		return nil
	}
	var err error
	if a.flags.Apply {
		err = a.calls.call(a.ctx, "POST", "/heartbeat", web.HeartbeatSpec{ID: b.ID, Title: b.Title, Every: b.Every, ActiveHours: b.ActiveHours, Prompt: b.Prompt}, nil)
	}
	a.outcome("heartbeat", "every "+b.Every, err)
	return nil
}
