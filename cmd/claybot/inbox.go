package main

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/web"
)

type inboxCmd struct {
	Show inboxShowCmd `cmd:"" default:"withargs" eg:"inbox AGENT" help:"List the waiting messages of an agent."`
	Drop inboxDropCmd `cmd:"" eg:"inbox drop AGENT MESSAGE" help:"Drop waiting messages of an agent."`
}

type (
	inboxShowCmd struct {
		Agent claybot.AgentID `arg:"" help:"ID of the agent, as listed by agents."`
		JSON  bool            `name:"json" help:"Print JSON."`
	}
	inboxDropCmd struct {
		Agent    claybot.AgentID     `arg:"" help:"ID of the agent, as listed by agents."`
		Messages []claybot.MessageID `arg:"" optional:"" name:"message" help:"IDs of the messages. Default: all waiting messages."`
	}
)

// Run shows an inbox.
func (c inboxShowCmd) Run(e *env) error {
	return show(e, c.JSON, at(agentPath(c.Agent, "inbox")), func(v web.InboxView) error {
		if err := e.text(workLine(v) + "\n"); err != nil {
			return err
		}
		return e.list("AT,KIND,FROM,MESSAGE,TEXT", "No waiting messages.\n", each(v.Waiting, func(m web.WaitingView) []string {
			kind := cmp.Or(string(m.Kind), string(m.Type))
			if m.Silent {
				kind += ", silent"
			}
			from := cmp.Or(m.From.Name, string(m.From.Agent), m.From.UserID, "-")
			return []string{moment(m.At.Time()), kind, oneLine(from), string(m.ID), oneLine(m.Text)}
		}))
	})
}

// workLine says what the agent is doing.
func workLine(v web.InboxView) string {
	r := v.Run
	switch {
	case r == nil && v.Stopped != "":
		return "Stopped: messages wait, and no run begins. " + v.Stopped
	case r == nil:
		return "No unfinished run."
	}
	line := fmt.Sprintf("Run %s, %s since %s", r.ID, r.State, moment(r.Started.Time()))
	if r.Awaiting != nil {
		line += fmt.Sprintf(", awaiting %s until %s", count(len(r.Awaiting.Answers), "answer"), moment(r.Awaiting.Until.Time()))
	}
	return line + "."
}

// Run drops messages.
func (c inboxDropCmd) Run(e *env) error {
	q := url.Values{}
	for _, id := range c.Messages {
		if strings.TrimSpace(string(id)) == "" { // or the daemon would drop all
			return errNoMessageID
		}
		q.Add("message", string(id))
	}
	return reply(e, "DELETE", at(agentPath(c.Agent, "inbox")).with(q), nil, func(out web.Dropped) string {
		return cmp.Or(dropped(out), "Nothing dropped: no such message is waiting.\n")
	})
}

// dropped lists messages that were dropped.
func dropped(out web.Dropped) string {
	var b strings.Builder
	for _, id := range out.Dropped {
		fmt.Fprintln(&b, "dropped", oneLine(string(id)))
	}
	return b.String()
}

type parkedCmd struct {
	List parkedListCmd `cmd:"" default:"withargs" eg:"parked" help:"List faulty agents and their waiting messages."`
	Drop parkedDropCmd `cmd:"" eg:"parked drop telegram:123456789:123456789" help:"Drop the parked messages of an agent."`
}

type (
	parkedListCmd struct {
		Limit int  `default:"50" help:"Maximum number of agents."`
		JSON  bool `name:"json" help:"Print JSON."`
	}
	parkedDropCmd struct {
		Agent string `arg:"" help:"Name of the agent, as listed by parked: connector:channel:user."`
	}
)

// Run lists agents with parked messages.
func (c parkedListCmd) Run(e *env) error {
	return show(e, c.JSON, to("/parked?limit="+strconv.Itoa(c.Limit)), func(out web.ParkedList) error {
		return e.list("SINCE,MESSAGES,AGENT,FIRST,CAUSE", "No messages are parked.\n", each(out.Parked, func(p overview.ParkedAgent) []string {
			return []string{moment(p.Since.Time()), strconv.Itoa(p.Messages), p.Agent, string(p.First), connectors.OneLine(p.Cause, 300)}
		}))
	})
}

// Run drops the parked messages of an agent.
func (c parkedDropCmd) Run(e *env) error {
	if c.Agent == "" {
		return usageError{fmt.Errorf("the agent name is empty; claybot parked lists them")}
	}
	return reply(e, "DELETE", to("/parked").with(url.Values{"agent": {c.Agent}}), nil, dropped)
}

type outboxCmd struct {
	List  outboxListCmd  `cmd:"" default:"withargs" eg:"outbox --state failed" help:"List the outbox, newest first."`
	Retry outboxRetryCmd `cmd:"" eg:"outbox retry DELIVERY" help:"Retry a failed delivery, or send a pending one now."`
	Drop  outboxDropCmd  `cmd:"" eg:"outbox drop DELIVERY" help:"Drop an unsent message."`
}

type (
	outboxListCmd struct {
		State string `placeholder:"STATE" values:"waiting,attempted,sent,ambiguous,failed,open" help:"State to list: waiting, attempted, sent, ambiguous, failed, or open for all unfinished ones."`
		Limit int    `default:"20" help:"Maximum number of entries."`
		JSON  bool   `name:"json" help:"Print JSON."`
	}
	outboxRetryCmd struct {
		ID string `arg:"" help:"ID of the outgoing message."`
	}
	outboxDropCmd struct {
		ID string `arg:"" help:"ID of the outgoing message."`
	}
)

// Run lists the outbox.
func (c outboxListCmd) Run(e *env) error {
	r := to("/outbox").with(url.Values{"limit": {strconv.Itoa(c.Limit)}, "state": {c.State}})
	return show(e, c.JSON, r, func(out web.OutgoingList) error {
		return e.list("AT,STATE,TRIES,TO,ID,TEXT", "No such messages.\n", each(out.Outgoing, func(o web.OutgoingView) []string {
			text := o.Text
			if o.Cause != "" && o.State != claybot.SendSent {
				text = "(" + o.Cause + ") " + text
			}
			return []string{
				moment(o.At.Time()), string(o.State), strconv.Itoa(o.Attempts), o.Route.Connector + ":" + o.Route.ChannelID, o.ID, oneLine(text),
			}
		}))
	})
}

// Run retries a delivery.
func (c outboxRetryCmd) Run(e *env) error {
	return e.does("POST", at(outgoingPath(c.ID, "retry")), nil, fmt.Sprintf("Retrying %s.\n", c.ID))
}

// Run drops a message.
func (c outboxDropCmd) Run(e *env) error {
	return e.does("DELETE", at(outgoingPath(c.ID)), nil, fmt.Sprintf("Dropped %s.\n", c.ID))
}
