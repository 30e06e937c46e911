package webchat

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// A memory is both ends of the chat in a test: the handler that records what
// was posted, and the outbox that streams read.
type memory struct {
	chat *Chat

	mu      sync.Mutex
	posts   []claybot.AgentMessage
	to      []claybot.Descriptor
	busy    map[string]bool
	both    bool // two posts of one descriptor at once
	refuse  error
	hold    chan struct{} // when set, posts say so on entered and wait for it
	entered chan struct{}
	outbox  []claybot.Outgoing
	fixed   []storage.Entry // when set, the transcript
	skipped map[claybot.MessageID]string
	parked  bool
	noted   bool // edits become notes
	files   map[string][]byte
	named   map[string]claybot.FileReference
}

var _ connectors.Handler = (*memory)(nil)

func (m *memory) Post(_ context.Context, to claybot.Descriptor, msg claybot.AgentMessage) error {
	m.mu.Lock()
	if m.busy == nil {
		m.busy = make(map[string]bool)
	}
	m.both = m.both || m.busy[to.Key()]
	m.busy[to.Key()] = true
	hold := m.hold
	m.mu.Unlock()
	if hold != nil {
		m.entered <- struct{}{}
		<-hold
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy[to.Key()] = false
	if m.refuse != nil {
		return m.refuse
	}
	for _, p := range m.posts {
		if p.ID == msg.ID && msg.Amends != "" {
			return nil
		}
	}
	if m.noted && msg.Type == claybot.MessageEdit {
		msg.Type, msg.Text = claybot.MessageSystem, texts.Edited(msg.Text)
	}
	m.posts, m.to = append(m.posts, msg), append(m.to, to)
	return nil
}

// became says why messages that have not come yet will be skipped.
func (m *memory) became(skipped map[claybot.MessageID]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.skipped = skipped
}

// why a message was skipped: changes come in time, unless the test says otherwise.
func (m *memory) why(p claybot.AgentMessage) string {
	if why, said := m.skipped[p.ID]; said {
		return why
	}
	switch p.Type {
	case claybot.MessageEdit:
		return storage.SkippedEdit
	case claybot.MessageDelete:
		return storage.SkippedDeletion
	}
	return ""
}

func (m *memory) Receipt(_ context.Context, id claybot.MessageID) (storage.Receipt, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.posts {
		if p.ID == id {
			r := storage.Receipt{Message: p, Skipped: m.why(p)}
			if m.parked {
				r.Parked = "its agent is damaged"
			}
			return r, nil
		}
	}
	return storage.Receipt{}, storage.ErrNotFound
}

func (m *memory) Hears(_ context.Context, _ claybot.Descriptor, x claybot.AgentMessage) (bool, error) {
	return !x.Context.Unaddressed, nil
}

func (m *memory) Moved(context.Context, string, string, string, claybot.Time) error { return nil }

func (m *memory) Opened(context.Context, claybot.Descriptor) error { return nil }

func (m *memory) Transcript(_ context.Context, d claybot.Descriptor, limit int) ([]storage.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fixed != nil {
		return m.fixed, nil
	}
	var all []storage.Entry
	for i, p := range m.posts {
		if m.to[i] == d {
			all = append(all, storage.Entry{Message: &p, Skipped: m.why(p)})
		}
	}
	for _, o := range m.outbox {
		if o.Route.ChannelID == d.ChannelID {
			all = append(all, storage.Entry{Outgoing: &o})
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("agent: %w", storage.ErrNotFound)
	}
	return all[max(0, len(all)-limit):], nil
}

func (m *memory) SentAfter(ctx context.Context, d claybot.Descriptor, n int64, limit int) ([]claybot.Outgoing, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []claybot.Outgoing
	for _, o := range m.outbox {
		if o.N > n && o.Route.ChannelID == d.ChannelID && len(out) < limit {
			out = append(out, o)
		}
	}
	return out, nil
}

func (m *memory) LastN(_ context.Context, d claybot.Descriptor) (n int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, o := range m.outbox {
		if o.Route.ChannelID == d.ChannelID {
			n = max(n, o.N)
		}
	}
	return n, nil
}

// say puts an answer into the outbox and delivers it, as the daemon does.
func (m *memory) say(t *testing.T, d claybot.Descriptor, run claybot.RunID, text string) {
	t.Helper()
	m.mu.Lock()
	n := int64(len(m.outbox) + 1)
	o := claybot.Outgoing{ID: fmt.Sprintf("out-%d", n), N: n, Kind: claybot.OutgoingAnswer, Run: run, Message: claybot.MessageID("answered-by-" + run), Route: d.Route(), Text: text, At: claybot.Time(n)}
	m.outbox = append(m.outbox, o)
	m.mu.Unlock()
	receipt, err := m.chat.Send(t.Context(), o)
	if want := m.chat.Name() + "/" + o.ID; err != nil || receipt != want {
		t.Errorf("Send = %q, %v; want %q", receipt, err, want)
	}
}

func (m *memory) posted() []claybot.AgentMessage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]claybot.AgentMessage(nil), m.posts...)
}

