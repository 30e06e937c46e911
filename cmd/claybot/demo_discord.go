package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors/discord/discordtest"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/openai/openaitest"
)

// The server, the channel, its thread, and the people on Discord: Ann, with her direct chat, and Bob.
const (
	discordPotters = "300000000000000001"
	discordChannel = "500000000000000001"
	discordThread  = "600000000000000001"
	discordDirect  = "400000000000000001"
	discordAnn     = "200000000000000001"
	discordBob     = "200000000000000002"
)

const discordConfig = `access: {allow: ["discord:` + discordAnn + `", "discord:` + discordChannel + `"]}
agents: {default: {approve: [remind_me]}}
`

// discordPlaces is how the transcript calls the conversations.
var discordPlaces = map[string]string{discordChannel: "discord #pottery", discordThread: "discord thread", discordDirect: "discord direct"}

// asksGlaze is how the model lets a person choose.
const asksGlaze = `{"question":"Which glaze do you like best?","key":"glaze","options":["celadon","tenmoku","shino"]}`

// A discordPlay is the scene of what Discord has beside messages.
type discordPlay struct{}

func discordScene() scene {
	var p discordPlay
	return scene{
		name:    "discord",
		about:   "a slash command, a thread with a memory of its own, a menu, and a button that only one person may press",
		model:   p.model,
		config:  discordConfig,
		discord: true,
		ready: func(s *stage) error {
			s.discord.Name(discordAnn, "Ann")
			s.discord.Name(discordBob, "Bob")
			s.discord.AddDirect(discordDirect, discordAnn)
			s.discord.AddChannel(discordPotters, discordChannel)
			s.discord.Rename(discordChannel, "pottery")
			s.discord.AddThread(discordChannel, discordThread)
			return nil
		},
		play: inTurn(p.command, p.thread, p.menu, p.button),
	}
}

func (discordPlay) model(r openaitest.Request) openaitest.Reply {
	last, text := r.Messages[len(r.Messages)-1], r.LastUser()
	call := func(name, args string) openaitest.Reply {
		return openaitest.Reply{Calls: []claybot.ToolCall{{ID: fmt.Sprint("call_", r.N), Name: name, Args: args}}}
	}
	switch {
	case last.Role == llm.RoleTool && strings.Contains(text, "glaze"):
		return openaitest.Reply{Text: "Noted: " + answered(last.Content)}
	case last.Role == llm.RoleTool:
		return openaitest.Reply{Text: "I shall remind you."}
	case strings.Contains(text, "what do you know"):
		return known(r)
	case strings.Contains(text, "ask me about glazes"):
		return call("ask_user", asksGlaze)
	case strings.Contains(text, "remind me"):
		return call("remind_me", `{"note":"open the kiln","in":"8h"}`)
	}
	return openaitest.Reply{Text: "Noted: " + text}
}

// sees waits until a conversation on Discord shows a message that fits, and prints it.
func (discordPlay) sees(ctx context.Context, s *stage, place string, fits func(discordtest.Message) bool) (m discordtest.Message, err error) {
	err = poll(ctx, func() (bool, error) {
		all := s.discord.Sent(place)
		i := slices.IndexFunc(all, fits)
		if i >= 0 {
			m = all[i]
		}
		return i >= 0, nil
	})
	if err != nil {
		return m, fmt.Errorf("%s does not show what it should: %w", discordPlaces[place], err)
	}
	labels := m.Buttons()
	if options := m.Options(); len(options) > 0 {
		labels = append(labels, "▾ "+strings.Join(options, ", "))
	}
	s.heard(discordPlaces[place], withButtons(discordtest.Visible(m.Content), labels))
	return m, nil
}

// say lets Ann mention the bot, and waits for an answer with a text.
func (p discordPlay) say(ctx context.Context, s *stage, place, text, want string) (discordtest.Message, error) {
	s.said(discordPlaces[place], "Ann: @claybot "+text)
	s.discord.Write(discordtest.Post{Channel: place, User: discordAnn, Text: "<@" + discordtest.Bot + "> " + text})
	return p.sees(ctx, s, place, func(m discordtest.Message) bool {
		return strings.Contains(discordtest.Visible(m.Content), want)
	})
}

// command shows a command that Ann chooses after a slash.
func (p discordPlay) command(ctx context.Context, s *stage) error {
	err := poll(ctx, func() (bool, error) {
		registered, _ := s.discord.Commands()
		sessions, _ := s.discord.Sessions() // without one, Discord tells the person that the application did not respond
		return registered > 0 && sessions > 0, nil
	})
	if err != nil {
		return fmt.Errorf("no session, or no command is registered: %w", err)
	}
	s.said(discordPlaces[discordDirect], "Ann: /status")
	s.discord.Slash(discordDirect, discordAnn, "status", "")
	_, err = p.sees(ctx, s, discordDirect, func(discordtest.Message) bool { return true })
	return err
}

// thread shows a channel and its thread, each with a memory of its own.
func (p discordPlay) thread(ctx context.Context, s *stage) error {
	for _, a := range [][3]string{
		{discordThread, "the vases get a blue glaze", "Noted"},
		{discordChannel, "what do you know?", "I know nothing here"},
		{discordThread, "what do you know?", "Here I know of: blue glaze"},
	} {
		if _, err := p.say(ctx, s, a[0], a[1], a[2]); err != nil {
			return err
		}
	}
	return nil
}

// menu shows a question with a menu.
func (p discordPlay) menu(ctx context.Context, s *stage) error {
	q, err := p.say(ctx, s, discordThread, "ask me about glazes", "Which glaze")
	if err != nil {
		return err
	}
	s.say(discordPlaces[discordThread]+" >", "Ann chooses: tenmoku")
	if err := s.discord.Choose(discordThread, discordAnn, q.ID, "tenmoku"); err != nil {
		return err
	}
	_, err = p.sees(ctx, s, discordThread, func(m discordtest.Message) bool { return m.Content == "Noted: tenmoku" })
	return err
}

// button shows an approval in a channel: only the person who is asked can press its buttons.
func (p discordPlay) button(ctx context.Context, s *stage) error {
	q, err := p.say(ctx, s, discordChannel, "remind me to open the kiln", "setting a reminder")
	if err != nil {
		return err
	}
	place := discordPlaces[discordChannel]
	s.say(place+" >", "Bob presses: Approve")
	if err := s.discord.Press(discordChannel, discordBob, q.ID, "Approve"); err != nil {
		return err
	}
	if err := poll(ctx, func() (bool, error) { return len(s.discord.Whispers(discordBob)) > 0, nil }); err != nil {
		return fmt.Errorf("no notice to Bob: %w", err)
	}
	s.heard(place, "(to Bob alone) "+s.discord.Whispers(discordBob)[0])
	s.say(place+" >", "Ann presses: Approve")
	if err := s.discord.Press(discordChannel, discordAnn, q.ID, "Approve"); err != nil {
		return err
	}
	if _, err := p.sees(ctx, s, discordChannel, func(m discordtest.Message) bool { return strings.Contains(m.Content, "I shall remind you") }); err != nil {
		return err
	}
	if n := s.discord.Unanswered(); n > 0 {
		return fmt.Errorf("%d presses or commands were not answered", n)
	}
	if strange := s.discord.Strange(); len(strange) > 0 {
		return errors.New("Discord does not know " + strings.Join(strange, ", "))
	}
	return s.quiet(ctx)
}
