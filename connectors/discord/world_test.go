package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/connectorstest"
	"github.com/claybot/claybot/connectors/discord/discordtest"
)

// marks are those of a store.
type marks struct {
	mu     sync.Mutex
	all    map[string]string
	broken string // a key that cannot be read
	stuck  string // a key that is not written until it is another one
}

func (m *marks) Checkpoint(_ context.Context, key string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if key == m.broken {
		return "", errors.New("disk I/O error")
	}
	return m.all[key], nil
}

func (m *marks) SetCheckpoint(ctx context.Context, key, value string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if key == m.stuck {
		m.mu.Unlock()
		<-ctx.Done()
		m.mu.Lock()
		return context.Cause(ctx)
	}
	if m.all == nil {
		m.all = make(map[string]string)
	}
	m.all[key] = value
	return nil
}

const sessionKey = "discord/" + discordtest.Bot + "/session"

// session is the stored one.
func (m *marks) session() (s session) {
	text, _ := m.Checkpoint(context.Background(), sessionKey)
	_ = json.Unmarshal([]byte(text), &s) // or none
	return s
}

// A logbook is a log.
type logbook struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A breaker fails requests before they leave.
type breaker struct {
	http.RoundTripper
	broken atomic.Bool
}

func (b *breaker) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.Contains(r.URL.Path, "/messages") && b.broken.CompareAndSwap(true, false) {
		return nil, errors.New("no route to host")
	}
	return b.RoundTripper.RoundTrip(r)
}

const (
	guildID = "300000000000000001"
	host    = "discord.test"
)

func userID(n int) string   { return fmt.Sprintf("2000000000000000%02d", n) }
func directID(n int) string { return fmt.Sprintf("4000000000000000%02d", n) }
func groupID(n int) string  { return fmt.Sprintf("5000000000000000%02d", n) }

// A world is a platform with the network to it.
type world struct {
	*discordtest.Server
	marks *marks
	line  *breaker
	logs  *logbook
	pipe  *connectorstest.Pipe
	close func()
}

// openWorld is a platform with a channel and direct chats.
func openWorld(t *testing.T, cfg discordtest.Config) *world {
	w := &world{Server: discordtest.New(cfg), marks: &marks{}, logs: &logbook{}, pipe: connectorstest.NewPipe()}
	httpd := &http.Server{Handler: w.Server, ReadHeaderTimeout: time.Minute}
	var serving sync.WaitGroup
	serving.Go(func() { _ = httpd.Serve(w.pipe) }) // ends with the listener
	transport := &http.Transport{DialContext: w.pipe.Dial}
	w.line = &breaker{RoundTripper: transport}
	w.AddChannel(guildID, groupID(1))
	for n := range 3 {
		w.AddDirect(directID(n+1), userID(n+1))
	}
	w.close = func() {
		w.Close()
		transport.CloseIdleConnections()
		_ = httpd.Close() // only the listener's own error
		serving.Wait()
		if strange := w.Strange(); len(strange) > 0 {
			t.Errorf("calls that Discord does not document: %q", strange)
		}
	}
	return w
}

// fewPages is less than gapPages, so that tests need few messages.
const fewPages = 10

