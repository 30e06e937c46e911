package main

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"github.com/claybot/claybot/overview"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

type parkedCmd struct {
	List parkedListCmd `cmd:"" default:"withargs" help:"List agents that cannot be used, with the messages that wait for them."`
	Drop parkedDropCmd `cmd:"" help:"Drop the parked messages of an agent."`
}

type (
	parkedListCmd struct {
		Limit int  `default:"50" help:"Number of agents."`
		JSON  bool `name:"json" help:"Print JSON."`
	}
	parkedDropCmd struct {
		Agent string `arg:"" help:"The agent, as parked shows it: connector:channel:user."`
	}
)

// Run lists agents with parked messages.
func (c parkedListCmd) Run(e *env) error {
	var out struct {
		Parked []overview.ParkedAgent `json:"parked"`
	}
	if err := e.ask("GET", "/parked?limit="+strconv.Itoa(c.Limit), nil, &out); err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(out)
	}
	if len(out.Parked) == 0 {
		return e.text("No messages are parked.\n")
	}
	rows := [][]string{{"SINCE", "MESSAGES", "AGENT", "FIRST", "CAUSE"}}
	for _, p := range out.Parked {
		rows = append(rows, []string{moment(p.Since.Time()), strconv.Itoa(p.Messages), p.Agent, string(p.First), plain(connectors.OneLine(p.Cause, 300))})
	}
	return e.table(rows)
}

// Run drops the parked messages of an agent.
func (c parkedDropCmd) Run(e *env) error {
	if c.Agent == "" {
		return usageError{errors.New("the name of the agent is empty")}
	}
	var out struct {
		Dropped []claybot.MessageID `json:"dropped"`
	}
	if err := e.ask("DELETE", "/parked?"+url.Values{"agent": {c.Agent}}.Encode(), nil, &out); err != nil {
		return err
	}
	for _, id := range out.Dropped {
		if _, err := fmt.Fprintln(e.out, "dropped", plain(string(id))); err != nil {
			return err
		}
	}
	return nil
}
