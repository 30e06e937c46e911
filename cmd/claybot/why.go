package main

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/claybot/claybot/web"
)

type whyCmd struct {
	Ref  string `arg:"" help:"Message link from Slack or Telegram, or the ID of a message, a run or a delivery."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Run tells what became of a message.
func (c whyCmd) Run(e *env) error {
	return show(e, c.JSON, to("/receipts?message="+url.QueryEscape(c.Ref)), func(out web.ReceiptList) error {
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
	})
}
