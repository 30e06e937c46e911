package discord

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/lazyregexp"
)

// A user is the part of a user that claybot reads.
type user struct {
	ID       string `json:"id"`
	Username string `json:"username"`
	Global   string `json:"global_name"`
	Bot      bool   `json:"bot"`
	System   bool   `json:"system"`
}

// name is what people see of a user, on a server by their name there.
func (u user) name(nick string) string {
	return connectors.PersonName(cmp.Or(nick, u.Global, u.Username))
}

// The types of messages that people write, and the flags and kinds that matter.
const (
	messageDefault = 0
	messageReply   = 19
	flagVoice      = 1 << 13
	refForward     = 1
)

// A message is the part of a message that claybot reads.
//
// Shapes: docs.discord.com/developers/resources/message and …/events/gateway-events (Message
// Create, Update, Delete, Delete Bulk), read 2026-11-28. A message of the REST API has neither
// guild nor member. Without the intent, content and attachments are empty, except in direct
// messages, in messages that mention the bot, and in its own. An update has the whole message;
// edited_timestamp is null unless its author changed it.
type message struct {
	ID      string `json:"id"`
	Channel string `json:"channel_id"`
	Guild   string `json:"guild_id"`
	Type    int    `json:"type"`
	Flags   int    `json:"flags"`
	Author  user   `json:"author"`
	Member  struct {
		Nick string `json:"nick"`
	} `json:"member"`
	Webhook     string       `json:"webhook_id"`
	Content     string       `json:"content"`
	Timestamp   string       `json:"timestamp"`
	Edited      string       `json:"edited_timestamp"`
	Nonce       any          `json:"nonce"`
	Mentions    []user       `json:"mentions"`
	Attachments []attachment `json:"attachments"`
	Stickers    []struct {
		Name string `json:"name"`
	} `json:"sticker_items"`
	Poll *struct {
		Question struct {
			Text string `json:"text"`
		} `json:"question"`
	} `json:"poll"`
	Reference *struct {
		Type    int    `json:"type"`
		Message string `json:"message_id"`
	} `json:"message_reference"`
	Referenced *message `json:"referenced_message"`
	Snapshots  []struct {
		Message message `json:"message"`
	} `json:"message_snapshots"` // of a forwarded message
	Components []row `json:"components"`
}

// written reports whether a person or a program wrote m, and not Discord.
func (m message) written() bool {
	return (m.Type == messageDefault || m.Type == messageReply) && isID(m.ID) && isID(m.Channel) && isID(m.Author.ID) && !m.Author.System
}

// program reports whether a bot or a webhook wrote m.
func (m message) program() bool { return m.Author.Bot || m.Webhook != "" }

// author is the id of who wrote m: a webhook can write in any name.
func (m message) author() string { return cmp.Or(m.Webhook, m.Author.ID) }

// shows is what people read in m, which another one may have written that it forwards.
func (m message) shows() (content string, files []attachment, forwarded bool) {
	forwarded = m.Reference != nil && m.Reference.Type == refForward
	if forwarded && len(m.Snapshots) > 0 {
		return m.Snapshots[0].Message.Content, m.Snapshots[0].Message.Attachments, true
	}
	return m.Content, m.Attachments, forwarded
}

// created reads a new message.
func (r *receiver) created(m message) []job {
	if m.Author.ID == r.bot {
		if nonce, ok := m.Nonce.(string); ok {
			r.own.note(nonce, m.ID)
		}
		return nil
	}
	if !m.written() {
		return nil
	}
	r.authors.keep(m.ID, m.author(), maxAuthors)
	r.api.clock.heard(m.ID)
	return []job{{lane(m.Channel, m.author()), "message", m.ID, r.in(m.Guild, m.Channel, func(ctx context.Context, in place) error {
		return r.wrote(ctx, m, in, true)
	})}}
}

