package questions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// The reasons why a reply to a question starts no run.
const (
	SkippedAnswer = "answer" // it answered one
	SkippedUnfit  = "unfit"  // it did not fit
)

// A typing is a message of a person while a run of their agent waits for an answer.
type typing struct {
	*Questions
	agent claybot.Agent
	run   claybot.Run
	open  []claybot.Question // without an answer, and not expired
}

// Typed handles a message as a text answer, when the agent waits for one. It reports
// whether it did; all other messages take the usual path.
//
// The message is stored first, with its consequences, so that a redelivery after a crash
// has the same effect, and any other redelivery has none.
func (s *Questions) Typed(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) (done storage.Posted, taken bool, err error) {
	if m.Type != claybot.MessageUser || m.Run != "" || m.Engine != "" || !agent.Descriptor.Foreground() {
		return done, false, nil
	}
	t, err := s.typing(ctx, agent)
	if err == nil {
		t.open, err = t.read(ctx, m)
	}
	if err != nil || len(t.open) == 0 {
		return done, false, err
	}
	p, err := s.Intake.Complete(ctx, agent, m)
	if err != nil || p.Skip != "" { // not readable
		return done, false, err
	}
	if err := t.judge(ctx, &p); err != nil || p.Message.Answer == nil && p.Skip == "" {
		return done, false, err
	}
	done, err = s.Inbox.Post(ctx, p)
	if err != nil {
		return done, true, err
	}
	stored := p.Message
	if done.Added {
		s.Intake.Accepted(ctx, agent, stored, done)
	} else if stored, err = t.StoredAs(ctx, m.ID); err != nil {
		return done, true, inbox.Unfinished(err)
	}
	return done, true, inbox.Unfinished(t.follow(ctx, stored))
}

// typing returns the questions that the run of an agent waits for.
func (s *Questions) typing(ctx context.Context, agent claybot.Agent) (typing, error) {
	t := typing{Questions: s, agent: agent}
	e, err := s.Index.IndexedAgentByID(ctx, agent.ID)
	if err != nil || e.Run == "" {
		return t, storage.Ignore(err, storage.ErrNotFound)
	}
	if t.run, err = s.Runs.Run(ctx, e.Run); err != nil {
		return t, storage.Ignore(err, storage.ErrNotFound)
	}
	if t.run.State != claybot.RunAwaiting || t.run.Cancel != "" || t.run.Awaiting == nil {
		return t, nil
	}
	for _, q := range t.run.Awaiting.Questions {
		if !s.MayAnswer(q, agent.Descriptor, agent.Descriptor.OwnerID()) {
			continue // others decide
		}
		if q.Explicit {
			continue
		}
		a, err := s.answerOf(ctx, q)
		if err != nil {
			return t, err
		}
		if a == nil && claybot.Now() < q.Expires {
			t.open = append(t.open, q)
		}
	}
	return t, nil
}

// read drops the approvals that the person could not have read when they wrote: a yes
// only ever approves what it replied to.
func (t typing) read(ctx context.Context, m claybot.AgentMessage) (open []claybot.Question, err error) {
	if m.At == 0 {
		m.At = claybot.Now()
	}
	for _, q := range t.open {
		if q.Type == claybot.QuestionConfirm {
			read, err := t.readBefore(ctx, q, t.agent, m)
			if err != nil {
				return nil, err
			}
			if !read {
				continue
			}
		}
		open = append(open, q)
	}
	return open, nil
}

// judge classifies a message: an answer; an invalid answer, which the person is notified
// of once for each question; or a new request, for which the run is given up.
func (t typing) judge(ctx context.Context, p *storage.Posting) error {
	m := &p.Message
	answers, faults, at := t.tried(m.Text)
	say := func(text string) []claybot.Outgoing {
		return t.Sender.Compose(delivery.ReplyTo(t.agent, *m, claybot.OutgoingNotice), text)
	}
	if len(faults) == 0 {
		for i := range answers {
			answers[i].By, answers[i].Via, answers[i].Message = t.agent.Descriptor.OwnerID(), claybot.ViaText, m.ID
		}
		said, err := json.Marshal(answers)
		if err != nil {
			return err
		}
		m.Answer = &claybot.Result{OK: true, Output: string(said), RunID: t.run.ID}
		p.Skip = SkippedAnswer
		left := slices.DeleteFunc(slices.Clone(t.open), func(q claybot.Question) bool {
			return slices.ContainsFunc(answers, func(a claybot.Answer) bool { return a.Question == q.ID })
		})
		if len(left) > 0 {
			p.Replies = ofRun(say(texts.Next(left, t.agent.Descriptor.Connector)), t.run.ID)
		}
		return nil
	}
	told := "unfit/" + at.ID
	_, err := t.Outbox.OutgoingByID(ctx, told)
	switch {
	case err == nil:
		m.Answer = &claybot.Result{RunID: t.run.ID, Error: SkippedUnfit}
		return nil
	case !errors.Is(err, storage.ErrNotFound):
		return fmt.Errorf("look whether it was told before: %w", err)
	}
	out := ofRun(say(texts.Unfit(faults)), t.run.ID)
	if len(out) == 0 {
		return nil // no notice possible: it waits for its turn
	}
	out[0].ID = told
	p.Skip, p.Replies = SkippedUnfit, out
	return nil
}

// ofRun names the run that messages belong to.
func ofRun(out []claybot.Outgoing, run claybot.RunID) []claybot.Outgoing {
	for i := range out {
		out[i].Run = run
	}
	return out
}

