package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/webchat"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// A world is a server with what stands behind it in a test: people who ask to
// be let in, and a conversation that only remembers.
type world struct {
	srv   *web.Server
	chat  *webchat.Chat
	links chan string
	log   *strings.Builder

	mu       sync.Mutex
	ready    string // what is missing
	broken   error
	locked   bool        // no code is taken
	still    string      // what a revoke says
	refusal  web.Refusal // of Allow and Revoke
	pairings []storage.Pairing
	grants   []storage.Grant
	posts    []claybot.Message
	outbox   []claybot.Outgoing
	crew     crew
	answer   func(claybot.Descriptor, claybot.Message) // called for each post
}

var (
	_ web.System         = (*world)(nil)
	_ connectors.Handler = (*world)(nil)
)

func (w *world) Status(context.Context) (any, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return map[string]any{"version": "test", "connectors": []map[string]string{{"name": "web", "state": "live"}, {"name": "telegram", "state": "stopped", "error": "the token was refused"}}}, w.broken
}

func (w *world) Ready() (bool, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ready == "", w.ready
}

func (w *world) Pairings(context.Context) ([]storage.Pairing, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]storage.Pairing(nil), w.pairings...), w.broken
}

func (w *world) take(code string) (storage.Pairing, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.locked {
		return storage.Pairing{}, fmt.Errorf("code: %w", agentsystem.ErrCodesLocked)
	}
	for i, p := range w.pairings {
		if p.Code == code {
			w.pairings = append(w.pairings[:i], w.pairings[i+1:]...)
			return p, nil
		}
	}
	return storage.Pairing{}, fmt.Errorf("code: %w", storage.ErrNotFound)
}

func (w *world) Approve(ctx context.Context, code string) (storage.Pairing, error) {
	p, err := w.take(code)
	if err != nil {
		return p, err
	}
	return p, w.Allow(ctx, p.Connector, p.UserID)
}

func (w *world) Deny(_ context.Context, code string) error {
	_, err := w.take(code)
	return err
}

func (w *world) Grants(context.Context) ([]storage.Grant, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]storage.Grant(nil), w.grants...), nil
}

func (w *world) Allow(_ context.Context, connector, subject string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refusal != "" {
		return w.refusal
	}
	w.grants = append(w.grants, storage.Grant{Connector: connector, Subject: subject})
	return nil
}

func (w *world) Revoke(_ context.Context, connector, subject string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refusal != "" {
		return "", w.refusal
	}
	for i, g := range w.grants {
		if g.Connector == connector && g.Subject == subject {
			w.grants = append(w.grants[:i], w.grants[i+1:]...)
			return w.still, nil
		}
	}
	return "", storage.ErrNotFound
}

func (w *world) Agents(context.Context) ([]storage.IndexEntry, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]storage.IndexEntry{
		{ID: "a1", Descriptor: claybot.User("telegram", "1", "2"), LastUserAt: 10},
		{ID: "a2", Descriptor: claybot.User("web", "old", web.Operator), LastUserAt: 20},
		{ID: "a3", Descriptor: claybot.User("web", "main", web.Operator), LastUserAt: 30},
		{ID: "a4", Descriptor: claybot.User("web", "main", "somebody"), LastUserAt: 40},
	}, w.crew.entries...), nil
}

func (w *world) Post(_ context.Context, d claybot.Descriptor, m claybot.Message) error {
	w.mu.Lock()
	for _, p := range w.posts {
		if p.ID == m.ID {
			w.mu.Unlock()
			return nil
		}
	}
	w.posts = append(w.posts, m)
	answer := w.answer
	w.mu.Unlock()
	w.chat.Accepted(d, m)
	if answer != nil {
		answer(d, m)
	}
	return nil
}

func (w *world) Moved(context.Context, string, string, string) error { return nil }

func (w *world) Transcript(_ context.Context, d claybot.Descriptor, limit int) ([]storage.Entry, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []storage.Entry
	if d.ChannelID != "main" {
		return nil, nil
	}
	for _, p := range w.posts {
		all = append(all, storage.Entry{Message: &p})
	}
	for _, o := range w.outbox {
		all = append(all, storage.Entry{Outgoing: &o})
	}
	return all[max(0, len(all)-limit):], nil
}

