package agentsystem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// reactions find what emoji of people mean, and the runs that they concern.
type reactions struct {
	profile  func(claybot.Descriptor) profiles.Profile
	index    Index
	runs     Runs
	sent     Outbox
	receipts storage.Receipts
	spelling spelling
	log      *slog.Logger
}

// A reactedTo is what a message with a reaction belongs to: a run, and a question if the
// message asks one; or the message itself, if its person wrote it and it waits for its run. It is
// zero for any other message.
type reactedTo struct {
	run      claybot.RunID
	question *claybot.Question
	waiting  claybot.MessageID
}

// errReaction means that a connector reported half a reaction.
var errReaction = errors.New("a reaction names its connector, channel, person, message and emoji")

// reacted is AgentSystem.Reacted. A removed emoji withdraws a feedback; it takes back neither
// a stop nor an approval.
func (r *receiver) reacted(ctx context.Context, x connectors.Reaction) (took bool, err error) {
	defer r.pending.begin(x.Connector)()
	if x.Stop {
		x.Emoji = []string{"stop"} // which names it in the log and in the id of its message
	}
	if x.Connector == "" || x.ChannelID == "" || x.UserID == "" || x.Message == "" || len(x.Emoji) == 0 {
		return false, &storage.Fault{Class: storage.ClassMessage, Err: errReaction}
	}
	by, err := r.moves.here(ctx, claybot.User(x.Connector, x.ChannelID, x.UserID))
	if err != nil {
		return false, err
	}
	in := r.reactions.spelling.channels(x.Connector, x.ChannelID)
	x.ChannelID = by.ChannelID
	who := claybot.AgentMessage{From: claybot.Sender{UserID: x.UserID, Outsider: x.Outsider}, Context: claybot.MessageContext{Group: x.Group}}
	means := r.reactions.profile(by).Reactions.Meaning(x.Emoji)
	if x.Stop {
		means = profiles.MeansStop
	}
	if means == profiles.MeansNothing || !r.people.Admits(by, who) {
		return false, nil
	}
	ctx = r.people.Speaking(ctx, by, who)
	took, err = r.react(ctx, by, x, in, means)
	if r.worker.OfOne(ctx, err) { // to hold it would hold up all others
		r.log.Error("failed to take a reaction", "connector", x.Connector, "user", x.UserID, "message", x.Message, "means", means, "err", err)
		return false, r.unreacted(ctx, x, means)
	}
	return took, err
}

// react does what a reaction means, to a message of one of these channels.
func (r *receiver) react(ctx context.Context, by claybot.Descriptor, x connectors.Reaction, in []string, means profiles.Meaning) (took bool, err error) {
	if x.Removed && (means == profiles.MeansStop || means == profiles.MeansApprove) {
		return false, nil
	}
	to, err := r.reactions.find(ctx, x, in, means)
	if err != nil {
		return false, fmt.Errorf("find the message of a reaction: %w", err)
	}
	switch {
	case means == profiles.MeansApprove && to.question != nil:
		return false, r.approve(ctx, x, *to.question)
	case means == profiles.MeansStop && to.waiting != "":
		err := r.dropWaiting(ctx, by, x, to.waiting)
		return err == nil, err
	case means == profiles.MeansApprove || to.run == "":
		return false, nil
	case means == profiles.MeansStop:
		return r.stopRun(ctx, x, to.run)
	}
	f := claybot.Feedback{
		By: by.OwnerID(), Message: x.Message, Emoji: x.Emoji[0], Vote: claybot.Vote(means), At: x.At, Withdrawn: x.Removed,
	}
	changed, err := r.reactions.runs.Rate(ctx, to.run, f)
	switch {
	case errors.Is(err, storage.ErrTooMany):
		r.log.Warn("a run has all the feedback that it keeps", "run", to.run, "user", x.UserID)
		return false, nil
	case err != nil:
		return false, unlessGone(err)
	case changed && !x.Removed:
		r.meter.Rated(x.Connector, f.Vote)
	}
	return !x.Removed, nil
}

// approve answers the question of a message as its button does.
func (r *receiver) approve(ctx context.Context, x connectors.Reaction, q claybot.Question) error {
	if q.Type != claybot.QuestionConfirm {
		return nil
	}
	_, err := r.buttons.Press(ctx, connectors.Press{
		Connector: x.Connector, UserID: x.UserID, ChannelID: x.ChannelID, Outsider: x.Outsider,
		Answer: claybot.Answer{Question: q.ID, Text: "approve"},
	})
	return err
}

