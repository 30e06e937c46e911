package questions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// maxQuestions is the length of a list.
const maxQuestions = 1000

// Answers lists questions, and takes answers to those that are named.
type Answers struct {
	ledger      *Ledger
	respondents Respondents
	notices     *Notices
	agents      Agents
	lookup      Lookup
	intake      Intake
	zone        func() *time.Location
	log         *slog.Logger

	// CheckEdit is that of the Config. It may be replaced before the first answer.
	CheckEdit func(claybot.Agent, claybot.ToolCall) error
}

// OpenQuestions lists the open questions of an agent, or of all when none is
// named, the oldest first; 1,000 at most.
func (s *Answers) OpenQuestions(ctx context.Context, agent claybot.AgentID) ([]storage.OpenQuestion, error) {
	return s.ledger.asked.OpenQuestions(ctx, agent, maxQuestions)
}

// Question finds a question, open or answered; storage.ErrNotFound.
func (s *Answers) Question(ctx context.Context, id string) (storage.OpenQuestion, error) {
	return s.ledger.asked.Question(ctx, id)
}

// AnswerQuestion answers one question. The first valid answer counts. It returns
// storage.ErrNotFound when the question does not exist or the person may not answer it,
// storage.ErrState when it has an answer or is closed, ErrApproved for the second approval
// by the same person, and an *AnswerError when the value is invalid.
func (s *Answers) AnswerQuestion(ctx context.Context, id string, a claybot.Answer) error {
	q, err := s.ledger.asked.Question(ctx, id)
	if err != nil {
		return err
	}
	return s.answerAll(ctx, []storage.OpenQuestion{q}, map[string]string{q.ID: a.Text}, a, claybot.AgentMessage{})
}

// ErrReserved means that a question is only for callers who may approve.
var ErrReserved = errors.New("the question is reserved for those who may approve")

// Reserved reports whether answering q is approving: no text of a conversation does, and a
// program needs a permission of its own for it.
func Reserved(q claybot.Question) bool {
	return q.Type == claybot.QuestionConfirm || len(q.Approvers) > 0
}

// AnswerRun answers several questions of a paused run by their keys or ids, all or none.
// Its errors are those of AnswerQuestion, and storage.ErrState when the run asks nothing,
// and ErrReserved when one of the questions is reserved and approves is false.
// The faults of the AnswerError have the names of values.
func (s *Answers) AnswerRun(ctx context.Context, id claybot.RunID, values map[string]string, by string, via claybot.AnswerVia, approves bool) error {
	return s.answerRun(ctx, id, values, claybot.Answer{By: by, Via: via}, claybot.AgentMessage{}, approves)
}

// AnswerSaid is AnswerRun for answers that come in a message, which it stores with them:
// StartRun and Known find the answered run under the id of the message. The caller keeps
// reserved questions out of values. It returns storage.ErrState for a message that is
// stored already.
func (s *Answers) AnswerSaid(ctx context.Context, id claybot.RunID, values map[string]string, m claybot.AgentMessage, by string, via claybot.AnswerVia) error {
	m.Text = s.intake.Masked(m.Text)
	return s.answerRun(ctx, id, values, claybot.Answer{By: by, Via: via}, m, true)
}

