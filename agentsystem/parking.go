package agentsystem

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/worker"
)

// parkedReason is why a message that was accepted runs later.
const parkedReason = "parked"

// parkedAtOnce is how many parked messages of an agent are read at once.
const parkedAtOnce = 100

// errBehind is why a message is parked whose agent has parked ones.
var errBehind = errors.New("earlier messages of the same agent are parked")

// A parking keeps the messages of agents that cannot be used, in order, and posts them
// when the agents can be used again. See retries.
type parking struct {
	store    Parking
	index    storage.Index
	receipts storage.Receipts
	inboxes  *inbox.Inboxes
	intake   *intake
	moves    *moves
	people   *people.Directory
	sender   *delivery.Deliverer
	worker   *worker.Worker
	members  *cluster.Membership
	meter    Meter
	log      *slog.Logger
	counts   *parkingCounts
	flows    Flows // nil: there are none
	// marks say where albums go; nil: their parts do not belong together.
	marks storage.CheckpointSet
}

// parkingCounts are what this member knows of parked messages.
type parkingCounts struct {
	figures storage.StatsReader
	parked  inbox.Signal // a message was parked here
	totals  atomic.Pointer[storage.ParkedTotals]
	full    atomic.Bool // a message was refused since the totals were read
}

// Count counts what is parked, for status and readiness.
func (c *parkingCounts) Count(ctx context.Context) (storage.ParkedTotals, error) {
	totals, err := c.figures.ParkedTotals(ctx)
	if err == nil {
		c.totals.Store(&totals)
		c.full.Store(totals.Messages >= storage.MaxParked)
	}
	return totals, err
}

// Totals returns the newest Count, and whether no more messages are parked.
func (c *parkingCounts) Totals() (totals storage.ParkedTotals, full bool) {
	if t := c.totals.Load(); t != nil {
		totals = *t
	}
	return totals, c.full.Load()
}

// take stores a message. It parks one from a platform whose agent cannot be used, or
// whose agent's files do not answer in time, so that it holds up no other agent's: an
// error is of storage.ClassStore, where nothing can be stored, of ClassMessage, where
// nothing can be done with the message, or the end of ctx. Behind a parked message it
// touches no files of the agent. A source that is no platform keeps its own messages.
func (p *parking) take(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) (storage.Posted, error) {
	if !to.Foreground() || m.Type == claybot.MessageSystem {
		return p.takeKept(ctx, to, m)
	}
	behind, met, err := p.arrival(ctx, to)
	if met.Parked {
		if done, ok := p.answerAtOnce(ctx, to, behind, m); ok {
			return done, nil
		}
		done, err := p.park(ctx, behind, m, errBehind, storage.ParkRules{Behind: true})
		if !errors.Is(err, storage.ErrNotFound) {
			return done, err
		} // they were taken in the meantime
	}
	var done storage.Posted
	if err == nil {
		done, err = p.intake.acceptMeeting(ctx, to, m, met)
	}
	if errors.Is(err, questions.ErrUnheard) { // it takes its time, which must not hold up the source
		return p.park(ctx, to, m, err, storage.ParkRules{})
	}
	class := storage.ClassOf(err)
	if err == nil || ctx.Err() != nil || class != storage.ClassMember && class != storage.ClassAgent {
		return done, err
	}
	if class == storage.ClassMember {
		p.worker.Health.Met(to.Key(), err)
	}
	if done, ok := p.answerAtOnce(ctx, to, to, m); ok {
		return done, nil
	}
	return p.park(ctx, to, m, err, storage.ParkRules{Posted: errors.As(err, new(*inbox.UnfinishedError))})
}

// arrival returns what decides about the next message for the agent of to. If messages of that
// agent are parked, the next one belongs behind them, also where they were parked under a former
// id of the chat: behind is to by the id that they have.
func (p *parking) arrival(ctx context.Context, to claybot.Descriptor) (behind claybot.Descriptor, met storage.Arrival, err error) {
	met, err = p.store.Arrival(ctx, to)
	if err != nil || met.Parked || !to.Foreground() {
		return to, met, err
	}
	behind = to
	for _, behind.ChannelID = range p.people.Former(to.Connector, to.ChannelID) {
		was, err := p.store.Arrival(ctx, behind)
		if err != nil {
			return to, met, err
		}
		if !was.Parked {
			continue
		}
		switch _, err := p.index.IndexedAgent(ctx, behind); {
		case errors.Is(err, storage.ErrNotFound):
			met.Parked = true
			return behind, met, nil
		case err != nil:
			return to, met, err
		} // else they are of an agent that was left there, see followed
	}
	return to, met, nil
}

