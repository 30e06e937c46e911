package agentsystem_test

import (
	"maps"
	"strconv"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors/discord/discordtest"
	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
)

// A doorway is one connector.
type doorway struct {
	platform      bool   // people write by it
	command       string // as people type it
	direct, group claybot.Descriptor
	hello         func(s *stage, group bool) // a person's first message
	entries       map[string]entry
}

// An entry says what becomes of one kind of message.
type entry struct {
	want  string
	group bool
	act   func(s *stage, try probe, text string) // nil if the platform has no such messages
	never []probe                                // that the kind cannot try
}

var none = entry{want: absent}

// doorways are all connectors, by their folders. Those whose messages no person writes have
// no entries: cron and heartbeat post system messages, webhook posts events of programs,
// whose texts are not first-hand.
var doorways = map[string]doorway{
	"cron": {}, "heartbeat": {}, "schedule": {}, "webhook": {},
	"telegram": {
		platform: true, command: "/status",
		direct: claybot.User("telegram", "7", "7"), group: claybot.User("telegram", strconv.Itoa(tgGroup), "7"),
		hello: func(s *stage, group bool) {
			chat := int64(7)
			if group {
				chat = tgGroup
			}
			_, s.earlier = s.telegram.Write(telegramtest.Incoming{ChatID: chat, UserID: 7, Text: "@claybot hello"})
		},
		entries: map[string]entry{
			"typed":                           {want: acts, act: wrote(nil)},
			"typed in a group":                {want: acts, group: true, act: mentioned(nil)},
			"reply to a command":              {want: acts, act: wrote(map[string]any{"reply_to_message": map[string]any{"message_id": 3, "from": tgUser(8), "text": "/status"}})},
			"slash command":                   {want: acts, act: wrote(nil)}, // Telegram's own commands are text
			"button":                          {want: acts, act: pressedTelegram},
			"form":                            none,
			"caption of a file":               {want: asText, act: captioned},
			"voice message":                   {want: answers, act: spokeTelegram(nil)},
			"forwarded voice message":         {want: asText, act: spokeTelegram(map[string]any{"forward_origin": map[string]any{"type": "hidden_user", "sender_user_name": "B", "date": 5}})},
			"quoted text":                     {want: asText, act: quotedTelegram, never: []probe{tryYes, tryAnswer}},
			"forwarded":                       {want: asText, act: wrote(map[string]any{"forward_origin": map[string]any{"type": "hidden_user", "sender_user_name": "B", "date": 5}})},
			"written by a bot for the person": {want: asText, act: wrote(map[string]any{"via_bot": tgBot(99)})},
			"scheduled or automatic":          {want: asText, act: wrote(map[string]any{"is_from_offline": true})},
			"edited":                          {want: dropped, act: func(s *stage, _ probe, text string) { s.telegram.EditText(7, s.earlier, text) }},
			"bot":                             {want: dropped, group: true, act: mentioned(map[string]any{"from": tgBot(98)})},
			"anonymous administrator": {want: dropped, group: true, act: mentioned(map[string]any{
				"from": tgBot(1087968824), "sender_chat": map[string]any{"id": tgGroup, "type": "supergroup"},
			})},
			"post of a channel": {want: dropped, group: true, act: mentioned(map[string]any{
				"from": tgUser(777000), "sender_chat": map[string]any{"id": -1000000000009, "type": "channel"}, "is_automatic_forward": true,
			})},
			"guest in an allowed channel": none,
			"user of another workspace":   none,
		},
	},
	"slack": {
		platform: true, command: "!status",
		direct: claybot.User("slack", "T1/DU1", "U1"), group: claybot.User("slack", "T1/C1", "U1"),
		hello: func(s *stage, group bool) {
			s.slack.DM("U1", "hello")
			s.slack.Mention("C1", "U1", "hello", false)
		},
		entries: map[string]entry{
			"typed":                           {want: acts, act: posted(slacktest.Post{Channel: "DU1", User: "U1"}, "")},
			"typed in a group":                {want: acts, group: true, act: posted(slacktest.Post{Channel: "C1", User: "U1"}, "<@UBOT> ")},
			"reply to a command":              {want: acts, act: repliedSlack},
			"slash command":                   {want: acts, act: slashed("U1")},
			"button":                          {want: acts, act: pressedSlack},
			"form":                            {want: acts, act: submittedSlack, never: []probe{tryCommand, tryYes}},
			"caption of a file":               {want: acts, act: posted(slacktest.Post{Channel: "DU1", User: "U1", Subtype: "file_share"}, "")},
			"voice message":                   {want: answers, act: spokeSlack("U1")},
			"forwarded voice message":         {want: asText, act: spokeSlack("U2")},
			"quoted text":                     {want: asText, act: posted(slacktest.Post{Channel: "DU1", User: "U1"}, "&gt; "), never: []probe{tryYes, tryAnswer}},
			"forwarded":                       {want: asText, act: sharedSlack},
			"written by a bot for the person": none,
			"scheduled or automatic":          none,
			"edited":                          {want: dropped, act: editedSlack},
			"bot":                             {want: dropped, act: posted(slacktest.Post{Channel: "DU1", User: "U1", BotID: "B9"}, "")},
			"anonymous administrator":         none,
			"post of a channel":               {want: dropped, group: true, act: posted(slacktest.Post{Channel: "C1", BotID: "B9", Subtype: "bot_message"}, "<@UBOT> ")},
			"guest in an allowed channel":     {want: dropped, group: true, act: posted(slacktest.Post{Channel: "C1", User: "U5"}, "<@UBOT> ")},
			"user of another workspace":       {want: dropped, group: true, act: foreignSlack},
		},
	},
	"discord": {
		platform: true, command: "!status",
		direct: claybot.User("discord", dcDirect, dcUser), group: claybot.User("discord", dcGuild+"/"+dcChannel, dcUser),
		hello: func(s *stage, _ bool) {
			s.heard = s.discord.Write(discordtest.Post{Channel: dcDirect, User: dcUser, Text: "hello"})
			s.discord.Write(discordtest.Post{Channel: dcChannel, User: dcUser, Text: dcMention + "hello"})
		},
		entries: map[string]entry{
			"typed":                           {want: acts, act: wroteDiscord(discordtest.Post{Channel: dcDirect})},
			"typed in a group":                {want: acts, group: true, act: wroteDiscord(discordtest.Post{Channel: dcChannel})},
			"reply to a command":              {want: acts, act: repliedDiscord},
			"slash command":                   {want: acts, act: slashedDiscord, never: []probe{tryYes, tryAnswer}},
			"button":                          {want: acts, act: pressedDiscord},
			"form":                            {want: acts, act: submittedDiscord, never: []probe{tryCommand, tryYes}},
			"caption of a file":               {want: acts, act: wroteDiscord(discordtest.Post{Channel: dcDirect, Files: []discordtest.File{{Name: "a.txt", Type: "text/plain", Data: []byte("a")}}})},
			"voice message":                   {want: answers, act: spokeDiscord(nil)},
			"forwarded voice message":         {want: asText, act: spokeDiscord(map[string]any{"message_reference": map[string]any{"type": 1}})},
			"quoted text":                     {want: asText, act: quotedDiscord, never: []probe{tryYes, tryAnswer}},
			"forwarded":                       {want: asText, act: forwardedDiscord},
			"written by a bot for the person": {want: dropped, act: wroteDiscord(discordtest.Post{Channel: dcDirect, Fields: map[string]any{"webhook_id": "700000000000000001"}})},
			"scheduled or automatic":          none,
			"edited":                          {want: dropped, act: func(s *stage, _ probe, text string) { s.discord.Edit(dcDirect, s.heard, text) }},
			"bot": {want: dropped, group: true, act: wroteDiscord(discordtest.Post{Channel: dcChannel, Fields: map[string]any{
				"author": map[string]any{"id": "700000000000000002", "username": "other", "bot": true},
			}})},
			"anonymous administrator": none,
			"post of a channel": {want: dropped, group: true, act: wroteDiscord(discordtest.Post{Channel: dcChannel, Fields: map[string]any{
				"webhook_id": "700000000000000001", "author": map[string]any{"id": "700000000000000001", "username": "news", "bot": true},
			}})},
			"guest in an allowed channel": none,
			"user of another workspace":   none,
		},
	},
	"webchat": {
		platform: true, command: "/status",
		direct: claybot.User("web", "main", "operator"), group: claybot.User("web", "main", "operator"),
		hello: func(s *stage, _ bool) { s.page(`{"id":"hello","text":"hello","conversation":"main"}`) },
		entries: map[string]entry{
			"typed": {want: acts, act: func(s *stage, _ probe, text string) { s.page(`{"text":"` + text + `","conversation":"main"}`) }},
			"caption of a file": {want: acts, act: func(s *stage, _ probe, text string) {
				s.page(`{"text":"` + text + `","files":["f1"],"conversation":"main"}`)
			}},
			"edited":           {want: dropped, act: func(s *stage, _ probe, text string) { s.pageEdit("hello", `{"text":"`+text+`"}`) }},
			"typed in a group": none, "reply to a command": none, "slash command": none, "button": none, "form": none, "voice message": none, "forwarded voice message": none,
			"quoted text": none, "forwarded": none, "written by a bot for the person": none, "scheduled or automatic": none, "bot": none,
			"anonymous administrator": none, "post of a channel": none, "guest in an allowed channel": none, "user of another workspace": none,
		},
	},
}

