package connectorstest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// A world is one check: a platform, a connector and what it posts to.
type world struct {
	*testing.T
	h     Harness
	p     *Platform
	conn  connectors.Connector
	inbox *inbox
	stop  context.CancelFunc
	ended chan error
	outs  int
}

// errStop is the cause of a shutdown.
var errStop = errors.New("the daemon ends")

// start runs the connector.
func (w *world) start() {
	ctx, stop := context.WithCancelCause(w.Context())
	ended, conn := make(chan error, 1), w.conn
	w.stop, w.ended = func() { stop(errStop) }, ended
	go func() { ended <- conn.Run(ctx, w.inbox) }()
	synctest.Wait()
}

// end stops the connector and returns what Run returned.
func (w *world) end() error {
	w.stop()
	w.stop = nil
	return <-w.ended
}

// restart runs another connector in place of the present one, which was stopped.
func (w *world) restart() {
	w.conn = w.p.Connector()
	w.start()
}

// close ends the check and looks for secrets in the log.
func (w *world) close() {
	w.inbox.release()
	if w.stop != nil {
		_ = w.end() // a check that cares has done it
	}
	w.p.Close()
	if w.p.Logs != nil {
		w.noSecret("the log", w.p.Logs())
	}
}

func (w *world) noSecret(where, text string) {
	w.Helper()
	for _, secret := range w.p.Secrets {
		if strings.Contains(text, secret) {
			w.Errorf("%s shows a secret: %s", where, text)
		}
	}
}

// write lets user 1 of a chat, or the chat's own user, write.
func (w *world) write(c Chat, text string) {
	user := c.N
	if c.Group {
		user = 1
	}
	w.p.Write(Written{Chat: c, User: user, Text: text, Mention: c.Group})
}

// redelivered waits until the platform has delivered everything again.
func (w *world) redelivered() {
	time.Sleep(w.p.Redeliver + time.Second)
	synctest.Wait()
}

// wantTexts checks what was stored, in any order of the chats.
func (w *world) wantTexts(want ...string) {
	w.Helper()
	if got := w.inbox.texts(); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		w.Errorf("stored %q, want %q", got, want)
	}
}

// wantAmended checks that a change of the first message was stored as one, once.
func (w *world) wantAmended(as claybot.MessageType, text string) {
	w.Helper()
	all := w.inbox.all()
	if len(all) != 2 {
		w.Fatalf("stored %+v, want a message and its change", all)
	}
	was, change := all[0], all[1]
	if change.Type != as || change.Text != text || change.to != was.to || change.ID == was.ID {
		w.Errorf("the change is %+v for %+v, of %+v", change.AgentMessage, change.to, was.to)
	}
	if change.Amends != was.ID && !slices.Contains(was.Keys, string(change.Amends)) {
		w.Errorf("it changes %q, want %q or one of %q", change.Amends, was.ID, was.Keys)
	}
	w.wantUnacked(0)
}

func (w *world) wantUnacked(want int) {
	w.Helper()
	synctest.Wait()
	if got := w.p.Unacked(); got != want {
		w.Errorf("%d unacknowledged, want %d", got, want)
	}
}

// greeted runs the connector and lets the user of each chat write, so that the platform
// knows the chats.
func (w *world) greeted(chats ...Chat) connectors.Sender {
	w.Helper()
	s, ok := w.conn.(connectors.Sender)
	w.need(ok)
	w.start()
	for _, c := range chats {
		w.write(c, "hello")
	}
	w.redelivered()
	return s
}

// out is a message to the user of a chat.
func (w *world) out(c Chat, text string) claybot.Outgoing {
	w.outs++
	user := c.N
	if c.Group {
		user = 1
	}
	now := claybot.Now()
	return claybot.Outgoing{
		ID: fmt.Sprintf("out-%d", w.outs), Kind: claybot.OutgoingAnswer, Route: w.p.Route(c, user), Text: text, Part: 1, Parts: 1, At: now, Tried: now,
	}
}

