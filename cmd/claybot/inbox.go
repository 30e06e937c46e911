package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/web"
)

type inboxCmd struct {
	Show inboxShowCmd `cmd:"" default:"withargs" help:"List the waiting messages of an agent."`
	Drop inboxDropCmd `cmd:"" help:"Drop waiting messages of an agent."`
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
		if _, err := fmt.Fprintln(e.out, workLine(v)); err != nil {
			return err
		}
		if len(v.Waiting) == 0 {
			return e.text("Nothing waits.\n")
		}
		return e.table(waitingTable(v))
	})
}

// workLine says what the agent is doing.
func workLine(v web.InboxView) string {
	switch r := v.Run; {
	case r == nil:
		return "No run is unfinished."
	case r.Awaiting != nil:
		return fmt.Sprintf("Run %s, %s since %s, for %s, until %s.",
			r.ID, r.State, moment(r.Started.Time()), count(len(r.Awaiting.Answers), "answer"), moment(r.Awaiting.Until.Time()))
	default:
		return fmt.Sprintf("Run %s, %s since %s.", r.ID, r.State, moment(r.Started.Time()))
	}
}

func waitingTable(v web.InboxView) [][]string {
	rows := [][]string{{"AT", "KIND", "FROM", "MESSAGE", "TEXT"}}
	for _, m := range v.Waiting {
		kind := cmp.Or(string(m.Kind), string(m.Type))
		if m.Silent {
			kind += ", silent"
		}
		from := cmp.Or(m.From.Name, string(m.From.Agent), m.From.UserID, "-")
		rows = append(rows, []string{moment(m.At.Time()), kind, oneLine(from), string(m.ID), oneLine(m.Text)})
	}
	return rows
}

// Run drops messages.
func (c inboxDropCmd) Run(e *env) error {
	q := url.Values{}
	for _, id := range c.Messages {
		if strings.TrimSpace(string(id)) == "" { // or the daemon would be asked to drop all
			return usageError{errors.New("the id of a message is empty")}
		}
		q.Add("message", string(id))
	}
	out, err := ask[web.Dropped](e, "DELETE", at(agentPath(c.Agent, "inbox")).with(q), nil)
	if err != nil {
		return err
	}
	if len(out.Dropped) == 0 {
		return e.text("Nothing was dropped: no such message waits.\n")
	}
	for _, id := range out.Dropped {
		if _, err := fmt.Fprintln(e.out, "dropped", plain(string(id))); err != nil {
			return err
		}
	}
	return nil
}