// wrote posts a message. Those that come live wait for a backfill, those of the backfill do not.
func (r *receiver) wrote(ctx context.Context, m message, in place, live bool) (err error) {
	to, msg, ok := r.message(ctx, m, in)
	if ok && msg.Context.Unaddressed { // most of what is written on a server
		ok, err = r.handler.Hears(ctx, to, msg)
	}
	switch {
	case err != nil || !ok:
		return err
	case live:
		return r.post(ctx, to, msg)
	}
	return r.handler.Post(ctx, to, msg)
}

// message converts a message of a person. ok is false if it says nothing, or is a command for
// another bot.
func (r *receiver) message(ctx context.Context, m message, in place) (to claybot.Descriptor, msg claybot.AgentMessage, ok bool) {
	content, all, forwarded := m.shows()
	text, mentioned := r.strip(ctx, content, m.Mentions)
	mentioned = mentioned || m.Referenced != nil && m.Referenced.Author.ID == r.bot
	to = claybot.User(r.cfg.Name, in.channel, m.author())
	msg = claybot.AgentMessage{
		ID:   r.messageID(in, m.ID),
		Type: claybot.MessageUser,
		Text: text,
		From: claybot.Sender{UserID: m.author(), Name: m.Author.name(m.Member.Nick)},
		At:   at(m.Timestamp),
		Context: claybot.MessageContext{
			MessageID: m.ID, ThreadID: in.thread, Group: in.group, Unaddressed: in.group && !mentioned, Quote: m.quoted(),
			Channel: r.channels.name(in),
		},
		Tainted: forwarded || len(all) > 0 || m.quotesOthers(r.bot), FirstHand: !forwarded,
	}
	if in.group {
		msg.Context.ReplyTo = m.ID
	}
	if m.Reference != nil && !forwarded {
		msg.Context.Answers = m.Reference.Message
	}
	if in.thread != "" { // as links name it
		msg.Keys = []string{r.cfg.Name + "/" + m.Guild + "/" + in.thread + "/" + m.ID}
	}
	msg.Spoken = !forwarded && m.Flags&flagVoice != 0 && text == "" && len(all) == 1
	msg.FirstHand = msg.FirstHand && !msg.Spoken
	if m.program() {
		msg.From = claybot.NewBot(msg.From.UserID, msg.From.Name)
		msg.Tainted, msg.FirstHand, msg.Spoken = true, false, false
	}
	if msg, ok = connectors.Interpret(msg, "/!", r.app.Bot.Username); !ok {
		return to, msg, false
	}
	if msg.Type == claybot.MessageUser {
		files, lines := r.attached(m, all)
		msg.Files = files
		msg.Text = connectors.JoinLines(connectors.ForwardMark(forwarded), msg.Text, m.other(), strings.Join(lines, "\n"))
	}
	return to, msg, msg.Text != "" || len(msg.Files) > 0 || msg.Type != claybot.MessageUser
}

// messageID is the id of a message of a person.
func (r *receiver) messageID(in place, id string) claybot.MessageID {
	return claybot.MessageID(r.cfg.Name + "/" + in.channel + "/" + id)
}

// quoted returns the text that m answers.
func (m message) quoted() string {
	if m.Type != messageReply || m.Referenced == nil {
		return ""
	}
	return connectors.Cut(quotable(m.Referenced.Content), maxQuote)
}

// quotesOthers reports whether m quotes what neither its author nor the bot wrote.
func (m message) quotesOthers(bot string) bool {
	return m.quoted() != "" && m.Referenced.Author.ID != bot && m.Referenced.Author.ID != m.Author.ID
}

// other describes what claybot knows of and does not read.
func (m message) other() string {
	var lines []string
	for _, s := range m.Stickers {
		lines = append(lines, "[sticker "+connectors.InBrackets(s.Name, maxNames)+"]")
	}
	if m.Poll != nil {
		lines = append(lines, fmt.Sprintf("[poll: %s]", connectors.InBrackets(m.Poll.Question.Text, maxQuote)))
	}
	return strings.Join(lines, "\n")
}