func tgUser(id int64) map[string]any {
	return map[string]any{"id": id, "is_bot": false, "first_name": "P"}
}

func tgBot(id int64) map[string]any {
	return map[string]any{"id": id, "is_bot": true, "first_name": "B", "username": "other_bot"}
}

func wrote(fields map[string]any) func(*stage, probe, string) {
	return func(s *stage, _ probe, text string) {
		s.telegram.Write(telegramtest.Incoming{ChatID: 7, UserID: 7, Text: text, Fields: fields})
	}
}

func mentioned(fields map[string]any) func(*stage, probe, string) {
	return func(s *stage, _ probe, text string) {
		s.telegram.Write(telegramtest.Incoming{ChatID: tgGroup, UserID: 7, Text: "@claybot " + text, Fields: fields})
	}
}

func captioned(s *stage, _ probe, text string) {
	s.telegram.Write(telegramtest.Incoming{ChatID: 7, UserID: 7, Caption: text, Fields: map[string]any{"document": s.telegram.AddFile("a.txt", []byte("a"))}})
}

func spokeTelegram(more map[string]any) func(*stage, probe, string) {
	return func(s *stage, _ probe, _ string) {
		voice := s.telegram.AddFile("voice.ogg", []byte("OggS"))
		voice["duration"], voice["mime_type"] = 4, "audio/ogg"
		fields := map[string]any{"voice": voice}
		maps.Copy(fields, more)
		s.telegram.Write(telegramtest.Incoming{ChatID: 7, UserID: 7, Fields: fields})
	}
}

