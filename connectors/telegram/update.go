package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// updateKinds are the kinds of updates that claybot asks for.
var updateKinds = []string{"message", "edited_message", "callback_query", "my_chat_member", "message_reaction", "business_connection"}

// An update is the part of an update that claybot reads. Kinds other than updateKinds leave
// all nil.
type update struct {
	UpdateID   int64       `json:"update_id"`
	Message    *message    `json:"message"`
	Edited     *message    `json:"edited_message"`
	Callback   *callback   `json:"callback_query"`
	Membership *membership `json:"my_chat_member"`
	Reaction   *reaction   `json:"message_reaction"`
	Business   *business   `json:"business_connection"`
}

// A person is a user in a chat; either id is 0 if unknown.
type person struct {
	chat, user int64
	group      bool // the chat is one
}

// lane returns the user whose updates must stay in order with u; ok is false
// for a kind that claybot does not read.
func (u *update) lane() (p person, ok bool) {
	m, from := u.Message, (*tgbotapi.User)(nil)
	switch {
	case m != nil:
		from = m.From
	case u.Edited != nil:
		m, from = u.Edited, u.Edited.From
	case u.Callback != nil:
		m, from = u.Callback.Message, u.Callback.From
	case u.Membership != nil:
		return u.Membership.lane(), true
	case u.Reaction != nil:
		p.chat, p.group, from = u.Reaction.Chat.ID, u.Reaction.Chat.group(), u.Reaction.User
	case u.Business != nil:
		return u.Business.lane(), true
	default:
		return p, false
	}
	if m != nil {
		p.chat, p.group = m.Chat.ID, m.Chat.group()
	}
	if from != nil {
		p.user = from.ID
	}
	return p, true
}

// A message has the fields that claybot reads, in the types of the library
// where it knows them.
type message struct {
	MessageID     int64          `json:"message_id"`
	ThreadID      int64          `json:"message_thread_id"`
	IsTopic       bool           `json:"is_topic_message"`
	From          *tgbotapi.User `json:"from"`
	SenderChat    *chat          `json:"sender_chat"`
	ViaBot        *tgbotapi.User `json:"via_bot"`
	Chat          chat           `json:"chat"`
	Date          int64          `json:"date"`
	ForwardDate   int64          `json:"forward_date"`
	ForwardOrigin *struct{}      `json:"forward_origin"`
	FromOffline   bool           `json:"is_from_offline"` // scheduled, or an automatic reply
	BusinessBot   *tgbotapi.User `json:"sender_business_bot"`
	ReplyTo       *message       `json:"reply_to_message"`
	Quote         *struct {
		Text string `json:"text"`
	} `json:"quote"`
	MediaGroupID    string                   `json:"media_group_id"`
	Text            string                   `json:"text"`
	Entities        []tgbotapi.MessageEntity `json:"entities"`
	Caption         string                   `json:"caption"`
	CaptionEntities []tgbotapi.MessageEntity `json:"caption_entities"`
	MigrateTo       int64                    `json:"migrate_to_chat_id"`
	MigrateFrom     int64                    `json:"migrate_from_chat_id"`
	Markup          keyboard                 `json:"reply_markup"`
	content
}

// A chat is the part of a chat that claybot reads.
type chat struct {
	ID    int64  `json:"id"`
	Type  string `json:"type"`
	Title string `json:"title"`
}

func (c chat) group() bool { return c.Type == "group" || c.Type == "supergroup" }

var errBroken = errors.New("telegram: the update cannot be read")

// readUpdate decodes one update. A message whose text, chat and sender can be
// read is accepted even when something else in it cannot, and so is a callback that
// can be answered. The id is set, if it can be read, also with an error.
func readUpdate(raw []byte) (update, error) {
	var u update
	err := json.Unmarshal(raw, &u)
	if err == nil && u.UpdateID > 0 {
		return u, nil
	}
	var wrongType *json.UnmarshalTypeError
	if !errors.As(err, &wrongType) || u.UpdateID <= 0 {
		return u, errBroken
	}
	if m := u.Message; m != nil && m.Chat.ID != 0 && m.Chat.Type != "" && m.From != nil && m.From.ID != 0 && m.MessageID != 0 && m.Text != "" {
		return u, nil
	}
	if u.Callback != nil && u.Callback.ID != "" {
		return u, nil
	}
	return u, errBroken
}

// deliver posts an update that is addressed to the bot and returns nil once it
// may be acknowledged.
func (l *loop) deliver(ctx context.Context, u *update) error {
	switch {
	case u.Message != nil:
		return l.wrote(ctx, l.handler, u)
	case u.Edited != nil:
		return l.edited(ctx, l.handler, u)
	case u.Membership != nil:
		return l.changed(ctx, l.handler, u.Membership)
	case u.Reaction != nil:
		return l.reacted(ctx, l.handler, u.Reaction)
	case u.Business != nil:
		return l.connected(ctx, l.handler, u.UpdateID, u.Business)
	}
	return l.callback(ctx, u.Callback)
}

