package subagents

import (
	"context"
	"errors"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

// Audience returns who can read what an agent says in a run with a place, see runs.Turn. What works for
// a conversation, as its subagents do, has the readers of that; anything else those of the place or, where
// that is not known, of the place of its newest run. Where they cannot be found out, it is a place that no
// other agent has.
func (d *Directory) Audience(ctx context.Context, a claybot.Agent, place claybot.Route) claybot.Audience {
	top := a
	if root := a.Descriptor.Root; a.Descriptor.Child() && root != "" {
		found, err := d.agents.Agent(ctx, root)
		if err != nil {
			return unknownAudience(a)
		}
		top = found
	}
	if !top.Descriptor.Foreground() && place == (claybot.Route{}) {
		found, err := d.place(ctx, a, top)
		if err != nil {
			return unknownAudience(a)
		}
		place = found
	}
	readers := d.audiences.AudienceOf(top.Descriptor, place)
	readers.Owner = a.Descriptor.OwnerID() // a workflow below an agent may act for another person
	return readers
}

// place returns where an agent works that has none of its own: a memory for its chat, a task where it
// answered last, anything else where the message says with which its newest run, or that of its root, began.
func (d *Directory) place(ctx context.Context, a, root claybot.Agent) (claybot.Route, error) {
	for _, x := range []claybot.Agent{a, root} {
		switch {
		case x.Descriptor.IsThread():
			return x.Descriptor.ThreadPlace(), nil
		case x.State.Routing != nil:
			return *x.State.Routing, nil
		case x.Descriptor.Scheduled():
			continue
		}
		run, err := d.runs.LastRun(ctx, x.ID)
		if errors.Is(err, storage.ErrNotFound) {
			continue
		}
		if err != nil {
			return claybot.Route{}, err
		}
		for _, id := range run.Messages {
			r, err := d.inbox.Receipt(ctx, id)
			switch m := r.Message; {
			case errors.Is(err, storage.ErrNotFound):
			case err != nil:
				return claybot.Route{}, err
			case m.Place != nil:
				return *m.Place, nil
			case m.Flow != nil && m.Route != nil:
				return *m.Route, nil
			}
		}
	}
	return claybot.Route{}, nil
}

func unknownAudience(a claybot.Agent) claybot.Audience {
	return claybot.Audience{Owner: a.Descriptor.OwnerID(), Place: "?/" + string(a.ID)}
}

// Readers implements tools.Directory.
func (d *Directory) Readers(ctx context.Context, env tools.Env) claybot.Audience {
	return d.Audience(ctx, env.Agent, env.Place)
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

// source returns whom what an agent of the index has said until now was for: AudienceOf, and for its person
// alone where it is of workflows that chats start, whose runs may have had several places.
func (d *Directory) source(ctx context.Context, e storage.IndexEntry) claybot.Audience {
	if e.Descriptor.Type == claybot.AgentFlow && !e.Descriptor.Child() {
		return claybot.Audience{Owner: e.Descriptor.OwnerID()}
	}
	return d.AudienceOf(ctx, e)
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
	}{{tools.FromOther, mine, theirs}, {tools.ToOther, d.source(ctx, target), mine}} {
		if way == x.not || !d.audiences.Discloses(x.source, x.sink) {
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
	if !d.audiences.Discloses(source, sink) {
		return nil
	}
	return &tools.Disclosure{Owners: []string{mine.Owner}, Text: texts.Of(ctx).Discloses(what, source, sink)}
}
