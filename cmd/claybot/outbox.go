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
	List  outboxListCmd  `cmd:"" default:"withargs" help:"List outgoing messages, the newest first."`
	Retry outboxRetryCmd `cmd:"" help:"Send a failed message again, or a waiting one at once."`
	Drop  outboxDropCmd  `cmd:"" help:"Give up a message that was not sent."`
}

type (
	outboxListCmd struct {
		State string `placeholder:"STATE" help:"In this state only: waiting, attempted, sent, ambiguous, failed, or open for all that are not at their end."`
		Limit int    `default:"20" help:"How many."`
		JSON  bool   `name:"json" help:"Print JSON."`
	}
	outboxRetryCmd struct {
		ID string `arg:"" help:"The id of the outgoing message."`
	}
	outboxDropCmd struct {
		ID string `arg:"" help:"The id of the outgoing message."`
	}
)

// Run lists the outbox.
func (c outboxListCmd) Run(e *env) error {
	q := url.Values{"limit": {strconv.Itoa(c.Limit)}}
	if c.State != "" {
		q.Set("state", c.State)
	}
	var out web.OutgoingList
	if err := e.ask("GET", "/outbox?"+q.Encode(), nil, &out); err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(out)
	}
	if len(out.Outgoing) == 0 {
		return e.text("There is no such message.\n")
	}
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
	return e.table(rows)
}

func outgoingPath(id, more string) (string, error) {
	if id == "" {
		return "", usageError{errors.New("the id of a message is empty")}
	}
	return "/outbox/" + url.PathEscape(id) + more, nil
}

// Run sends a message again.
func (c outboxRetryCmd) Run(e *env) error {
	path, err := outgoingPath(c.ID, "/retry")
	if err != nil {
		return err
	}
	if err := e.ask("POST", path, nil, nil); err != nil {
		return err
	}
	return e.text(fmt.Sprintf("%s is tried again.\n", c.ID))
}

// Run gives a message up.
func (c outboxDropCmd) Run(e *env) error {
	path, err := outgoingPath(c.ID, "")
	if err != nil {
		return err
	}
	if err := e.ask("DELETE", path, nil, nil); err != nil {
		return err
	}
	return e.text(fmt.Sprintf("%s is given up.\n", c.ID))
}
