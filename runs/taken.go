package runs

import "github.com/claybot/claybot"

// MessagesTaken is the data of RunStarted, RunResumed and MessagesInjected:
// which messages the run works on.
type MessagesTaken struct {
	Agent    claybot.AgentID     `json:"agent,omitempty"`
	Messages []claybot.MessageID `json:"messages,omitempty"`
	Attempt  int                 `json:"attempt,omitempty"`
	Engine   string              `json:"engine,omitempty"`
	Reason   string              `json:"reason,omitempty"` // why it goes on: answers, timeout, cancel, restart
	// WaitedMS is how long the oldest message had waited when its run started, in the store's events.
	WaitedMS int64 `json:"waitedMs,omitempty"`
	// Traceparent is the span that asked for the run, see claybot.Trace.String; empty: none.
	Traceparent string `json:"traceparent,omitempty"`
}

// Began tells that a pass over a run begins: its first, or a later one. The messages are those
// that the run has.
func Began(r claybot.Run, messages []claybot.AgentMessage) claybot.Event {
	d := MessagesTaken{Agent: r.Agent, Messages: r.Messages, Attempt: r.Attempts, Engine: r.Engine, Traceparent: Caller(messages)}
	if r.Attempts > 1 {
		return event(r.ID, claybot.EventRunResumed, claybot.Now(), d)
	}
	return event(r.ID, claybot.EventRunStarted, claybot.Now(), d)
}

// Injected tells that messages joined a run in flight.
func Injected(run claybot.RunID, ids []claybot.MessageID) claybot.Event {
	return event(run, claybot.EventMessagesInjected, claybot.Now(), MessagesTaken{Messages: ids})
}
