// Package questions asks people what a run needs to know or to have approved, and takes
// their answers: by text, by button, by command, on the page or over HTTP.
//
// It guarantees that a question has one answer, the first that fits; that only the people
// who are asked can give it; that an approval is never taken from a text written before
// its question could be read; and that an answer is a message, so it is durable before it
// takes effect, and a step that a crash cut off is retried with the same effect.
//
// The package must not import what runs agents or accepts messages; see Intake.
package questions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

var _ tools.Questions = (*Questions)(nil)

const (
	questionTime = 24 * time.Hour // how long a question is open that says nothing else
	maxQuestions = 1000           // in one list
)

// errNobody is the result for the model when a run has no reader.
var errNobody = errors.New("no person reads along in this run, so nobody can be asked; decide by yourself, or say in your answer what you would need to know")

// Ask implements tools.Questions. The person is asked when the run is paused; earlier
// questions keep their expiry.
func (s *Questions) Ask(ctx context.Context, env tools.Env, qs []claybot.Question) (tools.Result, error) {
	t := s.Work.Of(env.Run)
	if !t.Agent.Descriptor.Foreground() || !t.Person() {
		return tools.Result{}, errNobody
	}
	if len(qs) == 0 {
		return tools.Result{}, errors.New("there is nothing to ask")
	}
	for i := range qs {
		qs[i].ToolCallID = env.CallID
	}
	answers, wait, err := s.ask(ctx, t, env, qs)
	if err != nil || wait != nil {
		return tools.Result{Wait: wait}, err
	}
	return tools.Result{Text: answersText(qs, answers)}, nil
}

// ask is what was said to the questions of a round, or what the run waits for.
func (s *Questions) ask(ctx context.Context, t runs.Work, round tools.Env, qs []claybot.Question) ([]claybot.Answer, *claybot.Awaiting, error) {
	wait := claybot.Awaiting{Reason: claybot.AwaitApproval}
	answers := make([]claybot.Answer, 0, len(qs))
	for i, q := range qs {
		q.ID = round.UID(i)
		if known, ok := t.Asked[q.ID]; ok && known.Expires != 0 {
			q = known
		}
		if q.Expires == 0 {
			q.Expires = claybot.At(time.Now().Add(questionTime))
		}
		if q.Type != claybot.QuestionConfirm {
			wait.Reason = claybot.AwaitInfo
		}
		wait.Answers = append(wait.Answers, q.AnswerID())
		a, err := s.answerOf(ctx, q)
		if err != nil {
			return nil, nil, err
		}
		if a != nil {
			answers = append(answers, *a)
			continue
		}
		wait.Questions = append(wait.Questions, q)
		if wait.Until == 0 || q.Expires < wait.Until {
			wait.Until = q.Expires
		}
	}
	if len(wait.Questions) > 0 {
		return nil, &wait, nil
	}
	return answers, nil, nil
}

// AskFor asks on behalf of a run. The approver for a subagent or task is asked where its
// owner wrote last.
func (s *Questions) AskFor(ctx context.Context, w runs.Work, round tools.Env, qs []claybot.Question) ([]claybot.Answer, *claybot.Awaiting, error) {
	for i, q := range qs {
		if len(q.Approvers) > 0 || w.Agent.Descriptor.Foreground() {
			continue
		}
		owner := w.Agent.Descriptor.OwnerID()
		if owner == "" {
			return nil, nil, runs.ErrNobody
		}
		if _, err := s.People.PlaceOf(ctx, owner); err != nil {
			if errors.Is(err, storage.ErrNotFound) {
				err = runs.ErrNobody
			}
			return nil, nil, err
		}
		qs[i].Approvers = []string{owner}
	}
	return s.ask(ctx, w, round, qs)
}

// answerOf is what was said to a question; nil when nothing was yet.
func (s *Questions) answerOf(ctx context.Context, q claybot.Question) (*claybot.Answer, error) {
	r, err := s.Receipts.Receipt(ctx, q.AnswerID())
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read an answer: %w", err)
	case r.Message.Answer == nil || r.Message.Answer.To == nil:
		return nil, fmt.Errorf("the answer to question %s cannot be read", q.ID)
	}
	return r.Message.Answer.To, nil
}

