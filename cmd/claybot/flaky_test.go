package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/connectorstest"
	"github.com/claybot/claybot/connectors/slack"
	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/connectors/telegram"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/react"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/sqlite"
	"github.com/claybot/claybot/subagents"
	"github.com/claybot/claybot/tools"
)

// A flaky proxy stands between the daemon and a platform. It harms calls that show
// something to people, and look-ups; what else a connector calls passes.
type flaky struct {
	next   http.RoundTripper
	deny   string                     // a method that needs a scope the app does not have
	report func(method, fate string)  // of every call that it may harm; optional
	fate   func(method string) string // one of the fates; called one at a time

	mu sync.Mutex
}

// What becomes of a call.
const (
	passes      = "delivered"
	loses       = "delivered, response lost"
	answers502  = "delivered, answered with 502"
	drops       = "request read, then dropped"
	refusesCall = "connection refused"
)

func (f *flaky) RoundTrip(req *http.Request) (*http.Response, error) {
	method := path.Base(req.URL.Path)
	switch method {
	case "sendMessage", "editMessageText", "sendDocument", "chat.postMessage", "chat.update", "files.completeUploadExternal",
		"conversations.history", "files.info":
	default:
		return f.next.RoundTrip(req)
	}
	if method == f.deny {
		return pageOf(req, http.StatusOK, "application/json", `{"ok":false,"error":"missing_scope","needed":"im:history"}`), nil
	}
	f.mu.Lock()
	fate := f.fate(method)
	if f.report != nil {
		f.report(method, fate)
	}
	f.mu.Unlock()
	if fate == refusesCall {
		return nil, errors.New("proxy: connection refused")
	}
	if fate == drops { // the client has written its request, and nothing happens
		req = req.Clone(req.Context())
		req.URL.Path = "/dropped"
	}
	resp, err := f.next.RoundTrip(req)
	if err != nil || fate == passes {
		return resp, err
	}
	_, _ = io.Copy(io.Discard, resp.Body) // its content is lost on purpose
	_ = resp.Body.Close()                 // the same
	if fate == answers502 {
		return pageOf(req, http.StatusBadGateway, "text/html", "<h1>502 Bad Gateway</h1>"), nil
	}
	return nil, fmt.Errorf("proxy: %w", io.ErrUnexpectedEOF)
}

func pageOf(req *http.Request, status int, contentType, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Request: req, Header: http.Header{"Content-Type": {contentType}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), ProtoMajor: 1, ProtoMinor: 1,
	}
}

// A slowPoet answers with a long echo, of which the second half takes a second. Who
// asks for the file gets it before the answer.
type slowPoet struct{}

