// Package webchat is the chat that claybot serves itself: the page in a browser
// and the terminal command are two connectors of this one type. Messages come
// in over HTTP and go out over Server-Sent Events.
//
// It guarantees: a message is confirmed (202) only after the Handler made it
// durable, and repeating it under the same id is harmless. What claybot says is
// read from the outbox by position, so a stream that breaks and resumes misses
// nothing and shows nothing twice; there is no second mailbox. What is not
// durable (typing, tool lines, text that still grows) is sent to whoever looks,
// never blocks the sender, and is bounded for each reader.
//
// The package does not know who may log in: the caller of Handler tells it who
// asks. Only cmd imports it.
package webchat

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// Transcripts is what the chat reads: the durable side of a conversation.
type Transcripts interface {
	// Opened is called before somebody begins to look at d's conversation here: what
	// its runs do from now on is shown, on whatever node they work.
	Opened(ctx context.Context, d claybot.Descriptor) error
	// Transcript returns the newest limit entries of d's conversation, oldest
	// first.
	Transcript(ctx context.Context, d claybot.Descriptor, limit int) ([]storage.Entry, error)
	// SentAfter returns what was put into the outbox for d's channel after
	// position n, oldest first.
	SentAfter(ctx context.Context, d claybot.Descriptor, n int64, limit int) ([]claybot.Outgoing, error)
	// LastN is the position of the newest message for d's channel, 0 for none.
	LastN(ctx context.Context, d claybot.Descriptor) (int64, error)
	// Attach keeps a file that somebody sends to d's agent. storage.ErrTooMany
	// when it is too large.
	Attach(ctx context.Context, d claybot.Descriptor, f claybot.FileReference, content io.Reader) (claybot.FileReference, error)
	// Attached opens one; storage.ErrNotFound.
	Attached(ctx context.Context, d claybot.Descriptor, file string) (claybot.FileReference, io.ReadCloser, error)
}

// A ToolLog is a Transcripts that knows what tools a run used, so that a page shows
// them after a reload as well.
type ToolLog interface {
	// ToolsOf lists the calls of tools that a run has made, in order; none where
	// nothing is known of the run any more.
	ToolsOf(ctx context.Context, run claybot.RunID) ([]connectors.ToolUse, error)
}

// A Config names a chat.
type Config struct {
	// Name is the connector's name: "web" by default.
	Name string
	// HTML adds the text as safe HTML to everything that carries Markdown.
	HTML bool
	// Door tells how the place is doing where Handler is served, if that can
	// fail by itself. While it is not live, the chat is not either. Optional.
	Door func() connectors.Health
	// Poll is how often an open stream looks into the outbox without being told:
	// where other nodes send, too, and hints of theirs may be lost. 0: never.
	Poll time.Duration
	Log  *slog.Logger
}

// A Chat is one connector. Its methods are safe for concurrent use.
type Chat struct {
	name  string
	html  bool
	door  func() connectors.Health
	poll  time.Duration
	log   *slog.Logger
	pulse connectors.Pulse
	gate  gate
	lanes lanes
	hub   hub
}

var (
	_ connectors.Connector = (*Chat)(nil)
	_ connectors.Sender    = (*Chat)(nil)
	_ connectors.Typer     = (*Chat)(nil)
	_ connectors.Previewer = (*Chat)(nil)
	_ connectors.Observer  = (*Chat)(nil)
	_ connectors.Accepter  = (*Chat)(nil)

	_ connectors.FileSender = (*Chat)(nil)
	_ connectors.Looker     = (*Chat)(nil)
)

// New makes a chat. It takes messages while Run works and answers 503 before.
func New(cfg Config) *Chat {
	if cfg.Name == "" {
		cfg.Name = "web"
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Chat{name: cfg.Name, html: cfg.HTML, door: cfg.Door, poll: cfg.Poll, log: cfg.Log.With("connector", cfg.Name)}
}

// Name is the configured name.
func (c *Chat) Name() string { return c.name }

// Health is live while Run works and people can reach the chat: there is no one
// else to lose contact with.
func (c *Chat) Health() connectors.Health {
	h := c.pulse.Health()
	if c.door == nil || h.State != connectors.StateLive {
		return h
	}
	if door := c.door(); door.State != connectors.StateLive {
		return door
	}
	return h
}

// Run gives what is posted over HTTP to h until ctx is done. Then it lets posts
// under way end and returns the cause. Who reads can go on: the answers of the
// last runs are still to come, and streams end with their requests.
func (c *Chat) Run(ctx context.Context, h connectors.Handler) error {
	c.gate.open(h)
	c.pulse.OK()
	<-ctx.Done()
	c.gate.close()
	return context.Cause(ctx)
}

// Send tells open streams to look into the outbox. It never fails: the row in
// the outbox is itself the mailbox that a page reads, now or later.
func (c *Chat) Send(_ context.Context, o claybot.Outgoing) (string, error) {
	c.hub.sent(topicOf(o.Route), o)
	return c.name + "/" + o.ID, nil
}

// Look makes the open streams of a conversation look into the outbox: another
// node has put something there.
func (c *Chat) Look(channel string) { c.hub.look(channel) }

// SendFile is Send: readers get the reference of the file with the message, and
// its bytes from the store.
func (c *Chat) SendFile(ctx context.Context, o claybot.Outgoing, _ func() (io.ReadCloser, error)) (string, error) {
	return c.Send(ctx, o)
}

// Split returns the whole text: a page has no largest message.
func (c *Chat) Split(text string) []string { return []string{text} }

// Typing shows that an answer is being made.
func (c *Chat) Typing(_ context.Context, r claybot.Route) error {
	c.hub.typing(topicOf(r))
	return nil
}

// Preview shows the growing text of a step; it never blocks. Who opens a
// stream later gets the newest one at once.
func (c *Chat) Preview(r claybot.Route, run claybot.RunID, step int, text string) {
	c.hub.grow(topicOf(r), preview{Run: run, Step: step, Text: text})
}

// Observe shows what a run does; it never blocks. Who opens a stream later
// gets the newest events of a run that still works.
func (c *Chat) Observe(r claybot.Route, e claybot.Event) {
	v, step := c.eventView(e)
	c.hub.observe(topicOf(r), e, step, frame("event", "", v))
}

// Accepted shows a message in the other windows of its conversation.
func (c *Chat) Accepted(d claybot.Descriptor, m claybot.AgentMessage) {
	c.hub.publish(topic{d.ChannelID, d.UserID}, frame("user", "", userView(m)))
}
