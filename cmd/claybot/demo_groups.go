package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/openai/openaitest"
)

// The group on Telegram, a second person on Slack, and how long the tool takes.
const (
	potters  = -100
	neighbor = "U2"
	kilnTime = 20 // seconds, more than it takes until claybot says that it is still working
)

const groupsConfig = `access: {allow: ["slack:C1", "telegram:-100"]}
agents: {default: {acknowledge: {working: ✍, done: 👌}, reactions: {stop: [🛑]}}}
`

// A groupsPlay is the scene in a channel of Slack and a group on Telegram.
type groupsPlay struct {
	thought chan struct{} // closed when the model may answer the message before the edited one
	dried   chan struct{} // the same on Slack
	mistake chan struct{} // closed when the model may answer the deleted message
	ordered chan struct{} // closed when the model may answer the message with the reaction
	kindled chan struct{} // closed when the model may start the tool that takes long
	hot     chan struct{} // closed when the model may answer afterwards
}

func groupsScene() scene {
	p := &groupsPlay{}
	for _, c := range []*chan struct{}{&p.thought, &p.dried, &p.mistake, &p.ordered, &p.kindled, &p.hot} {
		*c = make(chan struct{})
	}
	return scene{
		name:   "groups",
		about:  "threads of a channel, messages that are edited, one that is deleted, a reaction, and a tool that takes long",
		model:  p.model,
		config: groupsConfig,
		chats:  map[int64]string{potters: "potters"},
		play:   inTurn(p.threads, p.earlier, p.edit, p.editInThread, p.deletion, p.reaction, p.longTool),
	}
}

// model answers with what its conversation says.
func (p *groupsPlay) model(r openaitest.Request) openaitest.Reply {
	last, text := r.Messages[len(r.Messages)-1], r.LastUser()
	switch {
	case last.Role == llm.RoleTool:
		return openaitest.Reply{Text: "The kiln is hot.", Until: p.hot}
	case strings.Contains(text, "how hot"):
		return openaitest.Reply{Text: fmt.Sprintf("The thread says 1200 degrees: %t", strings.Contains(last.Content, "the oven is at 1200 degrees"))}
	case strings.Contains(text, "think"):
		return openaitest.Reply{Text: "Clay needs time.", Until: p.thought}
	case strings.Contains(text, "dry"):
		return openaitest.Reply{Text: "They dry for a week.", Until: p.dried}
	case strings.Contains(text, "everything"):
		return openaitest.Reply{Text: "Everything is sold.", Until: p.mistake}
	case strings.Contains(text, "ton"):
		return openaitest.Reply{Text: "The clay is sold.", Until: p.ordered}
	case strings.Contains(text, "kiln"):
		return openaitest.Reply{Until: p.kindled, Calls: []claybot.ToolCall{{ID: fmt.Sprint("call_", r.N), Name: "wait", Args: fmt.Sprintf(`{"seconds":%d}`, kilnTime)}}}
	case strings.Contains(text, "what do you know"):
		return known(r)
	}
	return openaitest.Reply{Text: "Noted: " + text}
}

// known says which glazes people spoke of in the conversation.
func known(r openaitest.Request) openaitest.Reply {
	var known []string
	for _, m := range r.Messages {
		for _, word := range []string{"blue glaze", "red glaze"} {
			if m.Role == llm.RoleUser && strings.Contains(m.Content, word) {
				known = append(known, word)
			}
		}
	}
	if known == nil {
		return openaitest.Reply{Text: "I know nothing here yet."}
	}
	return openaitest.Reply{Text: "Here I know of: " + strings.Join(known, ", ")}
}

// A topic is a thread of the channel, under the name that the transcript has for it.
type topic struct{ name, ts string }

func (t topic) String() string {
	if t.ts == "" {
		return "slack #general"
	}
	return "slack thread " + t.name
}

// write lets a person write to the bot in a thread, or begin it in the channel, and returns
// the message.
func (s *stage) write(t *topic, text string) (ts string) {
	s.said(t.String(), "Ann: @claybot "+text)
	ts = s.slack.Write(slacktest.Post{Channel: slackChannel, User: slackPerson, Text: "<@UBOT> " + text, Thread: t.ts, Mention: true})
	if t.ts == "" {
		t.ts = ts
	}
	return ts
}