func (slowPoet) Chat(ctx context.Context, r llm.Request) (llm.Response, error) {
	last := r.Messages[len(r.Messages)-1]
	word := "done"
	if last.Role == llm.RoleUser {
		word = lastLine(llm.Unwrap(last.Content))
		if strings.HasPrefix(word, "file") {
			return llmtest.Use(claybot.ToolCall{Name: "file", Args: "{}"}).Response, nil
		}
	}
	text := "You said " + word + strings.Repeat(", and so on", 20) + "."
	if r.Delta != nil {
		r.Delta(0, text[:len(text)/2])
		select {
		case <-ctx.Done():
			return llm.Response{}, ctx.Err()
		case <-time.After(time.Second):
		}
		r.Delta(len(text)/2, text[len(text)/2:])
	}
	return llmtest.Say(text).Response, nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// A house is a daemon's middle, without its doors: the system, its stores and one
// connector, in a bubble.
type house struct {
	*testing.T
	db     *sqlite.DB
	system *agentsystem.AgentSystem
	stop   func()
}

func newHouse(t *testing.T, connect func(db *sqlite.DB) connectors.Connector) *house {
	t.Helper()
	dir, hub := t.TempDir(), runs.NewHub()
	db, err := sqlite.Open(t.Context(), filepath.Join(dir, "claybot.db"), sqlite.Config{Committed: hub.Committed})
	if err != nil {
		t.Fatal(err)
	}
	agents, err := files.Open(files.Config{Dir: dir, Index: db})
	if err != nil {
		t.Fatal(err)
	}
	s := agentsystem.New(agentsystem.Config{
		Stores: agentsystem.Stores{
			Agents: agents, Index: db, Inbox: db, Runs: db, Outbox: db, Access: db, Counts: db, Later: db, Texts: db, Asked: db, Parking: db,
		},
		Log: slog.New(slog.DiscardHandler), Members: cluster.Alone(storage.Member{ID: "node", Name: "node", Version: "test"}), Version: "test", Hub: hub,
		PeopleSettings: agentsystem.PeopleSettings{Admission: func() people.Access { return people.Access{Mode: people.AccessOpen} }},
		Settings: agentsystem.Settings{
			Models:  func(claybot.Agent) []string { return []string{"poet"} },
			Tools:   func(claybot.Agent) []string { return []string{"file"} },
			Profile: func(claybot.Descriptor) profiles.Profile { return profiles.Profile{} },
			Society: func() subagents.Limits { return subagents.DefaultLimits },
		},
	})
	spec := tools.Spec{Tool: llm.Tool{Name: "file", Description: "sends a file"}, Effect: tools.Idempotent, Timeout: time.Minute}
	set, err := tools.NewSet(tools.New(spec, func(ctx context.Context, env tools.Env, _ struct{}) (tools.Result, error) {
		_, err := s.Output.SendFile(ctx, env, tools.Sending{Name: "a.txt", Caption: "here", Open: func(context.Context) (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader([]byte("alpha"))), nil
		}})
		return tools.Result{Text: "sent"}, err
	}))
	if err != nil {
		t.Fatal(err)
	}
	s.Handle("react", &react.Loop{
		Model: func(claybot.Agent) llm.Model { return slowPoet{} },
		Tools: func(claybot.Agent) *tools.Set { return set },
	})
	run, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(run, connect(db)) }()
	synctest.Wait()
	return &house{T: t, db: db, system: s, stop: func() {
		cancel()
		if err := errors.Join(<-ended, agents.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	}}
}

// outbox waits until everything in it has ended and returns it, oldest first.
func (h *house) outbox() (all []claybot.Outgoing) {
	h.Helper()
	for range 24 * 60 {
		time.Sleep(time.Minute)
		synctest.Wait()
		open, err := h.db.OutgoingPage(h.Context(), storage.OutgoingQuery{Open: true, Limit: 1})
		if err != nil {
			h.Fatal(err)
		}
		if len(open) > 0 {
			continue
		}
		page, err := h.db.OutgoingPage(h.Context(), storage.OutgoingQuery{Limit: 1000})
		if err != nil {
			h.Fatal(err)
		}
		for i := range page {
			all = append(all, page[len(page)-1-i])
		}
		return all
	}
	h.Fatal("the outbox does not become empty")
	return nil
}

// A window is what one chat shows of the bot, and how its person writes.
type window struct {
	say   func(text string)
	shown func() []string
}

// onTelegram runs test with a chat behind a flaky proxy.
func onTelegram(t *testing.T, cfg telegram.Config, f *flaky, test func(h *house, w window)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := telegramtest.New(telegramtest.Config{})
		defer server.Close()
		inner := server.Transport()
		defer inner.CloseIdleConnections()
		f.next = inner
		cfg.Token, cfg.BaseURL, cfg.HTTP = telegramtest.Token, "http://telegram.test", f
		h := newHouse(t, func(db *sqlite.DB) connectors.Connector { cfg.Marks = db; return telegram.New(cfg) })
		defer h.stop()
		test(h, window{
			say: func(text string) { server.Say(7, 7, text) },
			shown: func() (texts []string) {
				for _, m := range server.Sent(7) {
					text := m.Text
					if m.File != nil {
						text = "[" + m.File.Name + "] " + text
					}
					texts = append(texts, text)
				}
				return texts
			},
		})
	})
}

