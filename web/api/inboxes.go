package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/web"
)

// shortText is the length of a waiting message in a list, in characters.
const shortText = 200

// inboxes serves waiting and parked messages.
type inboxes struct{ inboxes web.Inboxes }

func (x inboxes) operations() []operation {
	return ofAgents.like(
		returns(http.StatusOK, op("getInbox", web.Read, "GET /agents/{agent}/inbox", "Get the waiting messages and the active run of an agent."), x.get),
		op("dropMessages", web.Operate, "DELETE /agents/{agent}/inbox", "Delete waiting messages from an inbox.").
			query(param{name: "message", about: "The id of a message. Default: all waiting messages.", many: true},
				param{name: preferHeader, about: "return=representation: list what was deleted.", header: true}).
			served(x.drop, answer{status: http.StatusNoContent, about: "They no longer wait, and no run takes them."},
				answer{status: http.StatusOK, value: web.Dropped{}, about: "The same, where the request prefers a list."}),
		returns(http.StatusOK, op("listParked", web.Read, "GET /parked", "List unusable agents: those with parked messages first, by their oldest message.").
			failing().query(limitParam), x.parked),
		returns(http.StatusOK, op("dropParked", web.Operate, "DELETE /parked", "Delete the parked messages of an agent.").failing(http.StatusNotFound).
			query(param{name: "agent", about: "The agent as listed: connector:channel:user."}).
			unknown(hint{"No messages are parked for that agent.", "GET /parked lists the agents that have parked messages."}), x.dropParked),
	)
}

func (x inboxes) get(r *http.Request) (web.InboxView, error) {
	v, err := x.inboxes.Inbox(r.Context(), agentOf(r))
	out := web.InboxView{Waiting: []web.WaitingView{}, Stopped: v.Stopped}
	for _, m := range v.Waiting {
		out.Waiting = append(out.Waiting, web.WaitingView{
			ID: m.ID, Type: m.Type, Kind: m.Kind, From: m.From, Text: shorten(typed(m), shortText), At: m.At, Silent: m.Silent,
		})
	}
	if x := v.Run; x != nil && !x.State.Ended() {
		out.Run = &web.WorkView{ID: x.ID, State: x.State, Started: x.Started, Awaiting: viewAwaiting(x.Awaiting)}
	}
	return out, err
}

// typed returns the text of a message as its sender wrote it: a command with its slash.
func typed(m claybot.AgentMessage) string {
	word := ""
	switch m.Type {
	case claybot.MessageReset:
		word = "/new "
	case claybot.MessageCancel:
		word = "/stop "
	case claybot.MessageCompact:
		word = "/compact "
	case claybot.MessageCommand:
		if m.Command != connectors.Unknown { // which has its word in the text
			word = "/" + m.Command + " "
		}
	}
	if text := strings.TrimSpace(word + m.Text); text != "" || len(m.Files) == 0 {
		return text
	}
	return "[" + connectors.FilesLine(m.Files) + "]"
}

// shorten cuts a text to n characters, including the ellipsis.
func shorten(text string, n int) string {
	seen := 0
	cut := 0 // where the last character of a shortened text would start
	for i := range text {
		if seen++; seen == n {
			cut = i
		}
		if seen > n {
			return text[:cut] + "…"
		}
	}
	return text
}

// preferHeader is the header by which a client asks for an answer with content, RFC 7240.
const preferHeader = "Prefer"

// prefersContent reports whether a client asks for what a request has changed.
func prefersContent(r *http.Request) bool {
	for _, v := range r.Header.Values(preferHeader) {
		for p := range strings.SplitSeq(v, ",") {
			p, _, _ = strings.Cut(p, ";")
			if name, value, _ := strings.Cut(p, "="); strings.EqualFold(strings.TrimSpace(name), "return") && strings.Trim(strings.TrimSpace(value), `"`) == "representation" {
				return true
			}
		}
	}
	return false
}

func (x inboxes) drop(w http.ResponseWriter, r *http.Request) error {
	named := r.URL.Query()["message"]
	if slices.Contains(named, "") {
		return bad("?message= is empty.", "Omit it to delete all waiting messages.")
	}
	ids := make([]claybot.MessageID, len(named))
	for i, id := range named {
		ids[i] = claybot.MessageID(id)
	}
	gone, err := x.inboxes.Drop(r.Context(), agentOf(r), ids...)
	switch {
	case err != nil:
		return err
	case prefersContent(r):
		return reply(w, http.StatusOK, web.Dropped{Dropped: orEmpty(gone)})
	}
	return noContent(w)
}

func (x inboxes) parked(r *http.Request) (web.ParkedList, error) {
	all, err := x.inboxes.ParkedAgents(r.Context(), limitOf(r, pageDefault))
	return web.ParkedList{Parked: orEmpty(all)}, err
}

func (x inboxes) dropParked(r *http.Request) (web.Dropped, error) {
	agent := r.URL.Query().Get("agent")
	if agent == "" {
		return web.Dropped{}, bad("?agent= must name an agent.", "GET /parked lists the agents.")
	}
	gone, err := x.inboxes.DropParked(r.Context(), agent)
	return web.Dropped{Dropped: orEmpty(gone)}, err
}
