package slack

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	slackapi "github.com/slack-go/slack"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// The callback ids of the shortcuts, and of the modal that both open.
const (
	callbackAsk        = "claybot_ask"
	callbackAskMessage = "claybot_ask_message"
	blockAsk           = "ask"
)

// An asking is what the modal of a shortcut carries from its opening to its submission, so claybot keeps
// no state.
type asking struct {
	Direct string `json:"c"`           // the direct chat of the person, with the workspace
	Quote  string `json:"t,omitempty"` // the message that the question is about
	Own    bool   `json:"o,omitempty"` // the person wrote that message
}

// private returns a as the modal carries it. A long quote is cut.
func (a asking) private() string {
	for limit := maxPrivateChars; ; limit = limit * 3 / 4 {
		a.Quote = cut(a.Quote, max(limit, 1))
		if text := compact(a); utf8.RuneCountInString(text) <= maxPrivateChars {
			return text
		}
	}
}

// view returns the modal, with the message above the question.
func (a asking) view(v texts.Voice) slackapi.ModalViewRequest {
	field := slackapi.NewPlainTextInputBlockElement(nil, actionAnswer)
	field.Multiline, field.MaxLength = true, maxInputChars
	var blocks []slackapi.Block
	if a.Quote != "" {
		blocks = append(blocks, slackapi.NewSectionBlock(plainText(cut(a.Quote, maxSectionChars)), nil, nil), slackapi.NewDividerBlock())
	}
	input := slackapi.NewInputBlock(blockAsk, plainText(v.In(texts.AskQuestion)), plainText(v.In(texts.AskWhere)), field)
	return slackapi.ModalViewRequest{
		Type: slackapi.VTModal, CallbackID: callbackAsk, PrivateMetadata: a.private(),
		Title: modalText(v, texts.FormTitle), Submit: modalText(v, texts.FormSend), Close: modalText(v, texts.FormCancel),
		Blocks: slackapi.Blocks{BlockSet: append(blocks, input)},
	}
}

// shortcut reads that a person chose a shortcut: the global one, or that of a message.
//
// Shapes: docs.slack.dev/interactivity/implementing-shortcuts, read 2026-11-28: a message_action has
// the channel and the message, a shortcut neither; both have a trigger.
func (p interactive) shortcut(name string, self identity) (press, bool) {
	t := press{kind: shortcut, user: p.User.ID, channel: p.Channel.ID, thread: p.thread(), trigger: p.Trigger}
	place := p.User.ID // of the person alone
	switch p.Callback {
	case callbackAsk:
	case callbackAskMessage:
		if p.Channel.ID == "" || p.Message.TS == "" {
			return press{}, false
		}
		t.asking.Quote, t.asking.Own = plain(p.Message.Text, self), p.Message.User == p.User.ID && p.Message.BotID == ""
	default:
		return press{}, false
	}
	by, outsider, ok := p.principal(name, self, place)
	t.press = connectors.Press{Connector: name, UserID: by.UserID, ChannelID: by.ChannelID, Outsider: outsider}
	return t, ok && p.Trigger != ""
}

// question reads a submitted modal of a shortcut. The message is a new question, and answers none that
// waits; its id is that of the modal, so that a redelivery has the same.
func (p interactive) question(name string, self identity) (press, bool) {
	t := press{kind: questioned, user: p.User.ID}
	if json.Unmarshal([]byte(p.View.Metadata), &t.asking) != nil || p.View.ID == "" {
		return press{}, false
	}
	team, channel, _ := strings.Cut(t.asking.Direct, "/")
	text := strings.ToValidUTF8(strings.TrimSpace(p.View.State.Values[blockAsk][actionAnswer].Value), "\uFFFD")
	by, outsider, ok := p.principal(name, self, channel)
	if !ok || team != self.Team || !strings.HasPrefix(channel, "D") {
		return press{}, false
	}
	// The same text in a form is the same question. The form stays open if the acknowledgement is
	// lost, and a person who changes the text then asks another one.
	sum := sha256.Sum256([]byte(text))
	t.in = incoming{to: by, message: claybot.AgentMessage{
		ID: claybot.MessageID(fmt.Sprintf("%s/%s/ask/%s/%x", name, self.Team, p.View.ID, sum[:8])), Type: claybot.MessageUser, Text: text,
		From:    claybot.Sender{UserID: by.UserID, Outsider: outsider},
		Context: claybot.MessageContext{Quote: t.asking.Quote},
		Tainted: t.asking.Quote != "" && !t.asking.Own, At: claybot.Now(),
	}}
	return t, true
}