// ask writes to a thread and waits for the answer there.
func (s *stage) ask(ctx context.Context, t *topic, text, want string) error {
	s.write(t, text)
	return s.answered(ctx, t, want)
}

// answered waits for an answer in a thread.
func (s *stage) answered(ctx context.Context, t *topic, want string) error {
	m, err := s.slack.WaitPosted(ctx, slackChannel, func(m slacktest.Message) bool { return m.Thread == t.ts && strings.Contains(m.Text, want) })
	if err != nil {
		return fmt.Errorf("no %q in the thread %s: %w", want, t.name, err)
	}
	s.heard(t.String(), m.Text)
	return nil
}

// threads shows two threads of one person, each with a memory of its own.
func (p *groupsPlay) threads(ctx context.Context, s *stage) error {
	vases, bowls := &topic{name: "vases"}, &topic{name: "bowls"}
	for _, a := range []struct {
		in         *topic
		text, want string
	}{
		{vases, "the vases get a blue glaze", "Noted"},
		{bowls, "the bowls get a red glaze", "Noted"},
		{vases, "what do you know?", "Here I know of: "},
		{bowls, "what do you know?", "Here I know of: "},
	} {
		if err := s.ask(ctx, a.in, a.text, a.want); err != nil {
			return err
		}
	}
	for _, m := range s.slack.Posted(slackChannel) {
		if m.Thread == vases.ts && strings.Contains(m.Text, "red") || m.Thread == bowls.ts && strings.Contains(m.Text, "blue") {
			return fmt.Errorf("a thread knows of the other: %q", m.Text)
		}
	}
	return nil
}

// earlier shows a question about what others wrote in the thread before.
func (p *groupsPlay) earlier(ctx context.Context, s *stage) error {
	oven := &topic{name: "oven"}
	text := "the oven is at 1200 degrees"
	s.said(oven.String(), "Bob: "+text)
	oven.ts = s.slack.Write(slacktest.Post{Channel: slackChannel, User: neighbor, Text: text})
	return s.ask(ctx, oven, "how hot is it?", "1200 degrees: true")
}

// edit shows a message that is edited while it waits: its run has the new text only.
func (p *groupsPlay) edit(ctx context.Context, s *stage) error {
	before := s.model.Calls()
	p.tell(s, "think about clay")
	if err := poll(ctx, func() (bool, error) { return s.model.Calls() > before, nil }); err != nil {
		return err
	}
	id := p.tell(s, "order 100 pots")
	s.say("telegram potters >", "Ann edits it: @claybot order 10 pots")
	s.telegram.EditText(potters, id, "@claybot order 10 pots")
	if err := poll(ctx, func() (bool, error) { return len(s.telegram.Pending()) == 0, nil }); err != nil {
		return err
	}
	close(p.thought)
	m, err := s.seen(ctx, potters, 0, says("Noted: "))
	if err != nil {
		return fmt.Errorf("no answer to the edited message: %w", err)
	}
	if !strings.Contains(m.Text, "order 10 pots") || strings.Contains(m.Text, "100") {
		return fmt.Errorf("the answer is %q", m.Text)
	}
	if err := poll(ctx, func() (bool, error) { return s.telegram.Reaction(potters, id) == "👌", nil }); err != nil {
		return fmt.Errorf("the reaction on the message is %q: %w", s.telegram.Reaction(potters, id), err)
	}
	s.say("telegram potters |", "(reaction) 👌 on the message of Ann")
	return nil
}

// editInThread shows the same in a thread on Slack.
func (p *groupsPlay) editInThread(ctx context.Context, s *stage) error {
	cups := &topic{name: "cups"}
	before := s.model.Calls()
	s.write(cups, "let the cups dry")
	if err := poll(ctx, func() (bool, error) { return s.model.Calls() > before, nil }); err != nil {
		return err
	}
	ts := s.write(cups, "sell 100 cups")
	s.say(cups.String()+" >", "Ann edits it: @claybot sell 10 cups")
	s.slack.Edit(slackChannel, ts, "<@UBOT> sell 10 cups")
	if err := s.slack.WaitAcked(ctx); err != nil {
		return err
	}
	close(p.dried)
	if err := s.answered(ctx, cups, "They dry"); err != nil {
		return err
	}
	if err := s.answered(ctx, cups, "sell 10 cups"); err != nil {
		return err
	}
	for _, m := range s.slack.Posted(slackChannel) {
		if m.Thread == cups.ts && strings.Contains(m.Text, "100") {
			return fmt.Errorf("the answer is %q", m.Text)
		}
	}
	return s.quiet(ctx)
}