// mention is how a message names a user.
var mention = lazyregexp.New(`<@!?([0-9]{1,20})>`)

// strip reports whether a text mentions the bot, and returns it without a mention at its start,
// and with the names of other users and of the bot's commands in place of their ids. In code, nothing is
// a mention.
func (r *receiver) strip(ctx context.Context, text string, mentions []user) (rest string, ours bool) {
	rest = strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))
	outsideCode(rest, func(s string) string {
		for _, found := range mention.FindAllStringSubmatch(s, -1) {
			ours = ours || found[1] == r.bot
		}
		return s
	})
	for ours {
		cut := mention.FindStringSubmatchIndex(rest)
		if cut == nil || cut[0] != 0 || rest[cut[2]:cut[3]] != r.bot {
			break
		}
		rest = strings.TrimLeft(rest[cut[1]:], " \t\r\n,:")
	}
	names := []string{"<@" + r.bot + ">", "@" + r.app.Bot.Username, "<@!" + r.bot + ">", "@" + r.app.Bot.Username}
	for _, u := range mentions {
		if u.ID != r.bot && isID(u.ID) {
			name := "@" + u.name("")
			names = append(names, "<@"+u.ID+">", name, "<@!"+u.ID+">", name)
		}
	}
	named := strings.NewReplacer(names...)
	return outsideCode(rest, func(s string) string { return r.unlinkedOwn(ctx, named.Replace(s)) }), ours
}

// updated reads an edit of a message.
func (r *receiver) updated(m message) []job {
	if !m.written() || m.program() || m.Edited == "" {
		return nil // a link that unfolds changes a message as well
	}
	r.edited.keep(m.ID, m.Author.ID, maxAuthors)
	return []job{{lane(m.Channel, m.Author.ID), "edit", m.ID, r.in(m.Guild, m.Channel, func(ctx context.Context, in place) error {
		text, _ := r.strip(ctx, m.Content, m.Mentions)
		to, msg := r.change(in, m.ID, m.Author.ID, claybot.MessageEdit)
		msg.ID += "/edit/" + claybot.MessageID(m.Edited)
		msg.Text, msg.FirstHand, msg.At = text, true, at(m.Edited)
		return r.post(ctx, to, msg)
	})}}
}

// A deletion is that of one message, or of several.
type deletion struct {
	ID      string   `json:"id"`
	IDs     []string `json:"ids"`
	Channel string   `json:"channel_id"`
	Guild   string   `json:"guild_id"`
}

// deleted reads the deletion of a message. Discord does not say who wrote it: a deletion of
// a message that this process did not read has no effect.
func (r *receiver) deleted(d deletion) []job {
	author := r.author(d.ID)
	if author == "" {
		return nil
	}
	return []job{{lane(d.Channel, author), "deletion", d.ID, r.in(d.Guild, d.Channel, func(ctx context.Context, in place) error {
		to, msg := r.change(in, d.ID, author, claybot.MessageDelete)
		msg.ID += "/deleted"
		return r.post(ctx, to, msg)
	})}}
}

// bulkDeleted reads the deletion of several messages.
func (r *receiver) bulkDeleted(d deletion) (jobs []job) {
	for _, id := range d.IDs {
		jobs = append(jobs, r.deleted(deletion{ID: id, Channel: d.Channel, Guild: d.Guild})...)
	}
	return jobs
}

// change is a change of a message that a person wrote.
func (r *receiver) change(in place, id, author string, as claybot.MessageType) (claybot.Descriptor, claybot.AgentMessage) {
	of := r.messageID(in, id)
	return claybot.User(r.cfg.Name, in.channel, author), claybot.AgentMessage{
		ID: of, Type: as, Amends: of, From: claybot.Sender{UserID: author}, At: claybot.Now(),
		Context: claybot.MessageContext{MessageID: id, ThreadID: in.thread, Group: in.group},
	}
}
