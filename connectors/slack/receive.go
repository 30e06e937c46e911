package slack

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// A replier takes the acknowledgement of what it brought, with an answer to a form or nil.
type replier interface {
	ack(envelope string, payload any) error
}

// A receiver turns envelopes into messages and acknowledges them.
type receiver struct {
	name    string
	self    identity
	chat    *Connector // opens forms and reports outcomes to users
	handler connectors.Handler
	lane    func(d claybot.Descriptor, group bool) string
	routes  connectors.RouteHandler    // nil: changes of channels have no effect
	reacts  connectors.ReactionHandler // nil: reactions have no effect
	greets  connectors.VisitHandler    // nil: people who open the app see nothing of it
	work    *connectors.Lanes
	order   *order // nil with sockets
	back    *backfill
	log     *slog.Logger
	ignored *atomic.Int64
}

// take handles one frame of a socket, or one request. Frames without a message are acknowledged
// at once; a message goes into its lane. An error stops the connector.
func (r *receiver) take(ctx context.Context, s replier, f frame) error {
	if f.EnvelopeID == "" {
		if f.Type != "hello" {
			r.ignored.Add(1)
		}
		return nil
	}
	if f.Type == "interactive" {
		r.interact(ctx, s, f)
		return nil
	}
	in, v := read(r.name, r.self, f)
	switch v {
	case unknown:
		r.ignore(s, f)
	case nothing:
		r.ack(s, f.EnvelopeID, nil)
	case farewell:
		r.ack(s, f.EnvelopeID, nil)
		return r.chat.removed()
	case revoked:
		r.ack(s, f.EnvelopeID, nil)
		return r.chat.revoked(ctx)
	case moved:
		r.work.Do(ctx, in.change.ChannelID, func() error {
			return r.keep(ctx, s, f.EnvelopeID, "channel", in.change.ChannelID, func() error { return r.changed(ctx, in) })
		})
	case reacted:
		x := in.reaction
		r.work.Do(ctx, r.lane(claybot.User(r.name, x.ChannelID, x.UserID), x.Group), func() error {
			return r.keep(ctx, s, f.EnvelopeID, "reaction", x.Message, func() error { _, err := r.reacted(ctx, x); return err })
		})
	case visited:
		r.ack(s, f.EnvelopeID, nil) // nothing is lost with it
		r.work.Do(ctx, "visit\x00"+in.to.UserID, func() error { r.welcome(ctx, in); return nil })
	case message:
		lane := r.lane(in.to, in.message.Context.Group)
		r.entitle(in)
		r.work.Do(ctx, lane, func() error {
			return r.order.run(lane, string(in.message.ID), func() error { return r.post(ctx, s, f.EnvelopeID, in) })
		})
		if r.mayTitle(in) {
			r.work.Do(ctx, "visit\x00"+in.to.UserID, func() error {
				if err := r.title(ctx, in); err != nil {
					r.log.Debug("failed to give a thread a title", "user", in.to.UserID, "err", err)
				}
				return nil
			})
		}
	}
	return nil
}

// laneOf returns the lanes in which messages, reactions and commands reach a handler in order.
func laneOf(h connectors.Handler) func(d claybot.Descriptor, group bool) string {
	return func(d claybot.Descriptor, group bool) string {
		return d.ChannelID + "\x00" + connectors.LaneOf(h, d, group)
	}
}

// post makes a message durable and then acknowledges it, after earlier messages
// from the history of its channel.
func (r *receiver) post(ctx context.Context, s replier, envelope string, in incoming) error {
	if err := r.back.turn(ctx, in); err != nil {
		return err
	}
	return r.keep(ctx, s, envelope, "message", string(in.message.ID), func() error {
		if err := r.chat.keepAddress(ctx, in); err != nil {
			return err
		}
		return r.handler.Post(ctx, in.to, in.message)
	})
}

// keep stores what an envelope brought and then acknowledges it. It retries for a
// few seconds, because what is behind it in the lane must not overtake it; after
// that Slack has to redeliver it.
func (r *receiver) keep(ctx context.Context, s replier, envelope, what, id string, store func() error) error {
	for wait := firstRetry; ; wait *= 2 {
		err := store()
		if storage.ClassOf(err) == storage.ClassMessage { // permanent: a retry would fail
			r.log.Error("event cannot be handled, skipped", what, id, "err", err)
			err = nil
		}
		if err == nil {
			r.ack(s, envelope, nil)
			return nil
		}
		if wait > lastRetry || ctx.Err() != nil {
			r.log.Warn("event not stored, slack redelivers it", what, id, "err", err)
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// ignore acknowledges and counts an unknown frame.
func (r *receiver) ignore(s replier, f frame) {
	r.ignored.Add(1)
	r.log.Debug("unknown slack event", "type", word(f.Type))
	r.ack(s, f.EnvelopeID, nil)
}

// ack acknowledges to what brought the envelope, with an answer to a
// form or nil. If that fails, Slack redelivers the envelope and the message is
// recognized by its id.
func (r *receiver) ack(s replier, envelope string, payload any) {
	if err := s.ack(envelope, payload); err != nil {
		r.log.Debug("failed to send acknowledgement", "err", err)
	}
}

// An incoming is a message with its recipient, a reaction, a visit, or a change of a channel.
type incoming struct {
	to      claybot.Descriptor
	message claybot.AgentMessage
	respond string // the response_url of a slash command

	reaction connectors.Reaction

	visit visit

	change connectors.RouteChange
	newID  string // of the channel; empty if it keeps its id
}