// onSlack runs test with a direct message behind a flaky proxy.
func onSlack(t *testing.T, f *flaky, test func(h *house, w window)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := slacktest.New(slacktest.Config{Manifest: slack.Manifest})
		pipe := connectorstest.NewPipe()
		httpd := &http.Server{Handler: server, ReadHeaderTimeout: time.Minute}
		var serving sync.WaitGroup
		serving.Go(func() { _ = httpd.Serve(pipe) }) // ends with the listener
		inner := &http.Transport{DialContext: pipe.Dial}
		defer func() {
			server.Close()
			inner.CloseIdleConnections()
			if err := httpd.Close(); err != nil {
				t.Error(err)
			}
			serving.Wait()
		}()
		f.next = inner
		h := newHouse(t, func(db *sqlite.DB) connectors.Connector {
			return slack.New(slack.Config{
				BotToken: "xoxb-test", AppToken: "xapp-test", APIURL: "http://slack.test/api", HTTP: f, Dial: pipe.Dial, Marks: db,
			})
		})
		defer h.stop()
		channel := ""
		test(h, window{
			say: func(text string) { channel, _ = server.DM("U1", text) },
			shown: func() (texts []string) {
				for _, m := range server.Posted(channel) {
					texts = append(texts, m.Text)
				}
				for _, s := range server.Files(channel) {
					texts = append(texts, "["+s.Name+"] "+s.Comment)
				}
				return texts
			},
		})
	})
}

// Behind a proxy that loses responses, each message is visible at most twice and
// told of at most once, on every platform and in every way to deliver.
func TestCopiesBehindAFlakyProxy(t *testing.T) {
	fates := []string{passes, passes, loses, loses, answers502, drops, refusesCall}
	type place struct {
		name string
		run  func(t *testing.T, f *flaky, test func(h *house, w window))
	}
	var places []place
	for _, delivery := range []string{telegram.DeliveryStream, telegram.DeliveryPlaceholder, telegram.DeliveryDirect} {
		for _, policy := range []string{telegram.AmbiguousResend, telegram.AmbiguousNotice} {
			places = append(places, place{"telegram " + delivery + " " + policy, func(t *testing.T, f *flaky, test func(h *house, w window)) {
				onTelegram(t, telegram.Config{Delivery: delivery, OnAmbiguous: policy}, f, test)
			}})
		}
	}
	places = append(places, place{"slack", onSlack}, place{"slack without history", func(t *testing.T, f *flaky, test func(h *house, w window)) {
		f.deny = "conversations.history"
		onSlack(t, f, test)
	}})
	for i, p := range places {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			odds := rand.New(rand.NewPCG(1, uint64(i)))
			f := &flaky{fate: func(string) string { return fates[odds.IntN(len(fates))] }}
			p.run(t, f, func(h *house, w window) {
				const n = 12
				for i := range n {
					word := fmt.Sprintf("word%d", i)
					if i%4 == 3 {
						word = fmt.Sprintf("file%d", i)
					}
					w.say(word)
					time.Sleep(10 * time.Minute) // one by one: each answer has a word of its own
				}
				checkCopies(h, w, n)
			})
		})
	}
}

// checkCopies compares what a chat shows with what the outbox knows.
func checkCopies(h *house, w window, n int) {
	h.Helper()
	lost, notices, sent := 0, 0, 0
	words := make(map[string]bool)
	for _, o := range h.outbox() {
		switch {
		case strings.HasPrefix(o.ID, "undelivered/"):
			notices++
		case o.State == claybot.SendFailed:
			lost++
		default:
			sent++
		}
		if o.Copies > 2 {
			h.Errorf("more copies than two: %+v", o)
		}
	}
	if notices > lost || sent == 0 || sent+lost < n {
		h.Errorf("%d sent, %d lost, %d notices", sent, lost, notices)
	}
	shown := w.shown()
	told := 0
	for i := range n {
		words[fmt.Sprintf("word%d,", i)] = true
	}
	for word := range words {
		visible := 0
		for _, text := range shown {
			if strings.Contains(text, "You said "+word) {
				visible++
			}
		}
		if visible > 2 {
			h.Errorf("%q is visible %d times", word, visible)
		}
	}
	for _, text := range shown {
		if strings.Contains(text, "may be missing") || strings.Contains(text, "could not be delivered") {
			told++
		}
	}
	if told > notices {
		h.Errorf("%d notices are visible, of %d", told, notices)
	}
	h.Logf("%d sent, %d lost, %d notices of which people see %d; they see %d messages", sent, lost, notices, told, len(shown))
}
