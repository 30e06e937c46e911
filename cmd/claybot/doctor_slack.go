package main

import (
	"github.com/claybot/claybot/configs"
)

// rotation checks what an app needs whose bot tokens Slack rotates. It asks Slack for nothing: a refresh
// token counts once.
func (d *doctor) rotation(i configs.Instance, s *configs.Slack) {
	switch {
	case !s.Rotates():
	case s.ClientID == "":
		d.problem("credential-missing", clientIDName(i)+" is missing", "copy the Client ID from api.slack.com/apps, Basic Information")
	case s.BotToken.Named():
		d.warn("slack-token-unused", s.BotToken.String()+" is not used: Slack rotates the bot tokens of this app", "remove it")
	default:
		d.ok("Slack rotates its bot tokens, and claybot renews them")
	}
}
