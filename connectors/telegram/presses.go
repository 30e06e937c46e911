package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
)

// A callback is a callback_query: a button press by a user.
type callback struct {
	ID      string         `json:"id"`
	From    *tgbotapi.User `json:"from"`
	Message *message       `json:"message"` // nil for an inline message; without date and buttons if it is inaccessible
	Data    string         `json:"data"`
}

// callback handles a button press and returns nil once it may be acknowledged. An
// unknown button is not an error.
func (l *loop) callback(ctx context.Context, t *callback) error {
	if by, ok := l.presser(t); ok {
		if p, ok := readPress(t.Data); ok {
			return l.pressed(ctx, t, by, p)
		}
		if command, ok := readOffer(t.Data); ok {
			return l.offered(ctx, t, by, command)
		}
		if user, ok := readStop(t.Data); ok {
			return l.stopped(ctx, t, by, user)
		}
	}
	l.dead(ctx, t)
	return nil
}

// presser returns who pressed a button; ok is false unless it is on an accessible message
// of the bot.
func (l *loop) presser(t *callback) (by claybot.Descriptor, ok bool) {
	m := t.Message
	if t.ID == "" || m == nil || m.Date <= 0 || m.MessageID <= 0 || m.From == nil || m.From.ID != l.botID && l.botID != 0 {
		return by, false
	}
	return l.principal(m.Chat, t.From, nil)
}

func (l *loop) dead(ctx context.Context, t *callback) {
	l.figures.ignored.Add(1)
	by, _ := l.presser(t)
	l.say(ctx, t, texts.To(ctx, by).In(texts.ButtonDead), true)
}

// pressed submits the answer of a question's button.
func (l *loop) pressed(ctx context.Context, t *callback, by claybot.Descriptor, p press) error {
	if p.verb == verbToggle {
		if p.user != 0 && p.user != t.From.ID {
			l.figures.ignored.Add(1)
			l.say(ctx, t, texts.To(ctx, by).In(texts.NotYours), true)
			return nil
		}
		l.toggle(ctx, t, by, p)
		return nil
	}
	if p.verb == verbEdit {
		l.say(ctx, t, texts.To(ctx, by).SendArguments(p.question), true)
		return nil
	}
	if p.verb == verbDone {
		p.chosen = l.choices.state(t, p)
	}
	value, ok := p.value(t.Message.Markup)
	if !ok {
		l.dead(ctx, t)
		return nil
	}
	became, err := l.handler.Answer(ctx, connectors.Press{
		Connector: by.Connector, UserID: by.UserID, ChannelID: by.ChannelID,
		Answer: claybot.Answer{Question: p.question, Text: value, Scope: p.scope()},
	})
	if err != nil {
		return err
	}
	l.figures.posted.Add(1)
	l.say(ctx, t, became.Text, became.Again || !became.OK)
	return nil
}

// value returns the answer of p in the form that Question.Check reads. k is the
// keyboard of the button. ok is false if k does not have the option.
func (p press) value(k keyboard) (value string, ok bool) {
	switch p.verb {
	case verbYes, verbSession:
		return "yes", true
	case verbNo:
		return "no", true
	case verbSkip:
		return "", true
	}
	if p.verb == verbOption {
		p.chosen = p.bit()
	}
	all := []string{}
	for i := range maxOptions {
		if p.chosen&(1<<i) == 0 {
			continue
		}
		name := strconv.Itoa(i + 1)
		if p.named {
			if name, ok = k.label(p.question, i+1); !ok {
				return "", false
			}
		}
		all = append(all, name)
	}
	if p.verb == verbOption {
		return all[0], true
	}
	list, err := json.Marshal(all)
	return string(list), err == nil
}

// options calls do for each option button of a question.
func (k keyboard) options(question string, do func(b *button, p press)) {
	for _, row := range k.Rows {
		for i := range row {
			if p, ok := readPress(row[i].Data); ok && p.question == question {
				do(&row[i], p)
			}
		}
	}
}

// label returns the label of an option's button.
func (k keyboard) label(question string, option int) (label string, ok bool) {
	k.options(question, func(b *button, p press) {
		if p.option != option {
			return
		}
		label, ok = b.Text, true
		if p.verb == verbToggle && p.chosen&p.bit() != 0 {
			label = strings.TrimPrefix(label, chosenMark)
		}
	})
	return label, ok
}

