// Package connectors defines the interfaces between claybot and chat platforms.
// A connector receives messages and acknowledges each one to its source only
// after the Handler has made it durable. It sends messages of the outbox and
// reports the outcome of each attempt.
//
// It also has what all chat platforms share: commands, splitting and Markdown.
// The package depends on no platform and no store.
package connectors

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/claybot/claybot"
)

// A Connector receives messages from one source.
type Connector interface {
	// Name is the configured name, part of every descriptor it creates.
	Name() string
	// Run receives until ctx is done and returns context.Cause(ctx), or returns
	// earlier with the error that stopped it. After a PermanentError, a retry
	// is useless until the configuration changes. After other errors the
	// supervisor calls Run again.
	Run(ctx context.Context, h Handler) error
	// Health reports the state, derived from completed work only.
	Health() Health
}

// ErrNotRunning is of calls to a connector that work only while it runs.
var ErrNotRunning = errors.New("does not run: it starts or ends, or an operator has stopped it")

// A StandIn takes the place of a connector that does not run for now, because an operator stopped
// it. What the connector can do without Run, such as fetching files, is asked of Behind. Nothing is
// sent or shown while it stands in.
type StandIn interface {
	Connector
	Behind() Connector
}

// A Pooled connector keeps connections to its platform for later calls. Optional.
type Pooled interface {
	Connector
	// Wake lets it keep connections. It is called before Run, also on a member that stands by: that one
	// sends as well.
	Wake()
	// CloseIdleConnections closes those that no call uses; until the next Wake, those of other calls close
	// after them. It is called when Run has ended for good.
	CloseIdleConnections()
}

// An Idler has something that its users can list and change while it is stopped, such as tasks.
// Optional.
type Idler interface {
	Connector
	// Idle makes that possible until ctx is done, and returns its cause. It receives and starts
	// nothing. It never works at the same time as Run.
	Idle(ctx context.Context) error
}

// A Verifier asks its platform whether its credentials are good, before it takes the place of
// a connector that works. Optional.
type Verifier interface {
	// Verify returns a *PermanentError if they are refused or cannot be right. After any other
	// error it is unknown. It works without Run, and changes nothing at the platform.
	Verify(ctx context.Context) error
}

// A Handler accepts what a connector received. Its methods may be called
// concurrently; messages of one descriptor must be posted one after another.
type Handler interface {
	// Post returns nil once m is durable or refused for good (an unknown user, a
	// duplicate). Either way the connector may acknowledge it to the source. On an
	// error nothing was stored. An error of storage.ClassMessage is permanent: the
	// message cannot be stored, and the source may drop it. After any other error the
	// source must keep the message: the whole store is unavailable. A fault of a
	// single agent is not an error.
	Post(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) error
	// Hears reports whether a message of a group is for an agent, as Post decides it too: a
	// connector may ask before it spends anything on a message that is Unaddressed. After an
	// error, ask again.
	Hears(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) (bool, error)
	// Answer accepts an answer given by a button or a form. It returns once the
	// answer is durable or refused for good. On an error nothing was stored,
	// and the user may press the button again.
	Answer(ctx context.Context, p Press) (PressResult, error)
	// Moved reports that the platform gave a channel a new id. It returns nil once that is
	// durable: from then on messages, tasks and settings that name the old id mean the new one.
	// It may be reported again. at is when that happened by the platform: of two reports about
	// one id, the later one holds, in whatever order they come.
	Moved(ctx context.Context, connector, from, to string, at claybot.Time) error
}

// A Press is a button press: an answer given by a button or a form.
type Press struct {
	Connector string
	UserID    string // the user who pressed the button
	ChannelID string
	Outsider  bool // as in claybot.Sender
	// Answer has the question, the text and what goes with an approval or a denial. By
	// and Via are not set.
	Answer claybot.Answer
}

