package main

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/web"
)

type parkedCmd struct {
	List parkedListCmd `cmd:"" default:"withargs" help:"List faulty agents and their waiting messages."`
	Drop parkedDropCmd `cmd:"" help:"Drop the parked messages of an agent."`
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
		rows := [][]string{{"SINCE", "MESSAGES", "AGENT", "FIRST", "CAUSE"}}
		for _, p := range out.Parked {
			rows = append(rows, []string{moment(p.Since.Time()), strconv.Itoa(p.Messages), p.Agent, string(p.First), plain(connectors.OneLine(p.Cause, 300))})
		}
		return e.list(rows, "No messages are parked.\n")
	})
}

// Run drops the parked messages of an agent.
func (c parkedDropCmd) Run(e *env) error {
	if c.Agent == "" {
		return usageError{errors.New("the name of the agent is empty")}
	}
	out, err := ask[web.Dropped](e, "DELETE", to("/parked?"+url.Values{"agent": {c.Agent}}.Encode()), nil)
	if err != nil {
		return err
	}
	for _, id := range out.Dropped {
		if _, err := fmt.Fprintln(e.out, "dropped", plain(string(id))); err != nil {
			return err
		}
	}
	return nil
}
