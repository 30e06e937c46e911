// Package agentsystem routes messages to agents and runs the agents.
//
// An AgentSystem finds the agent of each message that a connector posts, stores the
// message in its inbox, hands due agents to workers, and lets the replies leave through
// the outbox. Everything else is the work of its parts: of the packages that it
// assembles (people, questions, worker, delivery, ...) and of the types of this package.
//
// It guarantees that a message which Post accepted ends in a reply, a recorded reason,
// or one notice; that an agent has at most one run at a time; that agents never wait for
// each other; and that a destination gets its messages in order. A crash at any moment
// changes none of that.
//
// Goroutines: Run starts one supervisor per connector, also of those that Replace brings, the dispatcher, and one loop for
// each piece of upkeep: reminders, parked messages, repairs, and what other members of
// the cluster do. The dispatcher starts one worker per leased agent, the deliverer one
// lane per destination with something to send. Run waits for all of them. A single
// machine is a cluster of one: the same goroutines run, and those that look at other
// members sleep.
//
// The package must not import an implementation of a contract.
package agentsystem

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/subagents"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/worker"
)

// drainTime is how long a shutdown waits for what can still be sent.
const drainTime = 5 * time.Second

// An AgentSystem routes messages and runs agents. Its methods are safe for concurrent
// use.
type AgentSystem struct {
	People    *people.Directory
	Profiles  *profiles.Profiles
	Worker    *worker.Worker
	Questions *questions.Questions
	Subagents *subagents.Subagents
	Overview  *overview.Overview
	Control   *Control
	Output    *Output
	Chats     *Chats

	receiver   *receiver
	supervisor *supervisor
	dispatcher *dispatcher
	follower   *follower
	deliverer  *delivery.Deliverer
	loops      []func(context.Context) // upkeep, for as long as the AgentSystem works
}

var (
	_ connectors.Handler    = (*AgentSystem)(nil)
	_ connectors.GapHandler = (*AgentSystem)(nil)

	_ connectors.RouteHandler    = (*AgentSystem)(nil)
	_ connectors.GroupHandler    = (*AgentSystem)(nil)
	_ connectors.ReactionHandler = (*AgentSystem)(nil)
	_ connectors.Listener        = (*AgentSystem)(nil)
)

// Handle gives agents an engine by name. All calls come before Run.
func (s *AgentSystem) Handle(name string, e runs.Engine) { s.Worker.Handle(name, e) }

// Run works until ctx is done: it recovers what the last process left, then runs the
// connectors, the agents and the deliveries. It returns nil after an orderly end, and an
// error when the store fails for good. Runs in flight get the grace period and then stay
// unfinished: they go on at the next start.
func (s *AgentSystem) Run(ctx context.Context, cs ...connectors.Connector) error {
	s.supervisor.add(cs)
	drain, err := s.follower.join(ctx)
	if err != nil {
		return nil // ended before it began
	}
	defer drain()
	for _, begin := range []func(context.Context) error{s.People.EndRoles, s.Profiles.Load, s.deliverer.Begin} {
		if err := begin(ctx); err != nil {
			return err
		}
	}
	if err := s.Worker.BeginRecovery(ctx); err != nil {
		s.deliverer.End(0, inbox.ErrShutdown)
		return err
	}
	group, working := errgroup.WithContext(ctx)
	start := func(loop func(context.Context)) {
		group.Go(func() error { loop(working); return nil })
	}
	start(s.Worker.Recovery.Run)
	if release := s.supervisor.holdback.holdBack(s.supervisor.All()); release != nil {
		start(release)
	}
	start(s.supervisor.runAll)
	group.Go(func() error { return s.dispatcher.run(working) })
	for _, loop := range s.loops {
		start(loop)
	}
	err = group.Wait() // the dispatcher has waited for its workers
	s.Control.shutdown()
	s.deliverer.End(drainTime, inbox.ErrShutdown)
	if ctx.Err() != nil && (err == nil || errors.Is(err, context.Cause(ctx))) {
		return nil
	}
	return err
}

// Replace makes cs the connectors of this member, while Run works or before it. A connector
// that was one of them before goes on undisturbed. Those that are gone end, and accept nothing
// more; messages for them wait in the outbox until a connector of that name comes. New ones start
// when all that end have ended: two of a name, or of an account, never work at a time. Replace
// returns then, or after replaceTime.
func (s *AgentSystem) Replace(ctx context.Context, cs ...connectors.Connector) {
	for _, name := range s.supervisor.replace(ctx, cs) {
		s.deliverer.Connected(name)
	}
}

// Restart ends a connector and starts it again, as Replace does. It does nothing to one that is not there.
func (s *AgentSystem) Restart(ctx context.Context, name string) error {
	err := s.supervisor.restart(ctx, name)
	s.deliverer.Connected(name)
	return err
}

// Post accepts a message from a connector. It returns nil once the message is durable or
// refused for good: its sender has no access, or the message is known. A message whose
// agent cannot be used is parked, and runs when the agent can be used again. After any
// other outcome nothing is stored: an error of storage.ClassMessage is final, after any
// other the source must keep the message.
func (s *AgentSystem) Post(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) error {
	return s.receiver.post(ctx, to, m)
}