// stopRun ends a run as /stop does, if its agent is the one that the person's /stop would
// reach; stops reports whether it is. A run that has ended stays as it is.
func (r *receiver) stopRun(ctx context.Context, x connectors.Reaction, id claybot.RunID) (stops bool, err error) {
	run, err := r.reactions.runs.Run(ctx, id)
	if err != nil || run.State.Ended() || len(run.Messages) == 0 {
		return false, unlessGone(err)
	}
	if run.Cancel != "" {
		return true, nil
	}
	e, err := r.index.IndexedAgentByID(ctx, run.Agent)
	if err != nil {
		return false, unlessGone(err)
	}
	d, chat := e.Descriptor, claybot.User(x.Connector, x.ChannelID, x.UserID)
	if d.Type != claybot.AgentFlow && (!d.Foreground() || d.Connector != x.Connector || d.ChannelID != x.ChannelID || d.UserID != x.UserID && !d.Shared()) {
		return false, nil
	}
	began, err := r.reactions.receipts.Receipt(ctx, run.Messages[len(run.Messages)-1])
	if err != nil && unlessGone(err) != nil {
		return false, err
	}
	if d.Type == claybot.AgentFlow && (!startedIn(began.Message, chat) || began.Message.From.UserID != x.UserID) {
		return false, nil
	}
	at := began.Message.Context
	m := messageOf(x, claybot.MessageCancel)
	m.Run, m.Context.ThreadID, m.Context.ReplyTo, m.Route = run.ID, at.ThreadID, at.ReplyTo, began.Message.Route
	_, err = r.parking.answerFor(ctx, claybot.Agent{ID: e.ID, Descriptor: e.Descriptor}, m, 0)
	return err == nil, err
}

// messageOf returns the message of a type that a reaction stands for. A redelivered reaction has
// the same.
func messageOf(x connectors.Reaction, t claybot.MessageType) claybot.AgentMessage {
	return claybot.AgentMessage{
		ID:   claybot.MessageID(strings.Join([]string{"reaction", x.Connector, x.ChannelID, x.Message, x.UserID, x.Emoji[0], fmt.Sprint(int64(x.At))}, "/")),
		Type: t, FirstHand: true, At: claybot.Now(), From: claybot.Sender{UserID: x.UserID, Outsider: x.Outsider},
		Context: claybot.MessageContext{Group: x.Group},
	}
}

// dropWaiting drops a message of a person that no run has taken, as a deletion does. If one has
// taken it meanwhile, that run stops.
func (r *receiver) dropWaiting(ctx context.Context, by claybot.Descriptor, x connectors.Reaction, waiting claybot.MessageID) error {
	m := messageOf(x, claybot.MessageDelete)
	m.Amends, m.Command = waiting, claybot.StopCommand
	_, err := r.take(ctx, by, m)
	return err
}

// unreacted tells the person once that an emoji had no effect which should have had one.
func (r *receiver) unreacted(ctx context.Context, x connectors.Reaction, means profiles.Meaning) error {
	if means != profiles.MeansStop && means != profiles.MeansApprove {
		return nil
	}
	d := claybot.User(x.Connector, x.ChannelID, x.UserID)
	o := claybot.Outgoing{Kind: claybot.OutgoingNotice, Route: claybot.AgentMessage{Context: claybot.MessageContext{Group: x.Group}}.ReplyRoute(d)}
	return r.sender.SendOnce(ctx, o, fmt.Sprintf("reaction/%s/%s/%d", d.Key(), x.Message, x.At), texts.Of(ctx).In(texts.ReactionFailed))
}

// find returns what the message of a reaction belongs to: one that claybot sent, one that
// grows, and for a stop one that the same person wrote. A message whose send has not returned
// yet is not known by its id. A reaction waits for it, until the attempt is sendingWait old: so
// a send that hangs holds up what comes after reactions once at most, however many they are.
func (r reactions) find(ctx context.Context, x connectors.Reaction, in []string, means profiles.Meaning) (to reactedTo, err error) {
	for {
		began, err := r.sending(ctx, x, in) // before the look, so that no receipt is stored between them
		if err != nil {
			return to, err
		}
		to, known, err := r.look(ctx, x, in, means)
		if err != nil || known || began == 0 {
			return to, err
		}
		if age := time.Since(began.Time()); age < -sendingWait || age >= sendingWait { // clocks of members may differ
			r.log.Debug("a reaction has no effect: its message is unknown while another is being sent",
				"connector", x.Connector, "channel", x.ChannelID, "message", x.Message, "means", means)
			return to, nil
		}
		claybot.Sleep(ctx, sendingPause)
		if ctx.Err() != nil {
			return to, context.Cause(ctx)
		}
	}
}

// clocksDiffer is how far the clock of a platform may be behind.
const clocksDiffer = 5 * time.Second

// sendingWait is how old an attempt to send may be for which a reaction waits, sendingPause how
// often it looks.
const (
	sendingWait  = 2 * time.Second
	sendingPause = 100 * time.Millisecond
)