// send sends o, which must work.
func (w *world) send(o claybot.Outgoing) string {
	w.Helper()
	s, ok := w.conn.(connectors.Sender)
	w.need(ok)
	receipt, err := s.Send(w.Context(), o)
	if err != nil || receipt == "" {
		w.Fatalf("send %q: receipt %q, %v", o.Text, receipt, err)
	}
	return receipt
}

// sender is the present connector.
func (w *world) sender() connectors.Sender {
	w.Helper()
	s, ok := w.conn.(connectors.Sender)
	w.need(ok)
	return s
}

func (w *world) wantShown(c Chat, want ...string) {
	w.Helper()
	if got := w.p.Shown(c); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		w.Errorf("the chat shows %q, want %q", got, want)
	}
}

// An inbox is a store that keeps each id once.
type inbox struct {
	mu    sync.Mutex
	known map[claybot.MessageID]bool
	got   []received
	posts int            // that reached the store
	busy  map[string]int // posts under way, by descriptor
	most  int            // at once for one descriptor

	// after is the error of a post that stored the message.
	after error
	// before decides about a post, in place of storing it when it returns an error.
	before func(ctx context.Context, m claybot.AgentMessage) error
	hold   chan struct{} // posts of held texts wait for it

	answer  func(p connectors.Press) (connectors.PressResult, error)
	presses []connectors.Press

	reactions []connectors.Reaction
	deaf      int // that many reactions cannot be stored
}

// A received is a stored message.
type received struct {
	to claybot.Descriptor
	claybot.AgentMessage
}

func newInbox() *inbox {
	return &inbox{known: make(map[claybot.MessageID]bool), busy: make(map[string]int), hold: make(chan struct{})}
}

// release ends the wait of held posts.
func (b *inbox) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.hold:
	default:
		close(b.hold)
	}
}

// deciding replaces before.
func (b *inbox) deciding(fn func(ctx context.Context, m claybot.AgentMessage) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.before = fn
}

// held lets posts of texts that begin with prefix wait until release, or their end.
func (b *inbox) held(prefix string) {
	b.deciding(func(ctx context.Context, m claybot.AgentMessage) error {
		if !strings.HasPrefix(m.Text, prefix) {
			return nil
		}
		select {
		case <-b.hold:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}

// Post implements connectors.Handler.
func (b *inbox) Post(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) error {
	b.mu.Lock()
	b.busy[to.Key()]++
	b.most = max(b.most, b.busy[to.Key()])
	before := b.before
	b.mu.Unlock()
	var err error
	if before != nil {
		err = before(ctx, m)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy[to.Key()]--
	if err != nil {
		return err
	}
	b.posts++
	if !b.known[m.ID] {
		b.known[m.ID] = true
		b.got = append(b.got, received{to, m})
	}
	return b.after
}

// Answer implements connectors.Handler.
func (b *inbox) Answer(_ context.Context, p connectors.Press) (connectors.PressResult, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.answer != nil {
		if r, err := b.answer(p); err != nil {
			return r, err
		}
	}
	b.presses = append(b.presses, p)
	return connectors.PressResult{OK: true, Text: "Thank you."}, nil
}

// Reacted implements connectors.ReactionHandler.
func (b *inbox) Reacted(_ context.Context, r connectors.Reaction) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.deaf--; b.deaf >= 0 {
		return false, errDisk
	}
	b.reactions = append(b.reactions, r)
	return !r.Removed, nil
}

// Hears implements connectors.Handler.
func (b *inbox) Hears(_ context.Context, _ claybot.Descriptor, m claybot.AgentMessage) (bool, error) {
	return !m.Context.Unaddressed, nil
}

// Moved implements connectors.Handler.
func (b *inbox) Moved(context.Context, string, string, string, claybot.Time) error { return nil }

func (b *inbox) all() []received {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]received(nil), b.got...)
}

func (b *inbox) newest() (m received) {
	if all := b.all(); len(all) > 0 {
		m = all[len(all)-1]
	}
	return m
}

func (b *inbox) texts() []string {
	texts := []string{}
	for _, m := range b.all() {
		texts = append(texts, m.Text)
	}
	return texts
}