// Answer implements connectors.Handler.
func (s *AgentSystem) Answer(ctx context.Context, t connectors.Press) (connectors.PressResult, error) {
	return s.receiver.answer(ctx, t)
}

// Round implements connectors.RoundHandler.
func (s *AgentSystem) Round(ctx context.Context, t connectors.Press) ([]claybot.Question, error) {
	return s.receiver.round(ctx, t)
}

// Hears implements connectors.Handler.
func (s *AgentSystem) Hears(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) (bool, error) {
	return s.receiver.hears(ctx, to, m)
}

// Shares implements connectors.GroupHandler.
func (s *AgentSystem) Shares(d claybot.Descriptor) bool { return s.receiver.places.shares(d) }

// Overheard implements connectors.Listener.
func (s *AgentSystem) Overheard(ctx context.Context, all []connectors.Overheard) error {
	return s.receiver.overhearing.overheard(ctx, all)
}

// Reacted implements connectors.ReactionHandler.
func (s *AgentSystem) Reacted(ctx context.Context, x connectors.Reaction) (took bool, err error) {
	return s.receiver.reacted(ctx, x)
}

// Moved follows a channel to its new id.
func (s *AgentSystem) Moved(ctx context.Context, connector, from, to string, at claybot.Time) error {
	return s.receiver.moves.moved(ctx, connector, from, to, at)
}

// RouteChanged implements connectors.RouteHandler.
func (s *AgentSystem) RouteChanged(ctx context.Context, c connectors.RouteChange) error {
	return s.receiver.routeChanged(ctx, c)
}

// DeadRoute says why nothing can be sent on a route, because its platform refuses all of
// it, and since when; empty if it does not.
func (s *AgentSystem) DeadRoute(r claybot.Route) (why string, since claybot.Time) {
	dead, _ := s.deliverer.Routes.Dead(r)
	return dead.Why, dead.Since
}

// Recent implements connectors.GapHandler.
func (s *AgentSystem) Recent(ctx context.Context, connector, prefix string, since time.Time) (chats []connectors.Chat, more int, err error) {
	return s.receiver.notices.recent(ctx, connector, prefix, since)
}

// Missed implements connectors.GapHandler: each chat concerned gets one notice that
// messages may be missing, where its most recent user wrote last.
func (s *AgentSystem) Missed(ctx context.Context, m connectors.Missed) (untold int, err error) {
	return s.receiver.notices.missed(ctx, m)
}

// Tell sends a notice to the chat of an agent, the same text at most once a day.
func (s *AgentSystem) Tell(ctx context.Context, id claybot.AgentID, say func(texts.Voice) string) error {
	return s.receiver.notices.tell(ctx, id, say)
}

// Look tells operators now what they do not know of the findings of overview, as is done every minute.
func (s *AgentSystem) Look(ctx context.Context) { s.supervisor.alarms.findings.look(ctx) }

// Unusable reports whether this member cannot use the agent of d at present. It is for
// connectors that wait for one.
func (s *AgentSystem) Unusable(d claybot.Descriptor) bool {
	_, ok := s.Worker.Faults.At(d.Key())
	return ok
}

// Heard handles a hint of another member; it is the hook of a store that members share.
// A hint only says that a look is worthwhile, and an empty one that some may have been
// lost. Heard neither blocks nor uses the store.
func (s *AgentSystem) Heard(h storage.Notification) { s.follower.heard(h) }

// Turn claims what one member may do at a time, for runs.Relay: the context is done when
// the right ends. The function releases the context but not the claim, which stays with
// this member until it leaves, or YieldTurn.
func (s *AgentSystem) Turn(ctx context.Context, claim string) (context.Context, func(), error) {
	hold, err := s.follower.members.Claim(ctx, claim)
	if err != nil {
		return nil, nil, err
	}
	mine, free := hold.Context(ctx)
	return mine, free, nil
}

// YieldTurn releases a claim of Turn, so that another member can have it.
func (s *AgentSystem) YieldTurn(ctx context.Context, claim string) error {
	hold, err := s.follower.members.Claim(ctx, claim)
	switch {
	case errors.Is(err, storage.ErrHeld):
		return nil // another member has it
	case err != nil:
		return err
	}
	return hold.Yield(ctx, true)
}

// Opened is called before a user opens d's conversation on this member. From then on the
// window shows what its runs do, whichever member works on them.
func (s *AgentSystem) Opened(ctx context.Context, d claybot.Descriptor) error {
	if err := s.follower.windows.opened(ctx, d); err != nil {
		return fmt.Errorf("open the conversation: %w", err)
	}
	return nil
}

// Working returns how many agents this member works on.
func (s *AgentSystem) Working() int { return s.dispatcher.inboxes.Working() }

// Reschedule recomputes the due times of waiting messages, removes what was kept of groups
// that is not to be kept any more, and ends the roles of people without access. Call it after the profiles or the access changed.
func (s *AgentSystem) Reschedule(ctx context.Context) error {
	return errors.Join(s.dispatcher.reschedule(ctx, ""), s.receiver.overhearing.sweep(ctx), s.People.EndRoles(ctx))
}
