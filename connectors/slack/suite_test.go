package slack

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/connectorstest"
	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/storage"
)

func TestSuite(t *testing.T) {
	for name, hook := range map[string]string{"slack": "", "slack by HTTP": testHook} {
		connectorstest.Run(t, connectorstest.Harness{
			Name: name, Open: func(t *testing.T) *connectorstest.Platform { return openSuite(t, hook) },
			Unstorable: &storage.Fault{Class: storage.ClassMessage, Err: errors.New("no id")},
		})
	}
}

const (
	testHook      = "https://claybot.test/hooks/slack"
	signingSecret = "canary-signing-secret"
)

// A breaker fails requests before they leave.
type breaker struct {
	http.RoundTripper
	broken atomic.Bool
}

func (b *breaker) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.Contains(r.URL.Path, "chat.") && b.broken.CompareAndSwap(true, false) {
		return nil, errors.New("no route to host")
	}
	return b.RoundTripper.RoundTrip(r)
}

// openSuite is a workspace in the terms of the suite.
func openSuite(t *testing.T, hook string) *connectorstest.Platform {
	door, redeliver := &connectorstest.Doorway{}, 15*time.Second
	if hook != "" {
		redeliver = 7 * time.Minute // Slack tries three times again, the last one after five minutes
	}
	server, pipe := slacktest.New(slacktest.Config{Manifest: Manifest, BotToken: botToken, AppToken: appToken}), connectorstest.NewPipe()
	httpd := &http.Server{Handler: server, ReadHeaderTimeout: time.Minute}
	var serving sync.WaitGroup
	serving.Go(func() { _ = httpd.Serve(pipe) }) // ends with the listener
	transport := &http.Transport{DialContext: pipe.Dial}
	line := &breaker{RoundTripper: transport}
	logs, kept := &logbook{}, &marks{kept: make(map[string]string)}
	file := "" // the newest of people
	var newest struct{ channel, ts string }
	id := func(c connectorstest.Chat) string {
		if c.Group {
			return fmt.Sprintf("C%d", c.N)
		}
		return fmt.Sprintf("DU%d", c.N)
	}
	fail := func(f slacktest.Fault) {
		server.Fail(methodPost, f)
		server.Fail(methodUpdate, f)
		server.Fail(methodComplete, f)
	}
	return &connectorstest.Platform{
		Connector: func() connectors.Connector {
			c := New(Config{
				BotToken: botToken, AppToken: appToken, APIURL: "http://slack.test/api", HTTP: line, Dial: pipe.Dial, Hook: hook, SigningSecret: signingSecret, Marks: kept,
				Log: slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
			})
			door.Lead(c)
			if hook != "" {
				server.Push(hook, signingSecret, door)
			}
			return c
		},
		Close: func() {
			server.Close()
			transport.CloseIdleConnections()
			_ = httpd.Close() // only the listener's own error
			serving.Wait()
			if strange := server.Strange(); len(strange) > 0 {
				t.Errorf("calls that Slack does not document: %q", strange)
			}
		},
		Secrets: []string{"canary", "ticket", "response-secret"}, Logs: logs.String,
		User: func(n int) string { return fmt.Sprintf("U%d", n) },
		Route: func(c connectorstest.Chat, user int) claybot.Route {
			return claybot.Route{Connector: "slack", ChannelID: "T1/" + id(c), UserID: fmt.Sprintf("U%d", user), Group: c.Group}
		},
		Write: func(w connectorstest.Written) {
			p := slacktest.Post{Channel: id(w.Chat), User: fmt.Sprintf("U%d", w.User), Text: w.Text, Mention: w.Mention}
			if w.Mention {
				p.Text = "<@UBOT> " + w.Text
			}
			if w.File != nil {
				f := server.AddFile(w.File.Name, "text/plain", []byte(w.File.Data))
				p.Subtype, p.Files, file = "file_share", []slacktest.File{f}, f.ID
			}
			newest.channel, newest.ts = p.Channel, server.Write(p)
		},
		Edit:    func(text string) { server.Edit(newest.channel, newest.ts, text) },
		Unsend:  func() { server.Delete(newest.channel, newest.ts) },
		Unacked: func() int { return len(server.Unacked()) }, Redeliver: redeliver,
		Unknown: func() {
			server.Envelope("future", map[string]any{"type": "future"})
			server.Envelope("events_api", map[string]any{"team_id": "T1", "event": map[string]any{"type": "future"}})
		},
		Malformed: func() {
			server.Envelope("events_api", "text")
			server.Envelope("events_api", map[string]any{"team_id": 1, "event": []any{}})
			server.Envelope("interactive", map[string]any{"type": "block_actions", "actions": "none"})
			server.Frame([]byte("{"))
		},
		Shown: func(c connectorstest.Chat) []string {
			texts := []string{}
			for _, m := range server.Posted(id(c)) {
				texts = append(texts, m.Text)
			}
			return texts
		},
		Sends:   func() int { return len(server.Calls(methodPost)) + len(server.Calls(methodUpdate)) },
		Delete:  func(c connectorstest.Chat, receipt string) { server.Delete(id(c), receipt) },
		Limit:   func(_ connectorstest.Chat, d time.Duration) { fail(slacktest.Fault{RetryAfter: d}) },
		Lose:    func(connectorstest.Chat) { fail(slacktest.Fault{Lost: true}) },
		Drop:    func(connectorstest.Chat) { fail(slacktest.Fault{Status: http.StatusBadGateway}) },
		Unreach: func(connectorstest.Chat) { line.broken.Store(true) },
		Refuse:  func(connectorstest.Chat) { fail(slacktest.Fault{Error: "msg_too_long"}) },
		Kill:    func(c connectorstest.Chat) { server.Archive(id(c)) },
		Down:    server.Down,
		Revoke:  server.Uninstall,
		Hang: func() {
			server.Freeze()
			for _, method := range []string{"auth.test", "apps.connections.open"} {
				server.Fail(method, slacktest.Fault{Hang: true}, slacktest.Fault{Hang: true}, slacktest.Fault{Hang: true})
			}
		},
		Files: func(c connectorstest.Chat) (files []connectorstest.File) {
			for _, f := range server.Files(id(c)) {
				files = append(files, connectorstest.File{Name: f.Name, Data: string(f.Data)})
			}
			return files
		},
		Reactions: func(c connectorstest.Chat, message string) []string { return server.Reactions(id(c), message) },
		React: func(c connectorstest.Chat, user int, message string, removed bool) {
			server.React(id(c), message, fmt.Sprintf("U%d", user), "+1", removed)
		},
		Status:   func(c connectorstest.Chat, message string) string { return server.Status(id(c), message) },
		LoseFile: func() { server.DeleteFile(file) },
		Command: func(c connectorstest.Chat, user int, name string) {
			server.Slash(id(c), fmt.Sprintf("U%d", user), "/claybot", name)
		},
		Alone: func(user int) (texts []string) {
			for _, m := range server.Whispers(fmt.Sprintf("U%d", user)) {
				texts = append(texts, m.Text)
			}
			return texts
		},
		Press: func(c connectorstest.Chat, user int, receipt, label string) {
			if _, err := server.Click(fmt.Sprintf("U%d", user), id(c), receipt, label); err != nil {
				t.Error(err)
			}
		},
	}
}