func quotedTelegram(s *stage, _ probe, text string) {
	s.telegram.Write(telegramtest.Incoming{ChatID: 7, UserID: 7, Text: "hm", Quote: text})
}

func pressedTelegram(s *stage, try probe, text string) {
	label := map[probe]string{tryCommand: "Go", tryApprove: "Approve", tryYes: "Approve", tryAnswer: "Yes"}[try]
	var receipt string
	if try == tryCommand {
		receipt = s.offer(s.tg.Send, text)
	} else {
		receipt = s.asked()
	}
	id, _ := strconv.ParseInt(receipt, 10, 64)
	if _, ok := s.telegram.Press(7, 7, id, label); !ok {
		s.Fatalf("message %s has no button %s", receipt, label)
	}
}

// posted writes in Slack, behind a prefix.
func posted(p slacktest.Post, prefix string) func(*stage, probe, string) {
	return func(s *stage, _ probe, text string) {
		p := p
		if p.Subtype == "file_share" {
			p.Files = []slacktest.File{s.slack.AddFile("a.txt", "text/plain", []byte("a"))}
		}
		p.Text = prefix + text
		s.slack.Write(p)
	}
}

func repliedSlack(s *stage, _ probe, text string) {
	parent := s.slack.Write(slacktest.Post{Channel: "DU1", User: "U1", BotID: "B9", Text: "!status"})
	s.slack.Write(slacktest.Post{Channel: "DU1", User: "U1", Thread: parent, Text: text})
}

