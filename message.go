package claybot

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// MessageType says what a message asks of its agent.
type MessageType string

// The types of messages. Reset and cancel act when they are posted; a command
// is answered by the system and never reaches an engine; an answer belongs to
// the run that waits for it and starts none.
const (
	MessageUser    MessageType = "user"
	MessageSystem  MessageType = "system"
	MessageReset   MessageType = "reset"
	MessageCancel  MessageType = "cancel"
	MessageCommand MessageType = "command"
	MessageCompact MessageType = "compact" // shorten what the agent remembers
	MessageAnswer  MessageType = "answer"
	// A person has changed or deleted an earlier message, see AgentMessage.Amends.
	MessageEdit   MessageType = "edit"
	MessageDelete MessageType = "delete"
)

// StopCommand is the Command of a deletion that stands for a stop: its person did not delete the
// message, and reads that it was stopped also where it only waited.
const StopCommand = "stop"

// SystemKind says what a system message is about.
type SystemKind string

// The kinds of system messages.
const (
	KindMessage   SystemKind = "message"   // another agent writes
	KindTask      SystemKind = "task"      // the first message of a subagent
	KindFailure   SystemKind = "failure"   // a run of a background agent failed
	KindResult    SystemKind = "result"    // a background agent reports
	KindReminder  SystemKind = "reminder"  // the agent asked to be reminded
	KindCron      SystemKind = "cron"      // a task is due
	KindHeartbeat SystemKind = "heartbeat" // tasks of the heartbeat are due
	KindTrigger   SystemKind = "trigger"   // a flow was started
	KindNotice    SystemKind = "notice"    // claybot itself says something
	// KindPushBack: a reply without a call of a tool was not taken, see tools.Finish. Records of
	// runs have it, and no message.
	KindPushBack SystemKind = "push_back"
)

