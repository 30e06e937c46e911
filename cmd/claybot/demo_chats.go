package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/openai/openaitest"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// The people of the scene: one on Telegram, one on Slack.
const (
	telegramPerson = 1001
	slackPerson    = "U1"
	slackChannel   = "C1"
)

// chatsScene shows pairing, a streamed answer, a tool, a Slack thread, a fresh
// start, and a send whose answer gets lost.
func chatsScene() scene {
	return scene{
		name:  "chats",
		about: "an operator approves a user on Telegram, a colleague asks in a Slack channel",
		model: chatsModel,
		play: func(ctx context.Context, s *stage) error {
			for _, act := range []func(context.Context) error{s.pairing, s.streaming, s.tool, s.slackThread, s.freshStart, s.lostAnswer} {
				if err := act(ctx); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// chatsModel is the scripted model of the scene.
func chatsModel(r openaitest.Request) openaitest.Reply {
	last := r.Messages[len(r.Messages)-1]
	text := r.LastUser()
	switch {
	case last.Role == llm.RoleTool:
		return openaitest.Reply{Text: "My clock says: " + last.Content}
	case strings.Contains(text, "what time"):
		return openaitest.Reply{Calls: []claybot.ToolCall{{ID: "call_1", Name: "current_time", Args: "{}"}}}
	case strings.Contains(text, "story"):
		return openaitest.Reply{
			Text: "Once upon a time a message was sent to a bot. The bot wrote it down before it said thank you. " +
				"Then the power went out. When it came back, the message was still there, and it was answered once.",
			Piece: 8, Gap: 90 * time.Millisecond,
		}
	case strings.Contains(text, "remember"):
		n := 0
		for _, m := range r.Messages {
			if m.Role == llm.RoleUser {
				n++
			}
		}
		return openaitest.Reply{Text: fmt.Sprintf("I remember %d messages of yours.", n)}
	}
	return openaitest.Reply{Text: "You said: " + text}
}

// tell lets the person on Telegram write and waits for n further messages of
// the bot.
func (s *stage) tell(ctx context.Context, text string, n int) ([]telegramtest.Message, error) {
	before := len(s.telegram.Sent(telegramPerson))
	s.said("telegram", text)
	s.telegram.Say(telegramPerson, telegramPerson, text)
	all, err := s.telegram.WaitSent(ctx, telegramPerson, before+n)
	if err != nil {
		return nil, fmt.Errorf("no answer to %q: %w", text, err)
	}
	return all[before:], nil
}

// pairing shows that an unknown user gets only a code until an operator approves. What
// they wrote is answered then.
func (s *stage) pairing(ctx context.Context) error {
	if _, err := s.tell(ctx, "hello, who are you?", 1); err != nil {
		return err
	}
	var open web.PairingList
	if err := s.client.call(ctx, "GET", "/pairing", nil, &open); err != nil {
		return err
	}
	if len(open.Pairings) != 1 {
		return fmt.Errorf("%d open requests, want 1", len(open.Pairings))
	}
	code := open.Pairings[0].Code
	s.say("operator $", "claybot pair approve %s", code)
	var p storage.Pairing
	if err := s.client.call(ctx, "POST", "/pairing", map[string]any{"code": code, "approve": true}, &p); err != nil {
		return err
	}
	_, err := s.telegram.WaitSent(ctx, telegramPerson, 3)
	return err
}

// streaming shows an answer that grows by edits of one message.
func (s *stage) streaming(ctx context.Context) error {
	got, err := s.tell(ctx, "tell me a story", 1)
	if err != nil {
		return err
	}
	if err := s.untilText(ctx, got[0].ID, "answered once."); err != nil {
		return fmt.Errorf("the story has no end: %w", err)
	}
	return nil
}

// untilText waits until a message of the bot ends with a text.
func (s *stage) untilText(ctx context.Context, id int64, end string) error {
	for ctx.Err() == nil {
		for _, m := range s.telegram.Sent(telegramPerson) {
			if m.ID == id && strings.HasSuffix(m.Text, end) {
				return nil
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return context.Cause(ctx)
}

// tool shows a model that uses a tool.
func (s *stage) tool(ctx context.Context) error {
	got, err := s.tell(ctx, "what time is it?", 1)
	if err == nil && !strings.Contains(got[0].Text, "UTC") {
		err = fmt.Errorf("no time in %q", got[0].Text)
	}
	return err
}

// slackThread shows a mention in a channel, which arrives as two events and is
// answered once, in its thread.
func (s *stage) slackThread(ctx context.Context) error {
	s.say("operator $", "claybot pair allow slack:T1/%s", slackChannel)
	in := map[string]any{"connector": "slack", "subject": "T1/" + slackChannel}
	if err := s.client.call(ctx, "POST", "/pairing", in, nil); err != nil {
		return err
	}
	s.said("slack #general", "@claybot is this thing on?")
	ts := s.slack.Mention(slackChannel, slackPerson, "is this thing on?", true)
	m, err := s.slack.WaitPosted(ctx, slackChannel, func(m slacktest.Message) bool { return m.Thread == ts })
	if err != nil {
		return fmt.Errorf("no answer in the thread: %w", err)
	}
	s.heard("slack thread", m.Text)
	if err := s.slack.WaitAcked(ctx); err != nil {
		return err
	}
	if n := len(s.slack.Posted(slackChannel)); n != 1 {
		return fmt.Errorf("the mention was answered %d times", n)
	}
	return nil
}

// lostAnswer shows that a post whose answer got lost on the way is looked up
// and not sent twice.
func (s *stage) lostAnswer(ctx context.Context) error {
	s.say("operator $", "claybot pair allow slack:%s", slackPerson)
	in := map[string]any{"connector": "slack", "subject": slackPerson}
	if err := s.client.call(ctx, "POST", "/pairing", in, nil); err != nil {
		return err
	}
	s.say("network", "Slack takes the next post, but its answer gets lost")
	s.slack.Fail("chat.postMessage", slacktest.Fault{Lost: true})
	s.said("slack direct", "did you get that?")
	channel, _ := s.slack.DM(slackPerson, "did you get that?")
	m, err := s.slack.WaitPosted(ctx, channel, func(slacktest.Message) bool { return true })
	if err != nil {
		return fmt.Errorf("no answer in the direct chat: %w", err)
	}
	s.heard("slack direct", m.Text)
	s.say("bot", "Slack did not acknowledge that post; I look it up before I would send it again")
	if err := s.delivered(ctx); err != nil {
		return err
	}
	if n := len(s.slack.Posted(channel)); n != 1 {
		return fmt.Errorf("the answer is there %d times", n)
	}
	s.say("bot", "found; sent once")
	return nil
}

// delivered waits until nothing in the outbox is open.
func (s *stage) delivered(ctx context.Context) error {
	for {
		st, err := s.daemon.system.Overview.Status(ctx)
		if err != nil {
			return err
		}
		open := 0
		for _, state := range []claybot.SendState{claybot.SendWaiting, claybot.SendAttempted, claybot.SendAmbiguous} {
			open += st.Outbox[state]
		}
		if open == 0 {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%d messages are not delivered: %w", open, context.Cause(ctx))
		}
	}
}

// freshStart shows /new: the agent stays, its memory of the conversation goes.
func (s *stage) freshStart(ctx context.Context) error {
	if _, err := s.tell(ctx, "what do you remember?", 1); err != nil {
		return err
	}
	got, err := s.tell(ctx, "/new what do you remember now?", 2)
	if err != nil {
		return err
	}
	if want := "I remember 1 messages of yours."; got[1].Text != want {
		return fmt.Errorf("after /new the answer is %q, want %q", got[1].Text, want)
	}
	if overlaps := s.model.Overlaps(); len(overlaps) > 0 {
		return errors.New("an agent had two model calls at once: " + overlaps[0])
	}
	return nil
}
