package telegram

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/connectorstest"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
	"github.com/claybot/claybot/storage"
)

func TestSuite(t *testing.T) {
	for name, hook := range map[string]string{"telegram": "", "telegram by webhook": "https://claybot.test/hooks/telegram"} {
		connectorstest.Run(t, connectorstest.Harness{
			Name: name, Open: func(t *testing.T) *connectorstest.Platform { return openSuite(t, hook) },
			Lacks: map[string]string{
				"deletions name the message":                   "hears of no deletions, which the Bot API does not report",
				"answers to commands reach their person alone": "answers commands, which are text, in the chat",
				"earlier messages are read":                    "has no history, which the Bot API does not give to bots; claybot keeps one",
			},
			Unstorable: &storage.Fault{Class: storage.ClassMessage, Err: errors.New("no id")},
		})
	}
}

// A breaker fails requests before they leave.
type breaker struct {
	http.RoundTripper
	broken atomic.Bool
}

func (b *breaker) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/sendMessage") && b.broken.CompareAndSwap(true, false) {
		return nil, errors.New("no route to host")
	}
	return b.RoundTripper.RoundTrip(r)
}

// openSuite is a bot in the terms of the suite.
func openSuite(t *testing.T, hook string) *connectorstest.Platform {
	door := &connectorstest.Doorway{}
	server := telegramtest.New(telegramtest.Config{Hooks: door})
	transport, logs := server.Transport(), &logbook{}
	line := &breaker{RoundTripper: transport}
	file := "" // the newest of people
	var newest struct{ chat, message int64 }
	id := func(c connectorstest.Chat) int64 {
		if c.Group {
			return -1_000_000_000_000 - int64(c.N)
		}
		return int64(c.N)
	}
	number := func(receipt string) int64 {
		n, err := strconv.ParseInt(receipt, 10, 64)
		if err != nil {
			t.Error(err)
		}
		return n
	}
	return &connectorstest.Platform{
		Connector: func() connectors.Connector {
			c := New(Config{
				Token: telegramtest.Token, BaseURL: "http://telegram.test", HTTP: line, Hook: hook,
				Log: slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
			})
			door.Lead(c)
			return c
		},
		Close: func() {
			transport.CloseIdleConnections()
			server.Close()
			if strange := server.Strange(); len(strange) > 0 {
				t.Errorf("calls that Telegram does not document: %q", strange)
			}
		},
		Secrets: []string{"FAKE-telegram-token"}, Logs: logs.String,
		User: strconv.Itoa,
		Route: func(c connectorstest.Chat, user int) claybot.Route {
			return claybot.Route{Connector: "telegram", ChannelID: fmt.Sprint(id(c)), UserID: strconv.Itoa(user), Group: c.Group}
		},
		Write: func(w connectorstest.Written) {
			in := telegramtest.Incoming{ChatID: id(w.Chat), UserID: int64(w.User), Text: w.Text}
			if w.Mention {
				in.Text = "@claybot " + w.Text
			}
			if w.File != nil {
				ref := server.AddFile(w.File.Name, []byte(w.File.Data))
				file, _ = ref["file_id"].(string)
				doc := map[string]any{"file_name": w.File.Name, "mime_type": "text/plain"}
				maps.Copy(doc, ref)
				in.Caption, in.Text, in.Fields = in.Text, "", map[string]any{"document": doc}
			}
			newest.chat = in.ChatID
			_, newest.message = server.Write(in)
		},
		Edit:    func(text string) { server.EditText(newest.chat, newest.message, text) },
		Unacked: func() int { return len(server.Pending()) }, Redeliver: time.Minute,
		Unknown: func() {
			server.DeliverRaw(func(id int64) string { return fmt.Sprintf(`{"update_id":%d,"future":{"id":1}}`, id) })
		},
		Malformed: func() {
			server.DeliverRaw(func(id int64) string { return fmt.Sprintf(`{"update_id":%d,"message":[]}`, id) })
			server.DeliverRaw(func(id int64) string { return fmt.Sprintf(`{"update_id":%d,"callback_query":{"id":{}}}`, id) })
			server.DeliverRaw(func(id int64) string { return fmt.Sprintf(`{"update_id":"%d"}`, id) })
		},
		Shown: func(c connectorstest.Chat) []string {
			texts := []string{}
			for _, m := range server.Sent(id(c)) {
				texts = append(texts, m.Text)
			}
			return texts
		},
		Sends:   func() int { return server.Calls("sendMessage") + server.Calls("editMessageText") },
		Delete:  func(c connectorstest.Chat, receipt string) { server.DeleteSent(id(c), number(receipt)) },
		Limit:   func(c connectorstest.Chat, d time.Duration) { server.Silence(id(c), d) },
		Lose:    func(c connectorstest.Chat) { server.Fail(telegramtest.Fault{Chat: id(c), Lost: true}) },
		Drop:    func(c connectorstest.Chat) { server.Fail(telegramtest.Fault{Chat: id(c), Drop: true}) },
		Unreach: func(connectorstest.Chat) { line.broken.Store(true) },
		Refuse: func(c connectorstest.Chat) {
			server.Fail(telegramtest.Fault{Chat: id(c), Status: http.StatusBadRequest, Description: "Bad Request: message is too long"})
		},
		Kill: func(c connectorstest.Chat) { server.Block(id(c), true) },
		Down: func(down bool) {
			if !down {
				server.Heal()
				return
			}
			server.Fail(telegramtest.Fault{Times: -1, Drop: true})
		},
		Hang: func() {
			server.Fail(telegramtest.Fault{Times: -1, Hang: true})
			time.AfterFunc(90*time.Second, server.Heal)
		},
		Revoke: func() {
			server.Fail(telegramtest.Fault{Times: -1, Status: http.StatusUnauthorized, Description: "Unauthorized"})
		},
		Files: func(c connectorstest.Chat) (files []connectorstest.File) {
			for _, m := range server.Sent(id(c)) {
				if m.File != nil {
					files = append(files, connectorstest.File{Name: m.File.Name, Data: string(m.File.Data)})
				}
			}
			return files
		},
		Reactions: func(c connectorstest.Chat, message string) (all []string) {
			if emoji := server.Reaction(id(c), number(message)); emoji != "" {
				all = append(all, emoji)
			}
			return all
		},
		React: func(c connectorstest.Chat, user int, message string, removed bool) {
			var emoji []string
			if !removed {
				emoji = []string{"👍"}
			}
			if server.React(id(c), int64(user), number(message), emoji...) == 0 {
				t.Errorf("no message %s", message)
			}
		},
		LoseFile: func() { server.LoseFile(file) },
		Press: func(c connectorstest.Chat, user int, receipt, label string) {
			if _, ok := server.Press(id(c), int64(user), number(receipt), label); !ok {
				t.Errorf("no button %q", label)
			}
		},
	}
}
