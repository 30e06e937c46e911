package main

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/web"
)

type outboxCmd struct {
	List  outboxListCmd  `cmd:"" default:"withargs" help:"List the outbox, newest first."`
	Retry outboxRetryCmd `cmd:"" help:"Retry a failed delivery, or send a pending one now."`
	Drop  outboxDropCmd  `cmd:"" help:"Drop an unsent message."`
}

type (
	outboxListCmd struct {
		State string `placeholder:"STATE" help:"State to list: waiting, attempted, sent, ambiguous, failed, or open for all unfinished ones."`
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
	q := url.Values{"limit": {strconv.Itoa(c.Limit)}}
	if c.State != "" {
		q.Set("state", c.State)
	}
	return show(e, c.JSON, to("/outbox?"+q.Encode()), func(out web.OutgoingList) error {
		rows := [][]string{{"AT", "STATE", "TRIES", "TO", "ID", "TEXT"}}
		for _, o := range out.Outgoing {
			text := o.Text
			if o.Cause != "" && o.State != claybot.SendSent {
				text = "(" + o.Cause + ") " + text
			}
			rows = append(rows, []string{
				moment(o.At.Time()), string(o.State), strconv.Itoa(o.Attempts), o.Route.Connector + ":" + o.Route.ChannelID, o.ID, oneLine(text),
			})
		}
		return e.list(rows, "There is no such message.\n")
	})
}

func outgoingPath(id, more string) (string, error) {
	if id == "" {
		return "", usageError{errors.New("the id of a message is empty")}
	}
	return "/outbox/" + url.PathEscape(id) + more, nil
}

// Run sends a message again.
func (c outboxRetryCmd) Run(e *env) error {
	return e.does("POST", at(outgoingPath(c.ID, "/retry")), nil, fmt.Sprintf("Retrying %s.\n", c.ID))
}

// Run gives a message up.
func (c outboxDropCmd) Run(e *env) error {
	return e.does("DELETE", at(outgoingPath(c.ID, "")), nil, fmt.Sprintf("Dropped %s.\n", c.ID))
}