// offered posts the command of an offer, as if the user had typed it in reply
// to the message with the button.
func (l *loop) offered(ctx context.Context, t *callback, by claybot.Descriptor, command string) error {
	m := t.Message
	msg := claybot.AgentMessage{
		ID:   claybot.MessageID("telegram/" + l.bot + "/tap/" + t.ID),
		Type: claybot.MessageUser,
		Text: command, FirstHand: true,
		From:    claybot.Sender{UserID: by.UserID, Name: connectors.PersonName(t.From.FirstName + " " + t.From.LastName)},
		At:      claybot.Now(),
		Context: claybot.MessageContext{ThreadID: m.topic(), Group: m.Chat.group()},
	}
	if m.Chat.group() {
		msg.Context.ReplyTo = strconv.FormatInt(m.MessageID, 10)
	}
	msg, ours := connectors.Interpret(msg, "/", l.self.name())
	if !ours {
		l.dead(ctx, t)
		return nil
	}
	if err := l.handler.Post(ctx, by, msg); err != nil {
		return err
	}
	l.figures.posted.Add(1)
	l.say(ctx, t, "", false)
	return nil
}

// stopped stops the run whose answer grows in the message, and says so if there is none: the
// answer has ended, and with it the button, unless a crash left it; or it answers another user.
// A press that Telegram repeats is the same reaction.
func (l *loop) stopped(ctx context.Context, t *callback, by claybot.Descriptor, user int64) error {
	reacts, ok := l.handler.(connectors.ReactionHandler)
	if !ok {
		l.dead(ctx, t)
		return nil
	}
	took, err := reacts.Reacted(ctx, connectors.Reaction{
		Connector: by.Connector, ChannelID: by.ChannelID, UserID: by.UserID, Group: t.Message.Chat.group(),
		Message: strconv.FormatInt(t.Message.MessageID, 10), Stop: true, At: t.Message.sent(),
	})
	switch {
	case err != nil:
		return err
	case took:
		l.figures.posted.Add(1)
		l.say(ctx, t, "", false)
	case user != 0 && user != t.From.ID:
		l.figures.ignored.Add(1)
		l.say(ctx, t, texts.To(ctx, by).In(texts.NotYourRun), true)
	default:
		l.dead(ctx, t)
	}
	return nil
}

// say answers a callback: Telegram shows text to the user who pressed the
// button, as an alert or briefly. It does not block.
func (l *loop) say(ctx context.Context, t *callback, text string, alert bool) {
	if t.ID == "" {
		return
	}
	l.aside.do(ctx, func(ctx context.Context) { l.toast(ctx, t.ID, text, alert) })
}

// toast makes the call for say. After a restart it often comes too late, which
// is harmless: the answer is durable and the message will show it.
func (c *Connector) toast(ctx context.Context, id, text string, alert bool) {
	answer := struct {
		ID    string `json:"callback_query_id"`
		Text  string `json:"text,omitempty"`
		Alert bool   `json:"show_alert,omitempty"`
	}{ID: id, Text: cutUTF16(text, maxToastUTF16), Alert: alert && text != ""}
	ctx, cancel := context.WithTimeout(ctx, asideTimeout)
	defer cancel()
	var done bool
	err := c.send.call(ctx, "answerCallbackQuery", answer, &done)
	var r *refusal
	switch {
	case err == nil:
	case errors.As(err, &r) && r.code == http.StatusBadRequest && r.says("query is too old", "query_id_invalid"):
		c.log.Debug("callback answered too late, answer not shown")
	default:
		c.log.Warn("failed to show the answer to a callback", "err", err)
	}
}

// An aside runs work concurrently with the loop. The zero value is ready to
// use.
type aside struct {
	group sync.WaitGroup
	once  sync.Once
	slots chan struct{}
}

// do calls fn in its own goroutine with a context that outlives ctx, so started
// work is completed. At most maxAside run at a time; do waits for a slot and
// does not call fn if ctx ends first.
func (a *aside) do(ctx context.Context, fn func(ctx context.Context)) {
	a.once.Do(func() { a.slots = make(chan struct{}, maxAside) })
	select {
	case a.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	a.group.Go(func() {
		defer func() { <-a.slots }()
		fn(context.WithoutCancel(ctx))
	})
}

func (a *aside) wait() { a.group.Wait() }

// clone returns a deep copy of k.
func (k keyboard) clone() keyboard {
	rows := slices.Clone(k.Rows)
	for i := range rows {
		rows[i] = slices.Clone(rows[i])
	}
	return keyboard{Rows: rows}
}
