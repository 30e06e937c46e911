package agentsystem

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/worker"
)

// A receiver takes what connectors bring: messages, answers, and news of channels.
type receiver struct {
	index       Index
	people      *people.Directory
	places      conversations
	buttons     *questions.Buttons
	parking     *parking
	notices     *notices
	worker      *worker.Worker
	sender      *delivery.Deliverer
	pending     *pendingCalls
	overhearing *overhearing
	moves       *moves
	// reactions find what emoji of people mean.
	reactions reactions
	meter     Meter
	log       *slog.Logger
}

// post is AgentSystem.Post.
func (r *receiver) post(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) error {
	began, from := time.Now(), cmp.Or(to.Connector, string(to.Type))
	defer r.pending.begin(from)()
	outcome, err := r.receive(ctx, to, m)
	r.meter.Received(from, outcome, time.Since(began))
	return err
}

// receive handles a message and returns what became of it.
func (r *receiver) receive(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) (outcome string, err error) {
	if err := checkMessage(to, m); err != nil {
		return ReceivedError, &storage.Fault{Class: storage.ClassMessage, Err: err}
	}
	to, err = r.moves.here(ctx, to)
	if err != nil {
		return ReceivedError, err
	}
	if !to.Foreground() || m.Type == claybot.MessageSystem || r.people.Admits(to, m) {
		if to.Foreground() && m.Type != claybot.MessageSystem { // before it is stored: no crash leaves its answer without a route
			if _, err := r.sender.Routes.Revive(ctx, to.Connector, to.ChannelID); err != nil {
				return ReceivedError, err
			}
		}
		return r.take(ctx, to, m)
	}
	if amends(m) || m.Command == connectors.Business {
		return r.amendedByUnknown(ctx, to, m)
	}
	return r.ofUnknown(ctx, to, m)
}

// amendedByUnknown handles the edit or the deletion of a message by a user without access, which
// may be kept.
func (r *receiver) amendedByUnknown(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) (outcome string, err error) {
	if !amends(m) || m.Context.Group {
		return ReceivedStranger, nil
	}
	of, x, found, err := r.places.amended(ctx, to, m)
	if err == nil && found {
		err = r.parking.amend(ctx, of, x)
	}
	switch {
	case err != nil:
		return ReceivedError, err
	case found && r.people.Admits(to, m): // approved meanwhile, so that the message may be posted as it was
		return r.take(ctx, to, m)
	}
	return ReceivedStranger, nil
}

// ofUnknown handles a message of a user without access: it answers with a code at most, and keeps
// the message while an operator may still approve them.
func (r *receiver) ofUnknown(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) (outcome string, err error) {
	r.log.Debug("message of an unknown user", "connector", to.Connector, "message", m.ID, "user", to.UserID, "channel", to.ChannelID)
	var out []claybot.Outgoing
	var admitted bool
	if err = r.people.Refresh(ctx, to, m); err == nil {
		if r.people.Admits(to, m) {
			return r.take(ctx, to, m)
		}
		out, admitted, err = r.people.Redeem(ctx, to, m)
	}
	if err == nil && !admitted {
		out, err = r.people.Challenge(r.people.Speaking(ctx, to, m), to, m)
	}
	r.sender.Hand(out)
	if err == nil && !admitted {
		var placed claybot.Descriptor
		if placed, err = r.places.place(ctx, to, m); err == nil {
			err = r.parking.keep(ctx, placed, m)
		}
		if err == nil && r.people.Admits(to, m) { // approved meanwhile, so that it may not be kept
			return r.take(ctx, to, m)
		}
	}
	if r.worker.OfOne(ctx, err) { // they will write again
		r.log.Error("failed to answer an unknown user", "connector", to.Connector, "message", m.ID, "err", err)
		err = nil
	}
	if err != nil {
		return ReceivedError, err
	}
	return ReceivedStranger, nil
}

// hears is AgentSystem.Hears.
func (r *receiver) hears(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) (bool, error) {
	if !m.Context.Group || !to.Foreground() || m.Type == claybot.MessageSystem {
		return true, nil
	}
	to, err := r.moves.here(ctx, to)
	if err != nil {
		return false, err
	}
	if m.Context.Unaddressed && !r.people.Allowed(to, true) {
		return false, nil
	}
	return r.places.hears(ctx, to, m)
}