// takeKept stores a message that its source keeps on an error, and notifies the owner
// where the agent cannot be used.
func (p *parking) takeKept(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) (storage.Posted, error) {
	done, err := p.intake.accept(ctx, to, m)
	class := storage.ClassOf(err)
	switch {
	case err == nil:
		p.worker.Faults.Taken(to.Key())
	case ctx.Err() == nil && (class == storage.ClassAgent || class == storage.ClassMember) && p.worker.Faults.Refused(to.Key(), err):
		if err := p.worker.NotifyOf(ctx, to.Key(), to, "", []claybot.AgentMessage{m}); err != nil {
			p.log.Warn("failed to notify the owner of a fault, retrying", "message", m.ID, "err", err)
		}
	}
	return done, err
}

// park keeps a message until its agent can be used.
func (p *parking) park(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage, cause error, rules storage.ParkRules) (storage.Posted, error) {
	m = p.intake.secrets.cleaned(m)
	rules.All, rules.Agent = storage.MaxParked, storage.MaxParkedAgent
	parked := storage.Parked{To: to, Message: m, Cause: cause.Error()}
	added, err := p.store.Park(ctx, parked, rules)
	if errors.Is(err, storage.ErrTooMany) && m.Type == claybot.MessageCancel { // it makes room itself
		p.stop(ctx, to, m)
		rules.Behind = false // none may be left
		added, err = p.store.Park(ctx, parked, rules)
	}
	log := p.log.With("connector", to.Connector, "message", m.ID)
	switch {
	case errors.Is(err, storage.ErrTooMany):
		log.Warn("message will not run: too many are parked for its agent", "err", err)
		return p.refuse(ctx, to, m)
	case errors.Is(err, storage.ErrNotFound):
		return storage.Posted{}, err
	case err != nil:
		if errors.Is(err, storage.ErrParkingFull) {
			p.counts.full.Store(true)
			log.Error("the parking table is full; messages wait at their source", "err", err)
		}
		return storage.Posted{}, &storage.Fault{Class: storage.ClassStore, Err: errors.Join(err, cause)}
	}
	if added && m.Type == claybot.MessageCancel {
		p.stop(ctx, to, m)
	}
	if added && !rules.Behind && !errors.Is(cause, questions.ErrUnheard) {
		log.Error("message parked: agent unusable", "class", storage.ClassOf(cause).String(), "err", cause)
	}
	p.counts.parked.Raise()
	return storage.Posted{Added: added, Skipped: parkedReason}, nil
}

// refuse ends a message for which an agent has no room, and notifies the user once an
// hour.
func (p *parking) refuse(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) (storage.Posted, error) {
	added, err := false, p.send(ctx, claybot.OutgoingNotice, m, m.ReplyRoute(to), fmt.Sprintf("full/%s/%d", to.Key(), time.Now().Unix()/3600), texts.Of(p.people.Speaking(ctx, to, m)).InboxFull())
	if err == nil {
		added, err = p.store.EndParked(ctx, storage.Parked{To: to, Message: m}, inbox.SkippedFull)
	}
	if err != nil { // the user would hear nothing, or a redelivery would run: the source must keep it
		return storage.Posted{}, &storage.Fault{Class: storage.ClassStore, Err: fmt.Errorf("refuse a message: %w", err)}
	}
	return storage.Posted{Added: added, Skipped: inbox.SkippedFull}, nil
}

// send sends a text about a message, once for each key.
func (p *parking) send(ctx context.Context, kind claybot.OutgoingKind, m claybot.AgentMessage, to claybot.Route, key, text string) error {
	return p.sender.SendOnce(ctx, claybot.Outgoing{Kind: kind, Message: m.ID, Route: to}, key, text)
}

// stop ends the parked messages before m that would start a run, because m asks to stop:
// they must not be answered after it. Of a reset only the text ends that follows it. stop
// returns how many ended.
func (p *parking) stop(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) int {
	follows := func(x storage.Parked) bool { return x.Message.Type == claybot.MessageReset && x.Message.Text != "" }
	list, err := p.store.ParkedOf(ctx, to.Key(), storage.MaxParkedAgent)
	for _, x := range list {
		if err != nil || x.Damaged != nil || !follows(x) {
			continue
		}
		bare := x.Message // known already if this is done once more
		bare.ID, bare.Text, bare.Keys = bare.ID+"/reset", "", nil
		_, err = p.store.Park(ctx, storage.Parked{To: x.To, Message: bare, Cause: x.Cause}, storage.ParkRules{})
	}
	var dropped []claybot.MessageID
	if err == nil {
		dropped, err = p.drop(ctx, to.Key(), inbox.SkippedStopped, func(x storage.Parked) bool {
			return x.Damaged == nil && (x.Message.Type == claybot.MessageUser || x.Message.Command == "compact" || follows(x))
		})
	}
	if err != nil {
		p.log.Warn("failed to stop parked messages", "connector", to.Connector, "message", m.ID, "err", err)
	}
	return len(dropped)
}

