package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/claybot/claybot/questions"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

var noQuestion = hint{"There is no question with that id.", "GET /questions lists those that are open."}

// A value is an answer as its question reads it. JSON may give a string, a
// number, a yes or no, or a list of strings and numbers.
type value string

// UnmarshalJSON implements json.Unmarshaler.
func (v *value) UnmarshalJSON(b []byte) error {
	var list []value
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
		return bad("An answer must be a string, a number, true, false or a list of strings.", "")
	}
	*v = value(s)
	return nil
}

type (
	questionList struct {
		Questions []storage.OpenQuestion `json:"questions"`
	}
	answerRequest struct {
		Value  *value                `json:"value" doc:"The answer: a string, a number, true or false, or a list. To a confirm: approve or deny."`
		Reason string                `json:"reason,omitempty" doc:"Why it is denied, at most 1,000 characters."`
		Scope  claybot.ApprovalScope `json:"scope,omitempty" doc:"How far an approval goes: empty for this action alone, session for what its tool does until the next reset, always for what its tool does for this agent from now on, which needs the scope admin."`
		Args   json.RawMessage       `json:"args,omitempty" doc:"Of an approval: a JSON object of arguments with which the action runs in place of those that the question shows."`
	}
	answerDone struct {
		ID  string        `json:"questionId"`
		Run claybot.RunID `json:"runId"`
		// More is told of approvals alone.
		More int `json:"more,omitempty" doc:"How many more people must approve the action, somebody else each; the run waits for them."`
	}
)

func (a *api) questionOperations() []operation {
	return []operation{
		{
			id: "listQuestions", method: http.MethodGet, path: "/questions", tag: "questions", scope: web.Read,
			summary: "What agents ask, the oldest first.",
			params: []param{
				{name: "agent", about: "Asked by this agent only."},
				{name: "state", about: "open, which is the default, means those without an answer.", values: []string{"open"}},
			},
			answers: []answer{{status: http.StatusOK, value: questionList{}}}, serve: a.listQuestions,
		},
		{
			id: "getQuestion", method: http.MethodGet, path: "/questions/{question}", tag: "questions", scope: web.Read,
			summary: "One question, with its answer when there is one.", answers: []answer{{status: http.StatusOK, value: storage.OpenQuestion{}}},
			fails: []int{http.StatusNotFound}, missing: noQuestion, serve: a.getQuestion,
		},
		{
			id: "answerQuestion", method: http.MethodPost, path: "/questions/{question}/answer", tag: "questions", scope: web.Operate,
			summary: "Answer a question. The first answer that fits counts.",
			about:   "A confirm is an approval: what runs is what its text shows, or nothing.", body: answerRequest{},
			answers: []answer{{status: http.StatusAccepted, value: answerDone{}, about: "The run goes on when it has all it waits for."}},
			fails:   []int{http.StatusNotFound, http.StatusConflict, http.StatusGone}, missing: noQuestion, serve: a.answerQuestion,
		},
	}
}

func (a *api) listQuestions(w http.ResponseWriter, r *http.Request) error {
	all, err := a.Desk.OpenQuestions(r.Context(), claybot.AgentID(r.URL.Query().Get("agent")))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, questionList{orEmpty(all)})
}

func (a *api) getQuestion(w http.ResponseWriter, r *http.Request) error {
	q, err := a.Desk.Question(r.Context(), r.PathValue("question"))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, q)
}

func (a *api) answerQuestion(w http.ResponseWriter, r *http.Request) error {
	var in answerRequest
	if err := readBody(r, &in); err != nil {
		return err
	}
	if in.Value == nil {
		return bad("The field value is missing.", "")
	}
	id := r.PathValue("question")
	q, err := a.Desk.Question(r.Context(), id)
	if err != nil {
		return err
	}
	in.Reason = strings.TrimSpace(strings.ReplaceAll(in.Reason, "\x00", ""))
	if err := in.fits(q.Question); err != nil {
		return err
	}
	if in.Scope == claybot.ApproveAlways && !web.CallerOf(r).Scope.Allows(web.Admin) {
		return forbidden("To approve something for good changes a setting of the agent, which needs the scope admin.",
			"Leave scope out to approve this action alone, or use a token with the scope admin.")
	}
	said := questions.Said{
		Value: string(*in.Value), By: web.User(r), Via: claybot.ViaHTTP, Reason: in.Reason, Scope: in.Scope, Args: string(in.Args),
	}
	err = a.closed(r.Context(), q, true)
	if err == nil {
		err = a.Desk.AnswerQuestion(r.Context(), id, said)
	}
	if errors.Is(err, storage.ErrState) { // somebody, or time, was faster
		if now, again := a.Desk.Question(r.Context(), id); again == nil {
			q = now
		}
		err = a.closed(r.Context(), q, false)
	}
	if err != nil {
		return err
	}
	return reply(w, http.StatusAccepted, answerDone{id, q.Run, a.Desk.Lacking(q.Question, said)})
}