// tell lets the person write to the group on Telegram, and returns the id of the message.
func (p *groupsPlay) tell(s *stage, text string) int64 {
	text = "@claybot " + text
	s.said("telegram potters", "Ann: "+text)
	_, id := s.telegram.Write(telegramtest.Incoming{ChatID: potters, UserID: telegramPerson, Text: text})
	return id
}

// deletion shows a message that is deleted while its run works: the run stops. The thread is
// gone with its only message, so Slack shows the notice in the channel.
func (p *groupsPlay) deletion(ctx context.Context, s *stage) error {
	defer close(p.mistake)
	sale := &topic{name: "sale"}
	ts := s.write(sale, "sell everything")
	if err := s.shows(ctx, sale, ts, "is thinking…", "writing_hand"); err != nil {
		return err
	}
	s.say("slack #general >", "Ann deletes it")
	s.slack.Delete(slackChannel, ts)
	m, err := s.slack.WaitPosted(ctx, slackChannel, func(m slacktest.Message) bool { return strings.HasPrefix(m.Text, "Stopped") })
	if err != nil {
		return fmt.Errorf("the run was not stopped: %w", err)
	}
	if m.Thread != "" {
		return fmt.Errorf("the notice is in the thread %s, which is gone", m.Thread)
	}
	s.heard("slack #general", m.Text)
	return s.quiet(ctx)
}

// reaction shows a run that ends because its person put an emoji on their message.
func (p *groupsPlay) reaction(ctx context.Context, s *stage) error {
	defer close(p.ordered)
	clay := &topic{name: "clay"}
	ts := s.write(clay, "sell a ton of clay")
	if err := s.shows(ctx, clay, ts, "is thinking…", "writing_hand"); err != nil {
		return err
	}
	s.say(clay.String()+" >", "Ann reacts: :octagonal_sign:")
	s.slack.React(slackChannel, ts, slackPerson, "octagonal_sign", false)
	if err := s.answered(ctx, clay, "Stopped."); err != nil {
		return err
	}
	return s.quiet(ctx)
}

// longTool shows a tool that takes some time: people see that the bot works, then what it still
// works at, and at the end that it is done.
func (p *groupsPlay) longTool(ctx context.Context, s *stage) error {
	kiln := &topic{name: "kiln"}
	ts := s.write(kiln, "heat the kiln")
	if err := s.shows(ctx, kiln, ts, "is thinking…", "writing_hand"); err != nil {
		return err
	}
	began := time.Now()
	close(p.kindled)
	if err := s.shows(ctx, kiln, ts, "is still working: waiting…", "writing_hand"); err != nil {
		return err
	}
	close(p.hot)
	if err := s.answered(ctx, kiln, "hot"); err != nil {
		return err
	}
	if took := time.Since(began); took < kilnTime*time.Second {
		return fmt.Errorf("the tool took only %s", took)
	}
	if err := s.shows(ctx, kiln, ts, "", "ok_hand"); err != nil {
		return err
	}
	for _, m := range s.slack.Posted(slackChannel) {
		if strings.Contains(m.Text, "is sold") {
			return errors.New("a message was answered whose run was stopped")
		}
	}
	return s.quiet(ctx)
}

// shows waits until people see a status of the bot in a thread on Slack, or none, and a
// reaction of the bot on it, and nothing else.
func (s *stage) shows(ctx context.Context, t *topic, ts, status, reaction string) error {
	now, marks := "", []string(nil)
	err := poll(ctx, func() (bool, error) {
		now, marks = s.slack.Status(slackChannel, ts), s.slack.Reactions(slackChannel, ts)
		return now == status && slices.Equal(marks, []string{reaction}), nil
	})
	if err != nil {
		return fmt.Errorf("the status is %q and the reactions are %q: %w", now, marks, err)
	}
	if status == "" {
		s.say(t.String()+" |", "(no status any more)")
	} else {
		s.say(t.String()+" |", "(status) claybot %s", status)
	}
	s.say(t.String()+" |", "(reaction) :%s: on the message of Ann", reaction)
	return nil
}