// A PressResult is the outcome of a Press. A Press by an unknown user, or on another
// user's question, is refused with a text that discloses nothing.
type PressResult struct {
	// OK reports whether this answer was accepted as the answer.
	OK bool
	// Text is one short sentence, shown only to the user who pressed the
	// button.
	Text string
	// Again reports that the value is invalid and the question stays open.
	Again bool
}

// A Sender sends outgoing messages of the routes that name it. Send returns the
// platform's id of the message. Its errors are
//
//	*RetryError      not sent; the platform asks to wait
//	*PermanentError  not sent; a retry is useless
//	*AmbiguousError  sent, but without a response
//	ErrEditGone      not sent; the message to edit no longer exists
//
// Any other error means that the message was not sent and can be retried. Send
// may be called twice with the same Outgoing.
//
// A Progress text may be refused with a RetryError although the platform would take it, so
// that others have its call; then only further Progress texts of that message wait.
type Sender interface {
	Send(ctx context.Context, o claybot.Outgoing) (receipt string, err error)
	// Split cuts a text into parts that fit one platform message each. It is
	// a pure function.
	Split(text string) []string
}

// A Whisperer shows some messages to their reader alone, also where the channel of their route refuses
// all messages. Optional.
type Whisperer interface {
	// Whispers reports whether o is such a message. It must not block.
	Whispers(o claybot.Outgoing) bool
}

// A FileSender sends messages that have a File. Optional; without it they fail.
// Each call of open reads the file from its beginning; its errors are returned
// unchanged. Otherwise SendFile is like Send.
type FileSender interface {
	SendFile(ctx context.Context, o claybot.Outgoing, open func() (io.ReadCloser, error)) (receipt string, err error)
}

// A Fetcher downloads files that came with messages, by their Source. Optional.
// A *RefusedError is permanent; other errors can be retried. ctx must live
// until the file is read.
type Fetcher interface {
	Fetch(ctx context.Context, f claybot.FileReference) (io.ReadCloser, error)
}

// A Reactor adds an emoji reaction to a message, which is named by its platform
// id. Optional. A reaction that exists already is a success. The error is a
// *RefusedError if the platform refuses, and a *RetryError if it asks to wait.
type Reactor interface {
	React(ctx context.Context, r claybot.Route, message, emoji string) error
}

// A Historian reads what was said in a chat from its platform. Optional. It waits for
// nothing: a *RetryError means that the platform asks for a pause, a *RefusedError that it
// refuses, or that the span is invalid. An error has no part of the messages.
type Historian interface {
	// Said returns the newest messages in a span, the oldest first. more says that the span
	// has older ones.
	Said(ctx context.Context, s Span) (said []claybot.Said, more bool, err error)
}

// A Span is a part of a chat.
type Span struct {
	// Channel and Thread are those of a Route; without a thread it is the channel itself.
	Channel, Thread string
	// After and Before are ids of messages that are not part of the span; empty: no bound.
	After, Before string
	Limit         int // at most so many messages
}

// A Marker keeps one emoji of the bot on a message, which is named by its platform id.
// Optional. Mark puts it there in place of those in m.Was, and may be repeated. Its errors
// are those of Reactor.
type Marker interface {
	Mark(ctx context.Context, r claybot.Route, m claybot.Mark) error
}

// A Typer shows a typing indicator. Optional.
type Typer interface {
	Typing(ctx context.Context, r claybot.Route) error
}

// A Statuser shows in words what a run does, in a place beside messages. Optional; the
// connector is no Typer then.
type Statuser interface {
	// Status shows a text where the answer to message goes, the platform id of a message, which
	// may be empty. It replaces the previous text; an empty text clears it. It returns how long
	// the platform shows the text unless it is shown again, and 0 if it shows none there. The
	// error is a *RetryError if the platform asks to wait.
	Status(ctx context.Context, r claybot.Route, message, text string) (lasts time.Duration, err error)
}

// A Finder looks up whether an ambiguous send arrived. Optional; without it a
// Resender decides. An error means that the outcome is still unknown; call Find
// again. A message that is not found is resent at most once.
type Finder interface {
	Find(ctx context.Context, o claybot.Outgoing) (receipt string, found bool, err error)
}

