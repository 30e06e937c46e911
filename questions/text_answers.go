package questions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

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

// TextAnswers are the answers that people write as messages.
type TextAnswers struct {
	ledger      *Ledger
	respondents Respondents
	notices     *Notices
	agents      Agents
	outbox      Outbox
	sender      Sender
	intake      Intake
	zone        func() *time.Location
	log         *slog.Logger
}

// A pause is a run that waits until a person answers.
type pause struct {
	answers *TextAnswers
	agent   claybot.Agent   // of the chat in which the person writes
	asker   claybot.AgentID // whose run it is
	run     claybot.Run
	by      string             // the person who wrote, in the form of Descriptor.OwnerID
	text    string             // that is to answer
	open    []claybot.Question // that the person may answer by a text: without an answer, not expired
	// other: the run is of another agent than that of the chat; replied: the message names the
	// question that it answers.
	other, replied bool
}

// ErrUnheard means that a recording may answer a question once it is transcribed.
var ErrUnheard = errors.New("a recording is to be transcribed, it may answer a question")

// Take handles a message as a text answer, when the agent waits for one and the person
// typed it, or when another agent, such as that of a flow, has asked the person in this chat.
// It reports whether it did; all other messages take the usual path. A spoken
// message answers plain questions of the agent with its transcript; without one, and with such a
// question, Take returns ErrUnheard.
//
// The message is stored first, with its consequences, so that a redelivery after a crash
// has the same effect, and any other redelivery has none.
func (x *TextAnswers) Take(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) (done storage.Posted, taken bool, err error) {
	if !m.FirstHand && !m.Spoken || m.Type != claybot.MessageUser || m.Run != "" || m.Engine != "" || !agent.Descriptor.Foreground() {
		return done, false, nil
	}
	w, err := x.pauseOf(ctx, agent, m)
	if err == nil {
		w.open, err = w.read(ctx, m)
	}
	var which []claybot.Question
	if err == nil {
		w.open, err = x.notices.repliedFirst(ctx, w.open, m)
	}
	if err == nil {
		w, which, err = x.meant(ctx, w, m)
	}
	if err != nil || len(w.open) == 0 && len(which) == 0 || !unheard(m) && !w.other && w.elsewhere(w.text) {
		return done, false, err
	}
	if unheard(m) {
		return done, false, ErrUnheard
	}
	p, err := x.intake.Complete(ctx, agent, m)
	if err != nil || p.Skip != "" { // not readable
		return done, false, err
	}
	if len(which) > 0 {
		err = w.unclear(ctx, which, &p)
	} else {
		err = w.judge(ctx, &p)
	}
	if err != nil || p.Message.Answer == nil && p.Skip == "" {
		return done, false, err
	}
	done, err = x.ledger.inbox.Post(ctx, p)
	if err != nil {
		return done, true, err
	}
	stored := p.Message
	if done.Added {
		x.intake.Accepted(ctx, agent, stored, done)
	} else if stored, err = x.StoredAs(ctx, m.ID); err != nil {
		return done, true, inbox.Unfinished(err)
	}
	return done, true, inbox.Unfinished(w.follow(ctx, stored))
}

// Asked reports whether a question of an agent may be open.
func (x *TextAnswers) Asked(ctx context.Context, id claybot.AgentID) (bool, error) {
	return x.ledger.asks(ctx, id)
}

// unheard reports whether a message is a recording without its transcript.
func unheard(m claybot.AgentMessage) bool { return m.Spoken && m.Text == "" }

// pauseOf returns the questions that the run of an agent waits for and the sender of m may
// answer.
func (x *TextAnswers) pauseOf(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) (pause, error) {
	by := m.Speaker(agent.Descriptor)
	run, open, err := x.ledger.unanswered(ctx, agent.ID, func(q claybot.Question) bool {
		return !q.Explicit && x.respondents.May(q, agent.Descriptor, by)
	})
	return pause{answers: x, agent: agent, asker: agent.ID, run: run, by: by, text: m.Text, open: open}, err
}