// reasonLimit is the longest reason in characters.
const reasonLimit = 1000

var approvalScopes = []string{string(claybot.ApproveOnce), string(claybot.ApproveSession), string(claybot.ApproveAlways)}

// fits refuses what does not go with an answer: only an approval has a scope,
// and only a denial a reason. A value that is neither is refused later, in the
// words of the question.
func (in *answerRequest) fits(q claybot.Question) error {
	if string(in.Args) == "null" {
		in.Args = nil
	}
	switch {
	case len(in.Args) > 0 && in.Args[0] != '{':
		return bad("The field args must be a JSON object.", "It has the arguments of the tool, such as {\"command\": \"ls\"}.")
	case in.Scope == claybot.ApproveOnce && in.Reason == "" && len(in.Args) == 0:
		return nil
	}
	v, err := q.Check(string(*in.Value), nil)
	switch {
	case !slices.Contains(approvalScopes, string(in.Scope)):
		return bad(fmt.Sprintf("There is no scope %.40q.", in.Scope), "It is session or always; leave it out to approve this action alone.")
	case q.Type != claybot.QuestionConfirm:
		return bad("This question is no approval, so its answer has neither a scope nor a reason, nor arguments.", "Send the value alone.")
	case in.Scope != claybot.ApproveOnce && q.Tool == "":
		return bad("This approval is about no tool, so it cannot go further than this once.", "Leave scope out.")
	case err != nil:
		return nil
	case in.Scope != claybot.ApproveOnce && string(v) != "true":
		return bad("Only an approval has a scope.", "Leave scope out to deny this action.")
	case in.Reason != "" && string(v) == "true":
		return bad("Only a denial has a reason.", "Leave reason out to approve this action.")
	case utf8.RuneCountInString(in.Reason) > reasonLimit:
		return bad(fmt.Sprintf("The field reason has %d characters; at most %d are taken.", utf8.RuneCountInString(in.Reason), reasonLimit), "Say it in fewer words.")
	}
	return nil
}

// closed says why a question takes no answer; nil when it may be open, if it may.
// Of an approval that was not enough it says where the next one is asked for.
func (a *api) closed(ctx context.Context, q storage.OpenQuestion, mayBeOpen bool) error {
	switch {
	case q.Answer != nil:
		next, ok, err := a.nextApproval(ctx, q)
		if err != nil {
			return err
		}
		if ok {
			return conflict("The question has an answer already; it now waits for another approval as question "+next.ID+".", "GET /questions/"+next.ID+" shows it.")
		}
		return conflict("The question has an answer already.", "GET /questions/"+q.ID+" shows it.")
	case q.Expires != 0 && q.Expires <= claybot.Now():
		return &problem{status: http.StatusGone, Code: "expired", Message: "The question has expired.", Fix: "GET /agents/runs/" + string(q.Run) + " shows what became of its run."}
	case mayBeOpen:
		return nil
	}
	return conflict("The run does not wait for this answer any more.", "GET /agents/runs/"+string(q.Run)+" shows what became of it.")
}

// nextApproval is what is asked since about the action of a question that was
// approved; false where nothing is.
func (a *api) nextApproval(ctx context.Context, q storage.OpenQuestion) (next storage.OpenQuestion, ok bool, err error) {
	if q.Need < 2 {
		return next, false, nil
	}
	open, err := a.Desk.OpenQuestions(ctx, q.Agent)
	if err != nil {
		return next, false, err
	}
	next, ok = questions.NextApproval(q.Question, q.Run, open)
	return next, ok, nil
}