// A AgentMessage is anything that reaches an agent. There is no other way in.
type AgentMessage struct {
	ID      MessageID      `json:"id"`
	Type    MessageType    `json:"type"`
	Text    string         `json:"text,omitempty"`    // as typed; for a reset, what follows the command
	Command string         `json:"command,omitempty"` // of a command message: help, status, why, start, context, compact, model, language, timezone, business, undo, approve, deny, pair, allow, unknown; of a user message: pair or allow, if its text is that command of an operator, or unknown, if it may be one of a skill; of a deletion: StopCommand
	From    Sender         `json:"from,omitzero"`
	Context MessageContext `json:"context,omitzero"`
	At      Time           `json:"at"`
	// FirstHand says that the sender typed the text into this message, or pressed the
	// button that stands for it. Only such text is a command or an answer to a question:
	// text that was forwarded, written by another bot or a machine, or heard in a
	// recording never is, whoever passed it on. The connector vouches for it.
	FirstHand bool `json:"firstHand,omitempty"`
	// Spoken says that the message is a recording that its sender made in this chat, not one
	// that was passed on. Its transcript, which takes the place of the empty Text, answers a
	// plain question; it never approves or commands anything. The connector vouches for it.
	Spoken bool `json:"spoken,omitempty"`
	// Keys are further identities of the same source event. When one of them
	// is known, the message is a repeat whatever its ID says.
	Keys []string `json:"keys,omitempty"`

	Kind SystemKind `json:"kind,omitempty"` // of a system message
	// Silent messages are recorded for the next turn and start none.
	Silent bool `json:"silent,omitempty"`
	// Dry: the work is part of a dry run, see FlowStart.Dry. No person can be asked in it.
	Dry bool `json:"dry,omitempty"`
	// Alone messages share a run with no other: they come again because the run that
	// had taken them was given up.
	Alone bool `json:"alone,omitempty"`
	// Stateless: the run that takes the message sees nothing of earlier runs, and later runs
	// nothing of it.
	Stateless bool `json:"stateless,omitempty"`
	// Hops counts the agents that have passed a thought on since a person said
	// something; it ends conversations of agents with each other.
	Hops int `json:"hops,omitempty"`
	// Deadline is when the run that takes this message fails at the latest.
	Deadline Time `json:"deadline,omitempty"`
	// Route is where the answer goes, instead of the agent's own place.
	Route *Route `json:"route,omitempty"`
	// Place is where the work for which a run gave this task is answered, and so where others may
	// read what the run says that takes it; nil: where Route says.
	Place *Route `json:"place,omitempty"`
	// As are the settings of a subagent in the run that takes this message, in place of its own.
	As *Background `json:"as,omitempty"`
	// Report is the agent that is told the final text of the run, or why it
	// failed, as a system message.
	Report AgentID `json:"report,omitempty"`
	// Awaited is the paused run that waits for how the run that takes this
	// message ends.
	Awaited *Awaited `json:"awaited,omitempty"`
	// Answer is the content of an answer message, Run the run it is for. Of a
	// message that starts a run, Run is the id that was reserved for that run:
	// the run has it, unless the message joins another one.
	Answer *Result `json:"answer,omitempty"`
	Run    RunID   `json:"run,omitempty"`
	// Files belong to the text.
	Files []FileReference `json:"files,omitempty"`
	// Earlier is read when a run takes the message; no stored message has it.
	Earlier *Earlier `json:"-"`
	// Engine is the engine of the run that takes this message; empty: the one
	// of the agent's profile.
	Engine string `json:"engine,omitempty"`
	// Request is the id of the HTTP request that brought the message.
	Request string `json:"request,omitempty"`
	// Traceparent is the span that asked for the message, see Trace.String; empty: none.
	Traceparent string `json:"traceparent,omitempty"`
	// Format is what the answer of the run that takes this message must be; nil: a text.
	Format *AnswerFormat `json:"format,omitempty"`
	// Flow is the flow that the run which takes this message is of, and what started it.
	Flow *FlowStart `json:"flow,omitempty"`
	// Payload is the event that a program sent, as JSON, and Event its kind where the program
	// says it; see Delivery of package webhook.
	Payload json.RawMessage `json:"payload,omitempty"`
	Event   string          `json:"event,omitempty"`
	// Skill is the skill whose command the message is: the run that it begins uses it before the
	// model is called. The intake sets it.
	Skill string `json:"skill,omitempty"`
	// Undo is what the run that takes this message takes back.
	Undo *Undoing `json:"undo,omitempty"`
	// Tainted: the text, or a file, is from an untrusted author, or
	// was written under such an author's influence. Its record carries the mark on.
	Tainted bool `json:"tainted,omitempty"`
	// Private: the text was written by an agent that had read what not everybody may read.
	// Its record carries the mark on.
	Private bool `json:"private,omitempty"`
	// Masked are the kinds of secrets that were taken out of the text before anything was
	// stored, each in words, such as "a Slack token".
	Masked []string `json:"masked,omitempty"`
	// Root is the run that the chain of agents began with which led to this
	// message; the run that takes it spends from that one's budget.
	Root RunID `json:"root,omitempty"`
	// Budgets are those of the runs of workflows that led to this message; the run that takes it spends
	// from each of them.
	Budgets []RunBudget `json:"budgets,omitempty"`
	// Amends is the message that an edit or a deletion is about, by its id or one of its
	// keys. Text is the whole new text of an edit. While the message waits, an edit replaces
	// its text and a deletion drops it; a deletion also cancels the run that took it. An edit
	// is text, never a command.
	Amends MessageID `json:"amends,omitempty"`
	// Approved is when the sender, who was unknown when they wrote the message, had been given
	// access, so that it was posted.
	Approved Time `json:"approved,omitempty"`
	// Firing is the instant of a cron task that this message is. It is entered
	// into the ledger with the message.
	Firing *Firing `json:"firing,omitempty"`
}