// answersText is the result of a call for the model: the answers by key, in the
// order of the questions, and which of them are defaults.
func answersText(qs []claybot.Question, answers []claybot.Answer) string {
	var b strings.Builder
	var silent []string
	for i, q := range qs {
		name := texts.QuestionKey(q)
		key, _ := json.Marshal(name) // strings always marshal
		value := answers[i].Value
		if len(value) == 0 {
			value = json.RawMessage("null")
		}
		b.WriteByte("{,"[min(i, 1)])
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
		if answers[i].Via == claybot.ViaDefault {
			silent = append(silent, name)
		}
	}
	b.WriteByte('}')
	if len(silent) > 0 {
		fmt.Fprintf(&b, "\n(no answer in time; this is the default: %s)", strings.Join(silent, ", "))
	}
	return b.String()
}

// OpenQuestions lists the open questions of an agent, or of all when none is
// named, the oldest first; 1,000 at most.
func (s *Questions) OpenQuestions(ctx context.Context, agent claybot.AgentID) ([]storage.OpenQuestion, error) {
	return s.Asked.OpenQuestions(ctx, agent, maxQuestions)
}

// Question finds a question, open or answered; storage.ErrNotFound.
func (s *Questions) Question(ctx context.Context, id string) (storage.OpenQuestion, error) {
	return s.Asked.Question(ctx, id)
}

// AnswerQuestion answers one question: storage.ErrNotFound when there is none,
// or none that this person may answer, storage.ErrState when it has an answer or
// is closed, ErrApproved for the second yes of a person, and an *AnswerError when
// the value does not fit. The first answer that fits counts; a second one changes
// nothing.
func (s *Questions) AnswerQuestion(ctx context.Context, id string, a claybot.Answer) error {
	q, err := s.Asked.Question(ctx, id)
	if err != nil {
		return err
	}
	return s.answerAll(ctx, []storage.OpenQuestion{q}, map[string]string{q.ID: a.Text}, a, claybot.AgentMessage{})
}

// AnswerRun answers several questions of a paused run by their keys or ids, all
// or none; errors as of AnswerQuestion, with storage.ErrState when the run asks
// nothing. The faults of the AnswerError have the names that were given.
func (s *Questions) AnswerRun(ctx context.Context, id claybot.RunID, values map[string]string, by string, via claybot.AnswerVia) error {
	return s.answerRun(ctx, id, values, claybot.Answer{By: by, Via: via}, claybot.AgentMessage{})
}

// AnswerSaid is AnswerRun for answers that came as a message, which is stored
// with them: StartRun and Known find under its id the run that it answered. A
// message that is known answers nothing; it is storage.ErrState.
func (s *Questions) AnswerSaid(ctx context.Context, id claybot.RunID, values map[string]string, m claybot.AgentMessage, by string, via claybot.AnswerVia) error {
	m.Text = claybot.Clean(m.Text)
	return s.answerRun(ctx, id, values, claybot.Answer{By: by, Via: via}, m)
}

func (s *Questions) answerRun(ctx context.Context, id claybot.RunID, values map[string]string, common claybot.Answer, in claybot.AgentMessage) error {
	run, err := s.Runs.Run(ctx, id)
	switch {
	case err != nil:
		return err
	case run.Awaiting == nil || len(run.Awaiting.Questions) == 0:
		return fmt.Errorf("run %s asks nothing: %w", run.ID, storage.ErrState)
	case len(values) == 0:
		return &AnswerError{Faults: map[string]string{"answers": texts.NoAnswers}}
	}
	all, err := s.askedBy(ctx, run, values)
	if err != nil {
		return err
	}
	var qs []storage.OpenQuestion
	byID, faults := make(map[string]string), make(map[string]string)
	for name, value := range values {
		q, ok := named(all, name)
		_, twice := byID[q.ID]
		switch {
		case !ok:
			faults[name] = texts.NoSuchQuestion
			continue
		case twice:
			faults[name] = texts.AnsweredTwice
			continue
		}
		byID[q.ID] = value
		stored, err := s.Asked.Question(ctx, q.ID)
		if err != nil {
			return err
		}
		qs = append(qs, stored)
	}
	if len(faults) > 0 {
		return &AnswerError{Faults: faults}
	}
	err = s.answerAll(ctx, qs, byID, common, in)
	var bad *AnswerError
	if !errors.As(err, &bad) {
		return err
	}
	renamed := make(map[string]string) // by the names of the caller
	for name := range values {
		q, _ := named(all, name)
		if why, ok := bad.Faults[texts.QuestionKey(q)]; ok {
			renamed[name] = why
		}
	}
	return &AnswerError{Faults: renamed}
}

