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
}

// Began tells that a pass over a run begins: its first, or a later one.
func Began(r claybot.Run) claybot.Event {
	t := claybot.EventRunStarted
	if r.Attempts > 1 {
		t = claybot.EventRunResumed
	}
	return event(r.ID, t, claybot.Now(), MessagesTaken{Agent: r.Agent, Messages: r.Messages, Attempt: r.Attempts, Engine: r.Engine})
}

// Injected tells that messages joined a run in flight.
func Injected(run claybot.RunID, ids []claybot.MessageID) claybot.Event {
	return event(run, claybot.EventMessagesInjected, claybot.Now(), MessagesTaken{Messages: ids})
}
