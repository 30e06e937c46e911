package tools

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/claybot/claybot"
)

// Agents starts, asks and stops other agents. The Env of a call says who asks. An
// error is a sentence for the model and means that nothing happened.
//
// A method may be called again with the Env of the same call, as after a crash; its
// effect then happens once.
type Agents interface {
	// StartSubagent creates an agent, posts its first message and returns at once.
	StartSubagent(ctx context.Context, env Env, s Subagent) (claybot.AgentID, error)
	// SpawnAndWait runs one subagent for each task and returns their Answers as
	// JSON, in the order of the tasks. Its result is a Wait until all have ended.
	SpawnAndWait(ctx context.Context, env Env, tasks []Subagent) (Result, error)
	// AskAgent posts a question to an existing agent and returns its Answer. Its
	// result is a Wait until then.
	AskAgent(ctx context.Context, env Env, to, text string, timeout time.Duration) (Result, error)
	// SendAgentMessage posts a message to an agent: to is an id, "parent", or
	// empty for the most recent foreground agent. It returns the receiver.
	SendAgentMessage(ctx context.Context, env Env, to, text string, silent bool) (claybot.AgentID, error)
	// StopAgent stops a descendant of the caller and all agents below it. It returns
	// the number of stopped runs.
	StopAgent(ctx context.Context, env Env, id string) (int, error)
}

// A Directory shows the agents of the caller's owner.
type Directory interface {
	// ListAgents lists them.
	ListAgents(ctx context.Context, env Env) ([]AgentInfo, error)
	// Readers are who can read what a call comes to.
	Readers(ctx context.Context, env Env) claybot.Audience
	// Discloses says what a call discloses that reaches another agent, named as in
	// SendAgentMessage; nil: nothing.
	Discloses(ctx context.Context, env Env, to string, way Way) *Disclosure
	// ReadAgentHistory returns the newest last records of one of them.
	ReadAgentHistory(ctx context.Context, env Env, id string, last int) ([]claybot.Record, error)
	// SearchHistory returns records that have all words, the newest first, without the
	// first skip ones. It reads the conversations of the caller's person whose readers the
	// answer of the call does not add to, and leaves out the run of the call.
	SearchHistory(ctx context.Context, env Env, words []string, skip, limit int) (Findings, error)
}

// Findings are what a search of histories found. More: there are further records. Partly: it
// ended before all conversations were read.
type Findings struct {
	Found        []Finding
	More, Partly bool
}

// A Finding is one record of a conversation.
type Finding struct {
	Agent  AgentInfo
	Record claybot.Record
}

// Reminders are notes that an agent sends to itself later. Like Agents, they may be
// called again with the Env of the same call.
type Reminders interface {
	// RemindMe posts note to the caller at the given time and returns the id of the
	// reminder.
	RemindMe(ctx context.Context, env Env, at time.Time, note string) (id string, err error)
	// Reminders lists the caller's reminders, the next one first.
	Reminders(ctx context.Context, env Env) ([]Reminder, error)
	// CancelReminder removes one of the caller's reminders.
	CancelReminder(ctx context.Context, env Env, id string) error
}

// A Subagent is an agent to be started, with its task.
type Subagent struct {
	Task string
	// Agent is an agent that is there and does the task in its own conversation, in place of a new one. It
	// can only be waited for, and has its own settings.
	Agent string
	Name  string
	// Flow is the flow that runs in place of an agent: Task is its text, which may be empty, and Payload
	// its event. It has a profile of its own, and no Model, Prompt or Tools.
	Flow    string
	Payload json.RawMessage
	Model   string   // empty: that of the caller
	Prompt  string   // the system prompt; empty: the usual one
	Tools   []string // nil: those of the caller; others than those are refused
	Report  bool     // its final text goes to the caller as a message
	// Permissions narrow what it may do, which is never more than the caller may.
	Permissions claybot.Permissions
	// Thread is the key of the thread that does the task; empty: an agent of its own does, which
	// remembers nothing. See claybot.Thread.
	Thread string
	// Engine is what advances its run; empty: as its profile says. Deep makes it a deep agent.
	Engine string
	Deep   *claybot.Deep
	// Timeout ends a subagent that is waited for; 0 means 10 minutes, or of a flow the longest time.
	Timeout time.Duration
}

// A Spawning says how the tasks of one call run. The zero value: all of them at once, until all have ended.
type Spawning struct {
	// AtOnce is how many are at work at the same time; 0: all.
	AtOnce int
	// Enough reports whether what has ended suffices: those at work are stopped then, and the others do not
	// start. The result of a task that has not ended is nil. nil: all have to end.
	Enough func(ended []*claybot.Result) bool
	// Call names a task: the id of a call, and the number of the task in it. nil: the call, and its place
	// among the tasks.
	Call func(i int) (id string, n int)
}

