package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// AgainPrefix starts the ids of messages that their reader asked for again.
const AgainPrefix = "again/"

// maxAgain is how many failed messages of a destination Again looks through.
const maxAgain = 200

// Replies find what became of the replies on a route.
type Replies struct {
	reader    OutboxReader
	addresses addresses
}

// Covers reports whether a person can have a message sent again.
type Covers func(ctx context.Context, o claybot.Outgoing) (bool, error)

// Again returns the parts of the last reply on a route that failed, of those that covers allows, as
// new messages for the outbox, oldest first; none if no reply failed, or all were sent again. The
// new ids depend on the old ones alone, so the outbox takes each once. Questions, and texts that
// are kept up to date, are no replies.
func (r *Replies) Again(ctx context.Context, covers Covers, on claybot.Route) ([]claybot.Outgoing, error) {
	var page []claybot.Outgoing
	for _, id := range r.addresses.ids(on) {
		part, err := r.reader.OutgoingPage(ctx, storage.OutgoingQuery{State: claybot.SendFailed, Dest: id.Dest(), Limit: maxAgain})
		if err != nil {
			return nil, fmt.Errorf("list the failed messages of %s: %w", on.Connector, err)
		}
		page = append(page, part...)
	}
	slices.SortStableFunc(page, func(a, b claybot.Outgoing) int { return cmp.Compare(b.N, a.N) })
	var out []claybot.Outgoing
	for _, o := range page {
		if !repeatable(o) || len(out) > 0 && (o.Message != out[0].Message || o.Run != out[0].Run) {
			continue
		}
		if ok, err := covers(ctx, o); err != nil {
			return nil, err
		} else if !ok {
			continue
		}
		again := claybot.Outgoing{
			ID: AgainPrefix + o.ID, Kind: o.Kind, Run: o.Run, Agent: o.Agent, Message: o.Message, Route: r.addresses.follow(o.Route),
			Text: o.Text, Part: o.Part, Parts: o.Parts, File: o.File, Once: o.Once, Resent: o.Copies > 0, At: claybot.Now(),
		}
		switch _, err := r.reader.OutgoingByID(ctx, again.ID); {
		case err == nil: // it was sent again
		case errors.Is(err, storage.ErrNotFound):
			out = append([]claybot.Outgoing{again}, out...)
		default:
			return nil, fmt.Errorf("look for %s: %w", again.ID, err)
		}
	}
	return out, nil
}

// Undelivered reports whether a reply on a route that covers allows is still to be sent.
func (r *Replies) Undelivered(ctx context.Context, covers Covers, on claybot.Route) (bool, error) {
	var open []claybot.Outgoing
	for _, id := range r.addresses.ids(on) {
		part, err := r.reader.Unsent(ctx, id.Dest(), 0, maxAgain)
		if err != nil {
			return false, fmt.Errorf("list the waiting messages of %s: %w", on.Connector, err)
		}
		open = append(open, part...)
	}
	for _, o := range open {
		if !reply(o) {
			continue
		}
		if ok, err := covers(ctx, o); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// repeatable reports whether Again sends a message of this kind again.
func repeatable(o claybot.Outgoing) bool { return reply(o) && o.Question == nil }

// reply reports whether a message says what a run has to say.
func reply(o claybot.Outgoing) bool {
	says := o.Kind == claybot.OutgoingAnswer || o.Kind == claybot.OutgoingFile || o.Kind == claybot.OutgoingNotice && o.Run != ""
	return says && o.Shown == "" && !o.EditOnly && o.Mark == nil && !strings.HasPrefix(o.ID, NoticePrefix) && !strings.HasPrefix(o.ID, SpokenPrefix)
}

// Why a message failed that no reader misses.
const (
	CauseRevoked = "the receiver was revoked"
	CauseDropped = "dropped by an operator"
	CauseCrowded = "left out: too many messages waited for this chat"
)

// Lost reports whether a message is a reply that was given up although its reader is to have it.
func Lost(o claybot.Outgoing) bool {
	wanted := o.Cause != CauseRevoked && o.Cause != CauseDropped && o.Cause != CauseCrowded && o.Cause != storage.CauseRestored
	return o.State == claybot.SendFailed && wanted && reply(o)
}

// Otherwise reports whether a failed reply, by its id, went, or goes, out in another way: on another route of
// its reader, or because they asked for it again.
func (r *Replies) Otherwise(ctx context.Context, failed string) (bool, error) {
	for _, id := range []string{ReroutedPrefix + failed + "/1", AgainPrefix + failed} {
		switch _, err := r.reader.OutgoingByID(ctx, id); {
		case err == nil:
			return true, nil
		case !errors.Is(err, storage.ErrNotFound):
			return false, fmt.Errorf("look for %s: %w", id, err)
		}
	}
	return false, nil
}
