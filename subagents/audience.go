package subagents

import (
	"context"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

// Audience returns who can read what an agent says: a subagent works for the conversation
// of its root, a task for the place where it answers. Where that cannot be found out, it
// is a place that no other agent has.
func (d *Directory) Audience(ctx context.Context, a claybot.Agent, r claybot.Route) claybot.Audience {
	unknown := claybot.Audience{Owner: a.Descriptor.OwnerID(), Place: "?/" + string(a.ID)}
	if root := a.Descriptor.Root; a.Descriptor.Type == claybot.AgentSubagent && root != "" {
		found, err := d.agents.Agent(ctx, root)
		if err != nil {
			return unknown
		}
		a, r = found, claybot.Route{}
	}
	if !a.Descriptor.Foreground() && r == (claybot.Route{}) && a.State.Routing != nil {
		r = *a.State.Routing
	}
	return people.AudienceOf(a.Descriptor, r)
}

// audienceOf is Audience for an agent of the index.
func (d *Directory) audienceOf(ctx context.Context, e storage.IndexEntry) claybot.Audience {
	a := claybot.Agent{ID: e.ID, Descriptor: e.Descriptor}
	if e.Descriptor.Type == claybot.AgentCron {
		if found, err := d.agents.Agent(ctx, e.ID); err == nil {
			a = found
		}
	}
	return d.Audience(ctx, a, claybot.Route{})
}

// Discloses implements tools.Directory.
func (d *Directory) Discloses(ctx context.Context, env tools.Env, to string, way tools.Way) *tools.Disclosure {
	target, err := d.target(ctx, env.Agent, to)
	if err != nil {
		return nil // the call fails, and says why
	}
	mine, theirs := d.Audience(ctx, env.Agent, env.Route), d.Audience(ctx, target, claybot.Route{})
	var all tools.Disclosure
	for _, x := range []struct {
		not          tools.Way
		source, sink claybot.Audience
	}{{tools.FromOther, mine, theirs}, {tools.ToOther, theirs, mine}} {
		if way == x.not || !d.people.Discloses(x.source, x.sink) {
			continue
		}
		if all.Text != "" {
			all.Text += ", and "
		}
		all.Text += texts.Discloses(texts.OfConversation, x.source, x.sink)
		all.Owners = append(all.Owners, x.source.Owner)
	}
	if all.Text == "" {
		return nil
	}
	return &all
}

// DisclosesNotes says what a call discloses that reads the notes of its owner or, with
// toAll, that writes what the agents of all people read.
func (d *Directory) DisclosesNotes(ctx context.Context, env tools.Env, toAll bool) *tools.Disclosure {
	mine := d.Audience(ctx, env.Agent, env.Route)
	source, sink, what := claybot.Audience{Owner: mine.Owner}, mine, texts.OfNotes
	if toAll {
		source, sink, what = mine, claybot.Everybody, texts.OfConversation
	}
	if !d.people.Discloses(source, sink) {
		return nil
	}
	return &tools.Disclosure{Owners: []string{mine.Owner}, Text: texts.Discloses(what, source, sink)}
}