// askedBy are the questions that a paused run asks and, where a name is none of
// theirs, those that it asked before: they are closed, which is something else
// than unknown.
func (s *Questions) askedBy(ctx context.Context, run claybot.Run, names map[string]string) ([]claybot.Question, error) {
	all := slices.Clone(run.Awaiting.Questions)
	known := func(name string) bool { _, ok := named(all, name); return ok }
	if !slices.ContainsFunc(slices.Collect(maps.Keys(names)), func(name string) bool { return !known(name) }) {
		return all, nil
	}
	records, err := s.Agents.Records(ctx, run.Agent)
	if err != nil {
		return nil, fmt.Errorf("read what run %s asked: %w", run.ID, err)
	}
	for _, r := range slices.Backward(records) { // a key may come again: the newest is meant
		if r.Type == claybot.RecordQuestion && r.Run == run.ID && r.Question != nil {
			all = append(all, *r.Question)
		}
	}
	return all, nil
}

// named finds a question by its key, in capitals or not, or its id.
func named(qs []claybot.Question, name string) (claybot.Question, bool) {
	name = strings.TrimSpace(name)
	i := slices.IndexFunc(qs, func(q claybot.Question) bool { return q.ID == name || q.Key != "" && strings.EqualFold(q.Key, name) })
	if i < 0 || name == "" {
		return claybot.Question{}, false
	}
	return qs[i], true
}

// answerAll checks the values, which are named by the ids of their questions, and posts
// the answers when all fit. common is what the answers have in common, in the message in
// which they came; without an id, they came in none.
func (s *Questions) answerAll(ctx context.Context, qs []storage.OpenQuestion, values map[string]string, common claybot.Answer, in claybot.AgentMessage) error {
	var answers []claybot.Answer
	faults := make(map[string]string)
	for _, q := range qs {
		if err := s.open(ctx, q, common.By, common.Via); err != nil {
			return err
		}
		v, err := q.Check(values[q.ID], s.Zone())
		switch {
		case err != nil:
			faults[texts.QuestionKey(q.Question)] = err.Error()
		case string(v) == "true" && common.Args == "" && s.approvedBefore(q.Question, common.By):
			return fmt.Errorf("approve question %s: %w", q.ID, ErrApproved)
		case q.Once && common.Scope != claybot.ApproveOnce:
			faults[texts.QuestionKey(q.Question)] = texts.OnceOnly
		case common.Args != "":
			why, err := s.editFault(ctx, q, string(v) == "true", common)
			if err != nil {
				return err
			}
			if why != "" {
				faults[texts.QuestionKey(q.Question)] = why
			}
		}
		a := common
		a.Question, a.Text, a.Value, a.Message = q.ID, "", v, in.ID
		answers = append(answers, a)
	}
	if len(faults) > 0 {
		return &AnswerError{Faults: faults}
	}
	run, agent := qs[0].Run, qs[0].Agent
	if in.ID != "" {
		if err := s.postSaid(ctx, agent, run, in, answers); err != nil {
			return err
		}
	}
	for i, a := range answers {
		won, err := s.PostAnswer(ctx, agent, run, a)
		if err != nil {
			return err
		}
		if !won {
			return fmt.Errorf("question %s was answered meanwhile: %w", a.Question, storage.ErrState)
		}
		if err := s.Mark(ctx, qs[i].Question, a); err != nil { // the run does so when it goes on
			s.Log.Warn("failed to show an answer; the run retries", "question", a.Question, "err", err)
		}
	}
	return nil
}