func slashed(user string) func(*stage, probe, string) {
	return func(s *stage, try probe, text string) {
		command := "/claybot"
		if try == tryYes || try == tryAnswer {
			command = "/ask"
		}
		s.slack.Slash("DU1", user, command, strings.TrimPrefix(text, "!"))
	}
}

func pressedSlack(s *stage, try probe, text string) {
	pressSlack(s, "U1", "DU1", try, text)
}

func pressSlack(s *stage, user, channel string, try probe, text string) {
	label, ts := map[probe]string{tryApprove: "Approve", tryYes: "Approve", tryAnswer: "Yes"}[try], ""
	if try == tryCommand {
		label, ts = "Go", s.offer(s.sl.Send, "/"+strings.TrimPrefix(text, "!"))
	} else {
		ts = s.asked()
	}
	if _, err := s.slack.Click(user, channel, ts, label); err != nil {
		s.Fatal(err)
	}
}

func submittedSlack(s *stage, try probe, _ string) {
	label := "Answer…"
	if try == tryApprove {
		label = "Deny with a reason…"
	}
	if _, err := s.slack.Click("U1", "DU1", s.asked(), label); err != nil {
		s.Fatal(err)
	}
	s.quiet()
	v, ok := s.slack.Modal("U1")
	if !ok {
		s.Fatal("no form opened")
	}
	if _, err := s.slack.Submit(s.Context(), v.ID, map[string]any{"": "true"}); err != nil {
		s.Fatal(err)
	}
}

// spokeSlack shares an audio clip that a user has recorded.
func spokeSlack(user string) func(*stage, probe, string) {
	return func(s *stage, _ probe, _ string) {
		f := s.slack.AddFile("audio.m4a", "audio/mp4", []byte("m4a"))
		f.Subtype, f.Duration, f.User = "slack_audio", 4000, user
		s.slack.Write(slacktest.Post{Channel: "DU1", User: "U1", Subtype: "file_share", Files: []slacktest.File{f}})
	}
}

// event sends an event as Slack does, with further fields.
func (s *stage) event(fields map[string]any) {
	fields["type"], fields["channel_type"], fields["team"] = "message", "im", "T1"
	s.slack.Envelope("events_api", map[string]any{"type": "event_callback", "team_id": "T1", "api_app_id": "A1", "event": fields})
}

func sharedSlack(s *stage, _ probe, text string) {
	s.event(map[string]any{
		"channel": "DU1", "user": "U1", "text": text, "ts": "1800000000.000100",
		"attachments": []map[string]any{{"is_share": true, "text": text, "author_id": "U9", "channel_id": "C9", "ts": "1700000000.000100"}},
	})
}

func editedSlack(s *stage, _ probe, text string) {
	s.event(map[string]any{
		"subtype": "message_changed", "channel": "DU1", "ts": "1800000000.000100",
		"message":          map[string]any{"type": "message", "user": "U1", "text": text, "ts": "1700000000.000100", "edited": map[string]any{"user": "U1", "ts": "1800000000.000100"}},
		"previous_message": map[string]any{"type": "message", "user": "U1", "text": "hello", "ts": "1700000000.000100"},
	})
}

