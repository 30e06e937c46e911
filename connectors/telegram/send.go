package telegram

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
)

// A textMessage holds the parameters of sendMessage and editMessageText.
type textMessage struct {
	ChatID    int64  `json:"chat_id"`
	MessageID int64  `json:"message_id,omitempty"` // edit
	ThreadID  int64  `json:"message_thread_id,omitempty"`
	Text      string `json:"text"`
	ParseMode string `json:"parse_mode,omitempty"`
	Preview   struct {
		Disabled bool `json:"is_disabled"`
	} `json:"link_preview_options"`
	Reply  *replyTo `json:"reply_parameters,omitempty"`
	Markup any      `json:"reply_markup,omitempty"`
}

type replyTo struct {
	MessageID int64 `json:"message_id"`
	Anyway    bool  `json:"allow_sending_without_reply"`
}

// Send sends o, or edits the message it names. The receipt is the message's
// id. Errors are those of connectors.Sender; a failed edit is never ambiguous,
// since it can be repeated.
func (c *Connector) Send(ctx context.Context, o claybot.Outgoing) (receipt string, err error) {
	if err := c.check(); err != nil {
		return "", err
	}
	m, err := newMessage(o)
	if err != nil {
		return "", err
	}
	if err := c.mayGrow(m.ChatID, o); err != nil {
		return "", err
	}
	m.Markup = c.markup(texts.Of(ctx), o)
	formatted, plain := format(o.Text), o.Text
	if o.Resent && m.MessageID == 0 {
		mark := texts.Of(ctx).Resent()
		if connectors.UTF16Len(mark)+connectors.UTF16Len(visible(formatted)) > maxTextUTF16 { // cut by an earlier version
			mark = texts.Voice{}.Resent()
		}
		formatted, plain = element("i", mark)+formatted, mark+plain
	}
	return c.deliverText(ctx, m, formatted, plain)
}

// mayGrow refuses unfinished text that has to give way, and counts all else.
func (c *Connector) mayGrow(chat int64, o claybot.Outgoing) error {
	message := cmp.Or(string(o.Run), o.ID)
	if !o.Progress {
		c.rates.spend(chat, message)
		return nil
	}
	if d := c.rates.progress(chat, message); d > 0 {
		return &connectors.RetryError{After: d, GivesWay: true, Err: errors.New("telegram: the chat or the bot has no call left for unfinished text")}
	}
	return nil
}

// newMessage returns the parameters of o without its text.
func newMessage(o claybot.Outgoing) (textMessage, error) {
	m, err := addressed(o)
	if err != nil {
		return m, err
	}
	if strings.TrimSpace(o.Text) == "" {
		return m, &connectors.PermanentError{Err: errors.New("telegram: there is no text to send")}
	}
	if o.Edit != "" {
		m.ThreadID, m.Reply = 0, nil
		if m.MessageID, err = strconv.ParseInt(o.Edit, 10, 64); err != nil {
			return m, connectors.ErrEditGone
		}
	}
	return m, nil
}

// addressed returns a message without content for the destination of o.
func addressed(o claybot.Outgoing) (textMessage, error) {
	var m textMessage
	var err error
	m.Preview.Disabled = true
	if m.ChatID, err = strconv.ParseInt(o.Route.ChannelID, 10, 64); err != nil {
		return m, &connectors.PermanentError{DeadRoute: true, Err: errors.New("telegram: the chat id is not a number")}
	}
	if id, err := strconv.ParseInt(o.Route.ThreadID, 10, 64); err == nil && id > 1 {
		m.ThreadID = id
	}
	if id, err := strconv.ParseInt(o.Route.ReplyTo, 10, 64); err == nil && id > 0 && o.Part <= 1 {
		m.Reply = &replyTo{MessageID: id, Anyway: true}
	}
	return m, nil
}

// deliverText sends m with the formatted text and falls back to plain text, to
// no buttons, to the General topic, and to the chat's new id, according to Telegram's refusal.
func (c *Connector) deliverText(ctx context.Context, m textMessage, formatted, plain string) (string, error) {
	m.Text, m.ParseMode = formatted, "HTML"
	receipt, err := c.attempt(ctx, m)
	for {
		plainer, ok := c.plainer(m, plain, err)
		if !ok {
			break
		}
		m = plainer
		receipt, err = c.attempt(ctx, m)
	}
	var r *refusal
	if errors.As(err, &r) && r.migrateTo != 0 {
		return c.follow(ctx, m, r)
	}
	return receipt, classify(err, m.MessageID != 0)
}

// plainer returns m without the part that Telegram refused with err; ok is false
// if that part cannot be left out.
func (c *Connector) plainer(m textMessage, plain string, err error) (_ textMessage, ok bool) {
	var r *refusal
	switch {
	case !errors.As(err, &r) || r.code != http.StatusBadRequest:
		return m, false
	case m.ParseMode != "" && r.says("can't parse entities"):
		c.log.Warn("formatting refused, sending plain text", "err", err)
		m.Text, m.ParseMode = plain, ""
	case m.Markup != nil && r.says("button", "reply markup", "reply_markup", "inline keyboard"):
		c.log.Warn("buttons refused, sending without", "err", err)
		m.Markup = nil
	case m.ThreadID != 0 && r.says(topicGone...):
		c.log.Warn("topic is closed or deleted, sending to the general topic", "topic", m.ThreadID, "err", err)
		m.leaveTopic()
	default:
		return m, false
	}
	return m, true
}

// topicGone are refusals of a topic whose chat may take the message.
var topicGone = []string{"message thread not found", "topic_closed", "topic_deleted"}