// tried is a text tried against the open questions: lines of keys and values where
// there are such, or else the first question. Where something does not fit,
// nothing is answered, and at is the first question in doubt.
func (t typing) tried(text string) (answers []claybot.Answer, faults []string, at claybot.Question) {
	values, lines := keyed(t.open, text)
	if !lines || len(t.open) == 1 {
		q := t.open[0]
		v, err := q.Check(text, t.Zone())
		if err == nil {
			return []claybot.Answer{{Question: q.ID, Value: v}}, nil, q
		}
		if !lines && q.Type == claybot.QuestionConfirm && t.run.Engine == claybot.EngineReact { // any other text denies
			return []claybot.Answer{{Question: q.ID, Value: json.RawMessage("false"), Reason: text}}, nil, q
		}
		if !lines {
			return nil, []string{err.Error()}, q
		}
	}
	for _, q := range t.open {
		value, given := values[q.ID]
		if !given {
			continue
		}
		v, err := q.Check(value, t.Zone())
		if err != nil {
			if len(faults) == 0 {
				at = q
			}
			why := err.Error()
			if len(t.open) > 1 {
				why = texts.QuestionKey(q) + ": " + why
			}
			faults = append(faults, why)
			continue
		}
		answers = append(answers, claybot.Answer{Question: q.ID, Value: v})
	}
	return answers, faults, at
}

// keyed reads lines "key: value". A line without a known key belongs to the one
// before. ok is false when the text does not begin with such a line.
func keyed(qs []claybot.Question, text string) (values map[string]string, ok bool) {
	values = make(map[string]string)
	last := ""
	for line := range strings.Lines(strings.TrimSpace(text)) {
		key, value, has := strings.Cut(line, ":")
		if q, known := named(qs, strings.Trim(key, " \t*`-")); has && known {
			last = q.ID
			values[last] = strings.TrimSpace(value)
			continue
		}
		if last == "" {
			return nil, false
		}
		values[last] += "\n" + strings.TrimRight(line, "\r\n")
	}
	return values, last != ""
}

// typedBefore does what follows from the newest message of a person, whose
// source may not send it again although a crash came behind it.
func (s *Questions) typedBefore(ctx context.Context, agent claybot.Agent) error {
	t, err := s.typing(ctx, agent)
	if err != nil || len(t.open) == 0 {
		return err
	}
	r, err := s.Receipts.LastReceipt(ctx, agent.ID)
	if err != nil {
		return storage.Ignore(err, storage.ErrNotFound)
	}
	if err := s.Intake.CarryOut(ctx, agent, r.Message); err != nil {
		return err
	}
	return t.follow(ctx, r.Message)
}

// follow applies the consequences of a stored message. It is idempotent.
func (t typing) follow(ctx context.Context, m claybot.AgentMessage) error {
	if m.Type != claybot.MessageUser || m.Answer == nil || m.Answer.RunID != t.run.ID {
		return nil // it is no answer to what is asked now
	}
	if !m.Answer.OK {
		_, err := t.Inbox.Post(ctx, storage.Posting{To: t.agent.ID, By: ByMessage, Message: claybot.AgentMessage{
			ID: "instead/" + m.ID, Type: claybot.MessageCancel, Run: t.run.ID, At: claybot.Now(), From: m.From,
		}})
		return err
	}
	var answers []claybot.Answer
	if err := json.Unmarshal([]byte(m.Answer.Output), &answers); err != nil {
		return fmt.Errorf("read what message %s answers: %w", m.ID, err)
	}
	for _, a := range answers {
		won, err := t.PostAnswer(ctx, t.agent.ID, t.run.ID, a)
		if err != nil {
			return err
		}
		if won {
			continue
		}
		if err := t.late(ctx, m, a); err != nil {
			return err
		}
	}
	return nil
}

// late notifies the person that another answer came first.
func (t typing) late(ctx context.Context, m claybot.AgentMessage, a claybot.Answer) error {
	first, err := t.answerOf(ctx, claybot.Question{ID: a.Question})
	if err != nil || first != nil && string(first.Value) == string(a.Value) {
		return err // it is this very answer, or says the same
	}
	if err := t.Sender.SendOnce(ctx, delivery.ReplyTo(t.agent, m, claybot.OutgoingNotice), fmt.Sprintf("late/%s/%s", m.ID, a.Question), texts.Late); err != nil {
		return fmt.Errorf("tell that an answer came late: %w", err)
	}
	return nil
}

// TakeTyped applies the consequences of text answers that an earlier process stored, which
// may have crashed before it could.
func (s *Questions) TakeTyped(ctx context.Context) {
	open, err := s.Asked.OpenQuestions(ctx, "", allQuestions)
	if err != nil {
		s.Log.Error("failed to list open questions", "err", err)
		return
	}
	var known []claybot.AgentID
	for _, q := range open {
		if slices.Contains(known, q.Agent) {
			continue
		}
		known = append(known, q.Agent)
		agent, err := s.Agents.Agent(ctx, q.Agent)
		if err == nil {
			err = s.typedBefore(ctx, agent)
		}
		if err != nil {
			s.Log.Error("failed to look up text answers", "agent", q.Agent, "run", q.Run, "err", err)
		}
	}
}

// StoredAs returns a message as it was first stored. One that is known under another id is
// returned unchanged: it has been handled.
func (s *Questions) StoredAs(ctx context.Context, id claybot.MessageID) (claybot.AgentMessage, error) {
	r, err := s.Receipts.Receipt(ctx, id)
	if err != nil {
		return claybot.AgentMessage{ID: id}, storage.Ignore(err, storage.ErrNotFound)
	}
	return r.Message, nil
}
