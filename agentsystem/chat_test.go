package agentsystem_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// A chat is a platform: what people see, and what it does to senders. It
// outlives the processes that are connected to it.
type chat struct {
	mu       sync.Mutex
	posts    []*post
	sends    []sending
	verdicts []verdict // of the next sends, in order; none left: all is well
	judge    func(o claybot.Outgoing) verdict
	find     func(o claybot.Outgoing) error // what a look-up meets
	lookups  []time.Time
	typed    []time.Time // when a typing sign came
	accepted []claybot.AgentMessage
	events   []claybot.Event
}

// A post is a message that people see.
type post struct {
	id, text string
	out      claybot.Outgoing // that made it
	at       time.Time
	edits    int
	gone     bool
}

// A sending is one call of Send.
type sending struct {
	at  time.Time
	out claybot.Outgoing
}

// A verdict is what happens to a send. A lost one is seen by people although
// the sender gets an error. A late one returns only that long after people see its message.
type verdict struct {
	err  error
	lost bool
	late time.Duration
}

var (
	errNet  = errors.New("no route to host")
	failing = verdict{err: errNet}
	cut     = verdict{err: &connectors.AmbiguousError{Err: errNet}}
	lost    = verdict{err: &connectors.AmbiguousError{Err: errNet}, lost: true}
)

func slow(d time.Duration, all bool) verdict {
	return verdict{err: &connectors.RetryError{After: d, All: all, Err: errors.New("429")}}
}

func refused(dead bool) verdict {
	return verdict{err: &connectors.PermanentError{DeadRoute: dead, Err: errors.New("403")}}
}

func (c *chat) send(o claybot.Outgoing) (string, error) {
	receipt, late, err := c.decide(o)
	time.Sleep(late)
	return receipt, err
}

func (c *chat) decide(o claybot.Outgoing) (receipt string, late time.Duration, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sends = append(c.sends, sending{time.Now(), o})
	var v verdict
	switch {
	case c.judge != nil:
		v = c.judge(o)
	case len(c.verdicts) > 0:
		v, c.verdicts = c.verdicts[0], c.verdicts[1:]
	}
	if v.err != nil && !v.lost {
		return "", 0, v.err
	}
	receipt, err = c.show(o)
	return receipt, v.late, errors.Join(v.err, err)
}

// show makes or edits a post.
func (c *chat) show(o claybot.Outgoing) (string, error) {
	if o.Edit == "" {
		p := &post{id: fmt.Sprint("p", len(c.posts)+1), text: o.Text, out: o, at: time.Now()}
		c.posts = append(c.posts, p)
		return p.id, nil
	}
	for _, p := range c.posts {
		if p.id == o.Edit && !p.gone {
			p.text, p.edits = o.Text, p.edits+1
			return p.id, nil
		}
	}
	return "", connectors.ErrEditGone
}

// seen are the texts that people see, in order; with a channel, in it only.
func (c *chat) seen(channel ...string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	texts := []string{}
	for _, p := range c.posts {
		if !p.gone && (len(channel) == 0 || p.out.Route.ChannelID == channel[0]) {
			texts = append(texts, p.text)
		}
	}
	return texts
}

func (c *chat) sent() []sending {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]sending(nil), c.sends...)
}

func (c *chat) will(v ...verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.verdicts = append(c.verdicts, v...)
}

func (c *chat) deletePost(i int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.posts[i].gone = true
}

// A line is the connector of one process to a chat. It cannot look anything up
// and does not stream; the types below add to it.
type line struct {
	name string
	chat *chat
	fuse *fuse
	connectors.Pulse
	run func(ctx context.Context, h connectors.Handler) error
}

var (
	_ connectors.Connector = (*line)(nil)
	_ connectors.Sender    = (*line)(nil)
	_ connectors.Accepter  = (*line)(nil)
	_ connectors.Observer  = (*line)(nil)
)

func (l *line) Name() string { return l.name }

func (l *line) Run(ctx context.Context, h connectors.Handler) error {
	if l.run != nil {
		return l.run(ctx, h)
	}
	l.OK()
	<-ctx.Done()
	return context.Cause(ctx)
}

func (l *line) Send(ctx context.Context, o claybot.Outgoing) (receipt string, err error) {
	err = l.fuse.step("send", func() error { receipt, err = l.chat.send(o); return err })
	if errors.Is(err, errDead) {
		<-ctx.Done() // the answer is lost
		return "", ctx.Err()
	}
	return receipt, err
}

// partLimit is how long a post may be.
const partLimit = 600

// Split cuts at the limit; the long texts of these tests are ASCII.
func (*line) Split(text string) (parts []string) {
	for len(text) > partLimit {
		parts, text = append(parts, text[:partLimit]), text[partLimit:]
	}
	return append(parts, text)
}

func (l *line) Accepted(_ claybot.Descriptor, m claybot.AgentMessage) {
	l.chat.mu.Lock()
	defer l.chat.mu.Unlock()
	l.chat.accepted = append(l.chat.accepted, m)
}

func (l *line) Observe(_ claybot.Route, e claybot.Event) {
	l.chat.mu.Lock()
	defer l.chat.mu.Unlock()
	l.chat.events = append(l.chat.events, e)
}

// A finding line can look up what became of a send.
type findingLine struct{ *line }

func (l findingLine) Find(_ context.Context, o claybot.Outgoing) (string, bool, error) {
	l.chat.mu.Lock()
	defer l.chat.mu.Unlock()
	l.chat.lookups = append(l.chat.lookups, time.Now())
	if l.chat.find != nil {
		if err := l.chat.find(o); err != nil {
			return "", false, err
		}
	}
	for _, p := range l.chat.posts {
		if p.out.ID == o.ID && !p.gone {
			return p.id, true, nil
		}
	}
	return "", false, nil
}

// A resending line has a policy for sends of unknown fate.
type resendingLine struct {
	*line
	again bool
}

func (l resendingLine) Resend(o claybot.Outgoing) bool { return l.again && !o.Once }

// A repeating line sends everything of unknown fate again.
type repeatingLine struct{ *line }

func (repeatingLine) Resend(claybot.Outgoing) bool { return true }

// A streaming line shows answers while they grow.
type streamingLine struct{ *line }

var streaming = connectors.Streaming{First: 20, Wait: time.Second, Every: time.Second, Limit: 150}

func (streamingLine) Streaming(claybot.Route) connectors.Streaming { return streaming }

func (l streamingLine) Typing(context.Context, claybot.Route) error {
	l.chat.mu.Lock()
	defer l.chat.mu.Unlock()
	l.chat.typed = append(l.chat.typed, time.Now())
	return nil
}

// A line that streams and finds.
type streamingFindingLine struct{ streamingLine }

func (l streamingFindingLine) Find(ctx context.Context, o claybot.Outgoing) (string, bool, error) {
	return findingLine{l.line}.Find(ctx, o)
}