func (w *world) SentAfter(_ context.Context, d claybot.Descriptor, n int64, limit int) ([]claybot.Outgoing, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []claybot.Outgoing
	for _, o := range w.outbox {
		if o.N > n && o.Route.ChannelID == d.ChannelID && len(out) < limit {
			out = append(out, o)
		}
	}
	return out, nil
}

func (w *world) LastN(_ context.Context, d claybot.Descriptor) (n int64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.outbox {
		if o.Route.ChannelID == d.ChannelID {
			n = max(n, o.N)
		}
	}
	return n, nil
}

// say delivers an answer.
func (w *world) say(t *testing.T, d claybot.Descriptor, run claybot.RunID, text string) {
	t.Helper()
	w.put(t, d, claybot.Outgoing{Kind: claybot.OutgoingAnswer, Run: run, Text: text})
}

// put delivers a message to d; without an id it gets one.
func (w *world) put(t *testing.T, d claybot.Descriptor, o claybot.Outgoing) {
	t.Helper()
	w.mu.Lock()
	o.N, o.Route, o.At = int64(len(w.outbox)+1), d.Route(), claybot.Now()
	if o.ID == "" {
		o.ID = fmt.Sprintf("o%d", o.N)
	}
	w.outbox = append(w.outbox, o)
	w.mu.Unlock()
	if _, err := w.chat.Send(t.Context(), o); err != nil {
		t.Error(err)
	}
}

// lockedWriter lets several goroutines log into one buffer.
type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// start runs a server on a free port over dir until the test ends or stop is
// called. change may edit the configuration.
func start(t *testing.T, dir string, change func(*web.Config)) (w *world, stop func()) {
	t.Helper()
	w = &world{chat: webchat.New(webchat.Config{HTML: true}), links: make(chan string, 10), log: &strings.Builder{}}
	terminal := webchat.New(webchat.Config{Name: "terminal"})
	cfg := web.Config{
		Addr: "127.0.0.1:0", Dir: dir, System: w,
		Chat: w.chat.Handler(w, web.User), Terminal: terminal.Handler(w, web.User),
		Announce: func(links []string) { w.links <- links[0] },
		Log:      slog.New(slog.NewTextHandler(lockedWriter{&w.mu, w.log}, nil)),
	}
	if change != nil {
		change(&cfg)
	}
	srv, err := web.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.srv = srv
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = w.chat.Run(ctx, w) })   // its result is the connector's test
	wg.Go(func() { _ = terminal.Run(ctx, w) }) // likewise
	wg.Go(func() {
		if err := srv.Run(ctx); ctx.Err() == nil {
			t.Errorf("Run ended early: %v", err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(stop)
	select {
	case <-srv.Up():
	case <-time.After(10 * time.Second):
		t.Fatal("the server did not come up")
	}
	return w, stop
}

// logged is what was logged so far.
func (w *world) logged() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

func (w *world) url(path string) string { return "http://" + w.srv.Addr() + path }

// An answer is a response that was read.
type answer struct {
	code int
	head http.Header
	body string
}

// do makes a request; head are pairs of names and values.
func do(t *testing.T, hc *http.Client, method, url, body string, head ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(head); i += 2 {
		if head[i] == "Host" {
			req.Host = head[i+1]
			continue
		}
		req.Header.Set(head[i], head[i+1])
	}
	resp, err := hc.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}

// browser keeps cookies and does not follow redirects.
func browser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Jar: jar, Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// loggedIn is a browser that used the link of the start.
func (w *world) loggedIn(t *testing.T) *http.Client {
	t.Helper()
	b := browser(t)
	if got := do(t, b, "GET", w.srv.NewLoginLink(), ""); got.code != http.StatusSeeOther || got.head.Get("Location") != "/" {
		t.Fatalf("login = %d to %q", got.code, got.head.Get("Location"))
	}
	return b
}

func decode(t *testing.T, s string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(s), v); err != nil {
		t.Fatalf("%v in %s", err, s)
	}
}