func (s *Answers) answerRun(ctx context.Context, id claybot.RunID, values map[string]string, common claybot.Answer, in claybot.AgentMessage, approves bool) error {
	run, err := s.ledger.runs.Run(ctx, id)
	switch {
	case err != nil:
		return err
	case run.Awaiting == nil || len(run.Awaiting.Questions) == 0:
		return fmt.Errorf("run %s asks nothing: %w", run.ID, storage.ErrState)
	case len(values) == 0:
		return &AnswerError{Faults: map[string]string{"answers": texts.Of(ctx).In(texts.NoAnswers)}}
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
			faults[name] = texts.Of(ctx).In(texts.NoSuchQuestion)
			continue
		case twice:
			faults[name] = texts.Of(ctx).In(texts.AnsweredTwice)
			continue
		}
		byID[q.ID] = value
		stored, err := s.ledger.asked.Question(ctx, q.ID)
		if err != nil {
			return err
		}
		qs = append(qs, stored)
	}
	if len(faults) > 0 {
		return &AnswerError{Faults: faults}
	}
	if !approves && slices.ContainsFunc(qs, func(q storage.OpenQuestion) bool { return Reserved(q.Question) }) {
		return fmt.Errorf("answer run %s: %w", id, ErrReserved)
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

// askedBy returns the questions that a paused run asks and, when a name is none of theirs,
// also those that it asked before: an answer to one of them is late, not unknown.
func (s *Answers) askedBy(ctx context.Context, run claybot.Run, names map[string]string) ([]claybot.Question, error) {
	all := slices.Clone(run.Awaiting.Questions)
	known := func(name string) bool { _, ok := named(all, name); return ok }
	if !slices.ContainsFunc(slices.Collect(maps.Keys(names)), func(name string) bool { return !known(name) }) {
		return all, nil
	}
	records, err := s.agents.Records(ctx, run.Agent)
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

// named finds a question by its key, in any case, or its id.
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
func (s *Answers) answerAll(ctx context.Context, qs []storage.OpenQuestion, values map[string]string, common claybot.Answer, in claybot.AgentMessage) error {
	var answers []claybot.Answer
	faults := make(map[string]string)
	common.Reason = s.intake.Masked(common.Reason)
	for _, q := range qs {
		if err := s.open(ctx, q, common.By, common.Via); err != nil {
			return err
		}
		v, err := q.Check(s.intake.Masked(values[q.ID]), texts.Of(ctx).Location(s.zone()))
		switch {
		case err != nil:
			faults[texts.QuestionKey(q.Question)] = texts.Of(ctx).Complaint(err)
		case string(v) == "true" && common.Args == "" && s.respondents.approvedBefore(q.Question, common.By):
			return fmt.Errorf("approve question %s: %w", q.ID, ErrApproved)
		case q.Once && common.Scope != claybot.ApproveOnce:
			faults[texts.QuestionKey(q.Question)] = texts.Of(ctx).In(texts.OnceOnly)
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
		won, err := s.ledger.Post(ctx, agent, run, a)
		if err != nil {
			return err
		}
		if !won {
			return fmt.Errorf("question %s was answered meanwhile: %w", a.Question, storage.ErrState)
		}
		if err := s.notices.Answered(ctx, qs[i].Question, a); err != nil { // the run does so when it resumes
			s.log.Warn("failed to show an answer; the run retries", "question", a.Question, "err", err)
		}
	}
	return nil
}

// postSaid stores the message in which answers came before the answers themselves. After
// a crash in between, the next start posts them; see TextAnswers.Recover.
func (s *Answers) postSaid(ctx context.Context, id claybot.AgentID, run claybot.RunID, m claybot.AgentMessage, answers []claybot.Answer) error {
	agent, err := s.lookup.Agent(ctx, id)
	if err != nil {
		return err
	}
	said, err := json.Marshal(answers)
	if err != nil {
		return err
	}
	m.Answer = &claybot.Result{OK: true, Output: string(said), RunID: run}
	done, err := s.ledger.inbox.Post(ctx, storage.Posting{To: id, Message: m, Skip: SkippedAnswer})
	if err != nil {
		return err
	}
	if !done.Added {
		return fmt.Errorf("message %s is stored already: %w", m.ID, storage.ErrState)
	}
	s.intake.Accepted(ctx, agent, m, done)
	return nil
}

// SaidAgain returns the outcome of a message that answered questions: the run, and which of
// its questions. It posts answers that a crash or a full disk left unposted.
func (s *Answers) SaidAgain(ctx context.Context, r storage.Receipt) (run claybot.Run, answered []string, err error) {
	m := r.Message
	run, err = s.ledger.runs.Run(ctx, m.Answer.RunID)
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
		if _, err := s.ledger.Post(ctx, r.Agent, run.ID, x); err != nil {
			return run, nil, err
		}
	}
	return run, answered, nil
}

// open returns why a person may not answer a question: it is closed, or not theirs. HTTP
// and the page have authenticated an operator; in a chat only the approvers, or those who
// have approved before, may answer.
func (s *Answers) open(ctx context.Context, q storage.OpenQuestion, by string, via claybot.AnswerVia) error {
	e, err := s.ledger.index.IndexedAgentByID(ctx, q.Agent)
	if err != nil {
		return err
	}
	chat := via != claybot.ViaWeb && via != claybot.ViaHTTP
	if chat && !s.respondents.mayDecide(q.Question, e.Descriptor, by) {
		return fmt.Errorf("question %s: %w", q.ID, storage.ErrNotFound)
	}
	run, err := s.ledger.runs.Run(ctx, q.Run)
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

// Lacking returns how many more people must approve the action of a question after this
// reply; 0 if it is no approval.
func (s *Answers) Lacking(q claybot.Question, a claybot.Answer) int {
	if v, err := q.Check(a.Text, s.zone()); err != nil || q.Type != claybot.QuestionConfirm || string(v) != "true" {
		return 0
	}
	return s.respondents.approvers().Lacking(q, a.By, a.Args != "")
}

// editFault says why an action cannot be approved with other arguments, or returns an
// empty string.
func (s *Answers) editFault(ctx context.Context, q storage.OpenQuestion, yes bool, a claybot.Answer) (string, error) {
	switch {
	case !yes:
		return texts.Of(ctx).In(texts.EditDenied), nil
	case q.Type != claybot.QuestionConfirm || q.Tool == "" || q.Args == "" || s.CheckEdit == nil:
		return texts.Of(ctx).In(texts.NoEdit), nil
	case a.Scope != claybot.ApproveOnce:
		return texts.Of(ctx).In(texts.EditOnce), nil
	}
	agent, err := s.lookup.Agent(ctx, q.Agent)
	if err != nil {
		return "", err
	}
	if err := s.CheckEdit(agent, claybot.ToolCall{ID: q.ToolCallID, Name: q.Tool, Args: a.Args}); err != nil {
		return texts.Of(ctx).InvalidEdit(err), nil
	}
	return "", nil
}

// An AnswerError says why answers are invalid, in a sentence for each key.
type AnswerError struct{ Faults map[string]string }

func (e *AnswerError) Error() string {
	var all []string
	for key, why := range e.Faults {
		all = append(all, key+": "+why)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}