// look is find for what is known now; known is false if the message may be one whose send has
// not returned.
func (r reactions) look(ctx context.Context, x connectors.Reaction, in []string, means profiles.Meaning) (to reactedTo, known bool, err error) {
	for _, channel := range in {
		sent, err := r.sent.SentAs(ctx, claybot.Route{Connector: x.Connector, ChannelID: channel}.Dest(), x.Message)
		if err != nil {
			return to, false, err
		}
		for _, o := range sent {
			to.run = cmp.Or(to.run, o.Run)
			if to.question == nil {
				to.question = o.Question
			}
		}
		if len(sent) > 0 {
			return to, true, nil
		}
	}
	if to.run, err = r.growing(ctx, x); err == nil && to.run == "" && x.Thread != "" {
		to.run, err = r.inThread(ctx, x)
	}
	if err != nil || to.run != "" || x.Of == "" {
		return to, to.run != "", err
	}
	ids, err := r.spelling.find(ctx, r.receipts, x.Connector, x.ChannelID, x.Of)
	if err == nil && means == profiles.MeansStop {
		to, err = r.begunBy(ctx, x, ids)
	}
	return to, len(ids) > 0, err
}

// sending returns when the attempt began that sends a message to the channel of a reaction now,
// or the beginning of an answer; 0 for none.
func (r reactions) sending(ctx context.Context, x connectors.Reaction, in []string) (began claybot.Time, err error) {
	for _, channel := range in {
		open, err := r.sent.Unsent(ctx, claybot.Route{Connector: x.Connector, ChannelID: channel}.Dest(), 0, 1)
		if err != nil {
			return 0, err
		}
		if len(open) > 0 && open[0].State == claybot.SendAttempted {
			began = max(began, open[0].Tried)
		}
	}
	err = r.drafts(ctx, x, func(_ claybot.RunID, d claybot.Draft) {
		if d.Receipt == "" {
			began = max(began, d.Tried)
		}
	})
	return began, err
}

// growing returns the run whose answer grows in the message of a reaction; empty for none.
func (r reactions) growing(ctx context.Context, x connectors.Reaction) (id claybot.RunID, err error) {
	err = r.drafts(ctx, x, func(run claybot.RunID, d claybot.Draft) {
		if d.Receipt == x.Message {
			id = run
		}
	})
	return id, err
}

// inThread returns the run that works in the thread of a reaction, or on its first message, for the person
// of the reaction; empty for none. One that began after the reaction is another one: the reaction came late.
func (r reactions) inThread(ctx context.Context, x connectors.Reaction) (claybot.RunID, error) {
	agents, err := r.index.ChannelAgents(ctx, x.Connector, x.ChannelID)
	if err != nil {
		return "", err
	}
	for _, e := range agents {
		if e.Run == "" || e.Descriptor.UserID != x.UserID && !e.Descriptor.Shared() {
			continue
		}
		run, err := r.runs.Run(ctx, e.Run)
		if err != nil || len(run.Messages) == 0 || run.Started.Time().Sub(x.At.Time()) > clocksDiffer {
			if err = unlessGone(err); err != nil {
				return "", err
			}
			continue
		}
		began, err := r.receipts.Receipt(ctx, run.Messages[len(run.Messages)-1])
		if err = unlessGone(err); err != nil {
			return "", err
		}
		if at := began.Message.Context; cmp.Or(at.ThreadID, at.MessageID) == x.Thread {
			return run.ID, nil
		}
	}
	return "", nil
}

// drafts calls do for each answer that grows in the channel of a reaction.
func (r reactions) drafts(ctx context.Context, x connectors.Reaction, do func(claybot.RunID, claybot.Draft)) error {
	agents, err := r.index.ChannelAgents(ctx, x.Connector, x.ChannelID)
	if err != nil {
		return err
	}
	for _, e := range agents {
		if e.Run == "" {
			continue
		}
		run, err := r.runs.Run(ctx, e.Run)
		if err = unlessGone(err); err != nil {
			return err
		}
		if run.Draft != nil {
			do(run.ID, *run.Draft)
		}
	}
	return nil
}

// begunBy returns the run that has one of these messages, or that message while it waits, if the
// person of a reaction wrote it there.
func (r reactions) begunBy(ctx context.Context, x connectors.Reaction, ids []claybot.MessageID) (to reactedTo, err error) {
	for _, id := range slices.Backward(ids) {
		was, err := r.receipts.Receipt(ctx, id)
		switch err = unlessGone(err); {
		case err != nil:
			return to, err
		case was.Message.From.UserID != x.UserID:
		case was.Run != nil:
			to.run = was.Run.ID
			return to, nil
		case was.Skipped == "" && was.Message.Type == claybot.MessageUser:
			to.waiting = id
			return to, nil
		}
	}
	return to, nil
}