// A Resender decides about an ambiguous send that cannot be looked up. True
// resends it once, after a pause and with a mark. False gives up and notifies the
// chat that a message may be missing, as does a second ambiguous send. Optional;
// without it nothing is resent. By default, a Resender does not resend what is
// Outgoing.Once.
type Resender interface {
	Resend(o claybot.Outgoing) bool
}

// A Streamer shows an answer while it is generated. Optional.
type Streamer interface {
	Streaming(r claybot.Route) Streaming
}

// A Drafter shows an unfinished text in a place of its own that is no message, in some chats.
// Optional. The platform removes it when the next message comes, or soon by itself.
type Drafter interface {
	// Draft shows o, in place of the draft that the same run showed before. It reports false
	// if the platform shows no drafts there. The error is a *RetryError if it asks to wait.
	Draft(ctx context.Context, o claybot.Outgoing) (shown bool, err error)
}

// Streaming defines how answers are streamed on a route.
type Streaming struct {
	// Off sends only complete answers.
	Off bool
	// First is the number of characters at which the first text is shown. Wait
	// is the maximum delay of that text after the first output of the model.
	First int
	Wait  time.Duration
	// Every is the minimum time between two edits.
	Every time.Duration
	// Limit is the maximum length of a draft in characters; the rest is shown
	// with the final text.
	Limit int
	// Drafts shows unfinished text by a Drafter, where that works.
	Drafts bool
	// Placeholder sends a short message as soon as a run begins for which a person waits. The answer
	// is an edit of it, which can be repeated, so no answer ever appears twice.
	Placeholder bool
}

// A Previewer shows an unfinished answer without creating a message, so nothing
// needs to be recorded or repaired. Optional; it takes precedence over
// Streamer. Preview must not block.
type Previewer interface {
	Preview(r claybot.Route, run claybot.RunID, step int, text string)
}

// An Observer receives the events of runs on its routes. Optional. Observe must
// not block.
type Observer interface {
	Observe(r claybot.Route, e claybot.Event)
}

// An Accepter receives the accepted user messages of its routes, commands included, so that other
// windows of the same chat can show them. Optional. Must not block.
type Accepter interface {
	Accepted(d claybot.Descriptor, m claybot.AgentMessage)
}

// An Exclusive connector runs on one cluster member at a time, because the
// platform allows only one reader. Optional. All members can send, whether or
// not they execute Run.
type Exclusive interface {
	// Exclusive names the resource that only one member may use; empty if all may run at once. The
	// name is derived from the identity on the platform and contains no secret.
	Exclusive() string
	// Standby reports that another member, holder, has the resource; the name may
	// be empty. Run is not called until that changes.
	Standby(holder string)
}

// A Looker shows the outbox of its channels, whichever cluster member wrote to
// it. Optional.
type Looker interface {
	// Look reports that the outbox may have new messages for a channel. It must
	// not block.
	Look(channel string)
}

// An Addressed connector takes requests at an address, which it names. Optional.
type Addressed interface {
	// Address is the whole address, without secrets; empty while nothing can arrive.
	Address() string
}

// An Inviter makes links that open a direct chat in which a person sends a code by one press.
// Optional.
type Inviter interface {
	Connector
	// Invitation returns the link for a code; empty while the bot's name is unknown. It must
	// not block.
	Invitation(code string) string
}

// A Commander says how people write a chat command on a route, such as /stop@mybot. Optional; without
// it that is /stop.
type Commander interface {
	// Command returns how the command of a name is written. It must not block.
	Command(r claybot.Route, name string) string
}

// A Linker resolves the platform's links to messages. Optional.
type Linker interface {
	// Refs returns the names under which the store may know the linked message:
	// the id or a key of a received message, or the receipt of a sent one. It
	// returns none for links to other places. It is a pure function.
	Refs(link string) []string
}
