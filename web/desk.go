package web

import (
	"context"
	"io"
	"iter"

	"github.com/claybot/claybot/overview"

	"github.com/claybot/claybot/profiles"

	"github.com/claybot/claybot/questions"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

// A Desk is the system as those who look after it see it: what the API and the
// pages stand on. Methods that name something return storage.ErrNotFound when
// it is not there, storage.ErrState when it is not in the state for what was
// asked, and a Refusal when it is not to be done.
type Desk interface {
	Gatekeeper
	Crew
	Watcher
	Deliveries
	Answers
	Files

	// Status tells how everything is doing.
	Status(ctx context.Context) (overview.Status, error)
	// Nodes lists who shares the store: all nodes of the last day, the newest
	// first.
	Nodes(ctx context.Context) ([]storage.Node, error)
	// WorksOn is the name of the node that works on an agent now, where several share
	// the store; empty for none.
	WorksOn(ctx context.Context, id claybot.AgentID) (string, error)
	// Why tells what became of the messages that ref names, oldest first:
	// a platform's link to a message, the id of a message, a run or an outgoing
	// message.
	Why(ctx context.Context, ref string) ([]overview.Story, error)
}

// A Gatekeeper decides who may speak.
type Gatekeeper interface {
	Pairings(ctx context.Context) ([]storage.Pairing, error)
	// Approve and Deny end a request by its code; storage.ErrNotFound.
	Approve(ctx context.Context, code string) (storage.Pairing, error)
	Deny(ctx context.Context, code string) error
	Grants(ctx context.Context) ([]storage.Grant, error)
	// Allow lets somebody in without a code.
	Allow(ctx context.Context, connector, subject string) error
	// Revoke takes that back; storage.ErrNotFound. still says in a sentence
	// what lets the person in all the same, if anything.
	Revoke(ctx context.Context, connector, subject string) (still string, err error)
}

// A Crew is the agents.
type Crew interface {
	AgentPage(ctx context.Context, q storage.AgentQuery) ([]storage.IndexEntry, error)
	// Agent is the entry of one agent, and Children those of its subagents.
	Agent(ctx context.Context, id claybot.AgentID) (storage.IndexEntry, error)
	Children(ctx context.Context, id claybot.AgentID) ([]storage.IndexEntry, error)
	// AgentOf is the id of the agent of a descriptor.
	AgentOf(ctx context.Context, d claybot.Descriptor) (claybot.AgentID, error)
	// Remembered is what an agent remembers: its records since the last reset.
	Remembered(ctx context.Context, id claybot.AgentID) ([]claybot.Record, error)
	// Settings are those that apply to an agent, and those of its own.
	Settings(ctx context.Context, id claybot.AgentID) (profiles.SettingsView, error)
	// Configure replaces the settings of an agent; they apply at once.
	Configure(ctx context.Context, id claybot.AgentID, s claybot.Settings) error
	// ApprovedRules lists what was approved for good, of one agent or of all.
	ApprovedRules(ctx context.Context, id claybot.AgentID) ([]profiles.Rule, error)
	// RemoveRule has an agent ask again.
	RemoveRule(ctx context.Context, id claybot.AgentID, rule string) error
	// StopAgent ends what an agent and those below it are doing, and returns
	// how many runs it asked to end.
	StopAgent(ctx context.Context, id claybot.AgentID) (int, error)
	// ResetAgent makes an agent forget its conversation.
	ResetAgent(ctx context.Context, id claybot.AgentID) error
	// DeleteAgent takes an agent away; its files move to the quarantine.
	DeleteAgent(ctx context.Context, id claybot.AgentID) error
	Inbox(ctx context.Context, id claybot.AgentID) (overview.InboxView, error)
	// Drop takes waiting messages out of an inbox, all when none is named, and
	// returns those it took.
	Drop(ctx context.Context, id claybot.AgentID, ids ...claybot.MessageID) ([]claybot.MessageID, error)
	// ParkedAgents lists up to limit agents that cannot be used: those with parked
	// messages first, in the order of their oldest ones.
	ParkedAgents(ctx context.Context, limit int) ([]overview.ParkedAgent, error)
	// DropParked drops the parked messages of the agent with a name of that list, and
	// returns them.
	DropParked(ctx context.Context, agent string) ([]claybot.MessageID, error)
	// AgentReminders lists what an agent will be reminded of, the next one first.
	AgentReminders(ctx context.Context, id claybot.AgentID) ([]storage.Reminder, error)
	// NextReminders lists those of all agents, the next one first, at most limit.
	NextReminders(ctx context.Context, limit int) ([]storage.Reminder, error)
	// Conversations lists the agents of one person at one connector, the one
	// spoken to last first.
	Conversations(ctx context.Context, connector, user string) ([]storage.IndexEntry, error)
}

// A Watcher starts runs, follows and ends them.
type Watcher interface {
	// StartRun gives an agent a message and reserves the id of the run that
	// will take it. The same message under the same id gives the same ids and
	// nothing new; another one is refused with agentsystem.ErrUsed.
	StartRun(ctx context.Context, to agentsystem.Address, m claybot.AgentMessage) (agentsystem.Accepted, error)
	// Known tells what became of a message that was given to StartRun or
	// AnswerSaid before; known is false when none was under that id. It needs
	// its id, its text, and of each file the id or the SHA256; another message
	// is refused as by StartRun. No agent is made.
	Known(ctx context.Context, to agentsystem.Address, m claybot.AgentMessage) (a agentsystem.Accepted, known bool, err error)
	RunPage(ctx context.Context, q storage.RunQuery) ([]claybot.Run, error)
	// Run loads a run. The id may be one that was reserved, see storage.RunReader.
	Run(ctx context.Context, id claybot.RunID) (claybot.Run, error)
	// Events yields what happened in a run up to now, after a seq.
	Events(ctx context.Context, id claybot.RunID, after int64) iter.Seq2[claybot.Event, error]
	// Watch yields what happened in a run after a seq and what happens from
	// then on, until its last event or until ctx is done; see runs.Watch.
	Watch(ctx context.Context, id claybot.RunID, after int64) iter.Seq2[runs.Update, error]
	// CancelRun asks for the end of a run, and returns the run as it was. A run
	// that has ended already stays as it is.
	CancelRun(ctx context.Context, id claybot.RunID, by string) (claybot.Run, error)
	// UndoRun starts a run that takes back what another one did, and tells which;
	// the same run is undone once. A Refusal says in a sentence why not.
	UndoRun(ctx context.Context, id claybot.RunID, by string) (agentsystem.Accepted, error)
	// UndoneBy is the run that took back what another one did, or does so now;
	// empty when that may be asked for.
	UndoneBy(ctx context.Context, id claybot.RunID) (claybot.RunID, error)
	// Shapes are the engines that are graphs, by name.
	Shapes() map[string]runs.Shape
	// Changed returns a channel that is closed with the next change of anything
	// that is stored.
	Changed() <-chan struct{}
}

// Deliveries are the messages on their way out.
type Deliveries interface {
	OutgoingPage(ctx context.Context, q storage.OutgoingQuery) ([]claybot.Outgoing, error)
	Outgoing(ctx context.Context, id string) (claybot.Outgoing, error)
	// RetryOutgoing sends a failed message again, or a waiting one at once.
	RetryOutgoing(ctx context.Context, id string) (claybot.Outgoing, error)
	// DropOutgoing gives up a message that was not sent.
	DropOutgoing(ctx context.Context, id string) (claybot.Outgoing, error)
}

// Files are what people send to agents.
type Files interface {
	// SaveFile keeps a file for an agent; StartRun takes its reference with a
	// message to the same agent. storage.ErrTooMany beyond agentsystem.MaxFile
	// bytes.
	SaveFile(ctx context.Context, to agentsystem.Address, f claybot.FileReference, content io.Reader) (claybot.FileReference, error)
	OpenFile(ctx context.Context, id claybot.AgentID, file string) (claybot.FileReference, io.ReadCloser, error)
}

// Answers are what persons are asked, and say to it.
type Answers interface {
	// OpenQuestions lists the open questions of an agent, or of all when none
	// is named, the oldest first.
	OpenQuestions(ctx context.Context, agent claybot.AgentID) ([]storage.OpenQuestion, error)
	Question(ctx context.Context, id string) (storage.OpenQuestion, error)
	// AnswerQuestion answers one, with storage.ErrState when it has an answer or
	// has expired, agentsystem.ErrApproved for the second yes of a person where
	// somebody else must approve, and an *agentsystem.AnswerError when the value
	// does not fit.
	AnswerQuestion(ctx context.Context, id string, a questions.Said) error
	// Lacking is how many more people must approve the action of a question,
	// somebody else each, once this was said to it.
	Lacking(q claybot.Question, a questions.Said) int
	// AnswerRun answers several questions of a paused run by their keys or ids:
	// all of them or, when one value does not fit, none. The error is an
	// agentsystem.AnswerError with a sentence for each.
	AnswerRun(ctx context.Context, run claybot.RunID, values map[string]string, by string, via claybot.AnswerVia) error
	// AnswerSaid is AnswerRun for answers that came as a message with an id of
	// its own: Known and StartRun find under it the run that was answered. A
	// message that is known is storage.ErrState and answers nothing.
	AnswerSaid(ctx context.Context, run claybot.RunID, values map[string]string, m claybot.AgentMessage, by string, via claybot.AnswerVia) error
}

// A Refusal is an error that is told to who asked, in these words.
type Refusal string

func (r Refusal) Error() string { return string(r) }
