package claybot

import (
	"cmp"
	"encoding/json"
	"slices"
)

// RunState is where a run is in its life.
type RunState string

// The engines by which runs advance.
const (
	EngineReact   = "react" // a loop of model and tools
	EnginePlan    = "plan"  // plans, asks, then acts
	EngineExplore = "explore"
	EngineUndo    = "undo" // takes back what another run did
	EngineFlow    = "flow" // of workflows; the engine of a run names the flow and its version behind it
)

// The states of a run. The last three are terminal.
const (
	RunPending   RunState = "PENDING"
	RunRunning   RunState = "RUNNING"
	RunAwaiting  RunState = "AWAITING"
	RunSucceeded RunState = "SUCCEEDED"
	RunFailed    RunState = "FAILED"
	RunCanceled  RunState = "CANCELED"
)

// Ended reports whether s is terminal.
func (s RunState) Ended() bool {
	return s == RunSucceeded || s == RunFailed || s == RunCanceled
}

// A Run is one engine working on one batch of messages. An agent has at most
// one unfinished run.
type Run struct {
	ID       RunID       `json:"id"`
	Agent    AgentID     `json:"agent"`
	State    RunState    `json:"state"`
	Messages []MessageID `json:"messages"` // in the order in which they were accepted
	LastSeq  int64       `json:"lastSeq"`
	// Attempts counts passes begun since the last new record. A pass ended by
	// an orderly shutdown is not counted.
	Attempts int    `json:"attempts"`
	Cancel   string `json:"cancel,omitempty"` // who asked for the end of this run: user, reset, parent, operator
	// Awaiting is what a paused run waits for; nil in all other states.
	Awaiting *Awaiting `json:"awaiting,omitempty"`
	Draft    *Draft    `json:"draft,omitempty"`
	Output   string    `json:"output,omitempty"` // the last reply, shortened
	// Silence is why a run that succeeded sent nothing; empty: it did, or had nothing to send.
	Silence string    `json:"silence,omitempty"`
	Usage   Usage     `json:"usage"`
	Error   *RunError `json:"error,omitempty"`
	// Engine is what advances the run, from its beginning to its end.
	Engine string `json:"engine,omitempty"`
	// Result is what an engine that is a graph has put out so far, as JSON.
	Result json.RawMessage `json:"result,omitempty"`
	// Undo are the effects of a run that has ended, UndoOf the run whose effects
	// it took back itself.
	Undo    []Undo `json:"undo,omitempty"`
	UndoOf  RunID  `json:"undoOf,omitempty"`
	Started Time   `json:"started"`
	Ended   Time   `json:"ended,omitempty"`
	// Feedback is what people said of it by reactions to its messages, see Given.
	Feedback []Feedback `json:"feedback,omitempty"`
}

// SilenceAutoSend is the Silence of a run whose profile leaves it to the agent to send, which it
// did not.
const SilenceAutoSend = "auto_send"

// A Feedback is what a person says of a run by an emoji on one of its messages. A person, a
// message and an emoji have one at most.
type Feedback struct {
	By      string `json:"by"`      // "connector/userId"
	Message string `json:"message"` // the platform id of the message
	Emoji   string `json:"emoji"`
	Vote    Vote   `json:"vote"`
	At      Time   `json:"at"` // when the person added or removed the emoji, by the platform's clock
	// Withdrawn says that the person removed the emoji. It is kept so that an older report of
	// the platform does not bring it back.
	Withdrawn bool `json:"withdrawn,omitempty"`
}

// A Vote is the sense of a Feedback.
type Vote string

// The votes.
const (
	VoteUp   Vote = "up"
	VoteDown Vote = "down"
)

// Given returns the feedback that was not withdrawn, oldest first.
func Given(all []Feedback) (given []Feedback) {
	for _, f := range all {
		if !f.Withdrawn {
			given = append(given, f)
		}
	}
	slices.SortStableFunc(given, func(a, b Feedback) int { return cmp.Compare(a.At, b.At) })
	return given
}

