package subagents

import (
	"context"
	"errors"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

// Audience returns who can read what an agent says: a subagent works for the conversation
// of its root, a task for the place where it answers. Where that cannot be found out, it
// is a place that no other agent has.
func (d *Directory) Audience(ctx context.Context, a claybot.Agent, r claybot.Route) claybot.Audience {
	if root := a.Descriptor.Root; a.Descriptor.Child() && root != "" {
		found, err := d.agents.Agent(ctx, root)
		if err != nil {
			return unknownAudience(a)
		}
		a, r = found, claybot.Route{}
	}
	if !a.Descriptor.Foreground() && r == (claybot.Route{}) && a.State.Routing != nil {
		r = *a.State.Routing
	}
	return d.people.AudienceOf(a.Descriptor, r)
}

func unknownAudience(a claybot.Agent) claybot.Audience {
	return claybot.Audience{Owner: a.Descriptor.OwnerID(), Place: "?/" + string(a.ID)}
}

// Readers implements tools.Directory.
func (d *Directory) Readers(ctx context.Context, env tools.Env) claybot.Audience {
	return d.Audience(ctx, env.Agent, env.Route)
}

// AudienceOf returns who can read what an agent of the index says, see Audience.
func (d *Directory) AudienceOf(ctx context.Context, e storage.IndexEntry) claybot.Audience {
	a := claybot.Agent{ID: e.ID, Descriptor: e.Descriptor}
	if e.Descriptor.Type == claybot.AgentCron {
		found, err := d.agents.Agent(ctx, e.ID)
		if err != nil {
			return unknownAudience(a)
		}
		a = found
	}
	return d.Audience(ctx, a, claybot.Route{})
}

// Discloses implements tools.Directory. While it cannot be found out, nobody may approve
// the call.
func (d *Directory) Discloses(ctx context.Context, env tools.Env, to string, way tools.Way) *tools.Disclosure {
	target, err := d.addressed(ctx, env.Agent, to)
	switch {
	case errors.As(err, new(noAgentError)):
		return nil // the call fails, and says why
	case err != nil:
		return &tools.Disclosure{Text: texts.Of(ctx).In(texts.DisclosesUnknown)}
	case target.ID == env.Agent.ID:
		return nil
	}
	mine, theirs := d.Readers(ctx, env), d.AudienceOf(ctx, target)
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
		all.Text += texts.Of(ctx).Discloses(texts.OfConversation, x.source, x.sink)
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
	mine := d.Readers(ctx, env)
	source, sink, what := claybot.Audience{Owner: mine.Owner}, mine, texts.OfNotes
	if toAll {
		source, sink, what = mine, claybot.Everybody, texts.OfConversation
	}
	if !d.people.Discloses(source, sink) {
		return nil
	}
	return &tools.Disclosure{Owners: []string{mine.Owner}, Text: texts.Of(ctx).Discloses(what, source, sink)}
}
