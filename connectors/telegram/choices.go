package telegram

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/texts"
)

// choices holds selections that the messages of multiple-choice questions do
// not show yet. The messages are the source of truth, so choices may be lost at
// any time. The zero value is ready to use. It is safe for concurrent use.
type choices struct {
	mu   sync.Mutex
	open map[place]*choice
}

// A place identifies one message.
type place struct{ chat, message int64 }

// A choice is the state of a message that the message does not show yet.
type choice struct {
	question string
	chosen   uint64
	past     []uint64  // what it was before, which a message may still show that was pressed on earlier
	keyboard keyboard  // at the last button press
	at       time.Time // of the last button press
	waiting  []string  // callback ids to answer once the selection is shown
	showing  bool      // a goroutine is updating the message
}

func (t *callback) place() place { return place{chat: t.Message.Chat.ID, message: t.Message.MessageID} }

// state returns the selected options of the message of a callback.
func (c *choices) state(t *callback, p press) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known(t, p)
}

// known returns the state before a button press. The message in the callback
// may be newer than the pressed button, and recent presses newer than both. What
// the message never showed here, another member has made of it.
func (c *choices) known(t *callback, p press) uint64 {
	chosen := p.chosen
	t.Message.Markup.options(p.question, func(_ *button, shown press) {
		if shown.verb == verbDone {
			chosen = shown.chosen
		}
	})
	x := c.open[t.place()]
	if x != nil && x.question == p.question && (x.showing || time.Since(x.at) < choiceKept && slices.Contains(x.past, chosen)) {
		return x.chosen
	}
	return chosen
}

// press selects or deselects an option: the opposite of what the pressed button
// showed, so a repeated callback has the same effect. It reports whether the
// caller must update the message; otherwise another goroutine does.
func (c *choices) press(t *callback, p press) (x *choice, show bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.known(t, p)
	chosen := before &^ p.bit()
	if p.chosen&p.bit() == 0 {
		chosen |= p.bit()
	}
	for at, x := range c.open {
		if !x.showing && time.Since(x.at) >= choiceKept {
			delete(c.open, at)
		}
	}
	if c.open == nil {
		c.open = make(map[place]*choice)
	}
	x = c.open[t.place()]
	if x == nil || x.question != p.question {
		x = &choice{question: p.question}
		c.open[t.place()] = x
	}
	x.past = append(x.past, before)
	x.past = x.past[max(0, len(x.past)-choicePast):]
	x.chosen, x.keyboard, x.at = chosen, t.Message.Markup, time.Now()
	x.waiting = append(x.waiting, t.ID)
	show, x.showing = !x.showing, true
	return x, show
}

// next returns the keyboard to show and the callbacks to answer with it. ok is
// false if there are none; then the update is finished.
func (c *choices) next(x *choice) (k keyboard, presses []string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(x.waiting) == 0 {
		x.showing = false
		return k, nil, false
	}
	presses, x.waiting = x.waiting, nil
	return x.keyboard.show(x.question, x.chosen), presses, true
}

// fail discards a choice that could not be shown and returns the callbacks that
// had no effect.
func (c *choices) fail(at place, x *choice) (presses []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[at] == x {
		delete(c.open, at)
	}
	presses, x.waiting = x.waiting, nil
	return presses
}

// show returns k with the chosen options marked.
func (k keyboard) show(question string, chosen uint64) keyboard {
	k = k.clone()
	k.options(question, func(b *button, p press) {
		if p.verb != verbToggle && p.verb != verbDone {
			return
		}
		if p.verb == verbToggle {
			if p.chosen&p.bit() != 0 {
				b.Text = strings.TrimPrefix(b.Text, chosenMark)
			}
			if chosen&p.bit() != 0 {
				b.Text = chosenMark + b.Text
			}
		}
		p.chosen = chosen
		b.Data, _ = p.data() // fits: choices checked the longest data
	})
	return k
}

// toggle selects or deselects an option and updates the buttons.
func (l *loop) toggle(ctx context.Context, t *callback, by claybot.Descriptor, p press) {
	x, show := l.choices.press(t, p)
	if show {
		l.aside.do(ctx, func(ctx context.Context) { l.show(ctx, t.place(), by, x) })
	}
}

// show updates a message until no button presses are left, and answers their
// callbacks after the update.
func (l *loop) show(ctx context.Context, at place, by claybot.Descriptor, x *choice) {
	for {
		k, presses, ok := l.choices.next(x)
		if !ok {
			return
		}
		err, text := l.mark(ctx, at, k), ""
		if err != nil {
			l.log.Warn("failed to show a choice", "err", err)
			presses, text = append(presses, l.choices.fail(at, x)...), texts.To(ctx, by).In(texts.TelegramAgain)
		}
		for _, id := range presses {
			l.toast(ctx, id, text, false)
		}
		if err != nil {
			return
		}
	}
}

// mark replaces the buttons of a message.
func (c *Connector) mark(ctx context.Context, at place, k keyboard) error {
	if wait, _ := c.pace.take(at.chat); wait > 0 {
		return errors.New("telegram asked this chat to slow down")
	}
	edit := struct {
		ChatID    int64    `json:"chat_id"`
		MessageID int64    `json:"message_id"`
		Markup    keyboard `json:"reply_markup"`
	}{ChatID: at.chat, MessageID: at.message, Markup: k}
	ctx, cancel := context.WithTimeout(ctx, asideTimeout)
	defer cancel()
	var edited struct{}
	err := c.send.call(ctx, "editMessageReplyMarkup", edit, &edited)
	var r *refusal
	switch {
	case err == nil, errors.As(err, &r) && r.says("message is not modified"):
		c.pace.done(at.chat)
		return nil
	case errors.As(err, &r) && r.code == http.StatusTooManyRequests:
		c.pace.refused(at.chat, r.retryAfter)
	}
	return err
}
