package web

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// Questions lists and answers questions of agents.
type Questions interface {
	// OpenQuestions lists the open questions of an agent, or of all when none
	// is named, the oldest first.
	OpenQuestions(ctx context.Context, agent claybot.AgentID) ([]storage.OpenQuestion, error)
	Question(ctx context.Context, id string) (storage.OpenQuestion, error)
	// AnswerQuestion answers a question. It returns storage.ErrState when the question
	// has an answer or has expired, questions.ErrApproved when the same person
	// approves twice where several people must, and an *questions.AnswerError when
	// the value does not fit.
	AnswerQuestion(ctx context.Context, id string, a claybot.Answer) error
	// Lacking returns how many more people must approve the action of a question
	// after the answer a.
	Lacking(q claybot.Question, a claybot.Answer) int
	// AnswerRun answers several questions of a paused run by their keys or ids:
	// all of them or, when one value does not fit, none. The error is an
	// questions.AnswerError with a sentence for each. It returns questions.ErrReserved
	// when one is reserved and approves is false.
	AnswerRun(ctx context.Context, run claybot.RunID, values map[string]string, by string, via claybot.AnswerVia, approves bool) error
	// AnswerSaid is AnswerRun for answers that came as a message with an id of
	// its own: Known and StartRun find the answered run under that id. The
	// caller keeps reserved questions out of values. It returns storage.ErrState
	// for a message that is known already.
	AnswerSaid(ctx context.Context, run claybot.RunID, values map[string]string, m claybot.AgentMessage, by string, via claybot.AnswerVia) error
}

// A Value is an answer as its question reads it. JSON may give a string, a
// number, a yes or no, or a list of strings and numbers.
type Value string

// A QuestionList is pending questions, the oldest first.
type QuestionList struct {
	Questions []storage.OpenQuestion `json:"questions"`
}

// An AnswerRequest answers one question.
type AnswerRequest struct {
	Value  *Value                `json:"value" doc:"The answer: a string, a number, true, false or a list. For a confirm: approve or deny."`
	Reason string                `json:"reason,omitempty" doc:"Why you deny it, at most 1,000 characters."`
	Scope  claybot.ApprovalScope `json:"scope,omitempty" doc:"The scope of an approval. Empty: this action only. session: what its tool does until the next reset. always: what its tool does for this agent from now on; needs the scope admin."`
	Args   json.RawMessage       `json:"args,omitempty" doc:"For an approval: a JSON object of arguments that replace those in the question."`
}

// An AnswerDone acknowledges an answer.
type AnswerDone struct {
	ID  string        `json:"questionId"`
	Run claybot.RunID `json:"runId"`
	// More is set for approvals only.
	More int `json:"more,omitempty" doc:"Number of further approvals that the run waits for."`
}

// An AnswersRequest answers questions of a run.
type AnswersRequest struct {
	Answers map[string]Value `json:"answers" doc:"The answers, by key or id of the question."`
}

// UnmarshalJSON implements json.Unmarshaler. An invalid value is a Refusal.
func (v *Value) UnmarshalJSON(b []byte) error {
	var list []Value
	var s string
	switch c := b[0]; {
	case c == '"':
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
	case c == '[':
		if err := json.Unmarshal(b, &list); err != nil {
			return err
		}
		all := make([]string, len(list))
		for i, x := range list {
			all[i] = string(x)
		}
		s = strings.Join(all, ", ")
	case c == 't' || c == 'f' || c == '-' || c >= '0' && c <= '9':
		s = string(bytes.TrimSpace(b))
	default:
		return Refusal("An answer must be a string, a number, true, false or a list of strings.")
	}
	*v = Value(s)
	return nil
}
