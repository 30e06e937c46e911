package relational

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// answerPrefix begins the ids of the messages that answer questions.
var answerPrefix = string(claybot.Question{}.AnswerID())

// openQuestions keeps what a run is paused for. A question that it has asked
// before stays the same one; those that have an answer are not open.
func openQuestions(c *Conn, run claybot.Run, questions []claybot.Question) error {
	c.touched.arrivals = true
	for _, q := range questions {
		if q.ID == "" {
			return fmt.Errorf("question: %w", errNoID)
		}
		body, err := json.Marshal(q)
		if err != nil {
			return err
		}
		n, err := c.exec(`INSERT INTO questions (id, run, agent, asked, open, body)
			VALUES (?1, ?2, ?3, ?4, CASE WHEN EXISTS (SELECT 1 FROM messages WHERE id = ?5) THEN 0 ELSE 1 END, ?6)
			ON CONFLICT (id) DO UPDATE SET open = excluded.open, body = excluded.body WHERE questions.run = excluded.run`,
			q.ID, run.ID, run.Agent, c.now(), q.AnswerID(), body)
		if err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("question %s is asked by another run already", q.ID)
		}
	}
	return nil
}

// closeQuestions ends the waiting for the questions of a run.
func closeQuestions(c *Conn, run claybot.RunID) error {
	c.touched.arrivals = true
	return c.do("UPDATE questions SET open = 0 WHERE run = ? AND open = 1", run)
}

// closeQuestion ends the waiting for the question that a message answers, if it
// answers one.
func closeQuestion(c *Conn, answer claybot.MessageID) error {
	id, ok := strings.CutPrefix(string(answer), answerPrefix)
	if !ok {
		return nil
	}
	c.touched.arrivals = true
	return c.do("UPDATE questions SET open = 0 WHERE id = ? AND open = 1", id)
}

// questionColumns are what decodeQuestion reads.
const questionColumns = "id, run, agent, asked, body"

// decodeQuestion reads a row of questionColumns. When the body is damaged the
// other fields are right all the same.
func decodeQuestion(r Row) (q storage.OpenQuestion, err error) {
	err = unmarshal(r.Str(4), &q.Question)
	q.ID, q.Run, q.Agent, q.Asked = r.Str(0), claybot.RunID(r.Str(1)), claybot.AgentID(r.Str(2)), claybot.Time(r.Int(3))
	return q, err
}

func questionListing(agent claybot.AgentID, limit int) listing {
	from, args := "questions_open WHERE open = 1 AND asked > 0", []any{limit}
	if agent != "" {
		from, args = "questions_open_agent WHERE open = 1 AND agent = ?", []any{agent, limit}
	}
	return listing{"SELECT " + questionColumns + " FROM questions INDEXED BY " + from + " ORDER BY asked, id LIMIT 0+?", args}
}

// OpenQuestions implements storage.Questions. Damaged ones are left out.
func (db runs) OpenQuestions(ctx context.Context, agent claybot.AgentID, limit int) ([]storage.OpenQuestion, error) {
	return db.questions(ctx, questionListing(agent, limit))
}

// OpenQuestionsFor implements storage.Questions. It reads all that are open; most systems have few.
func (db runs) OpenQuestionsFor(ctx context.Context, people []string, limit int) ([]storage.OpenQuestion, error) {
	if len(people) == 0 {
		return nil, nil
	}
	var named []string
	var args []any
	for _, p := range people {
		name, err := json.Marshal(p) // as the body has it
		if err != nil {
			return nil, err
		}
		named, args = append(named, "replace(body, ?, '') <> body"), append(args, string(name))
	}
	list, err := db.questions(ctx, listing{"SELECT " + questionColumns + " FROM questions INDEXED BY questions_open WHERE open = 1 AND asked > 0 AND (" +
		strings.Join(named, " OR ") + ") ORDER BY asked, id LIMIT 0+?", append(args, limit)})
	return slices.DeleteFunc(list, func(q storage.OpenQuestion) bool {
		return !slices.ContainsFunc(people, func(p string) bool { return slices.Contains(q.Approvers, p) })
	}), err
}

// questions reads those of a listing.
func (db runs) questions(ctx context.Context, l listing) ([]storage.OpenQuestion, error) {
	var list []storage.OpenQuestion
	err := db.read(ctx, func(c *Conn) error {
		return c.each(l.query, func(r Row) error {
			o, err := decodeQuestion(r)
			if err != nil {
				db.log.Error("damaged question", "question", o.ID, "run", o.Run, "err", err)
				return nil
			}
			list = append(list, o)
			return nil
		}, l.args...)
	})
	return result(list, err, "open questions")
}

