package api

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

var noOutgoing = hint{"There is no outgoing message with that id.", "GET /outbox lists them; escape the slashes of an id in a path as %2F."}

// An outgoingView is a message on its way out.
type outgoingView struct {
	ID       string               `json:"id" doc:"It may have slashes: in a path they are %2F."`
	N        int64                `json:"n" doc:"Its place in the outbox."`
	State    claybot.SendState    `json:"state"`
	Kind     claybot.OutgoingKind `json:"kind"`
	Run      claybot.RunID        `json:"runId,omitempty"`
	Agent    claybot.AgentID      `json:"agentId,omitempty"`
	Message  claybot.MessageID    `json:"messageId,omitempty" doc:"The message that it answers."`
	Route    claybot.Route        `json:"route"`
	Text     string               `json:"text" doc:"Markdown."`
	File     *fileView            `json:"file,omitempty" doc:"It is sent with the text as its caption; its bytes are at /agents/{agent}/files/{file}."`
	Part     int                  `json:"part" doc:"Of a long text that is several messages; from 1."`
	Parts    int                  `json:"parts"`
	Attempts int                  `json:"attempts"`
	Resent   bool                 `json:"resent,omitempty" doc:"Sent again with a mark, because the fate of the first send is not known."`
	At       claybot.Time         `json:"at"`
	Tried    claybot.Time         `json:"tried,omitempty" doc:"When the last attempt began."`
	Due      claybot.Time         `json:"due,omitempty" doc:"Not before."`
	Receipt  string               `json:"receipt,omitempty" doc:"The platform's id of the sent message."`
	Cause    string               `json:"cause,omitempty" doc:"Of the last failure."`
}

// An outgoingList is one page of the outbox.
type outgoingList struct {
	Outgoing []outgoingView `json:"outgoing"`
	Next     string         `json:"next,omitempty" doc:"Give it as before to get the next page."`
}

func viewOutgoing(o claybot.Outgoing) outgoingView {
	v := outgoingView{
		ID: o.ID, N: o.N, State: o.State, Kind: o.Kind, Run: o.Run, Agent: o.Agent, Message: o.Message, Route: o.Route, Text: o.Text,
		Part: o.Part, Parts: o.Parts, Attempts: o.Attempts, Resent: o.Resent, At: o.At, Tried: o.Tried, Due: o.Due, Receipt: o.Receipt, Cause: o.Cause,
	}
	if o.File != nil {
		f := viewFile(*o.File)
		v.File = &f
	}
	return v
}

func (a *api) outboxOperations() []operation {
	one := func(o operation) operation {
		o.path, o.tag, o.missing = "/outbox/{outgoing}"+o.path, "outbox", noOutgoing
		o.fails = []int{http.StatusNotFound, http.StatusConflict}
		return o
	}
	states := []string{
		string(claybot.SendWaiting), string(claybot.SendAttempted), string(claybot.SendSent), string(claybot.SendAmbiguous), string(claybot.SendFailed),
	}
	return []operation{
		{
			id: "listOutgoing", method: http.MethodGet, path: "/outbox", tag: "outbox", scope: web.Read,
			summary: "List outgoing messages, the newest first.",
			params: []param{
				{name: "state", about: "In this state only; open means waiting, attempted or ambiguous.", values: append(states, "open")},
				{name: "dest", about: "For this place only: connector:channel."},
				{name: "before", about: "The cursor of the page before."},
				limitParam,
			},
			answers: []answer{{status: http.StatusOK, value: outgoingList{}}}, serve: a.listOutgoing,
		},
		one(operation{
			id: "getOutgoing", method: http.MethodGet, scope: web.Read, summary: "One outgoing message.",
			answers: []answer{{status: http.StatusOK, value: outgoingView{}}}, serve: a.getOutgoing,
		}),
		one(operation{
			id: "retryOutgoing", method: http.MethodPost, path: "/retry", scope: web.Operate,
			summary: "Send a failed message again, or a waiting one at once.",
			answers: []answer{{status: http.StatusAccepted, value: outgoingView{}}}, serve: a.retryOutgoing,
		}),
		one(operation{
			id: "dropOutgoing", method: http.MethodDelete, scope: web.Operate, summary: "Give up a message that was not sent.",
			answers: []answer{{status: http.StatusNoContent}}, serve: a.dropOutgoing,
		}),
	}
}

func (a *api) listOutgoing(w http.ResponseWriter, r *http.Request) error {
	limit, err := limitOf(r, pageDefault)
	if err != nil {
		return err
	}
	q := storage.OutgoingQuery{Limit: limit + 1}
	params := r.URL.Query()
	if state := params.Get("state"); state == "open" {
		q.Open = true
	} else {
		q.State = claybot.SendState(state)
	}
	if dest := params.Get("dest"); dest != "" {
		connector, channel, ok := strings.Cut(dest, ":")
		if !ok || connector == "" || channel == "" {
			return bad("dest must be connector:channel.", "")
		}
		q.Dest = claybot.Route{Connector: connector, ChannelID: channel}.Dest()
	}
	if before := params.Get("before"); before != "" {
		if q.Before, err = strconv.ParseInt(before, 10, 64); err != nil || q.Before < 1 {
			return bad("before is no cursor of this list.", "Give next of the page before, or leave it out.")
		}
	}
	rows, err := a.Desk.OutgoingPage(r.Context(), q)
	if err != nil {
		return err
	}
	rows, next := cut(rows, limit, func(o claybot.Outgoing) string { return strconv.FormatInt(o.N, 10) })
	out := outgoingList{Outgoing: make([]outgoingView, len(rows)), Next: next}
	for i, o := range rows {
		out.Outgoing[i] = viewOutgoing(o)
	}
	return reply(w, http.StatusOK, out)
}

func (a *api) getOutgoing(w http.ResponseWriter, r *http.Request) error {
	o, err := a.Desk.Outgoing(r.Context(), r.PathValue("outgoing"))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, viewOutgoing(o))
}

func (a *api) retryOutgoing(w http.ResponseWriter, r *http.Request) error {
	o, err := a.Desk.RetryOutgoing(r.Context(), r.PathValue("outgoing"))
	if err != nil {
		return underWay(err)
	}
	return reply(w, http.StatusAccepted, viewOutgoing(o))
}

func (a *api) dropOutgoing(w http.ResponseWriter, r *http.Request) error {
	if _, err := a.Desk.DropOutgoing(r.Context(), r.PathValue("outgoing")); err != nil {
		return underWay(err)
	}
	return noContent(w)
}

func underWay(err error) error {
	if errors.Is(err, storage.ErrState) {
		return conflict("The message was sent, or is under way right now.", "Look at its state.")
	}
	return err
}
