package main

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/web"
)

type whyCmd struct {
	Ref  string `arg:"" help:"Message link from Slack, Telegram or Discord, or the ID of a message, a run or a delivery."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Run traces a message.
func (c whyCmd) Run(e *env) error {
	return show(e, c.JSON, to("/receipts?message="+url.QueryEscape(c.Ref)), func(out web.ReceiptList) error {
		for i, r := range out.Receipts {
			head := fmt.Sprintf("%s, of agent %s\n%s\n\n%s\n\n", r.Message, r.Agent, oneLine(r.Text), strings.Join(strings.Fields(r.Verdict.Text), " "))
			if i > 0 {
				head = "\n" + head
			}
			if err := e.text(head); err != nil {
				return err
			}
			err := e.table(each(r.Steps, func(s overview.Step) []string {
				text := s.Text
				if s.MS > 0 {
					text += fmt.Sprintf(" (%s)", time.Duration(s.MS)*time.Millisecond)
				}
				return []string{moments(s.At), s.What, text}
			}))
			if err == nil && r.Silence != "" {
				err = e.text("\nNo reply: " + r.Silence + ".\n")
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}