// leaveTopic addresses the chat outside of the topic. A reply would lead back to the topic.
func (m *textMessage) leaveTopic() { m.ThreadID, m.Reply = 0, nil }

// follow retries a send with the chat's new id. An edit cannot be retried: its
// message was not moved.
func (c *Connector) follow(ctx context.Context, m textMessage, r *refusal) (string, error) {
	if h := c.handler.Load(); h != nil {
		if err := c.movedChat(ctx, *h, m.ChatID, r.migrateTo, claybot.Now()); err != nil {
			return "", fmt.Errorf("telegram: note the new id of a chat: %w", err)
		}
	}
	if m.MessageID != 0 {
		return "", connectors.ErrEditGone
	}
	m.ChatID = r.migrateTo
	m.leaveTopic()
	receipt, err := c.attempt(ctx, m)
	return receipt, classify(err, false)
}

// attempt makes one call if the pace allows it.
func (c *Connector) attempt(ctx context.Context, m textMessage) (receipt string, err error) {
	if wait, all := c.pace.take(m.ChatID); wait > 0 {
		return "", &connectors.RetryError{After: wait, All: all, Err: errors.New("telegram asked this chat to slow down")}
	}
	method := "sendMessage"
	if m.MessageID != 0 {
		method = "editMessageText"
	}
	var sent struct {
		MessageID int64 `json:"message_id"`
	}
	err = c.send.call(ctx, method, m, &sent)
	var r *refusal
	switch {
	case err == nil && sent.MessageID == 0 && m.MessageID == 0:
		return "", &failure{method: method, left: true, err: errors.New("the answer names no message")}
	case err == nil && m.MessageID == 0:
		c.pace.done(m.ChatID)
		return strconv.FormatInt(sent.MessageID, 10), nil
	case err == nil, errors.As(err, &r) && m.MessageID != 0 && r.says("message is not modified"):
		c.pace.done(m.ChatID)
		return strconv.FormatInt(m.MessageID, 10), nil
	case errors.As(err, &r) && r.code == http.StatusTooManyRequests:
		return "", c.refused(m.ChatID, r)
	}
	return "", err
}

// refused learns from a 429 in a chat.
func (c *Connector) refused(chat int64, r *refusal) error {
	all := c.pace.refused(chat, r.retryAfter)
	c.rates.refused(chat, r.retryAfter, all)
	return &connectors.RetryError{After: r.retryAfter, All: all, Err: r}
}

// chatRefuses are refusals of a chat that last until a person changes something there.
// CHAT_RESTRICTED is of github.com/tdlib/telegram-bot-api/issues/863, 2026-07-01, and the
// administrator rights are of github.com/teloxide/teloxide/issues/450, 2021-09-27; both read
// 2026-11-28.
var chatRefuses = []string{
	"chat not found", "user is deactivated", "was kicked", "group chat was deactivated", "peer_id_invalid", "chat_write_forbidden",
	"chat_restricted", "have no rights to send", "not enough rights to send text messages", "need administrator rights in the channel chat",
}

// classify converts the error of a call to an error of connectors.Sender.
func classify(err error, edit bool) error {
	var r *refusal
	var f *failure
	switch {
	case errors.As(err, &f) && f.left && !edit:
		return &connectors.AmbiguousError{Err: err}
	case !errors.As(err, &r):
		return err
	case r.code == http.StatusForbidden:
		return &connectors.PermanentError{DeadRoute: true, Err: err}
	case refusesToken(err): // not sent; a valid token fixes it
		return err
	case edit && (r.says("message to edit not found", "message can't be edited", "message_id_invalid") || r.says(topicGone...)):
		return connectors.ErrEditGone
	case r.says(chatRefuses...):
		return &connectors.PermanentError{DeadRoute: true, Err: err}
	case r.code == http.StatusBadRequest:
		return &connectors.PermanentError{Err: err}
	}
	return err
}

// Typing shows "typing…" for about five seconds. It does nothing while the chat
// is paused.
func (c *Connector) Typing(ctx context.Context, r claybot.Route) error {
	id, err := strconv.ParseInt(r.ChannelID, 10, 64)
	if err != nil || c.pace.silent(id) {
		return nil
	}
	action := struct {
		ChatID   int64  `json:"chat_id"`
		ThreadID int64  `json:"message_thread_id,omitempty"`
		Action   string `json:"action"`
	}{ChatID: id, Action: "typing"}
	if thread, err := strconv.ParseInt(r.ThreadID, 10, 64); err == nil && thread > 1 {
		action.ThreadID = thread
	}
	var done bool
	err = c.send.call(ctx, "sendChatAction", action, &done)
	if after := retryAfter(err); after > 0 {
		c.pace.refused(id, after)
	}
	return err
}

// Streaming returns the rate of edits. It is lower in groups, where all
// messages share one rate limit.
func (c *Connector) Streaming(r claybot.Route) connectors.Streaming {
	s := connectors.Streaming{First: 64, Wait: 1500 * time.Millisecond, Every: time.Second, Limit: 3500}
	if strings.HasPrefix(r.ChannelID, "-") {
		s.Every = 3 * time.Second
	}
	switch c.cfg.Delivery {
	case DeliveryDirect:
		s.Off = true
	case DeliveryPlaceholder:
		s.First, s.Wait, s.Placeholder = 0, 0, true
	case DeliveryDraft:
		s.Drafts = true
	}
	return s
}

// Resend reports what the configuration says, because Telegram offers no way to look up
// what a bot sent. By default, it reports true unless a copy is worse than none.
func (c *Connector) Resend(o claybot.Outgoing) bool {
	switch c.cfg.OnAmbiguous {
	case AmbiguousResend:
		return true
	case AmbiguousNotice:
		return false
	}
	return !o.Once
}