// drop ends those parked messages of the agent with a key that which picks, for a reason,
// and returns them. An agent for which none is left has no fault.
func (p *parking) drop(ctx context.Context, key, reason string, which func(storage.Parked) bool) (dropped []claybot.MessageID, err error) {
	list, err := p.store.ParkedOf(ctx, key, storage.MaxParkedAgent)
	if err != nil {
		return nil, err
	}
	for _, x := range list {
		if !which(x) {
			continue
		}
		if err := p.end(ctx, x, reason); err != nil {
			return dropped, err
		}
		dropped = append(dropped, x.Message.ID)
	}
	if len(dropped) == len(list) {
		p.worker.Faults.Over(key)
	}
	return dropped, nil
}

// dropRevoked ends the parked messages of a connector whose senders have lost access.
func (p *parking) dropRevoked(ctx context.Context, connector string) error {
	agents, err := p.store.ParkedAgents(ctx, storage.MaxParked)
	if err != nil {
		return err
	}
	for _, a := range agents {
		_, err := p.drop(ctx, a.Key, inbox.SkippedRevoked, func(x storage.Parked) bool {
			return x.To.Connector == connector && x.Cause != storage.ParkedUnapproved && !p.people.Admits(x.To, x.Message)
		})
		if err != nil {
			return fmt.Errorf("drop parked messages: %w", err)
		}
	}
	return nil
}

// end ends a parked message with a reason.
func (p *parking) end(ctx context.Context, x storage.Parked, reason string) error {
	if _, err := p.store.EndParked(ctx, x, reason); err != nil {
		return err
	}
	p.log.Info("parked message will not run", "connector", x.To.Connector, "message", x.Message.ID, "reason", reason)
	return nil
}

// unparkFirst posts what is parked for an agent before a message whose caller waits for
// it, and keeps it on an error.
func (p *parking) unparkFirst(ctx context.Context, to claybot.Descriptor) error {
	behind, met, err := p.arrival(ctx, to)
	if err == nil && met.Parked {
		_, err = p.unpark(ctx, behind.Key())
	}
	if err != nil && !errors.Is(err, errUnapproved) { // the caller is no unknown user
		return fmt.Errorf("post earlier messages: %w", err)
	}
	return nil
}

// unpark posts what is parked for the agent with a key, in order, and returns the first
// message that cannot be posted. It ends messages that are damaged and those of users
// without access. Concurrent calls do no harm: a message that was posted is known.
func (p *parking) unpark(ctx context.Context, key string) (first storage.Parked, err error) {
	for limit := 1; ; limit = parkedAtOnce { // the first says whether the agent can be used
		list, err := p.store.ParkedOf(ctx, key, limit)
		if err != nil || len(list) == 0 {
			return first, err
		}
		for _, first = range list {
			if err := p.unparkOne(ctx, first); err != nil {
				return first, err
			}
		}
	}
}

func (p *parking) unparkOne(ctx context.Context, x storage.Parked) error {
	switch {
	case x.Damaged != nil:
		p.log.Error("parked message damaged, it will not run", "connector", x.To.Connector, "message", x.Message.ID, "err", x.Damaged)
		route := claybot.DescriptorOf(x.Key).Route()
		if err := p.send(ctx, claybot.OutgoingNotice, x.Message, route, fmt.Sprintf("damaged/%s", x.Message.ID), p.people.VoiceAt(ctx, claybot.DescriptorOf(x.Key), route).In(texts.ParkedDamaged)); err != nil {
			return err
		}
		return p.end(ctx, x, inbox.SkippedDamaged)
	case x.Cause == storage.ParkedUnapproved:
		if approved, err := p.unapproved(ctx, x); err != nil || !approved {
			return err
		}
	case !p.people.Admits(x.To, x.Message):
		return p.end(ctx, x, inbox.SkippedRevoked)
	}
	if x.Cause != storage.ParkedUnapproved {
		return p.unparkAdmitted(ctx, x)
	}
	x.Message.Approved = claybot.Now()
	err := p.unparkAdmitted(ctx, x)
	if class := storage.ClassOf(err); err != nil && ctx.Err() == nil && (class == storage.ClassMember || class == storage.ClassAgent) {
		err = errors.Join(err, p.approved(ctx, x, err))
	}
	return err
}