func (db runs) Question(ctx context.Context, id string) (storage.OpenQuestion, error) {
	var q storage.OpenQuestion
	err := db.read(ctx, func(c *Conn) error {
		err := need(c.first("SELECT "+questionColumns+" FROM questions WHERE id = ?",
			func(r Row) (err error) { q, err = decodeQuestion(r); return err }, id))
		if err != nil {
			return err
		}
		_, err = c.first("SELECT body, crc FROM messages WHERE id = ?", func(r Row) error {
			m, err := decodeMessage(r, 0)
			if err == nil && m.Answer != nil {
				q.Answer = m.Answer.To
			}
			return err
		}, q.AnswerID())
		return err
	})
	return result(q, err, "question %s", id)
}

// skippedRunEnded is the skip reason of an answer that came too late.
const skippedRunEnded = "run_ended"

// A refusal is an answer that the store owes to a run that waits for a message
// which no run will answer.
type refusal struct {
	to   claybot.Awaited
	run  claybot.RunID // that had the message, if one had
	why  string        // for the model
	lost claybot.Loss
}

// refuse records that a message with a waiting run was skipped. saveInbox sends
// the answer, because the waiting agent may be a itself.
func (a *inboxRow) refuse(to claybot.Awaited, reason string) {
	why, lost := "the message was dropped", claybot.Loss("")
	switch reason {
	case skippedInboxFull:
		why = "the message was dropped: too many others wait for this agent"
	case storage.SkippedFlowFull:
		why = "the workflow has as many unfinished runs as it may have"
	case skippedDamaged:
		why = "the message was dropped: it cannot be read any more"
	case reasonRemoved:
		why = "the agent was deleted"
	default:
		lost = claybot.LostDropped
	}
	a.refused = append(a.refused, refusal{to: to, why: why, lost: lost})
}

// refuseAll posts the answers that a owes. It is the one place where the store
// answers by itself; an agent that is gone misses nothing.
func refuseAll(c *Conn, a *inboxRow) error {
	owed := a.refused
	a.refused = nil
	for _, r := range owed {
		_, err := postMessage(c, storage.Posting{To: r.to.Agent, Message: claybot.AgentMessage{
			ID: r.to.ID, Type: claybot.MessageAnswer, Run: r.to.Run,
			From:   claybot.Sender{Agent: a.id},
			Answer: &claybot.Result{Error: r.why, Lost: r.lost, AgentID: a.id, RunID: r.run},
		}})
		if err := ignoreNotFound(err); err != nil && !errors.Is(err, errNoID) {
			return err
		}
	}
	return nil
}

// awaitedBy lists who waits for the messages of a run. It needs none of their
// texts, so damage does not hide it.
func awaitedBy(c *Conn, agent claybot.AgentID, run claybot.RunID) (list []claybot.Awaited, err error) {
	err = c.each("SELECT awaited FROM messages WHERE agent = ? AND run = ? AND awaited IS NOT NULL", func(r Row) error {
		var w claybot.Awaited
		if unmarshal(r.Str(0), &w) == nil { // unreadable: the waiting run is unknown
			list = append(list, w)
		}
		return nil
	}, agent, run)
	return list, err
}

// awaitedColumn is what the awaited column has for m.
func awaitedColumn(m claybot.AgentMessage) (any, error) {
	if m.Awaited == nil {
		return nil, nil
	}
	b, err := json.Marshal(m.Awaited)
	return b, err
}

// joinAnswer gives the answer id to the unfinished run of a, and makes a due
// when its run has all that it waits for. A damaged run is due anyway: it ends
// when its agent is acquired.
func joinAnswer(c *Conn, a *inboxRow, id claybot.MessageID, bound bool, at int64) error {
	if err := closeQuestion(c, id); err != nil {
		return err
	}
	run, err := loadRun(c, a.run)
	if errors.Is(err, storage.ErrDamaged) {
		a.rouse(at)
		return nil
	}
	if err != nil {
		return err
	}
	if bound {
		run.Messages = append(run.Messages, id)
		b, err := json.Marshal(run.Messages)
		if err != nil {
			return err
		}
		if err := c.do("UPDATE runs SET messages = ? WHERE id = ?", b, run.ID); err != nil {
			return err
		}
	}
	if run.Awaiting == nil {
		return nil
	}
	all, err := isAnswered(c, a.id, run.ID, *run.Awaiting)
	if all {
		a.rouse(at)
	}
	return err
}