// An Awaiting is what a paused run waits for: all of the answers, but not
// longer than Until.
type Awaiting struct {
	Reason  AwaitReason `json:"reason,omitempty"`
	Answers []MessageID `json:"answers"`
	Until   Time        `json:"until"`
	// Need is how many of the Answers end the pause; 0: all.
	Need int `json:"need,omitempty"`
	// Questions are what a person is asked; the id of the answer to each is
	// among Answers.
	Questions []Question `json:"questions,omitempty"`
}

// AwaitReason says what kind of thing a paused run waits for.
type AwaitReason string

// The reasons to wait.
const (
	AwaitInfo     AwaitReason = "missing_info" // pending question
	AwaitApproval AwaitReason = "approval"
	AwaitChildren AwaitReason = "children" // other agents
	AwaitBudget   AwaitReason = "budget"
	AwaitTime     AwaitReason = "time"     // until a time, without an answer
	AwaitCallback AwaitReason = "callback" // a call of a program
)

// A RunError is why a run failed: a code for programs and a sentence for the
// operator. Users never see the text.
type RunError struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// EventType names what an event tells.
type EventType string

// The types of events. The data of each is a type of package runs.
const (
	EventRunStarted       EventType = "RunStarted"
	EventRunResumed       EventType = "RunResumed"
	EventNodeStarted      EventType = "NodeStarted" // of a graph, or of the loop: model, tools
	EventNodeFinished     EventType = "NodeFinished"
	EventEdgeTaken        EventType = "EdgeTaken"
	EventAssistantMessage EventType = "AssistantMessage"
	EventToolCalled       EventType = "ToolCalled"
	EventToolSucceeded    EventType = "ToolSucceeded"
	EventToolFailed       EventType = "ToolFailed"
	EventToolWaiting      EventType = "ToolWaiting"
	EventAwaitingInput    EventType = "AwaitingInput"
	EventAnswered         EventType = "Answered"
	EventPlanGenerated    EventType = "PlanGenerated"
	EventStepStarted      EventType = "StepStarted"
	EventStepFinished     EventType = "StepFinished"
	EventPolicySwitched   EventType = "PolicySwitched"
	EventModelCallFailed  EventType = "ModelCallFailed" // one try of it
	EventProviderSwitched EventType = "ProviderSwitched"
	EventContextCompacted EventType = "ContextCompacted"
	EventMessagesInjected EventType = "MessagesInjected"
	EventSubagentStarted  EventType = "SubagentStarted"
	EventBudgetReached    EventType = "BudgetReached"
	EventFallback         EventType = "Fallback"
	EventUndoQueued       EventType = "UndoQueued"
	EventUndoFinished     EventType = "UndoFinished"
	EventUndoFailed       EventType = "UndoFailed"
	EventRunFinished      EventType = "RunFinished"
	EventRunFailed        EventType = "RunFailed"
	EventRunCanceled      EventType = "RunCanceled"
)

// Ends reports whether t is the last event of a run.
func (t EventType) Ends() bool {
	return t == EventRunFinished || t == EventRunFailed || t == EventRunCanceled
}

// An Event says that something happened in a run. Seq counts from 1 without
// gaps and is set by the store. Facts only, never artifacts.
type Event struct {
	V    int             `json:"v"`
	Run  RunID           `json:"runId"`
	Seq  int64           `json:"seq"`
	Type EventType       `json:"type"`
	At   Time            `json:"ts"`
	Data json.RawMessage `json:"data,omitempty"`
}

// An Undo is one effect of a run, and how it is taken back.
type Undo struct {
	Step string `json:"step"` // of the plan, or the id of the call
	Tool string `json:"tool"` // that had the effect
	What string `json:"what"` // the effect in a few words, for people
	// Call takes it back; nil when nothing does.
	Call *ToolCall `json:"call,omitempty"`
}

// An Undoing is what a run takes back: the effects of another run, in the order
// in which they happened.
type Undoing struct {
	Run     RunID  `json:"run"`
	Effects []Undo `json:"effects"`
}