// read drops what the sender may not answer: the approvals that the person could not have
// read when they wrote, as a yes only ever approves what it replied to, and what is reserved
// for those who may approve, if the sender is a program that may not. A recording approves
// nothing, and nothing does that was said to others.
func (p pause) read(ctx context.Context, m claybot.AgentMessage) (open []claybot.Question, err error) {
	if m.At == 0 {
		m.At = claybot.Now()
	}
	for _, q := range p.open {
		if Reserved(q) && (m.From.Program || m.Spoken || m.Context.Unaddressed) {
			continue
		}
		if q.Type == claybot.QuestionConfirm {
			read, err := p.answers.notices.readBefore(ctx, q, p.agent, m)
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

// elsewhere reports whether a text says neither yes nor no to the approval that it would
// answer: it is about something else, and waits. It never denies.
func (p pause) elsewhere(text string) bool {
	if len(p.open) == 0 || p.open[0].Type != claybot.QuestionConfirm || claybot.Refuses(text) {
		return false
	}
	if _, lines := keyed(p.open, text); lines {
		return false
	}
	_, err := p.open[0].Check(text, p.answers.zone())
	return err != nil
}

// judge classifies a message: an answer; an invalid answer, which the person is notified
// of once for each question; or a new request, for which the run is given up, unless it is
// that of another agent: then the message takes the usual path.
func (p pause) judge(ctx context.Context, out *storage.Posting) error {
	m := &out.Message
	answers, faults, at := p.tried(texts.Of(ctx))
	if len(faults) == 0 {
		for i := range answers {
			answers[i].By, answers[i].Via, answers[i].Message = p.by, claybot.ViaText, m.ID
		}
		said, err := json.Marshal(answers)
		if err != nil {
			return err
		}
		m.Answer = &claybot.Result{OK: true, Output: string(said), RunID: p.run.ID}
		out.Skip = SkippedAnswer
		left := slices.DeleteFunc(slices.Clone(p.open), func(q claybot.Question) bool {
			return slices.ContainsFunc(answers, func(a claybot.Answer) bool { return a.Question == q.ID })
		})
		switch {
		case p.other: // no reply of its own run shows that it is taken
			out.Replies = p.say(*m, texts.Of(ctx).In(texts.Taken))
		case len(left) > 0:
			out.Replies = p.say(*m, texts.Of(ctx).Next(left, p.agent.Descriptor.Connector))
		}
		return nil
	}
	told := "unfit/" + at.ID
	known, err := p.told(ctx, told)
	switch {
	case err != nil:
		return err
	case known && p.other && !p.replied:
		return nil
	case known && !p.other:
		m.Answer = &claybot.Result{RunID: p.run.ID, Error: SkippedUnfit}
		return nil
	}
	text := texts.Of(ctx).Unfit(faults)
	if p.other {
		text = texts.Of(ctx).UnfitThere(faults)
	}
	notice := p.say(*m, text)
	if len(notice) == 0 {
		return nil // no notice possible: it waits for its turn
	}
	if notice[0].ID = told; known {
		notice[0].ID += "/" + string(m.ID)
	}
	out.Skip, out.Replies = SkippedUnfit, notice
	return nil
}

// say returns the messages that reply to m; they are of the run that waits, if it is one of the agent.
func (p pause) say(m claybot.AgentMessage, text string) []claybot.Outgoing {
	out := p.answers.sender.Compose(delivery.ReplyTo(p.agent, m, claybot.OutgoingNotice), text)
	for i := range out {
		if p.other {
			break
		}
		out[i].Run = p.run.ID
	}
	return out
}

// tried reads the text as answers to the open questions: lines of keys and values if it has
// any, otherwise an answer to the first question. When a value is invalid, there are no
// answers, and at is the first question with an invalid one.
func (p pause) tried(voice texts.Voice) (answers []claybot.Answer, faults []string, at claybot.Question) {
	text := p.text
	values, lines := keyed(p.open, text)
	if !lines || len(p.open) == 1 {
		q := p.open[0]
		v, err := q.Check(voice.Typed(q, text), voice.Location(p.answers.zone()))
		if err == nil {
			return []claybot.Answer{{Question: q.ID, Value: v}}, nil, q
		}
		if !lines && q.Type == claybot.QuestionConfirm && claybot.Refuses(text) { // and says why
			return []claybot.Answer{{Question: q.ID, Value: json.RawMessage("false"), Reason: text}}, nil, q
		}
		if !lines {
			return nil, []string{voice.Complaint(err)}, q
		}
	}
	for _, q := range p.open {
		value, given := values[q.ID]
		if !given {
			continue
		}
		v, err := q.Check(voice.Typed(q, value), voice.Location(p.answers.zone()))
		if err != nil {
			if len(faults) == 0 {
				at = q
			}
			why := voice.Complaint(err)
			if len(p.open) > 1 {
				why = texts.KeyFault(q, why)
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

// resume applies the consequences of the newest message of a person: its source may not
// redeliver it, although a crash came after it was stored.
func (x *TextAnswers) resume(ctx context.Context, agent claybot.Agent) error {
	r, err := x.ledger.receipts.LastReceipt(ctx, agent.ID)
	if err != nil {
		return storage.Ignore(err, storage.ErrNotFound)
	}
	w, err := x.pauseOf(ctx, agent, r.Message)
	if err != nil || len(w.open) == 0 {
		return err
	}
	if err := x.intake.CarryOut(ctx, agent, r.Message); err != nil {
		return err
	}
	return w.follow(ctx, r.Message)
}

// follow applies the consequences of a stored message. It is idempotent.
func (p pause) follow(ctx context.Context, m claybot.AgentMessage) error {
	if m.Type != claybot.MessageUser || m.Answer == nil || m.Answer.RunID != p.run.ID {
		return nil // it does not answer this run
	}
	if !m.Answer.OK {
		_, err := p.answers.ledger.inbox.Post(ctx, storage.Posting{To: p.asker, By: ByMessage, Message: claybot.AgentMessage{
			ID: "instead/" + m.ID, Type: claybot.MessageCancel, Run: p.run.ID, At: claybot.Now(), From: m.From,
		}})
		return err
	}
	var answers []claybot.Answer
	if err := json.Unmarshal([]byte(m.Answer.Output), &answers); err != nil {
		return fmt.Errorf("read what message %s answers: %w", m.ID, err)
	}
	for _, a := range answers {
		won, err := p.answers.ledger.Post(ctx, p.asker, p.run.ID, a)
		if err != nil {
			return err
		}
		if won {
			continue
		}
		if err := p.late(ctx, m, a); err != nil {
			return err
		}
	}
	return nil
}

// late notifies the person that another answer came first.
func (p pause) late(ctx context.Context, m claybot.AgentMessage, a claybot.Answer) error {
	first, err := p.answers.ledger.stored(ctx, claybot.Question{ID: a.Question})
	if err != nil || first != nil && string(first.Value) == string(a.Value) {
		return err // it is this answer, or has the same value
	}
	if err := p.answers.sender.SendOnce(ctx, delivery.ReplyTo(p.agent, m, claybot.OutgoingNotice), fmt.Sprintf("late/%s/%s", m.ID, a.Question), texts.Of(ctx).In(texts.Late)); err != nil {
		return fmt.Errorf("report that an answer came late: %w", err)
	}
	return nil
}

// Recover applies the consequences of text answers that an earlier process stored, which
// may have crashed before it could.
func (x *TextAnswers) Recover(ctx context.Context) {
	open, err := x.ledger.asked.OpenQuestions(ctx, "", allQuestions)
	if err != nil {
		if ctx.Err() == nil {
			x.log.Error("failed to list open questions", "err", err)
		}
		return
	}
	var known []claybot.AgentID
	for _, q := range open {
		e, err := x.ledger.index.IndexedAgentByID(ctx, q.Agent)
		switch {
		case errors.Is(err, storage.ErrNotFound):
			err = nil
		case err == nil && !e.Descriptor.Foreground():
			err = x.recoverThere(ctx, q)
		case err == nil && !slices.Contains(known, q.Agent):
			known = append(known, q.Agent)
			var agent claybot.Agent
			if agent, err = x.agents.Agent(ctx, q.Agent); err == nil {
				err = x.resume(ctx, agent)
			}
		}
		if err != nil && ctx.Err() == nil {
			x.log.Error("failed to look up text answers", "agent", q.Agent, "run", q.Run, "err", err)
		}
	}
}

// StoredAs returns a message as it was first stored. One that is known under another id is
// returned unchanged: it has been handled.
func (x *TextAnswers) StoredAs(ctx context.Context, id claybot.MessageID) (claybot.AgentMessage, error) {
	r, err := x.ledger.receipts.Receipt(ctx, id)
	if err != nil {
		return claybot.AgentMessage{ID: id}, storage.Ignore(err, storage.ErrNotFound)
	}
	return r.Message, nil
}
