package dashboard

import (
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// chatConnector is the connector whose conversations the page shows.
const chatConnector = "web"

// chatPages are the pages of the chats.
type chatPages struct {
	*pages
	rows   lookup
	asked  *questionPages
	agents web.Agents
}

func (b *chatPages) routes() []web.Route {
	return []web.Route{
		b.screen("/{$}", "chats", func(r *http.Request) (any, error) { return chatsView{viewerOf(r), messagePrefix(web.User(r))}, nil }),
		b.part("/ui/chats/questions", "chats", "asks", b.chatNow),
		{Pattern: "GET /ui/chats/titles", Scope: web.Read, Handler: http.HandlerFunc(b.chatTitles)},
	}
}

// A chatsView is the page of the chats. Prefix begins the ids of the messages
// that its viewer sends.
type chatsView struct {
	viewer
	Prefix string
}

// messagePrefix is how the chat begins the ids of the messages of a user, see
// webchat: it names everybody but the owner.
func messagePrefix(user string) string {
	if user == web.Operator {
		return chatConnector + "/"
	}
	return chatConnector + "/" + url.PathEscape(user) + "/"
}

// A chatView is how a conversation stands: who it is with, whether a run of it
// has not ended, and what is asked.
type chatView struct {
	Agent     claybot.AgentID // empty before the first message
	Busy      bool
	Questions []asked
}

// chatNow tells how a conversation of the person who looks stands.
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

const (
	// titlesMost is how many conversations are named at once, and titleRunes how
	// long a name is at most.
	titlesMost = 30
	titleRunes = 60
)

// chatTitles names the conversations that ?conversation= lists: each by the
// first words that were said in it, as far as its agent remembers. The browser
// keeps them, so each is asked for once.
func (b *chatPages) chatTitles(w http.ResponseWriter, r *http.Request) {
	all, err := b.agents.Conversations(r.Context(), chatConnector, web.User(r))
	if err != nil {
		b.fail(w, r, err)
		return
	}
	wanted := r.URL.Query()["conversation"]
	titles := make(map[string]string)
	for _, e := range all {
		if len(titles) >= titlesMost {
			break
		}
		if !slices.Contains(wanted, e.Descriptor.ChannelID) {
			continue
		}
		records, err := b.agents.Remembered(r.Context(), e.ID)
		if err != nil && !errors.Is(err, storage.ErrNotFound) { // deleted meanwhile
			b.fail(w, r, err)
			return
		}
		titles[e.Descriptor.ChannelID] = titleOf(records)
	}
	web.Answer(w, http.StatusOK, map[string]any{"titles": titles})
}

// titleOf is the beginning of the first text that a person wrote, empty when
// there is none.
func titleOf(records []claybot.Record) string {
	for _, rec := range records {
		if title := excerpt(titleRunes, rec.Text); rec.Type == claybot.RecordUser && title != "" {
			return title
		}
	}
	return ""
}

// conversation is the agent of the conversation that a request names, the zero
// entry before its first message.
func (b *chatPages) conversation(r *http.Request) (storage.IndexEntry, error) {
	channel := r.URL.Query().Get("conversation")
	all, err := b.agents.Conversations(r.Context(), chatConnector, web.User(r))
	if err != nil {
		return storage.IndexEntry{}, err
	}
	for _, e := range all {
		if e.Descriptor.ChannelID == channel {
			return e, nil
		}
	}
	return storage.IndexEntry{}, nil
}
