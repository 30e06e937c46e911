package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/openai/openaitest"
)

// What streams in the scenes of the platforms: people see the first part while the model
// still thinks about the rest.
const (
	potBegins = "A pot begins as a lump of clay. The potter centres it on the wheel and opens it with both thumbs. "
	potEnds   = "Then the walls are pulled up, and the pot dries for a week before it is fired."
)

const knowsClay = "I know about clay, and I book the kiln."

// asksPots is how the model asks for a number.
const asksPots = `{"question":"How many pots go into the kiln?","key":"pots","type":"number","min":1,"max":40}`

// A slackPlay is the scene of what Slack has beside messages.
type slackPlay struct {
	seen chan struct{} // closed when people saw the first part of the stream
}

func slackScene() scene {
	p := &slackPlay{seen: make(chan struct{})}
	return scene{
		name:   "slack",
		about:  "the panel with its suggestions, a stream in a thread, a question with a form, and the Home tab",
		model:  p.model,
		config: `access: {allow: ["slack:U1", "slack:C1"]}`,
		play:   inTurn(p.panel, p.stream, p.form, p.home),
	}
}

func (p *slackPlay) model(r openaitest.Request) openaitest.Reply {
	last, text := r.Messages[len(r.Messages)-1], r.LastUser()
	switch {
	case last.Role == llm.RoleTool:
		return openaitest.Reply{Text: "The kiln is booked for " + answered(last.Content) + " pots."}
	case strings.Contains(text, "how is a pot made"):
		return openaitest.Reply{Text: potBegins + potEnds, Piece: len(potBegins), Rest: p.seen}
	case strings.Contains(text, "book the kiln"):
		return openaitest.Reply{Calls: []claybot.ToolCall{{ID: "call_1", Name: "ask_user", Args: asksPots}}}
	}
	return openaitest.Reply{Text: knowsClay}
}

// answered is the answer to the only question that a model asked, as its tool returns it.
func answered(result string) string {
	var answers map[string]any
	_ = json.Unmarshal([]byte(result), &answers) // the scene sees what is missing
	for _, value := range answers {
		return fmt.Sprint(value)
	}
	return result
}

// panel shows what people read who open the app among the agents: they choose a suggestion.
func (p *slackPlay) panel(ctx context.Context, s *stage) error {
	s.say("slack panel >", "Ann opens the panel")
	s.slack.OpenTab(slackPerson, slacktest.TabMessages)
	channel := "D" + slackPerson
	var prompts []slacktest.Prompt
	if err := poll(ctx, func() (bool, error) { prompts = s.slack.Prompts(channel, ""); return len(prompts) > 0, nil }); err != nil {
		return fmt.Errorf("the panel suggests nothing: %w", err)
	}
	var titles []string
	for _, p := range prompts {
		titles = append(titles, p.Title)
	}
	s.heard("slack panel", withButtons("suggests", titles))
	s.said("slack panel", "Ann: "+prompts[0].Message)
	s.slack.DM(slackPerson, prompts[0].Message)
	m, err := s.slack.WaitPosted(ctx, channel, func(m slacktest.Message) bool { return m.Text == knowsClay })
	if err != nil {
		return fmt.Errorf("no answer to the suggestion: %w", err)
	}
	s.heard("slack panel", m.Text)
	return nil
}

// stream shows an answer in a thread that is a stream of Slack's own.
func (p *slackPlay) stream(ctx context.Context, s *stage) error {
	t := &topic{name: "pot"}
	ts := s.write(t, "how is a pot made?")
	begun := strings.TrimSpace(potBegins)
	m, err := s.slack.WaitPosted(ctx, slackChannel, func(m slacktest.Message) bool {
		return m.Thread == ts && m.Streaming && strings.TrimSpace(m.Text) == begun
	})
	if err != nil {
		return fmt.Errorf("no stream in the thread: %w", err)
	}
	s.heard(t.String(), begun+" …")
	close(p.seen)
	m, err = s.slack.WaitPosted(ctx, slackChannel, func(m slacktest.Message) bool { return m.Thread == ts && !m.Streaming })
	if err != nil {
		return fmt.Errorf("the stream does not end: %w", err)
	}
	s.heard(t.String(), m.Text)
	if n := len(s.slack.Posted(slackChannel)); n != 1 || m.Text != potBegins+potEnds {
		return fmt.Errorf("%d messages, the last one is %q", n, m.Text)
	}
	return nil
}

// form shows a question that a person answers in a modal.
func (p *slackPlay) form(ctx context.Context, s *stage) error {
	t := &topic{name: "kiln"}
	ts := s.write(t, "book the kiln")
	m, err := s.slack.WaitPosted(ctx, slackChannel, func(m slacktest.Message) bool { return m.Thread == ts && len(m.Buttons()) > 0 })
	if err != nil {
		return fmt.Errorf("no question in the thread: %w", err)
	}
	s.heard(t.String(), withButtons(m.Shown(), m.Buttons()))
	if err := s.fillIn(ctx, t.String(), m, m.Buttons()[0], "12"); err != nil {
		return err
	}
	return s.answered(ctx, t, "The kiln is booked for 12 pots.")
}

// fillIn lets a person press a button of a message on Slack and fill in the form that it opens.
func (s *stage) fillIn(ctx context.Context, where string, m slacktest.Message, button, value string) error {
	s.say(where+" >", "Ann presses: %s", button)
	if _, err := s.slack.Click(slackPerson, m.Channel, m.TS, button); err != nil {
		return err
	}
	form, err := s.slack.WaitModal(ctx, slackPerson)
	if err != nil {
		return err
	}
	s.say("slack form < bot", "*%s*\n%s\n%s: …", form.Title, form.Text, form.Inputs[0].Label)
	s.say("slack form >", "Ann fills in: %s", value)
	sent, err := s.slack.Submit(ctx, form.ID, map[string]any{"": value})
	if err != nil || !sent.Closed {
		return fmt.Errorf("the form was not accepted: %v, %w", sent.Errors, err)
	}
	return nil
}

// home shows the Home tab of the app.
func (p *slackPlay) home(ctx context.Context, s *stage) error {
	if err := s.quiet(ctx); err != nil {
		return err
	}
	s.say("slack home >", "Ann opens the Home tab")
	s.slack.OpenTab(slackPerson, slacktest.TabHome)
	var page []string
	if err := poll(ctx, func() (bool, error) { page = s.slack.Home(slackPerson); return len(page) > 0, nil }); err != nil {
		return fmt.Errorf("the Home tab is empty: %w", err)
	}
	if len(page)%2 != 0 || !strings.Contains(strings.Join(page, "\n"), "slack: 3 conversations") {
		return fmt.Errorf("the Home tab does not show three conversations below their heading: %q", page)
	}
	var lines []string
	for i, text := range page {
		first, _, more := strings.Cut(text, "\n")
		switch {
		case i%2 == 0:
			first = "*" + first + "*"
		case more:
			first += " …"
		}
		lines = append(lines, first)
	}
	s.heard("slack home", strings.Join(lines, "\n"))
	return nil
}
