package main

import (
	"regexp"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/claybot/claybot/connectors/discord/discordtest"
	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
)

// replyCommand is reply PLATFORM CHAT USER REGEXP TEXT: a person replies to the newest message of the bot
// that matches, on Slack in its thread.
func (r *rig) replyCommand(ts *testscript.TestScript, args []string) {
	if len(args) != 5 {
		ts.Fatalf("usage: reply telegram|slack|discord CHAT USER REGEXP TEXT")
	}
	re, err := regexp.Compile("(?s)" + args[3])
	ts.Check(err)
	found := func(n int, text func(int) string) (last int) {
		last = -1
		for i := range n {
			if re.MatchString(text(i)) {
				last = i
			}
		}
		if last < 0 {
			ts.Fatalf("no message of the bot in %s matches %s", args[1], args[3])
		}
		return last
	}
	switch args[0] {
	case "telegram":
		chat, user := person(ts, args[1]+":"+args[2])
		sent := r.telegram.Sent(chat)
		to := sent[found(len(sent), func(i int) string { return sent[i].Text })]
		r.last, _ = r.telegram.Write(telegramtest.Incoming{ChatID: chat, UserID: user, Text: args[4], ReplyTo: to.ID})
	case "slack":
		posted := r.slack.Posted(args[1])
		to := posted[found(len(posted), func(i int) string { return posted[i].Text })]
		r.slack.Write(slacktest.Post{Channel: args[1], Thread: to.TS, User: args[2], Text: args[4]})
	case "discord":
		channel := discordID(ts, args[1])
		sent := r.discord.Sent(channel)
		to := sent[found(len(sent), func(i int) string { return discordtest.Visible(sent[i].Content) })]
		r.discord.Write(discordtest.Post{Channel: channel, User: discordID(ts, args[2]), Text: args[4], ReplyTo: to.ID})
	default:
		ts.Fatalf("no platform %s", args[0])
	}
}
