package dashboard

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

const (
	chatConnector = "web" // the connector whose conversations the page shows
	// titlesMost is the maximum number of conversations named per request, and
	// titleRunes the maximum length of a name.
	titlesMost = 30
	titleRunes = 60
)

// chatPages serves the chats.
type chatPages struct {
	*pages
	rows   lookup
	asked  *questionPages
	agents web.Agents
	guided bool // there is a guide that sets claybot up
}

func (b *chatPages) routes() []web.Route {
	return []web.Route{
		b.screen("/{$}", "chats", func(r *http.Request) (any, error) {
			v := viewerOf(r)
			return chatsView{v, messagePrefix(web.User(r)), b.guided && v.Administers()}, nil
		}),
		b.part("/ui/chats/questions", "chats", "asks", b.chatNow),
		{Pattern: "GET /ui/chats/titles", Scope: web.Read, Handler: http.HandlerFunc(b.chatTitles)},
	}
}

// A chatsView is the page of the chats. Prefix begins the ids of the messages
// that its viewer sends, see webchat: it names every user but the owner.
type chatsView struct {
	viewer
	Prefix string
	Guided bool // the guide shows a banner, if claybot is to be set up
}

func messagePrefix(user string) string {
	if user == web.Operator {
		return chatConnector + "/"
	}
	return chatConnector + "/" + url.PathEscape(user) + "/"
}

// A chatView is the state of a conversation. Agent is empty before the first message.
type chatView struct {
	Agent     claybot.AgentID
	Busy      bool
	Questions []asked
}

func (b *chatPages) chatNow(r *http.Request) (any, error) {
	e, err := b.conversation(r)
	v := chatView{Agent: e.ID}
	if err != nil || e.ID == "" {
		return v, err
	}
	if v.Questions, err = b.asked.openQuestions(r, e.ID, ""); err != nil {
		return nil, err
	}
	row, err := b.rows.agentRow(r, e)
	v.Busy = len(v.Questions) > 0 || row.Run != "" && row.State != "idle" && row.State != "waiting"
	return v, err
}

// chatTitles names the conversations that ?conversation= lists, each by the first
// text that its agent remembers. The browser caches the names.
func (b *chatPages) chatTitles(w http.ResponseWriter, r *http.Request) {
	all, err := b.agents.Conversations(r.Context(), chatConnector, web.User(r))
	wanted, titles := r.URL.Query()["conversation"], make(map[string]string)
	for _, e := range all {
		if err != nil || len(titles) >= titlesMost {
			break
		}
		if slices.Contains(wanted, e.Descriptor.ChannelID) {
			var records []claybot.Record
			records, err = b.agents.Remembered(r.Context(), e.ID)
			err = ignoreGone(err)
			titles[e.Descriptor.ChannelID] = titleOf(records)
		}
	}
	if err != nil {
		b.fail(w, r, err)
		return
	}
	web.Answer(w, http.StatusOK, map[string]any{"titles": titles})
}

// titleOf returns the beginning of the first user text, empty for none.
func titleOf(records []claybot.Record) string {
	for _, rec := range records {
		if title := excerpt(titleRunes, rec.Text); rec.Type == claybot.RecordUser && title != "" {
			return title
		}
	}
	return ""
}

// conversation returns the agent of ?conversation=, the zero entry before its first
// message.
func (b *chatPages) conversation(r *http.Request) (storage.IndexEntry, error) {
	all, err := b.agents.Conversations(r.Context(), chatConnector, web.User(r))
	for _, e := range all {
		if e.Descriptor.ChannelID == r.URL.Query().Get("conversation") {
			return e, err
		}
	}
	return storage.IndexEntry{}, err
}