// wrote posts a message.
func (c *Connector) wrote(ctx context.Context, h connectors.Handler, u *update) error {
	m := u.Message
	if m.MigrateTo != 0 {
		return c.movedChat(ctx, h, m.Chat.ID, m.MigrateTo, m.sent())
	}
	if m.MigrateFrom != 0 {
		return c.movedChat(ctx, h, m.MigrateFrom, m.Chat.ID, m.sent())
	}
	to, ok := c.sender(m.Chat, m.From, m.SenderChat)
	if !ok || m.From.ID == c.botID {
		c.figures.ignored.Add(1)
		return nil
	}
	username, err := c.username(ctx, m)
	if err != nil {
		return err
	}
	msg, ok := c.read(u, to, username)
	if !ok {
		c.figures.ignored.Add(1)
		return nil
	}
	if err := h.Post(ctx, to, msg); err != nil {
		return err
	}
	c.figures.posted.Add(1)
	return nil
}

// edited posts the new text of a message. Telegram reports an edit with the whole message
// (core.telegram.org/bots/api#update, edited_message); other changes, as of a live location or a
// preview, have no text, or the one that is known.
func (c *Connector) edited(ctx context.Context, h connectors.Handler, u *update) error {
	m := u.Edited
	to, ok := c.principal(m.Chat, m.From, m.SenderChat)
	if !ok || m.Text == "" && m.Caption == "" || !m.own() {
		c.figures.ignored.Add(1)
		return nil
	}
	username, err := c.username(ctx, m)
	if err != nil {
		return err
	}
	msg, _ := c.read(&update{UpdateID: u.UpdateID, Message: m}, to, username)
	if msg.Type != claybot.MessageUser || msg.Engine != "" {
		c.figures.ignored.Add(1) // an edit is no command
		return nil
	}
	msg.Type, msg.Amends, msg.Keys, msg.Files = claybot.MessageEdit, claybot.MessageID(msg.Keys[0]), nil, nil
	msg.At = claybot.Now()
	if err := h.Post(ctx, to, msg); err != nil {
		return err
	}
	c.figures.posted.Add(1)
	return nil
}

// principal is sender for people: ok is false for bots.
func (c *Connector) principal(in chat, from *tgbotapi.User, as *chat) (d claybot.Descriptor, ok bool) {
	d, ok = c.sender(in, from, as)
	return d, ok && !from.IsBot
}

// sender returns who acts in a chat. It is the only constructor of identities, which are
// unique on all of Telegram. ok is false for anonymous administrators and channels (as),
// whose ids do not identify a user.
func (c *Connector) sender(in chat, from *tgbotapi.User, as *chat) (d claybot.Descriptor, ok bool) {
	if from == nil || from.ID <= 0 || as != nil || in.ID == 0 || in.Type != "private" && !in.group() {
		return d, false
	}
	return claybot.User(c.cfg.Name, strconv.FormatInt(in.ID, 10), strconv.FormatInt(from.ID, 10)), true
}