// foreignSlack acts as the user of another workspace with the same id, in every way.
func foreignSlack(s *stage, try probe, text string) {
	s.slack.Write(slacktest.Post{Channel: "C1", User: "U1", UserTeam: "T2", Text: "<@UBOT> " + text})
	s.slack.Write(slacktest.Post{Team: "T2", Channel: "C1", User: "U1", Text: "<@UBOT> " + text})
	s.slack.Write(slacktest.Post{Team: "T2", Channel: "DU1", User: "U1", Text: text})
	slashed("T2/U1")(s, try, text)
	pressSlack(s, "T2/U1", "C1", try, text)
}

const dcMention = "<@" + discordtest.Bot + "> "

func wroteDiscord(p discordtest.Post) func(*stage, probe, string) {
	return func(s *stage, _ probe, text string) {
		p := p
		if p.User, p.Text = dcUser, text; p.Channel == dcChannel {
			p.Text = dcMention + text
		}
		s.discord.Write(p)
	}
}

func repliedDiscord(s *stage, _ probe, text string) {
	of := s.discord.Write(discordtest.Post{Channel: dcDirect, User: dcUser, Text: "!status", Fields: map[string]any{"webhook_id": "700000000000000001"}})
	s.discord.Write(discordtest.Post{Channel: dcDirect, User: dcUser, Text: text, ReplyTo: of})
}

func slashedDiscord(s *stage, _ probe, text string) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(text, "!"), " ")
	s.discord.Slash(dcDirect, dcUser, name, rest)
}

func pressedDiscord(s *stage, try probe, text string) {
	label, id := map[probe]string{tryApprove: "Approve", tryYes: "Approve", tryAnswer: "Yes"}[try], ""
	if try == tryCommand {
		label, id = "Go", s.offer(s.dc.Send, "/"+strings.TrimPrefix(text, "!"))
	} else {
		id = s.asked()
	}
	if err := s.discord.Press(dcDirect, dcUser, id, label); err != nil {
		s.Fatal(err)
	}
}

func submittedDiscord(s *stage, try probe, _ string) {
	label := "Answer…"
	if try == tryApprove {
		label = "Deny with a reason…"
	}
	if err := s.discord.Press(dcDirect, dcUser, s.asked(), label); err != nil {
		s.Fatal(err)
	}
	s.quiet()
	if err := s.discord.Submit(dcUser, "true"); err != nil {
		s.Fatal(err)
	}
}

// spokeDiscord sends a voice message, with further fields.
func spokeDiscord(fields map[string]any) func(*stage, probe, string) {
	return func(s *stage, _ probe, _ string) {
		f := discordtest.File{Name: "voice-message.ogg", Type: "audio/ogg", Data: []byte("OggS"), Seconds: 4, Waveform: "AAAA"}
		s.discord.Write(discordtest.Post{Channel: dcDirect, User: dcUser, Files: []discordtest.File{f}, Voice: true, Fields: fields})
	}
}

func quotedDiscord(s *stage, _ probe, text string) {
	of := s.discord.Write(discordtest.Post{Channel: dcDirect, User: dcUser, Text: text, Fields: map[string]any{"webhook_id": "700000000000000001"}})
	s.discord.Write(discordtest.Post{Channel: dcDirect, User: dcUser, Text: "hm", ReplyTo: of})
}

func forwardedDiscord(s *stage, _ probe, text string) {
	s.discord.Write(discordtest.Post{Channel: dcDirect, User: dcUser, Fields: map[string]any{
		"message_reference": map[string]any{"type": 1, "message_id": "1", "channel_id": "2"},
		"message_snapshots": []map[string]any{{"message": map[string]any{"content": text, "attachments": []any{}}}},
	}})
}