// unparkAdmitted posts a parked message whose sender has access.
func (p *parking) unparkAdmitted(ctx context.Context, x storage.Parked) (err error) {
	if x.To, err = p.followed(ctx, x.To); err != nil {
		return err
	}
	if x.Message.Approved != 0 { // it has met no trigger yet
		if x.To, x.Message, err = p.started(ctx, x.To, x.Message); err != nil {
			return err
		}
	}
	_, err = p.intake.accept(ctx, x.To, x.Message)
	if errors.Is(err, questions.ErrUnheard) {
		err = p.listen(ctx, x)
	}
	if err != nil {
		return err
	}
	return p.store.Unpark(ctx, x.Message.ID)
}

// followed returns d with the id that its chat has now, unless an agent was left at the former
// one, which the message was parked for.
func (p *parking) followed(ctx context.Context, d claybot.Descriptor) (claybot.Descriptor, error) {
	if p.people.Current(d.Connector, d.ChannelID) == d.ChannelID {
		return d, nil
	}
	_, err := p.index.IndexedAgent(ctx, d)
	if errors.Is(err, storage.ErrNotFound) {
		return p.moves.here(ctx, d)
	}
	return d, err
}

// listen transcribes a recording that may answer a question, and stores it: as the answer,
// or, if it can be none, as any other message.
func (p *parking) listen(ctx context.Context, x storage.Parked) error {
	agent, err := p.intake.agents.AgentFor(ctx, x.To)
	if err != nil {
		return fmt.Errorf("agent for %s: %w", x.Message.ID, err)
	}
	run, _, waits, err := p.intake.questions.Ledger.PausedRun(ctx, agent.ID)
	if err != nil {
		return err
	}
	m, heard := x.Message, false
	if waits { // otherwise no question is open, and no run's budget pays for a transcript
		if m, heard, err = p.worker.Listen(ctx, agent, run, m); err != nil {
			return err
		}
	}
	if heard {
		if _, taken, err := p.intake.questions.Texts.Take(ctx, agent, p.intake.secrets.cleaned(m)); taken || err != nil {
			return err
		}
	}
	m = x.Message
	m.Spoken = false // it waits for its turn
	_, err = p.intake.acceptFor(ctx, agent, m)
	return err
}

// answerAtOnce answers a /stop, /status or /why for an agent that cannot be used, from
// the store alone. ok is false for any other message, and where even that fails: the
// message is to be parked then. behind is to as arrival returns it.
func (p *parking) answerAtOnce(ctx context.Context, to, behind claybot.Descriptor, m claybot.AgentMessage) (done storage.Posted, ok bool) {
	if m.Type != claybot.MessageCancel && (m.Type != claybot.MessageCommand || m.Command != "status" && m.Command != "why") {
		return done, false
	}
	stopped := 0
	if m.Type == claybot.MessageCancel {
		if _, err := p.receipts.Receipt(ctx, m.ID); errors.Is(err, storage.ErrNotFound) { // else it came before what is parked now
			stopped = p.stop(ctx, behind, m)
		}
	}
	id, err := p.index.IndexedAgent(ctx, to)
	switch {
	case err == nil:
		done, err = p.answerFor(ctx, claybot.Agent{ID: id, Descriptor: to}, m, stopped)
	case errors.Is(err, storage.ErrNotFound):
		done, err = p.answerUnborn(ctx, to, m, stopped)
	}
	if err != nil {
		p.log.Warn("failed to answer for an unusable agent", "connector", to.Connector, "message", m.ID, "err", err)
	}
	return done, err == nil
}

// answerFor answers for an agent in the index. stopped is how many parked messages a
// /stop has ended.
func (p *parking) answerFor(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage, stopped int) (storage.Posted, error) {
	x, err := p.intake.preparer.complete(ctx, agent, m)
	if err != nil {
		return storage.Posted{}, err
	}
	if stopped > 0 {
		x.IfIdle = x.Replies
	}
	return p.intake.post(ctx, agent, x)
}

// answerUnborn answers for an agent that does not exist yet.
func (p *parking) answerUnborn(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage, stopped int) (storage.Posted, error) {
	ctx = p.people.Speaking(ctx, to, m)
	text := texts.Of(ctx).In(texts.NothingRuns)
	if m.Type == claybot.MessageCommand {
		var err error
		if text, err = p.intake.preparer.command(ctx, claybot.Agent{Descriptor: to}, m); err != nil {
			return storage.Posted{}, err
		}
	} else if stopped > 0 {
		text = texts.Of(ctx).In(texts.Stopped)
	}
	if err := p.send(ctx, claybot.OutgoingCommand, m, m.ReplyRoute(to), fmt.Sprintf("parked/%s/answer", m.ID), text); err != nil {
		return storage.Posted{}, fmt.Errorf("answer %s: %w", m.ID, err)
	}
	added, err := p.store.EndParked(ctx, storage.Parked{To: to, Message: m}, "command")
	return storage.Posted{Added: added, Skipped: "command"}, err
}
