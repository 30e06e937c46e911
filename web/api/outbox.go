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

var noOutgoing = hint{"No outgoing message with that id.", "GET /outbox lists them. In a path, escape the slashes of an id as %2F."}

func viewOutgoing(o claybot.Outgoing) web.OutgoingView {
	v := web.OutgoingView{
		ID: o.ID, N: o.N, State: o.State, Kind: o.Kind, Run: o.Run, Agent: o.Agent, Message: o.Message, Route: o.Route, Text: o.Text,
		Part: o.Part, Parts: o.Parts, Attempts: o.Attempts, Resent: o.Resent, At: o.At, Tried: o.Tried, Due: o.Due, Receipt: o.Receipt, Cause: o.Cause,
	}
	if o.File != nil {
		f := viewFile(*o.File)
		v.File = &f
	}
	return v
}

// outbox serves outgoing messages.
type outbox struct{ outbox web.Outbox }

func (x outbox) operations() []operation {
	const one = "/outbox/{outgoing}"
	states := []string{
		string(claybot.SendWaiting), string(claybot.SendAttempted), string(claybot.SendSent), string(claybot.SendAmbiguous), string(claybot.SendFailed),
	}
	return operation{tag: "outbox", missing: noOutgoing, fails: []int{http.StatusNotFound, http.StatusConflict}}.like(
		returns(http.StatusOK, op("listOutgoing", web.Read, "GET /outbox", "List outgoing messages, newest first.").failing().query(
			param{name: "state", about: "Only messages in this state; open means waiting, attempted or ambiguous.", values: append(states, "open")},
			param{name: "dest", about: "Only messages to this destination: connector:channel."},
			param{name: "before", about: "The cursor of the previous page."},
			limitParam,
		), x.list),
		returns(http.StatusOK, op("getOutgoing", web.Read, "GET "+one, "Get an outgoing message."), func(r *http.Request) (web.OutgoingView, error) {
			o, err := x.outbox.Outgoing(r.Context(), r.PathValue("outgoing"))
			return viewOutgoing(o), err
		}),
		returns(http.StatusAccepted, op("retryOutgoing", web.Operate, "POST "+one+"/retry", "Retry a failed message, or send a waiting one now."), func(r *http.Request) (web.OutgoingView, error) {
			o, err := x.outbox.RetryOutgoing(r.Context(), r.PathValue("outgoing"))
			return viewOutgoing(o), underWay(err)
		}),
		does(op("dropOutgoing", web.Operate, "DELETE "+one, "Drop an unsent message."), func(r *http.Request) error {
			_, err := x.outbox.DropOutgoing(r.Context(), r.PathValue("outgoing"))
			return underWay(err)
		}),
	)
}

func (x outbox) list(r *http.Request) (none web.OutgoingList, err error) {
	limit := limitOf(r, pageDefault)
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
			return none, bad("dest must be connector:channel.", "")
		}
		q.Dest = claybot.Route{Connector: connector, ChannelID: channel}.Dest()
	}
	if before := params.Get("before"); before != "" {
		if q.Before, err = strconv.ParseInt(before, 10, 64); err != nil || q.Before < 1 {
			return none, bad("Invalid cursor in before.", "Use next of the previous page, or omit it.")
		}
	}
	rows, err := x.outbox.OutgoingPage(r.Context(), q)
	rows, next := cut(rows, limit, func(o claybot.Outgoing) string { return strconv.FormatInt(o.N, 10) })
	return web.OutgoingList{Outgoing: each(rows, viewOutgoing), Next: next}, err
}

func underWay(err error) error {
	if errors.Is(err, storage.ErrState) {
		return conflict("The message was sent, or is under way right now.", "Look at its state.")
	}
	return err
}