// postSaid stores the message in which answers came, with what follows from it,
// before the answers themselves: a crash in between has them posted by the next
// start, see typed.
func (s *Questions) postSaid(ctx context.Context, id claybot.AgentID, run claybot.RunID, m claybot.AgentMessage, answers []claybot.Answer) error {
	agent, err := s.Lookup.Agent(ctx, id)
	if err != nil {
		return err
	}
	said, err := json.Marshal(answers)
	if err != nil {
		return err
	}
	m.Answer = &claybot.Result{OK: true, Output: string(said), RunID: run}
	done, err := s.Inbox.Post(ctx, storage.Posting{To: id, Message: m, Skip: SkippedAnswer})
	if err != nil {
		return err
	}
	if !done.Added {
		return fmt.Errorf("message %s was said before: %w", m.ID, storage.ErrState)
	}
	s.Intake.Accepted(ctx, agent, m, done)
	return nil
}

// SaidAgain returns the outcome of a message that answered questions: the run, and which of
// its questions. It posts answers that a crash or a full disk left unposted.
func (s *Questions) SaidAgain(ctx context.Context, r storage.Receipt) (run claybot.Run, answered []string, err error) {
	m := r.Message
	run, err = s.Runs.Run(ctx, m.Answer.RunID)
	if err != nil {
		return run, nil, err
	}
	var answers []claybot.Answer
	if err := json.Unmarshal([]byte(m.Answer.Output), &answers); err != nil {
		return run, nil, fmt.Errorf("read what message %s answers: %w", m.ID, err)
	}
	for _, x := range answers {
		answered = append(answered, x.Question)
		if run.State != claybot.RunAwaiting {
			continue
		}
		if _, err := s.PostAnswer(ctx, r.Agent, run.ID, x); err != nil {
			return run, nil, err
		}
	}
	return run, answered, nil
}

// open returns why a person may not answer a question: it is closed, or not theirs. HTTP
// and the page have authenticated an operator; in a chat only the approvers, or those who
// have approved before, may answer.
func (s *Questions) open(ctx context.Context, q storage.OpenQuestion, by string, via claybot.AnswerVia) error {
	e, err := s.Index.IndexedAgentByID(ctx, q.Agent)
	if err != nil {
		return err
	}
	chat := via != claybot.ViaWeb && via != claybot.ViaHTTP
	if chat && !s.mayDecide(q.Question, e.Descriptor, by) {
		return fmt.Errorf("question %s: %w", q.ID, storage.ErrNotFound)
	}
	run, err := s.Runs.Run(ctx, q.Run)
	switch {
	case err != nil:
		return err
	case q.Answer != nil:
		return fmt.Errorf("question %s is answered: %w", q.ID, storage.ErrState)
	case q.Expires <= claybot.Now():
		return fmt.Errorf("question %s has expired: %w", q.ID, storage.ErrState)
	case run.State.Ended() || run.Cancel != "":
		return fmt.Errorf("the run that asked question %s has ended: %w", q.ID, storage.ErrState)
	}
	return nil
}

// MayAnswer reports whether a person, by owner id, may answer a question of an agent: its
// approvers, or else the agent's own person.
func (s *Questions) MayAnswer(q claybot.Question, d claybot.Descriptor, by string) bool {
	may := q.Approvers
	if len(may) == 0 {
		may = []string{d.OwnerID()}
	}
	return slices.ContainsFunc(may, func(owner string) bool {
		return slices.Contains(s.People.Identities(owner), by)
	})
}

// PostAnswer posts an answer to a paused run. It reports whether this answer counts, which
// is true for a repetition of the one that does.
func (s *Questions) PostAnswer(ctx context.Context, agent claybot.AgentID, run claybot.RunID, a claybot.Answer) (bool, error) {
	id := claybot.Question{ID: a.Question}.AnswerID()
	done, err := s.Inbox.Post(ctx, storage.Posting{To: agent, Message: claybot.AgentMessage{
		ID: id, Type: claybot.MessageAnswer, Run: run, At: claybot.Now(), From: claybot.Sender{UserID: a.By},
		Answer: &claybot.Result{OK: true, Output: texts.ValueText(a.Value), RunID: run, To: &a},
	}})
	return err == nil && done.Added && done.Skipped == "", err
}

// An AnswerError says why answers do not fit: a sentence for each key.
type AnswerError struct{ Faults map[string]string }

func (e *AnswerError) Error() string {
	var all []string
	for key, why := range e.Faults {
		all = append(all, key+": "+why)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}
