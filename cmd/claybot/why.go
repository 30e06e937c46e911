package main

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/claybot/claybot/overview"

	"github.com/claybot/claybot"
)

type whyCmd struct {
	Ref  string `arg:"" help:"A link that Slack or Telegram gives to a message, or the id of a message, a run or a delivery."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Run tells what became of a message.
func (c whyCmd) Run(e *env) error {
	var out struct {
		Receipts []struct {
			Message claybot.MessageID `json:"messageId"`
			Agent   claybot.AgentID   `json:"agentId"`
			Text    string            `json:"text"`
			Steps   []overview.Step   `json:"steps"`
			Silence string            `json:"silence,omitempty"`
			Verdict overview.Verdict  `json:"verdict"`
		} `json:"receipts"`
	}
	var raw any
	into := any(&out)
	if c.JSON {
		into = &raw
	}
	if err := e.ask("GET", "/receipts?message="+url.QueryEscape(c.Ref), nil, into); err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(raw)
	}
	for i, r := range out.Receipts {
		if i > 0 {
			if err := e.text("\n"); err != nil {
				return err
			}
		}
		if err := e.text(fmt.Sprintf("%s, of agent %s\n%s\n\n%s\n\n", r.Message, r.Agent, oneLine(r.Text), strings.Join(strings.Fields(r.Verdict.Text), " "))); err != nil {
			return err
		}
		var rows [][]string
		for _, s := range r.Steps {
			at := "-"
			if s.At != 0 {
				at = moment(s.At.Time())
			}
			text := s.Text
			if s.MS > 0 {
				text += fmt.Sprintf(" (%s)", time.Duration(s.MS)*time.Millisecond)
			}
			rows = append(rows, []string{at, s.What, text})
		}
		if err := e.table(rows); err != nil {
			return err
		}
		if r.Silence != "" {
			if err := e.text("\nNo reply: " + r.Silence + ".\n"); err != nil {
				return err
			}
		}
	}
	return nil
}
