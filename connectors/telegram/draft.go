package telegram

import (
	"context"
	"errors"
	"hash/fnv"
	"net/http"

	"github.com/claybot/claybot"
)

// A draftMessage holds the parameters of sendMessageDraft, which private chats have
// (core.telegram.org/bots/api#sendmessagedraft, Bot API 9.3, for all bots since 9.5).
type draftMessage struct {
	ChatID    int64  `json:"chat_id"`
	ThreadID  int64  `json:"message_thread_id,omitempty"`
	DraftID   int64  `json:"draft_id"`
	Text      string `json:"text"`
	ParseMode string `json:"parse_mode,omitempty"`
}

// Draft implements connectors.Drafter. Telegram shows a draft for 30 seconds, or until a
// message comes, and notifies no device.
func (c *Connector) Draft(ctx context.Context, o claybot.Outgoing) (shown bool, err error) {
	m, err := newMessage(o)
	if err != nil || m.ChatID < 0 || c.noDrafts.Load() {
		return false, err
	}
	if c.pace.silent(m.ChatID) {
		return true, nil // it stays away; the next one may come
	}
	if err := c.mayGrow(m.ChatID, o); err != nil {
		return true, err
	}
	id := fnv.New32a()
	_, _ = id.Write([]byte(o.Run)) // a hash takes every byte
	d := draftMessage{ChatID: m.ChatID, ThreadID: m.ThreadID, DraftID: int64(id.Sum32()>>1) + 1, Text: format(o.Text), ParseMode: "HTML"}
	var done bool
	err = c.send.call(ctx, "sendMessageDraft", d, &done)
	var r *refusal
	if errors.As(err, &r) && r.says("can't parse entities") {
		d.Text, d.ParseMode = o.Text, ""
		err = c.send.call(ctx, "sendMessageDraft", d, &done)
	}
	switch {
	case err == nil:
		return true, nil
	case !errors.As(err, &r):
		return false, err
	case r.code == http.StatusTooManyRequests:
		return true, c.refused(d.ChatID, r)
	case r.code == http.StatusNotFound: // an older server, or the token, which other calls report
		c.noDrafts.Store(true)
	}
	return false, nil
}