// An AnswerFormat asks for an answer that is JSON.
type AnswerFormat struct {
	// Name names the schema for the model; optional.
	Name string `json:"name,omitempty"`
	// Schema is the JSON schema that the answer matches; empty: any object.
	Schema json.RawMessage `json:"schema,omitempty"`
	// Strict asks the provider to allow nothing else while the model writes.
	Strict bool `json:"strict,omitempty"`
}

// Nested reports whether the message starts a flow from within a run: what it holds has come in before.
func (m AgentMessage) Nested() bool { return m.Flow != nil && m.From.Agent != "" }

// A FlowStart names a flow and its trigger, and where that took the message. A flow that a run starts has
// no trigger, and the place is that of the run.
type FlowStart struct {
	Name      string `json:"name"`
	Trigger   string `json:"trigger"`
	Connector string `json:"connector,omitempty"`
	ChannelID string `json:"channelId,omitempty"`
	// Version is that of the flow when the message was accepted: what its run is of where the flow
	// is not in force any more, or not on the member that begins the run. Pinned: its run is of that
	// version in any case.
	Version string `json:"version,omitempty"`
	Pinned  bool   `json:"pinned,omitempty"`
	// Busy says what the message does where its agent is at work or has others to take first;
	// empty: it waits. See BusySkip.
	Busy string `json:"busy,omitempty"`
	// Dry: nothing that acts is called. What the run would do is in the records of its nodes.
	Dry bool `json:"dry,omitempty"`
	// Agent: an agent started it, which decided what it was given.
	Agent bool `json:"agent,omitempty"`
	// Replay is the run whose results this one uses again.
	Replay *FlowReplay `json:"replay,omitempty"`
}

// The values of FlowStart.Busy.
const (
	BusySkip   = "skip"   // it starts no run
	BusyCancel = "cancel" // it takes the place of the run and of the others
)

// A FlowReplay says what of another run of a flow is used again.
type FlowReplay struct {
	Run RunID `json:"run"`
	// From is the node with which the run begins, with what the nodes before it put out the first time;
	// empty: the first one of the flow.
	From string `json:"from,omitempty"`
	// Again are nodes that act again once that is approved, although they have acted.
	Again []string `json:"again,omitempty"`
}

// A RunBudget bounds what models may take for a run of a flow, with all that it starts. An amount of 0 is no
// bound.
type RunBudget struct {
	Flow     string `json:"flow"`
	Run      RunID  `json:"run,omitempty"` // empty: the one that takes the message
	MicroUSD int64  `json:"microUSD,omitempty"`
	Tokens   int64  `json:"tokens,omitempty"`
}

// A Sender is the person or agent a message came from. Name is for display
// only.
type Sender struct {
	UserID string  `json:"userId,omitempty"`
	Name   string  `json:"name,omitempty"`
	Agent  AgentID `json:"agent,omitempty"`
	// Outsider says that the sender is no full member of the organization that the
	// connector works for: a guest, or a user of another organization. Access of the
	// channel does not cover them.
	Outsider bool `json:"outsider,omitempty"`
	// Program says that the sender is a program without the right to approve: nothing that
	// it writes answers an approval, or a question with approvers.
	Program bool `json:"program,omitempty"`
	// Bot says that the sender is another bot, see NewBot.
	Bot bool `json:"bot,omitempty"`
	// NoRules says that the sender may not approve a tool permanently, as a program
	// without the right to change settings.
	NoRules bool `json:"noRules,omitempty"`
}

// NewBot is the sender of a message of another bot. It needs access by its own id, answers
// nothing that needs approval, and few of its messages start runs, so that two bots cannot
// keep each other at work.
func NewBot(id, name string) Sender {
	return Sender{UserID: id, Name: name, Bot: true, Program: true, NoRules: true}
}

// An Awaited names a paused run and the id that its answer will have.
type Awaited struct {
	Agent AgentID   `json:"agent"`
	Run   RunID     `json:"run"`
	ID    MessageID `json:"id"`
}