// openAsk opens the modal of a shortcut. A person without access reads one sentence, which only they see.
func (r *receiver) openAsk(ctx context.Context, t press) {
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	c, d := r.chat, claybot.User(t.press.Connector, t.press.ChannelID, t.press.UserID)
	voice := texts.To(ctx, d)
	var view slackapi.ModalViewRequest
	direct, err := "", error(nil)
	if r.greets == nil || !r.greets.Welcome(d, t.press.Outsider) {
		view = *notice(voice, voice.In(texts.HomeNoAccess))
	} else if c.cfg.Mixed != nil && c.cfg.Mixed() { // an older version would acknowledge the question and lose it
		view = *notice(voice, voice.In(texts.AskNoDirect))
	} else if direct, err = c.direct(ctx, t.user); err != nil {
		r.log.Warn("failed to open a direct chat for a shortcut", "user", t.press.UserID, "err", err)
		view = *notice(voice, voice.In(texts.AskNoDirect))
	} else {
		t.asking.Direct = r.self.Team + "/" + direct
		view = t.asking.view(voice)
	}
	_, err = c.api.OpenViewContext(ctx, t.trigger, view)
	if code, _ := judge(err); err == nil || code == "exchanged_trigger_id" {
		return // it is open: Slack redelivered the shortcut
	}
	r.log.Warn("failed to open the form of a shortcut", "user", t.press.UserID, "err", c.refused(methodView, c.cfg.BotTokenName, err))
}

// direct returns the direct chat of the bot with a user.
//
// Shapes: docs.slack.dev/reference/methods/conversations.open, read 2026-11-28: it needs im:write, and
// returns a chat that exists.
func (c *Connector) direct(ctx context.Context, user string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, directTime)
	defer cancel()
	chat, _, _, err := c.api.OpenConversationContext(ctx, &slackapi.OpenConversationParameters{Users: []string{user}})
	if code, k := judge(err); k == route {
		return "", &connectors.PermanentError{Err: fmt.Errorf("%s: slack says %s", methodOpen, code)}
	}
	if err != nil {
		return "", c.refused(methodOpen, c.cfg.BotTokenName, err)
	}
	return chat.ID, nil
}

// asked stores the question of a modal and then acknowledges it, which closes the modal. Without an
// acknowledgement, Slack shows an error and the person sends it again.
func (r *receiver) asked(ctx context.Context, s replier, f frame, t press) {
	if t.in.message.Text == "" { // it has spaces alone
		r.ack(s, f.EnvelopeID, slackapi.NewErrorsViewSubmissionResponse(map[string]string{blockAsk: cut(texts.To(ctx, t.in.to).In(texts.Empty), maxErrorChars)}))
		return
	}
	storing, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if err := r.back.turn(storing, t.in); err != nil {
		return
	}
	err := r.handler.Post(storing, t.in.to, t.in.message)
	if err != nil && storage.ClassOf(err) != storage.ClassMessage {
		r.log.Warn("failed to store the question of a shortcut; the user must repeat it", "message", t.in.message.ID, "err", err)
		return
	}
	if err == nil {
		r.ack(s, f.EnvelopeID, nil)
		return
	}
	r.log.Error("the question of a shortcut cannot be handled", "message", t.in.message.ID, "err", err)
	if f.Accepts {
		voice := texts.To(ctx, t.in.to)
		r.ack(s, f.EnvelopeID, slackapi.NewUpdateViewSubmissionResponse(notice(voice, voice.In(texts.AnswerRejected))))
		return
	}
	r.ack(s, f.EnvelopeID, nil)
}
