package claybot

import "encoding/json"

// RunState is where a run is in its life.
type RunState string

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
	Usage    Usage     `json:"usage"`
	Error    *RunError `json:"error,omitempty"`
	Started  Time      `json:"started"`
	Ended    Time      `json:"ended,omitempty"`
}

// An Awaiting is what a paused run waits for: all of the answers, but not
// longer than Until.
type Awaiting struct {
	Answers []MessageID `json:"answers"`
	Until   Time        `json:"until"`
}

// A RunError is why a run failed: a code for programs and a sentence for the
// operator. Users never see the text.
type RunError struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// EventType names what an event tells.
type EventType string

// The types of events.
const (
	EventRunStarted       EventType = "RunStarted"
	EventRunResumed       EventType = "RunResumed"
	EventAssistantMessage EventType = "AssistantMessage"
	EventToolCalled       EventType = "ToolCalled"
	EventToolSucceeded    EventType = "ToolSucceeded"
	EventToolFailed       EventType = "ToolFailed"
	EventMessagesInjected EventType = "MessagesInjected"
	EventRunAwaiting      EventType = "RunAwaiting"
	EventSummarized       EventType = "Summarized"
	EventRunFinished      EventType = "RunFinished"
	EventRunFailed        EventType = "RunFailed"
	EventRunCanceled      EventType = "RunCanceled"
)

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
