package discord

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/connectorstest"
	"github.com/claybot/claybot/connectors/discord/discordtest"
	"github.com/claybot/claybot/storage"
)

func TestSuite(t *testing.T) {
	connectorstest.Run(t, connectorstest.Harness{
		Name: "discord", Open: openSuite,
		Lacks:      map[string]string{"answers to commands reach their person alone": "answers commands in the chat"},
		Unstorable: &storage.Fault{Class: storage.ClassMessage, Err: errors.New("no id")},
	})
}

// openSuite is a bot in the terms of the suite, which ran before: Discord brings what was
// written since its session was left.
func openSuite(t *testing.T) *connectorstest.Platform {
	w := openWorld(t, discordtest.Config{Keep: time.Hour})
	left := session{URL: "ws://" + host + "/gateway", Intents: intents | intentContent, At: time.Now().Unix()}
	left.ID, left.Seq = w.Session(host, left.Intents)
	text, err := json.Marshal(left)
	if err != nil {
		t.Fatal(err)
	}
	_ = w.marks.SetCheckpoint(t.Context(), sessionKey, string(text)) // never fails
	id := func(c connectorstest.Chat) string {
		if c.Group {
			return groupID(c.N)
		}
		return directID(c.N)
	}
	var newest struct{ channel, message string }
	fail := func(c connectorstest.Chat, f discordtest.Fault) {
		for _, route := range []string{"POST messages", "PATCH message"} {
			f.Route, f.Channel = route, id(c)
			w.Fail(f)
		}
	}
	return &connectorstest.Platform{
		Connector: func() connectors.Connector { return w.connector() },
		Close:     w.close,
		Secrets:   []string{"FAKE-discord-token", "interaction-canary"}, Logs: w.logs.String,
		User: userID,
		Route: func(c connectorstest.Chat, user int) claybot.Route {
			r := claybot.Route{Connector: "discord", ChannelID: id(c), UserID: userID(user), Group: c.Group}
			if c.Group {
				r.ChannelID = guildID + "/" + r.ChannelID
			}
			return r
		},
		Write: func(x connectorstest.Written) {
			p := discordtest.Post{Channel: id(x.Chat), User: userID(x.User), Text: x.Text}
			if x.Mention {
				p.Text = "<@" + discordtest.Bot + "> " + x.Text
			}
			if x.File != nil {
				p.Files = []discordtest.File{{Name: x.File.Name, Type: "text/plain", Data: []byte(x.File.Data)}}
			}
			newest.channel, newest.message = p.Channel, w.Write(p)
		},
		Edit:    func(text string) { w.Edit(newest.channel, newest.message, text) },
		Unsend:  func() { w.Delete(newest.channel, newest.message) },
		Unacked: func() int { s := w.marks.session(); return w.Behind(s.ID, s.Seq) }, Redeliver: 45 * time.Second,
		Unknown: func() { w.Dispatch("FUTURE", map[string]any{"type": "future"}) },
		Malformed: func() {
			w.Dispatch("MESSAGE_CREATE", "text")
			w.Dispatch("MESSAGE_CREATE", map[string]any{"id": 1, "author": []any{}})
			w.Dispatch("INTERACTION_CREATE", map[string]any{"type": "press", "data": "none"})
			w.Frame([]byte("{"))
		},
		Shown: func(c connectorstest.Chat) []string {
			texts := []string{}
			for _, m := range w.Sent(id(c)) {
				texts = append(texts, discordtest.Visible(m.Content))
			}
			return texts
		},
		Sends:  func() int { return w.Calls("POST messages") + w.Calls("PATCH message") },
		Delete: func(c connectorstest.Chat, receipt string) { w.Delete(id(c), receipt) },
		Limit: func(c connectorstest.Chat, d time.Duration) {
			w.Fail(discordtest.Fault{Route: "POST messages", Channel: id(c), RetryAfter: d})
		},
		Lose:    func(c connectorstest.Chat) { fail(c, discordtest.Fault{Lost: true}) },
		Drop:    func(c connectorstest.Chat) { fail(c, discordtest.Fault{Drop: true}) },
		Unreach: func(connectorstest.Chat) { w.line.broken.Store(true) },
		Refuse: func(c connectorstest.Chat) {
			w.Fail(discordtest.Fault{Route: "POST messages", Channel: id(c), Status: http.StatusBadRequest, Code: 50035})
		},
		Kill:   func(c connectorstest.Chat) { w.CloseChannel(id(c)) },
		Down:   w.Down,
		Revoke: w.Revoke,
		Hang: func() {
			w.Mute(true)
			time.AfterFunc(90*time.Second, func() { w.Mute(false) })
		},
		Files: func(c connectorstest.Chat) (files []connectorstest.File) {
			for _, m := range w.Sent(id(c)) {
				for _, f := range m.Files {
					files = append(files, connectorstest.File{Name: f.Name, Data: string(f.Data)})
				}
			}
			return files
		},
		Reactions: func(c connectorstest.Chat, message string) []string { return w.Reactions(id(c), message) },
		React: func(c connectorstest.Chat, user int, message string, removed bool) {
			if !w.React(id(c), message, userID(user), "👍", removed) {
				t.Errorf("no message %s", message)
			}
		},
		LoseFile: func() { w.LoseFile(newest.channel, newest.message) },
		Press: func(c connectorstest.Chat, user int, receipt, label string) {
			if err := w.Press(id(c), userID(user), receipt, label); err != nil {
				t.Error(err)
			}
		},
	}
}