// A Result is the content of an answer message: how a run ended that another run waits
// for, or the answer to a question.
type Result struct {
	OK     bool   `json:"ok"`
	Output string `json:"output"`
	// Value is what a run puts out that is no text: that of a flow.
	Value      json.RawMessage `json:"value,omitempty"`
	Error      string          `json:"error,omitempty"`
	Lost       Loss            `json:"lost,omitempty"` // why the work was not let to its end
	AgentID    AgentID         `json:"agentId,omitempty"`
	RunID      RunID           `json:"runId,omitempty"`
	TokenUsage Usage           `json:"token_usage"`
	Tainted    bool            `json:"tainted,omitempty"` // the run had read texts of strangers
	Private    bool            `json:"private,omitempty"` // the run had read what not everybody may read
	// To is set in the answer to a question.
	To *Answer `json:"to,omitempty"`
}

// A Loss says why work was not let to its end; empty for work that ended by itself, also with an error.
type Loss string

// The losses.
const (
	LostStopped Loss = "stopped" // by the agent that waits for it
	LostDropped Loss = "dropped" // with its message, before a run took it
)

// An Answer is the answer to one question, from the button, command, text or request that
// gives it to the record of the run.
type Answer struct {
	Question string          `json:"questionId"`
	Text     string          `json:"-"`               // as it was given, for Question.Check; empty once it is checked
	Value    json.RawMessage `json:"value,omitempty"` // as Question.Check returned it; none when the question was withdrawn
	By       string          `json:"by,omitempty"`    // "connector/userId" in a chat, else the name of the operator
	Via      AnswerVia       `json:"via"`
	Message  MessageID       `json:"messageId,omitempty"` // that said it, where it was typed into the chat
	// Reason is why an approval was denied, in the words of who did.
	Reason string `json:"reason,omitempty"`
	// Scope is how far an approval goes.
	Scope ApprovalScope `json:"scope,omitempty"`
	// Args are the arguments with which an action is approved, where who
	// approved it edited them: a JSON object.
	Args string `json:"args,omitempty"`
}

// An ApprovalScope is how far an approval goes.
type ApprovalScope string

// The scopes of approvals.
const (
	ApproveOnce    ApprovalScope = ""        // this action alone
	ApproveSession ApprovalScope = "session" // what this tool does, until the next reset
	ApproveAlways  ApprovalScope = "always"  // what this tool does for this agent, from now on
)

// AnswerVia is the way by which an answer came.
type AnswerVia string

// The ways of answers.
const (
	ViaText    AnswerVia = "text" // a message in the chat
	ViaButton  AnswerVia = "button"
	ViaWeb     AnswerVia = "web"
	ViaHTTP    AnswerVia = "http"
	ViaDefault AnswerVia = "default" // no answer in time
	ViaLimit   AnswerVia = "limit"   // the limit of a budget has changed, so that its question needs no answer
)

// A FileReference is a reference to the bytes that came with a message, or that an agent
// sends. The bytes are below the data directory, unless Source is set.
type FileReference struct {
	ID       string `json:"id"`
	Name     string `json:"name"` // cleaned: no separators, no control characters, at most 120 bytes
	MIMEType string `json:"mimeType"`
	Size     int64  `json:"size"` // bytes
	Path     string `json:"path"` // relative to the data directory
	SHA256   string `json:"sha256"`
	// Text is what stands in a short text file, for the model.
	Text string `json:"text,omitempty"`
	// Kind is as what a chat shows it; empty where the source does not say. Seconds is how
	// long a recording is.
	Kind    FileKind `json:"kind,omitempty"`
	Seconds int      `json:"seconds,omitempty"`
	// Source is where the bytes still are, in the words of the connector that the
	// message came by: they are fetched when a run takes the message. Size is what
	// the platform says until then. No record has it, and it holds no secret.
	Source string `json:"source,omitempty"`
	// Sent says that a person or a program sent the file, so it counts in the quota of
	// its owner; agents create the others.
	Sent bool `json:"sent,omitempty"`
}

// A FileKind is how a chat shows a file.
type FileKind string

