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
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools/mcp"
	"github.com/claybot/claybot/web"
)

// seen waits until a person on Telegram sees a message that fits, among those
// after the first so many.
func (s *stage) seen(ctx context.Context, person int64, after int, fits func(telegramtest.Message) bool) (m telegramtest.Message, err error) {
	return m, poll(ctx, func() (bool, error) {
		all := s.telegram.Sent(person)
		i := slices.IndexFunc(all[min(after, len(all)):], fits)
		if i >= 0 {
			m = all[after+i]
		}
		return i >= 0, nil
	})
}

// poll asks until it is done.
func poll(ctx context.Context, done func() (bool, error)) error {
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func says(text string) func(telegramtest.Message) bool {
	return func(m telegramtest.Message) bool { return strings.Contains(m.Text, text) }
}

// report shows files, a command, a note and a file that is sent.
func (t *toolsPlay) report(ctx context.Context, s *stage) error {
	got, err := s.tell(ctx, saysReport, 2)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(got, func(m telegramtest.Message) bool { return m.File != nil })
	if i < 0 || string(got[i].File.Data) != reportText {
		return errors.New("the report did not arrive as it was written")
	}
	if got[i].Text != "The report: 14 words" {
		return fmt.Errorf("the report came with the words %q", got[i].Text)
	}
	var note storage.Memory
	owner := fmt.Sprintf("telegram/%d", telegramPerson)
	if err := s.client.call(ctx, "GET", "/notes/note?scope=owner/"+owner+"&path=reports/first.md", nil, &note); err != nil {
		return err
	}
	s.say("operator $", "claybot notes read --owner %s reports/first.md", owner)
	s.say("", "%s", note.Text)
	if !strings.Contains(note.Text, "14 words") {
		return fmt.Errorf("the note is %q", note.Text)
	}
	return nil
}

// injection shows a page that wants something of its reader, and a model that
// does it.
func (t *toolsPlay) injection(ctx context.Context, s *stage) error {
	before := len(s.telegram.Sent(telegramPerson))
	s.said("telegram", saysNews+" "+t.news)
	s.telegram.Say(telegramPerson, telegramPerson, saysNews+" "+t.news)
	asked, err := s.seen(ctx, telegramPerson, before, func(m telegramtest.Message) bool { _, ok := m.Button("Deny"); return ok })
	if err != nil {
		return fmt.Errorf("no person was asked: %w", err)
	}
	if !strings.Contains(asked.Text, t.thief) {
		return fmt.Errorf("the question does not show where it leads: %q", asked.Text)
	}
	s.say("telegram >", "[Deny]")
	s.telegram.Press(telegramPerson, telegramPerson, asked.ID, "Deny")
	if _, err := s.seen(ctx, telegramPerson, before, says("Clay is in demand")); err != nil {
		return fmt.Errorf("no answer after the no: %w", err)
	}
	if n := t.stolen.Load(); n != 0 {
		return fmt.Errorf("the other server was asked %d times", n)
	}
	s.say("the other server", "saw nothing")
	return nil
}

// edited shows a command that asks, and runs as a person has changed it.
func (t *toolsPlay) edited(ctx context.Context, s *stage) error {
	s.said("slack direct", saysTidy)
	channel, _ := s.slack.DM(slackPerson, saysTidy)
	const edit = "Edit…"
	m, err := s.slack.WaitPosted(ctx, channel, func(m slacktest.Message) bool { return slices.Contains(m.Buttons(), edit) })
	if err != nil {
		return fmt.Errorf("the command did not ask: %w", err)
	}
	s.heard("slack direct", withButtons(m.Text, m.Buttons()))
	if err := s.fillIn(ctx, "slack direct", m, edit, `{"command": "ls drafts"}`); err != nil {
		return err
	}
	m, err = s.slack.WaitPosted(ctx, channel, func(m slacktest.Message) bool { return strings.HasPrefix(m.Text, "A person changed") })
	if err != nil {
		return fmt.Errorf("nothing came of the edited command: %w", err)
	}
	s.heard("slack direct", m.Text)
	if !strings.Contains(m.Text, "pot.md") {
		return errors.New("what ran is not what the person wrote")
	}
	return nil
}

// served shows a tool of an MCP server: claybot's own.
func (t *toolsPlay) served(ctx context.Context, s *stage) error {
	err := poll(ctx, func() (bool, error) {
		var list web.ServerList
		err := s.client.call(ctx, "GET", "/servers", nil, &list)
		return len(list.Servers) == 1 && list.Servers[0].State == mcp.StateConnected, err
	})
	if err != nil {
		return fmt.Errorf("the MCP server is not connected: %w", err)
	}
	s.said("slack direct", saysWho)
	channel, _ := s.slack.DM(slackPerson, saysWho)
	m, err := s.slack.WaitPosted(ctx, channel, func(m slacktest.Message) bool { return strings.HasPrefix(m.Text, "By MCP") })
	if err != nil {
		return fmt.Errorf("no answer by MCP: %w", err)
	}
	s.heard("slack direct", m.Text)
	if !strings.Contains(m.Text, "telegram") {
		return errors.New("the server does not know the agent on Telegram")
	}
	return nil
}

// asksForMore is what stands in the notice of a budget that is used up.
const asksForMore = "Shall I ask an operator"

// budget shows a budget that is used up, and extended.
func (t *toolsPlay) budget(ctx context.Context, s *stage) error {
	var notice telegramtest.Message
	before := 0
	for i := 1; notice.ID == 0; i++ {
		if i > 12 {
			return errors.New("the budget is never used up")
		}
		before = len(s.telegram.Sent(thriftyPerson))
		text := fmt.Sprintf("%s, part %d", saysMore, i)
		s.said(thriftyPlace, text)
		s.telegram.Say(thriftyPerson, thriftyPerson, text)
		m, err := s.seen(ctx, thriftyPerson, before, func(m telegramtest.Message) bool {
			return says(asksForMore)(m) || says("Clay is older")(m)
		})
		if err != nil {
			return err
		}
		if says(asksForMore)(m) {
			notice = m
		}
	}
	s.say(thriftyPlace+" >", "[Approve]")
	if _, ok := s.telegram.Press(thriftyPerson, thriftyPerson, notice.ID, "Approve"); !ok {
		return errors.New("the notice has no button")
	}
	if err := t.extend(ctx, s, before); err != nil {
		return err
	}
	if _, err := s.seen(ctx, thriftyPerson, before, says("Clay is older")); err != nil {
		return fmt.Errorf("the run did not go on: %w", err)
	}
	notices := 0
	for _, m := range s.telegram.Sent(thriftyPerson) {
		if says(asksForMore)(m) {
			notices++
		}
	}
	if notices != 1 {
		return fmt.Errorf("%d notices, want 1", notices)
	}
	return nil
}

// extend lets an operator extend the budget. The person whose budget it is sees
// the question, among the messages after the first so many, and has no say.
func (t *toolsPlay) extend(ctx context.Context, s *stage, after int) error {
	m, err := s.seen(ctx, thriftyPerson, after, says("Extend"))
	if err != nil {
		return fmt.Errorf("the person is not told that an operator is asked: %w", err)
	}
	if _, ok := m.Button("Approve"); ok {
		return errors.New("a person may extend his own budget")
	}
	var asked storage.OpenQuestion
	err = poll(ctx, func() (bool, error) {
		var list web.QuestionList
		err := s.client.call(ctx, "GET", "/questions", nil, &list)
		i := slices.IndexFunc(list.Questions, func(q storage.OpenQuestion) bool { return strings.HasPrefix(q.Text, "Extend") })
		if i >= 0 {
			asked = list.Questions[i]
		}
		return i >= 0, err
	})
	if err != nil {
		return fmt.Errorf("no operator was asked: %w", err)
	}
	s.say("operator $", "claybot questions: %s", asked.Text)
	s.say("operator $", "claybot approve %s", asked.ID)
	return s.client.call(ctx, "POST", "/questions/"+asked.ID+"/answer", map[string]string{"value": "approve"}, nil)
}

// ledger shows what it cost, and compares that with what the server counts.
func (t *toolsPlay) ledger(ctx context.Context, s *stage) error {
	if err := s.quiet(ctx); err != nil {
		return err
	}
	var list web.UsageReport
	if err := s.client.call(ctx, "GET", "/usage?by=owner&from="+time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly), nil, &list); err != nil {
		return err
	}
	s.say("operator $", "claybot usage --by owner")
	var in, out, thrifty int64
	for _, u := range list.Usage {
		s.say("", "%-14s %2d calls, %6d tokens in, %5d out, %s", u.Owner, u.Usage.LLMCalls, u.Usage.Input, u.Usage.Output, spentText(u))
		in, out = in+u.Usage.Input, out+u.Usage.Output
		if u.Owner == fmt.Sprintf("telegram/%d", thriftyPerson) {
			thrifty = u.Usage.CostMicroUSD
		}
	}
	counted, answered := s.model.Tokens()
	s.say("model server", "counts %d tokens in, %d out", counted, answered)
	if in != counted || out != answered {
		return fmt.Errorf("the ledger has %d and %d tokens", in, out)
	}
	var budgets web.BudgetList
	if err := s.client.call(ctx, "GET", "/budgets?limit=50", nil, &budgets); err != nil {
		return err
	}
	if len(budgets.Budgets) != 1 {
		return fmt.Errorf("%d budgets, want 1", len(budgets.Budgets))
	}
	b := budgets.Budgets[0]
	s.say("operator $", "claybot budgets: %s of %s + %s are spent", amount(b.Unit, b.Spent), amount(b.Unit, b.Limit), amount(b.Unit, b.Extension))
	if b.Spent != thrifty || b.Reserved != 0 || b.Extension == 0 || b.Spent > b.Limit+b.Extension {
		return fmt.Errorf("the budget says %+v, the ledger %d", b, thrifty)
	}
	return nil
}

// quiet waits until nothing is left to do.
func (s *stage) quiet(ctx context.Context) error {
	return poll(ctx, func() (bool, error) {
		st, err := s.daemon.system.Overview.Status(ctx)
		if err != nil {
			return false, err
		}
		open := st.Inbox.Waiting + st.Runs[claybot.RunPending] + st.Runs[claybot.RunRunning] + st.Runs[claybot.RunAwaiting]
		return open == 0, s.delivered(ctx)
	})
}