// Of returns the i-th task of a call as the number of a call of its own.
func (s Spawning) Of(env Env, i int) (Env, int) {
	if s.Call != nil {
		env.CallID, i = s.Call(i)
	}
	return env, i
}

// An AgentInfo is one agent in a list.
type AgentInfo struct {
	ID       claybot.AgentID `json:"id"`
	Type     string          `json:"type"`
	Name     string          `json:"name,omitempty"`
	Parent   claybot.AgentID `json:"parent,omitempty"`
	Place    string          `json:"place,omitempty"`   // of a user agent: connector and channel
	Channel  string          `json:"channel,omitempty"` // of a user agent: the name of its group or channel; unverified
	State    string          `json:"state"`             // idle, waiting, or the state of its newest run
	LastRun  claybot.RunID   `json:"lastRun,omitempty"`
	LastText string          `json:"lastText,omitempty"` // shortened
	Self     bool            `json:"self,omitempty"`
}

// A Reminder is one reminder in a list.
type Reminder struct {
	ID   string    `json:"id"`
	At   time.Time `json:"at"`
	Note string    `json:"note"`
}

// A Display shows a text at the place where the run answers, as one message
// that later texts of the same name replace. An agent without such a place
// shows nothing.
type Display interface {
	Show(ctx context.Context, env Env, name, text string) error
}

// Questions asks the person of a run.
type Questions interface {
	// Ask puts questions to the person and, when all are answered, gives back
	// the answers as JSON: a member for each key. Until then its result is a
	// Wait. Each question has a text, a type and a key of its own; its id is
	// made of the run, the call and its place, so that asking again is harmless.
	// Without Expires it is open for 24 hours. Errors are words for the model;
	// nothing was asked then.
	Ask(ctx context.Context, env Env, qs []claybot.Question) (Result, error)
}

// Media is what tools may do in the chat where the run answers, beside texts.
// The Env of the call says who asks. Errors are words for the model; nothing was
// sent then.
//
// Each method may be called again with the Env of the same call, as it is after
// a crash, and then has had its effect once.
type Media interface {
	// SendFile keeps a file for the agent and puts it on its way, behind what the
	// run has sent already. It returns when that is durable.
	SendFile(ctx context.Context, env Env, s Sending) (Sent, error)
	// React puts an emoji on the message that the run answers. That it is there
	// already is success.
	React(ctx context.Context, env Env, emoji string) error
}

// Sends are the tools that put something into a chat for people to read.
var Sends = []string{"send_file", "send_message"}

// Messages are what an agent says in other chats than the one where it answers. The Env of the
// call says who asks; to is connector:channel, or empty for where the run answers.
type Messages interface {
	// SendMessage puts a text on its way and returns when that is durable, with the name of the
	// chat. It may be called again with the Env of the same call, and then has had its effect
	// once. Errors are words for the model; nothing was sent then.
	SendMessage(ctx context.Context, env Env, to, text string) (place string, err error)
	// OwnChat reports whether a message comes to where the run answers, to another conversation
	// of the caller's person, or nowhere because the call fails.
	OwnChat(env Env, to string) bool
	// Tells says what a message discloses; nil: nothing.
	Tells(ctx context.Context, env Env, to string) *Disclosure
}

// A Sending is a file to be sent: a kept one, by its ID, or what Open gives. A
// call that is made again does not open what is kept by then.
type Sending struct {
	ID   string
	Name string
	Open func(ctx context.Context) (io.ReadCloser, error)
	// MIMEType may be empty: the bytes say it then, as far as they can.
	MIMEType string
	Caption  string // Markdown; optional
	// As is how it is to be shown: a document, photo, voice message or video.
	// Empty: a photo when it is a picture, else a document.
	As claybot.FileKind
}

// A Sent is a file that is on its way. Without a Place it is only kept: who asked
// reads it over the API.
type Sent struct {
	File  claybot.FileReference
	Place string // the connector
}

// Chats read what was said in the chats where runs answer.
type Chats interface {
	// Said returns a page of the chat in which the person wrote that the run of env answers,
	// the oldest message first; more says that there are older ones. Other runs get an error.
	Said(ctx context.Context, env Env, p ChatPage) (said []claybot.Said, more bool, err error)
}

// A ChatPage is the newest Limit messages of a thread or a channel before a message.
type ChatPage struct {
	Channel bool   // the channel, not the thread
	Before  string // the id of a message that comes after the page; empty: of the message that the run answers
	Limit   int
}