// take hands a message whose sender has access to the agent of its conversation.
func (r *receiver) take(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) (outcome string, err error) {
	if amends(m) {
		var found bool
		if to, m, found, err = r.places.amended(ctx, to, m); err == nil && !found {
			return ReceivedRefused, nil
		}
	} else {
		var heard bool
		if heard, err = r.hears(ctx, to, m); err == nil && !heard {
			return ReceivedUnheard, nil
		}
		if err == nil {
			err = r.places.noteAlbum(ctx, to, m)
		}
		if err == nil {
			m.From.UserID = cmp.Or(m.From.UserID, r.places.sender(to, m))
			to, err = r.places.place(ctx, to, m)
		}
		if err == nil {
			to, m, err = r.parking.started(ctx, to, m)
		}
	}
	if err != nil {
		return ReceivedError, err
	}
	done, err := r.parking.take(ctx, to, m)
	return receivedAs(done, err), err
}

// receivedAs returns the outcome of a message that was handed to the store.
func receivedAs(done storage.Posted, err error) string {
	switch {
	case err != nil:
		return ReceivedError
	case done.Skipped != "" && done.Skipped != "command" && done.Skipped != parkedReason && done.Skipped != storage.SkippedEdit && done.Skipped != storage.SkippedDeletion:
		return ReceivedRefused
	case !done.Added:
		return ReceivedDuplicate
	}
	return ReceivedAccepted
}

// answer is AgentSystem.Answer.
func (r *receiver) answer(ctx context.Context, t connectors.Press) (connectors.PressResult, error) {
	defer r.pending.begin(t.Connector)()
	by, err := r.moves.here(ctx, claybot.User(t.Connector, t.ChannelID, t.UserID))
	if err != nil {
		return connectors.PressResult{}, err
	}
	t.ChannelID = by.ChannelID
	done, err := r.buttons.Press(r.people.Speaking(ctx, by, claybot.AgentMessage{}), t)
	if r.worker.OfOne(ctx, err) { // to hold it would hold up all others
		r.log.Error("failed to take an answer; asked the user to repeat it", "connector", t.Connector, "user", t.UserID, "question", t.Answer.Question, "err", err)
		return connectors.PressResult{Again: true, Text: r.people.VoiceAt(ctx, by, by.Route()).In(texts.AnswerAgain)}, nil
	}
	return done, err
}

// round is AgentSystem.Round.
func (r *receiver) round(ctx context.Context, t connectors.Press) ([]claybot.Question, error) {
	by, err := r.moves.here(ctx, claybot.User(t.Connector, t.ChannelID, t.UserID))
	if err != nil {
		return nil, err
	}
	t.ChannelID = by.ChannelID
	return r.buttons.Round(ctx, t)
}

// routeChanged is AgentSystem.RouteChanged.
func (r *receiver) routeChanged(ctx context.Context, c connectors.RouteChange) error {
	defer r.pending.begin(c.Connector)()
	if r.people.Current(c.Connector, c.ChannelID) != c.ChannelID {
		return nil // of an id that no chat has any more
	}
	if c.Removed {
		if err := r.overhearing.forget(ctx, c.Connector, c.ChannelID, c.At); err != nil {
			return err
		}
	}
	agents, err := r.index.ChannelAgents(ctx, c.Connector, c.ChannelID)
	if err != nil {
		return fmt.Errorf("find the agents of a channel: %w", err)
	}
	switch {
	case len(agents) > 0:
	case c.Dead != "": // a channel of unknown users leaves nothing behind
		return nil
	default:
		_, err := r.sender.Routes.Revive(ctx, c.Connector, c.ChannelID)
		return err
	}
	if c.Dead != "" && slices.ContainsFunc(agents, func(e storage.IndexEntry) bool { return e.LastUserAt > c.At }) {
		return nil // a person wrote there since
	}
	return r.sender.Routes.Changed(ctx, c)
}

// stuckAfter is how long a connector waits for one message to be stored before it counts
// as failing.
const stuckAfter = 10 * time.Second

// pendingCalls are the calls with which connectors wait for the store at this moment. The
// zero value is ready.
type pendingCalls struct {
	mu    sync.Mutex
	calls map[*pendingCall]struct{}
}

type pendingCall struct {
	connector string
	since     time.Time
}

// begin notes that a connector waits, until end is called.
func (p *pendingCalls) begin(connector string) (end func()) {
	call := &pendingCall{connector, time.Now()}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls == nil {
		p.calls = make(map[*pendingCall]struct{})
	}
	p.calls[call] = struct{}{}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.calls, call)
	}
}

// stuck says for how long a connector has waited for one message; empty when that is not
// too long.
func (p *pendingCalls) stuck(connector string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var longest time.Duration
	for call := range p.calls {
		if call.connector == connector {
			longest = max(longest, time.Since(call.since))
		}
	}
	if longest < stuckAfter {
		return ""
	}
	return fmt.Sprintf("a message waits to be stored for %s, and others wait behind it", longest.Truncate(time.Second))
}
