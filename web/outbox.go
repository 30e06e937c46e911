package web

import (
	"context"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// Outbox lists outgoing messages, and retries or drops them.
type Outbox interface {
	OutgoingPage(ctx context.Context, q storage.OutgoingQuery) ([]claybot.Outgoing, error)
	Outgoing(ctx context.Context, id string) (claybot.Outgoing, error)
	// RetryOutgoing sends a failed message again, or a waiting one at once.
	RetryOutgoing(ctx context.Context, id string) (claybot.Outgoing, error)
	// DropOutgoing drops a message that was not sent.
	DropOutgoing(ctx context.Context, id string) (claybot.Outgoing, error)
}

// An OutgoingView is an outgoing message.
type OutgoingView struct {
	ID       string               `json:"id" doc:"May contain slashes; escape them as %2F in a path."`
	N        int64                `json:"n" doc:"Position in the outbox."`
	State    claybot.SendState    `json:"state"`
	Kind     claybot.OutgoingKind `json:"kind"`
	Run      claybot.RunID        `json:"runId,omitempty"`
	Agent    claybot.AgentID      `json:"agentId,omitempty"`
	Message  claybot.MessageID    `json:"messageId,omitempty" doc:"The message it replies to."`
	Route    claybot.Route        `json:"route"`
	Text     string               `json:"text" doc:"Markdown."`
	File     *FileView            `json:"file,omitempty" doc:"A file, sent with the text as its caption; download it from /agents/{agent}/files/{file}."`
	Part     int                  `json:"part" doc:"Which part of a long text that spans several messages; counts from 1."`
	Parts    int                  `json:"parts"`
	Attempts int                  `json:"attempts"`
	Resent   bool                 `json:"resent,omitempty" doc:"Sent again with a mark, because it is unknown whether the first attempt arrived."`
	At       claybot.Time         `json:"at"`
	Tried    claybot.Time         `json:"tried,omitempty" doc:"When the last attempt started."`
	Due      claybot.Time         `json:"due,omitempty" doc:"Earliest time of the next attempt."`
	Receipt  string               `json:"receipt,omitempty" doc:"The platform's id of the sent message."`
	Cause    string               `json:"cause,omitempty" doc:"Why the last attempt failed."`
}

// An OutgoingList is one page of the outbox.
type OutgoingList struct {
	Outgoing []OutgoingView `json:"outgoing"`
	Next     string         `json:"next,omitempty" doc:"Pass it as before to get the next page."`
}