// username returns the bot's name. It waits for the name if m cannot be
// interpreted without it.
func (c *Connector) username(ctx context.Context, m *message) (string, error) {
	if !m.Chat.group() && !(strings.HasPrefix(m.Text, "/") && strings.Contains(m.Text, "@")) {
		return "", nil
	}
	select {
	case <-c.self.known:
		return c.self.username, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// byBot marks a message as that of another bot.
func byBot(m *claybot.AgentMessage) {
	m.From = claybot.NewBot(m.From.UserID, m.From.Name)
	m.Tainted, m.FirstHand, m.Spoken = true, false, false
}

// read converts an update of a user to a message; ok is false if it is none, or a command for
// another bot.
func (c *Connector) read(u *update, to claybot.Descriptor, username string) (msg claybot.AgentMessage, ok bool) {
	m := u.Message
	text, entities := m.Text, m.Entities
	if text == "" {
		text, entities = m.Caption, m.CaptionEntities
	}
	line := m.describe()
	if text == "" && line == "" {
		return msg, false // a service message
	}
	file, hasFile := c.file(&m.content)
	if hasFile && m.Sticker == nil {
		line = "" // the file is attached
	}
	messageID := strconv.FormatInt(m.MessageID, 10)
	msg = claybot.AgentMessage{
		ID:   c.messageID(u.UpdateID),
		Type: claybot.MessageUser,
		From: claybot.Sender{UserID: to.UserID, Name: connectors.PersonName(m.From.FirstName + " " + m.From.LastName)},
		At:   m.sent(),
		Keys: []string{"telegram/" + c.bot + "/" + to.ChannelID + "/" + messageID},
		Context: claybot.MessageContext{
			MessageID: messageID,
			ThreadID:  m.topic(),
			GroupID:   m.MediaGroupID,
			Quote:     m.quoted(), Answers: m.answers(),
			Group:   m.Chat.group(),
			Locale:  m.From.LanguageCode,
			Channel: connectors.PersonName(m.Chat.Title),
		},
		Tainted: c.strange(m), FirstHand: m.typed(), Spoken: m.recorded(),
	}
	if m.Date <= 0 {
		msg.At = claybot.Now()
	}
	if m.From.IsBot {
		byBot(&msg)
	}
	ours := true
	msg.Text = text
	if m.Chat.group() {
		msg.Context.ReplyTo = messageID
		a := address{username: username, botID: c.botID}
		msg.Text, ours = a.strip(text, entities)
		ours = ours || c.repliesToUs(m)
	}
	if msg.Context.Unaddressed = !ours; msg.FirstHand {
		command, mine := connectors.Interpret(msg, "/", username)
		switch {
		case !mine:
			return msg, false
		case command.Type != claybot.MessageUser || command.Engine != "" || command.Command == connectors.Unknown:
			msg, ours = command, ours || command.Command != connectors.Unknown || !command.Context.Unaddressed
		}
	}
	if msg.Type == claybot.MessageUser {
		msg.Text = connectors.JoinLines(connectors.ForwardMark(m.forwarded()), msg.Text, line)
		if hasFile {
			msg.Files = []claybot.FileReference{file}
		}
	}
	msg.Context.Unaddressed = !ours
	return msg, true
}

// topic returns the forum topic of m; empty for General, whose id 1 must be
// omitted.
func (m *message) topic() string {
	if !m.IsTopic || m.ThreadID <= 1 {
		return ""
	}
	return strconv.FormatInt(m.ThreadID, 10)
}

// repliesToUs reports whether m replies to a message of the bot. In a topic
// every message replies to the one that opened it; that does not count.
func (c *Connector) repliesToUs(m *message) bool {
	return m.ReplyTo != nil && m.ReplyTo.From != nil && m.ReplyTo.From.ID == c.botID &&
		!(m.IsTopic && m.ReplyTo.MessageID == m.ThreadID)
}

// answers returns the id of the message that m replies to; empty for none.
func (m *message) answers() string {
	if m.ReplyTo == nil || m.IsTopic && m.ReplyTo.MessageID == m.ThreadID {
		return ""
	}
	return strconv.FormatInt(m.ReplyTo.MessageID, 10)
}

// quoted returns the text that m replies to.
func (m *message) quoted() string {
	switch r := m.ReplyTo; {
	case m.Quote != nil && m.Quote.Text != "":
		return connectors.Cut(m.Quote.Text, maxQuoteRunes)
	case r == nil || m.IsTopic && r.MessageID == m.ThreadID:
		return ""
	default:
		text := r.Text
		if text == "" {
			text = r.Caption
		}
		return connectors.Cut(connectors.JoinLines(text, r.describe()), maxQuoteRunes)
	}
}

// sent returns when m was sent.
func (m *message) sent() claybot.Time { return claybot.Time(m.Date * 1000) }

// forwarded reports whether m was forwarded.
func (m *message) forwarded() bool { return m.ForwardDate != 0 || m.ForwardOrigin != nil }

// typed reports whether the sender typed the text of m as a message. They did not
// type what they forwarded, what another bot wrote for them (via_bot) and what was
// sent without them. The caption of a file comes along when apps share the file.
func (m *message) typed() bool { return m.Text != "" && m.own() }

// recorded reports whether m is a voice message that its sender recorded, and nothing else.
func (m *message) recorded() bool { return m.Voice != nil && m.Caption == "" && m.own() }

// own reports whether the sender of m made it in this chat, at this moment.
func (m *message) own() bool {
	return !m.forwarded() && m.ViaBot == nil && m.BusinessBot == nil && !m.FromOffline
}

// strange reports whether m has content that neither its sender nor the bot
// wrote: a forwarded message, a message of another bot, a file, or a quote of
// another user.
func (c *Connector) strange(m *message) bool {
	if m.forwarded() || m.ViaBot != nil || m.BusinessBot != nil || m.media() != "" || m.Sticker.still() {
		return true
	}
	r := m.ReplyTo
	switch {
	case m.quoted() == "":
		return false
	case r == nil || r.From == nil || r.SenderChat != nil || r.ViaBot != nil || r.forwarded():
		return true
	}
	return r.From.ID != c.botID && r.From.ID != m.From.ID
}

// FollowsMoves implements connectors.MoveFollower.
func (c *Connector) FollowsMoves() {}

// movedChat reports the new id of a group to the handler.
func (c *Connector) movedChat(ctx context.Context, h connectors.Handler, from, to int64, at claybot.Time) error {
	c.pace.moved(from)
	return h.Moved(ctx, c.cfg.Name, strconv.FormatInt(from, 10), strconv.FormatInt(to, 10), at)
}