// isAnswered reports whether as many answers are there as a run needs: every one
// that it waits for, or w.Need of them. One that was skipped will never come
// otherwise, so it counts.
func isAnswered(c *Conn, agent claybot.AgentID, run claybot.RunID, w claybot.Awaiting) (bool, error) {
	missing := 0
	if w.Need > 0 {
		missing = max(len(w.Answers)-w.Need, 0) // so many may be
	}
	for _, id := range w.Answers {
		known, err := c.first("SELECT 1 FROM messages WHERE id = ? AND agent = ? AND type = ? AND (run = ? OR skipped IS NOT NULL)",
			func(Row) error { return nil }, id, agent, claybot.MessageAnswer, run)
		if err != nil {
			return false, err
		}
		if !known {
			if missing--; missing < 0 {
				return false, nil
			}
		}
	}
	return true, nil
}

// Why a run goes on, as its RunResumed event tells.
const (
	resumedCancel  = "cancel"
	resumedAnswers = "answers"
	resumedTimeout = "timeout"
	resumedRestart = "restart"
)

// errNoUntil refuses a pause that could last for ever.
var errNoUntil = errors.New("a pause needs a time at which it ends")

// Suspend implements storage.Runs. A pause without Until is refused, and so is
// one of a run that is paused already.
func (db runs) Suspend(ctx context.Context, l storage.Lease, id claybot.RunID, p storage.Pause) error {
	err := db.update(ctx, func(c *Conn) error {
		a, run, err := runningRun(c, l, id)
		if err != nil {
			return err
		}
		return suspendRun(c, a, &run, p)
	})
	return failed(err, "suspend run %s", id)
}

func suspendRun(c *Conn, a *inboxRow, run *claybot.Run, p storage.Pause) error {
	if err := checkMove(run.State, claybot.RunAwaiting); err != nil {
		return err
	}
	if p.Awaiting.Until <= 0 {
		return errNoUntil
	}
	if err := checkOpen(p.Events); err != nil {
		return err
	}
	awaiting, err := json.Marshal(p.Awaiting)
	if err != nil {
		return err
	}
	all, err := isAnswered(c, a.id, run.ID, p.Awaiting)
	if err != nil {
		return err
	}
	if err := errors.Join(appendEvents(c, run, p.Events...), setCheckpoint(c, p.End)); err != nil {
		return err
	}
	so, err := json.Marshal(outcome{Usage: p.Usage, Engine: p.Engine, Result: p.Result, Feedback: run.Feedback})
	if err != nil {
		return err
	}
	err = c.do("UPDATE runs SET state = ?, awaiting = ?, outcome = ?, attempts = 0 WHERE id = ?",
		claybot.RunAwaiting, awaiting, so, run.ID)
	if err != nil {
		return err
	}
	if err := openQuestions(c, *run, p.Awaiting.Questions); err != nil {
		return err
	}
	if err := enqueueEarly(c, run, p.Replies); err != nil {
		return err
	}
	c.tally.run(run.State, claybot.RunAwaiting)
	a.resumeAt = int64(p.Awaiting.Until)
	if all || run.Cancel != "" {
		a.resumeAt = min(a.resumeAt, c.now())
	}
	a.free(p.Wait, c.now())
	return saveInbox(c, a)
}

// enqueueEarly puts what a run says before its end into the outbox. Its draft is none any
// more when it is among that.
func enqueueEarly(c *Conn, run *claybot.Run, replies []claybot.Outgoing) error {
	if len(replies) == 0 {
		return nil
	}
	if _, err := enqueue(c, c.now(), string(run.ID), replies); err != nil {
		return err
	}
	if run.Draft == nil || !slices.ContainsFunc(replies, func(o claybot.Outgoing) bool { return o.ID == run.Draft.Outgoing }) {
		return nil
	}
	return c.do("UPDATE runs SET draft = NULL WHERE id = ?", run.ID)
}

// whyResumed is why an unfinished run goes on.
func whyResumed(c *Conn, run claybot.Run) (string, error) {
	if run.Awaiting == nil {
		return resumedRestart, nil
	}
	if run.Cancel != "" {
		return resumedCancel, nil
	}
	all, err := isAnswered(c, run.Agent, run.ID, *run.Awaiting)
	switch {
	case err != nil:
		return "", err
	case all:
		return resumedAnswers, nil
	case c.now() >= int64(run.Awaiting.Until):
		return resumedTimeout, nil
	}
	return resumedRestart, nil
}