// login is the header that stands for the login in tests.
func login(r *http.Request) string { return r.Header.Get("X-Login") }

var me = claybot.User("web", "main", "me")

// start runs a chat and serves it on loopback.
func start(t *testing.T) (*memory, *httptest.Server) {
	t.Helper()
	return serve(t, login)
}

// startAs is start with one user.
func startAs(t *testing.T, user string) (*memory, *httptest.Server) {
	t.Helper()
	return serve(t, func(*http.Request) string { return user })
}

func serve(t *testing.T, user func(*http.Request) string) (*memory, *httptest.Server) {
	t.Helper()
	m := &memory{chat: New(Config{HTML: true})}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.chat.Run(ctx, m) }()
	waitLive(t, m.chat)
	srv := httptest.NewServer(m.chat.Handler(m, m, user))
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v, want the cause of its end", err)
		}
		srv.Close()
	})
	return m, srv
}

// waitLive waits until the chat takes messages.
func waitLive(t *testing.T, c *Chat) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for c.Health().State != connectors.StateLive {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("the chat never came up")
		}
	}
}

// call makes one request and decodes the JSON answer.
func call(t *testing.T, srv *httptest.Server, method, path, body string) (int, map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Login", "me")
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var v map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&v); err != nil {
		t.Fatalf("%s %s: %d without JSON: %v", method, path, resp.StatusCode, err)
	}
	return resp.StatusCode, v
}

// An sse is one event as a client sees it.
type sse struct{ id, event, data string }

// A client is one open stream.
type client struct {
	r      *bufio.Reader
	cancel context.CancelFunc
	close  func()
	pings  int
}

// open starts a stream. lastID may be empty.
func open(t *testing.T, hc *http.Client, url, lastID string) *client {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Login", "me")
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	resp, err := hc.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("stream = %d %s", resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	c := &client{r: bufio.NewReader(resp.Body), cancel: cancel, close: func() { cancel(); _ = resp.Body.Close() }}
	t.Cleanup(c.close)
	return c
}

// next reads one event; comments are counted.
func (c *client) next() (sse, error) {
	var e sse
	for {
		s, err := c.r.ReadString('\n')
		if err != nil {
			return e, err
		}
		s = strings.TrimSuffix(s, "\n")
		key, value, _ := strings.Cut(s, ": ")
		switch {
		case s == "" && e.event != "":
			return e, nil
		case s == ": ping":
			c.pings++
		case key == "id":
			e.id = value
		case key == "event":
			e.event = value
		case key == "data":
			e.data = value
		}
	}
}

// want reads the next event and checks its kind and a part of its data.
func (c *client) want(t *testing.T, event, part string) sse {
	t.Helper()
	e, err := c.next()
	if err != nil {
		t.Fatalf("stream ended before %s %s: %v", event, part, err)
	}
	if e.event != event || !strings.Contains(e.data, part) {
		t.Fatalf("got %s %s, want %s with %s", e.event, e.data, event, part)
	}
	return e
}

// Answer implements connectors.Handler: there are no questions here.
func (m *memory) Answer(context.Context, connectors.Press) (connectors.PressResult, error) {
	return connectors.PressResult{}, nil
}