// The kinds of files.
const (
	FileDocument FileKind = "document"
	FilePhoto    FileKind = "photo"
	FileVoice    FileKind = "voice"
	FileAudio    FileKind = "audio"
	FileVideo    FileKind = "video"
)

// A Firing is one instant of one cron task. Task and Instant are its key in the
// ledger: of several that are posted, one runs.
type Firing struct {
	Task    string `json:"task"`    // uid
	Instant string `json:"instant"` // RFC 3339 in UTC, or manual/<key>
	Planned Time   `json:"planned"`
	Attempt int    `json:"attempt,omitempty"` // from 1; above it, a retry of the same instant
	// Quiet keeps a failure from being told at the task's place: it was told
	// lately, or the task will be tried again.
	Quiet bool `json:"quiet,omitempty"`
	// Late says in words that the instant was missed and when it ran instead;
	// empty when it was in time. The answer says so, too.
	Late string `json:"late,omitempty"`
	// Recovered makes a success say that the task works again.
	Recovered bool `json:"recovered,omitempty"`
}

// MessageID is the id of the message that a firing is.
func (f Firing) MessageID() MessageID {
	id := "cron/" + f.Task + "/" + f.Instant
	if f.Attempt > 1 {
		id += "/" + strconv.Itoa(f.Attempt)
	}
	return MessageID(id)
}

// MessageContext is what belongs to one message and not to its agent.
type MessageContext struct {
	MessageID string `json:"messageId,omitempty"` // the platform's id of the message
	ThreadID  string `json:"threadId,omitempty"`  // the thread or topic it was written in
	ReplyTo   string `json:"replyTo,omitempty"`   // the platform message that a reply should point at
	Answers   string `json:"answers,omitempty"`   // the platform message that its sender replied to
	GroupID   string `json:"groupId,omitempty"`   // the album it is a part of
	Quote     string `json:"quote,omitempty"`     // text of the message it answers, data for the model
	Group     bool   `json:"group,omitempty"`     // written where others read too
	Channel   string `json:"channel,omitempty"`   // the name of the group or channel; unverified
	Locale    string `json:"locale,omitempty"`    // the sender's language on the platform, as de or de-AT
	Timezone  string `json:"timezone,omitempty"`  // the sender's zone on the platform, as Europe/Berlin
	// Unaddressed says that the message neither mentions the bot nor answers it: whether it is
	// for an agent, the settings of the group say.
	Unaddressed bool `json:"unaddressed,omitempty"`
}

// FollowUp is the first message of the new context that a reset with text
// begins.
func (m AgentMessage) FollowUp() AgentMessage {
	m.ID, m.Type, m.Keys = m.ID+"/text", MessageUser, nil
	return m
}

// ReplyRoute is where answers to m go. It is frozen into the message when it
// is accepted and never looked up again. The zero Route means nowhere: the
// answer stays in history.
func (m AgentMessage) ReplyRoute(d Descriptor) Route {
	if m.Route != nil {
		return *m.Route
	}
	if !d.Foreground() {
		return Route{}
	}
	r := d.Route()
	if r == (Route{}) {
		return r
	}
	if m.Context.ThreadID != "" {
		r.ThreadID = m.Context.ThreadID
	}
	r.ReplyTo = m.Context.ReplyTo
	r.Group = m.Context.Group
	if d.Shared() {
		r.Group, r.UserID = true, cmp.Or(m.From.UserID, d.UserID)
	}
	return r
}

// Speaker is the person who wrote m to the agent of d, in the form of Descriptor.OwnerID: the
// sender of a message to a shared agent, otherwise the person of the agent.
func (m AgentMessage) Speaker(d Descriptor) string {
	if d.Shared() && m.From.UserID != "" {
		d.UserID = m.From.UserID
	}
	return d.OwnerID()
}

// Clean makes a text safe to keep: valid UTF-8 without NUL.
func Clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
}

// Sleep waits for d; false: ctx is done before that.
func Sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