// connector is a bot of the platform.
func (w *world) connector() *Connector {
	c := New(Config{
		Token: discordtest.Token, BaseURL: "http://" + host + "/api/v10", HTTP: w.line, Dial: w.pipe.Dial, Marks: w.marks,
		Log: slog.New(slog.NewTextHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	c.pages = fewPages
	return c
}

// An inbox keeps each message once, as a store does.
type inbox struct {
	mu      sync.Mutex
	got     []claybot.AgentMessage
	to      []claybot.Descriptor
	full    bool // nothing can be stored
	presses []connectors.Press
	changes []connectors.RouteChange
	chats   []connectors.Chat
	more    int // chats that the list leaves out
	missed  []connectors.Missed
	slow    string // what this user writes takes a second to store
	shared  string // a channel whose members share one agent

	asked []claybot.Question        // that are asked together
	taken map[string]claybot.Answer // answers that count
}

// Round implements connectors.RoundHandler: the questions are those of user 1.
func (b *inbox) Round(_ context.Context, p connectors.Press) (open []claybot.Question, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.full {
		return nil, errFull
	}
	for _, q := range b.asked {
		if _, answered := b.taken[q.ID]; !answered && p.UserID == userID(1) {
			open = append(open, q)
		}
	}
	return open, nil
}

// take stores an answer to one of the questions that are asked together. The lock is held.
func (b *inbox) take(a claybot.Answer) (connectors.PressResult, error) {
	i := slices.IndexFunc(b.asked, func(q claybot.Question) bool { return q.ID == a.Question })
	if _, answered := b.taken[a.Question]; answered {
		return connectors.PressResult{Text: "Already answered."}, nil
	}
	value, err := b.asked[i].Check(a.Text, nil)
	if err != nil {
		return connectors.PressResult{Again: true, Text: err.Error()}, nil
	}
	a.Value = value
	if b.taken == nil {
		b.taken = make(map[string]claybot.Answer)
	}
	b.taken[a.Question] = a
	return connectors.PressResult{OK: true}, nil
}

var errFull = errors.New("disk full")

// Shares implements connectors.GroupHandler.
func (b *inbox) Shares(d claybot.Descriptor) bool { return d.ChannelID == b.shared }

// Post implements connectors.Handler.
func (b *inbox) Post(_ context.Context, to claybot.Descriptor, m claybot.AgentMessage) error {
	if m.From.UserID == b.slow {
		time.Sleep(time.Second)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.full {
		return errFull
	}
	if !slices.ContainsFunc(b.got, func(k claybot.AgentMessage) bool { return k.ID == m.ID }) {
		b.got, b.to = append(b.got, m), append(b.to, to)
	}
	return nil
}

// Hears implements connectors.Handler.
func (b *inbox) Hears(_ context.Context, _ claybot.Descriptor, m claybot.AgentMessage) (bool, error) {
	return !m.Context.Unaddressed, nil
}

// Answer implements connectors.Handler.
func (b *inbox) Answer(_ context.Context, p connectors.Press) (connectors.PressResult, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.full {
		return connectors.PressResult{}, errFull
	}
	b.presses = append(b.presses, p)
	if slices.ContainsFunc(b.asked, func(q claybot.Question) bool { return q.ID == p.Answer.Question }) {
		return b.take(p.Answer)
	}
	return connectors.PressResult{OK: true}, nil
}

// Moved implements connectors.Handler.
func (b *inbox) Moved(context.Context, string, string, string, claybot.Time) error { return nil }

// Recent implements connectors.GapHandler.
func (b *inbox) Recent(context.Context, string, string, time.Time) ([]connectors.Chat, int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.chats, b.more, nil
}

// Missed implements connectors.GapHandler.
func (b *inbox) Missed(_ context.Context, m connectors.Missed) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.missed = append(b.missed, m)
	return 0, nil
}

// RouteChanged implements connectors.RouteHandler.
func (b *inbox) RouteChanged(_ context.Context, c connectors.RouteChange) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changes = append(b.changes, c)
	return nil
}

// fill makes the store full, or not.
func (b *inbox) fill(full bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.full = full
}

func (b *inbox) texts() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := []string{}
	for _, m := range b.got {
		all = append(all, m.Text)
	}
	return all
}

// of returns the texts of one chat.
func (b *inbox) of(chat string) (texts []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, m := range b.got {
		if b.to[i].ChannelID == chat {
			texts = append(texts, m.Text)
		}
	}
	return texts
}

// A bot is a running connector.
type bot struct {
	*testing.T
	*world
	inbox *inbox
	conn  *Connector
	end   func() error
}

// inBubble runs a test with a platform and a store that outlive the connector.
func inBubble(t *testing.T, cfg discordtest.Config, test func(b *bot)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC))) // ids of Discord have a time
		b := &bot{T: t, world: openWorld(t, cfg), inbox: &inbox{}}
		b.inbox.chats = []connectors.Chat{{ChannelID: directID(1)}, {ChannelID: guildID + "/" + groupID(1)}}
		defer b.close()
		defer func() {
			if b.end != nil {
				_ = b.end() // a test that cares has done it
			}
		}()
		test(b)
		if log := b.logs.String(); strings.Contains(log, "FAKE-discord-token") || strings.Contains(log, "interaction-canary") {
			t.Errorf("the log shows a secret: %s", log)
		}
	})
}

// start runs a connector that knows nothing but what is stored.
func (b *bot) start() {
	b.conn = b.connector()
	b.run()
}

// run runs the connector, as it does again after a failure.
func (b *bot) run() {
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.conn.Run(ctx, b.inbox) }()
	b.end = func() error { stop(); b.end = nil; return <-ended }
	synctest.Wait()
}

// kill ends the connector without its last writes.
func (b *bot) kill() {
	kept := b.marks.clone()
	_ = b.end() // as a crash
	b.marks.set(kept)
}

func (m *marks) clone() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make(map[string]string)
	for k, v := range m.all {
		all[k] = v
	}
	return all
}

// breakKey makes a key unreadable; empty: all can be read.
func (m *marks) breakKey(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken = key
}

// stick makes a key one that is never written; empty: all are.
func (m *marks) stick(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stuck = key
}

func (m *marks) set(all map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = all
}

// say lets user 1 write to the bot.
func (b *bot) say(text string) string {
	return b.Write(discordtest.Post{Channel: directID(1), User: userID(1), Text: text})
}

// pass lets time pass.
func (b *bot) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (b *bot) want(texts ...string) {
	b.Helper()
	synctest.Wait()
	if got := b.inbox.texts(); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", texts) {
		b.Errorf("stored %q, want %q", got, texts)
	}
}

// wantEach is want for direct chats first, because conversations are read at once.
func (b *bot) wantEach(texts ...string) {
	b.Helper()
	synctest.Wait()
	got := append(b.inbox.of(directID(1)), b.inbox.of(guildID+"/"+groupID(1))...)
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", texts) {
		b.Errorf("stored %q, want %q", got, texts)
	}
}

func (b *bot) wantSessions(started, resumed int) {
	b.Helper()
	if s, r := b.Sessions(); s != started || r != resumed {
		b.Errorf("%d sessions started and %d resumed, want %d and %d", s, r, started, resumed)
	}
}

// out is a message to user 1.
func out(id, text string) claybot.Outgoing {
	now := claybot.Now()
	return claybot.Outgoing{
		ID: id, Kind: claybot.OutgoingAnswer, Route: claybot.Route{Connector: "discord", ChannelID: directID(1), UserID: userID(1)}, Text: text, Part: 1, Parts: 1, At: now, Tried: now,
	}
}
