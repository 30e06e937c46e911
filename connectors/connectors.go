// Package connectors is the seam to the places messages come from and replies
// go to. A connector brings messages in and confirms each to its source only
// after the Handler has made it durable; it sends what the outbox gives it and
// says how each attempt ended.
//
// Commands, splitting and Markdown, which all chat platforms share, live here
// as well. The package knows no platform and no store.
package connectors

import (
	"context"
	"io"
	"time"

	"github.com/claybot/claybot"
)

// A Connector brings messages in until ctx is done.
type Connector interface {
	// Name is the configured name, part of every descriptor it makes.
	Name() string
	// Run works until ctx is done and returns context.Cause(ctx), or returns
	// earlier with the error that stopped it. A PermanentError says that
	// trying again is useless until the configuration changes. The supervisor
	// calls Run again after other errors.
	Run(ctx context.Context, h Handler) error
	// Health tells how it is doing, from completed work only.
	Health() Health
}

// A Handler takes in what a connector received. Its methods may be called
// concurrently; messages of one descriptor must be posted one after another.
type Handler interface {
	// Post returns nil once m is durable, or was refused for good (a stranger,
	// a repeat): either way the source may be told so. On an error nothing was
	// stored. One of storage.ClassMessage is for good: nothing can be done with the
	// message, and the source may let go of it. After any other error the source must
	// keep the message: the store refuses as a whole. A fault of one agent is none.
	Post(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) error
	// Answer takes the answer that somebody gave to a question by a button or a
	// form. It returns once that is durable or refused for good; on an error
	// nothing was stored and the tap may be repeated.
	Answer(ctx context.Context, t Tap) (Tapped, error)
	// Moved says that the platform gave a channel a new id.
	Moved(ctx context.Context, connector, from, to string) error
}

// A Tap is an answer given by a button or a form.
type Tap struct {
	Connector string
	UserID    string // who tapped
	ChannelID string // where, for the log
	Question  string // its id
	Value     string // as Question.Check reads it
	Reason    string // of a denial
	Scope     claybot.ApprovalScope
	Args      string // of an approval, a JSON object, where they were edited
}

// A Tapped is what became of a Tap. A stranger's tap, and one at a question
// that is not his, are refused in words that tell nothing.
type Tapped struct {
	// OK: it is the answer that counts.
	OK bool
	// Text is one short sentence for who tapped, and nobody else.
	Text string
	// Again: the value does not fit, and the question stays open.
	Again bool
}

// A Sender sends outgoing messages of the routes that name it. Send returns
// the platform's id of the message. Its error is one of
//
//	*RetryError      not sent; the platform asks to wait
//	*PermanentError  not sent; trying again is useless
//	*AmbiguousError  bytes left, no answer came
//	ErrEditGone      the message to edit does not exist any more; not sent
//
// and any other error means: not sent, try again later. The same Outgoing may
// come twice.
type Sender interface {
	Send(ctx context.Context, o claybot.Outgoing) (receipt string, err error)
	// Split cuts a text into parts that fit one platform message each. It is
	// a pure function.
	Split(text string) []string
}

// A FileSender sends messages that have a File. Optional; without it they fail.
// open gives the bytes, from their beginning each time; its errors are returned
// as they are. The rest is as with Send.
type FileSender interface {
	SendFile(ctx context.Context, o claybot.Outgoing, open func() (io.ReadCloser, error)) (receipt string, err error)
}

// A Fetcher gets the bytes of files that came with messages, by their Source.
// Optional. An error is a *RefusedError when they are not to be had; after any
// other it may be tried again. ctx lives until the bytes are read.
type Fetcher interface {
	Fetch(ctx context.Context, f claybot.FileReference) (io.ReadCloser, error)
}

// A Reactor puts an emoji on a message, as the platform calls it, of a route.
// Optional. That it is there already is success. An error is a *RefusedError
// when the platform will not do it, and a *RetryError when it asks to wait.
type Reactor interface {
	React(ctx context.Context, r claybot.Route, message, emoji string) error
}

// A Typer shows that an answer is being made. Optional.
type Typer interface {
	Typing(ctx context.Context, r claybot.Route) error
}

// A Finder looks up whether an ambiguous send arrived. Optional; a Resender
// decides where there is none. An error means: not known, ask again. What it does
// not find is sent once more, and after that no more, found or not.
type Finder interface {
	Find(ctx context.Context, o claybot.Outgoing) (receipt string, found bool, err error)
}

// A Resender says what to do about an ambiguous send that cannot be looked up:
// true sends it once more, after a pause and with a mark; false gives up and tells
// the reader that a message may be missing, as does a second ambiguous send.
// Optional; without it nothing is sent again.
type Resender interface {
	Resend(o claybot.Outgoing) bool
}

// A Streamer can show an answer while it grows. Optional.
type Streamer interface {
	Streaming(r claybot.Route) Streaming
}

// Streaming is how answers grow on a route.
type Streaming struct {
	// Off: answers are sent when they are complete.
	Off bool
	// First is how many characters make the first visible text, and Wait how
	// long after the model's first text it is shown at the latest.
	First int
	Wait  time.Duration
	// Every is the shortest time between two edits.
	Every time.Duration
	// Limit is the most characters a draft may have; the rest waits for the
	// final text.
	Limit int
}

// A Previewer shows a growing answer without creating a message, so that
// nothing needs to be recorded or repaired. Optional; it wins over Streamer.
// Preview must not block.
type Previewer interface {
	Preview(r claybot.Route, run claybot.RunID, step int, text string)
}

// An Observer is told what runs do on its routes. Optional. Observe must not
// block.
type Observer interface {
	Observe(r claybot.Route, e claybot.Event)
}

// An Accepter is told which messages of people were accepted on its routes,
// commands included, so that other windows of the same chat can show them. Optional. Must not block.
type Accepter interface {
	Accepted(d claybot.Descriptor, m claybot.AgentMessage)
}

// An Exclusive connector is run by one node at a time, where several share a
// store: the platform allows one reader. Optional. It sends on all nodes,
// whether Run works there or not.
type Exclusive interface {
	// Exclusive names what only one node may use. The name is made of the identity
	// that the platform knows, and of no secret.
	Exclusive() string
	// Standby tells that another node has it now, by its name, which may be empty.
	// Until that changes Run is not called.
	Standby(holder string)
}

// A Looker shows what is in the outbox of its channels, whichever node has sent
// it. Optional.
type Looker interface {
	// Look tells that the outbox may have something new for a channel. It must not
	// block.
	Look(channel string)
}

// A Linker knows the links that its platform gives to messages. Optional.
type Linker interface {
	// Refs are the names under which the store may know the message that a link
	// leads to: the id or a key of one that came in, or the receipt of one that
	// went out. None for a link of somewhere else. It is a pure function.
	Refs(link string) []string
}
