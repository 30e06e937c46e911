package slack

import (
	"context"
	"strings"

	slackapi "github.com/slack-go/slack"

	"github.com/claybot/claybot"
)

// A thread of an app with an assistant_view has the first words that its person wrote there as its
// title, once. An app with an agent_view has no such threads, but sessions.
//
// Shapes: docs.slack.dev/reference/methods/assistant.threads.setTitle, read 2026-11-30: the scope is
// assistant:write, and people see the title in the history of their chat with the app.

// titleKey names the newest thread of a direct chat that has no title yet.
func (c *Connector) titleKey(channel string) string { return c.keyOf("title", channel) }

// untitled notes that a thread has no title yet. Without Marks, it gets none.
func (r *receiver) untitled(ctx context.Context, v visit) {
	if v.thread == "" || r.chat.cfg.Marks == nil {
		return
	}
	if err := r.chat.cfg.Marks.SetCheckpoint(ctx, r.chat.titleKey(v.channel), v.thread); err != nil {
		r.log.Debug("failed to note a thread without a title", "err", err)
	}
}

// mayTitle reports whether a message may give its thread a title: it is what its person wrote in a direct chat.
func (r *receiver) mayTitle(in incoming) bool {
	m := in.message
	return m.Context.ThreadID != "" && !m.Context.Group && m.Type == claybot.MessageUser && m.Command == "" && m.FirstHand && !m.From.Outsider &&
		r.greets != nil && r.chat.cfg.Marks != nil && (App{Without: r.chat.cfg.Without}).with(Panel)
}

// title gives a thread its title if the message is the first one there of a person with access. A text with
// a secret is no title. The note goes before the call, so that no later message gives another title; if Slack
// refuses, the thread keeps the one that Slack gives it.
func (r *receiver) title(ctx context.Context, in incoming) error {
	c, thread := r.chat, in.message.Context.ThreadID
	_, channel, _ := strings.Cut(in.to.ChannelID, "/")
	if !r.greets.Welcome(in.to, in.message.From.Outsider) {
		return nil
	}
	noted, err := c.cfg.Marks.Checkpoint(ctx, c.titleKey(channel))
	if err != nil || noted != thread {
		return err
	}
	if err := c.cfg.Marks.SetCheckpoints(ctx, map[string]string{c.titleKey(channel): ""}); err != nil {
		return err
	}
	title := titleOf(in.message.Text)
	if title == "" || c.penalties.left(methodTitle, channel) > 0 {
		return nil
	}
	err = c.api.SetAssistantThreadsTitleContext(ctx, slackapi.AssistantThreadsSetTitleParameters{ChannelID: channel, ThreadTS: thread, Title: title})
	if wait := waitFor(err); wait > 0 {
		c.penalties.add(methodTitle, channel, wait)
	}
	if err != nil {
		return c.refused(methodTitle, c.cfg.BotTokenName, err)
	}
	return nil
}
