// Package webchat is claybot's own chat: the web page and the terminal command
// are two connectors of this type. Messages are received over HTTP and sent
// over Server-Sent Events.
//
// It guarantees: a message is acknowledged (202) only after the Handler made it
// durable, and a retry with the same id is harmless. Outgoing messages are read
// from the outbox by position, so a stream that breaks and resumes misses and
// repeats nothing. Transient state (typing, tool lines, unfinished text) goes
// to the connected readers only, never blocks the sender, and is bounded for
// each reader.
//
// The package does not authenticate: the caller of Handler provides the user.
// Only cmd imports it.
package webchat

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// Transcripts is what the chat reads: the durable side of a conversation.
type Transcripts interface {
	// Opened is called before a reader opens d's conversation here: from then on,
	// its runs are shown, whichever member they work on.
	Opened(ctx context.Context, d claybot.Descriptor) error
	// Transcript returns the newest limit entries of d's conversation, oldest
	// first.
	Transcript(ctx context.Context, d claybot.Descriptor, limit int) ([]storage.Entry, error)
	// Receipt returns what became of a message; storage.ErrNotFound.
	Receipt(ctx context.Context, id claybot.MessageID) (storage.Receipt, error)
	// SentAfter returns the messages that were added to the outbox for d's
	// channel after position n, oldest first.
	SentAfter(ctx context.Context, d claybot.Descriptor, n int64, limit int) ([]claybot.Outgoing, error)
	// LastN returns the position of the newest message for d's channel, 0 for
	// none.
	LastN(ctx context.Context, d claybot.Descriptor) (int64, error)
}

// Files keeps the files of conversations.
type Files interface {
	// Attach stores a file for d's agent; storage.ErrTooMany if it is too
	// large.
	Attach(ctx context.Context, d claybot.Descriptor, f claybot.FileReference, content io.Reader) (claybot.FileReference, error)
	// Attached opens a stored file; storage.ErrNotFound.
	Attached(ctx context.Context, d claybot.Descriptor, file string) (claybot.FileReference, io.ReadCloser, error)
}

// A ToolLog is a Transcripts that knows the tool calls of runs, so that a page
// shows them after a reload. Optional.
type ToolLog interface {
	// ToolsOf lists the tool calls of a run in order; none if the run was
	// pruned.
	ToolsOf(ctx context.Context, run claybot.RunID) ([]connectors.ToolUse, error)
}

// Config configures a Chat.
type Config struct {
	// Name is the connector's name: "web" by default.
	Name string
	// HTML adds the text as safe HTML to everything that carries Markdown.
	HTML bool
	// Door returns the health of the server that serves Handler. While it is
	// not live, neither is the chat. Optional.
	Door func() connectors.Health
	// Approves reports whether what the caller of a request writes may answer approvals, and
	// whether also permanently. Optional: without it, everything may.
	Approves func(*http.Request) (once, always bool)
	// Poll is how often an open stream reads the outbox without a notification,
	// because other members also send and their notifications may be lost. 0:
	// never.
	Poll time.Duration
	Log  *slog.Logger
}

// A Chat is one connector. Its methods are safe for concurrent use.
type Chat struct {
	name  string
	html  bool
	door  func() connectors.Health
	may   func(*http.Request) (once, always bool)
	poll  time.Duration
	log   *slog.Logger
	pulse connectors.Pulse
	hub   hub

	intake connectors.Intake
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

// New returns a Chat. It accepts messages while Run works and returns 503
// before.
func New(cfg Config) *Chat {
	if cfg.Name == "" {
		cfg.Name = "web"
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Approves == nil {
		cfg.Approves = func(*http.Request) (once, always bool) { return true, true }
	}
	return &Chat{name: cfg.Name, html: cfg.HTML, door: cfg.Door, may: cfg.Approves, poll: cfg.Poll, log: cfg.Log.With("connector", cfg.Name)}
}

// Name is the configured name.
func (c *Chat) Name() string { return c.name }

// Health is live while Run works and users can reach the chat.
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

// Run passes messages posted over HTTP to h until ctx is done. Then it waits
// for posts in flight and returns the cause. Open streams continue, because the
// answers of the last runs are still to come; they end with their requests.
func (c *Chat) Run(ctx context.Context, h connectors.Handler) error {
	c.intake.Open(h)
	c.pulse.OK()
	<-ctx.Done()
	c.intake.Close()
	return context.Cause(ctx)
}

// Send makes open streams read the outbox. It never fails, because readers get
// the message from the outbox itself, now or later.
func (c *Chat) Send(_ context.Context, o claybot.Outgoing) (string, error) {
	c.hub.sent(topicOf(o.Route), o)
	return c.name + "/" + o.ID, nil
}

// Find implements connectors.Finder. Readers have every message from the outbox once, so one
// whose send was cut off is simply sent again.
func (c *Chat) Find(context.Context, claybot.Outgoing) (receipt string, found bool, err error) {
	return "", true, nil
}

// Look makes the open streams of a conversation read the outbox, because
// another member added a message.
func (c *Chat) Look(channel string) { c.hub.look(channel) }

// SendFile is like Send: readers get the reference of the file with the
// message, and its bytes from the store.
func (c *Chat) SendFile(ctx context.Context, o claybot.Outgoing, _ func() (io.ReadCloser, error)) (string, error) {
	return c.Send(ctx, o)
}

// Split returns the whole text, because the page has no limit.
func (c *Chat) Split(text string) []string { return []string{text} }

// Typing shows the typing indicator.
func (c *Chat) Typing(_ context.Context, r claybot.Route) error {
	c.hub.typing(topicOf(r))
	return nil
}

// Preview shows the unfinished text of a step. It never blocks. A later stream
// gets the newest one at once.
func (c *Chat) Preview(r claybot.Route, run claybot.RunID, step int, text string) {
	c.hub.grow(topicOf(r), preview{Run: run, Step: step, Text: text})
}

// Observe shows an event of a run. It never blocks. A later stream gets the
// newest events of a run in flight.
func (c *Chat) Observe(r claybot.Route, e claybot.Event) {
	v, step := c.eventView(e)
	c.hub.observe(topicOf(r), e, step, frame("event", "", v))
}

// Accepted shows a message in the other windows of its conversation. The request that
// changed a message does so itself.
func (c *Chat) Accepted(d claybot.Descriptor, m claybot.AgentMessage) {
	if m.Amends != "" {
		return
	}
	c.hub.publish(topic{d.ChannelID, d.UserID}, frame("user", "", userView(m)))
}
