package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

var noQuestion = hint{"No question with that id.", "GET /questions lists pending questions."}

// questionRoutes serves the agents' questions.
type questionRoutes struct{ questions web.Questions }

func (a questionRoutes) operations() []operation {
	return operation{tag: "questions", missing: noQuestion}.like(
		returns(http.StatusOK, op("listQuestions", web.Read, "GET /questions", "List pending questions, oldest first.").
			query(param{name: "agent", about: "Only questions of this agent."}, param{name: "state", about: "Only open, which is also the default: questions without an answer.", values: []string{"open"}}), func(r *http.Request) (web.QuestionList, error) {
			all, err := a.questions.OpenQuestions(r.Context(), claybot.AgentID(r.URL.Query().Get("agent")))
			return web.QuestionList{Questions: orEmpty(all)}, err
		}),
		returns(http.StatusOK, op("getQuestion", web.Read, "GET /questions/{question}", "Get a question, with its answer if it has one.").
			failing(http.StatusNotFound), func(r *http.Request) (storage.OpenQuestion, error) {
			return a.questions.Question(r.Context(), r.PathValue("question"))
		}),
		takes(http.StatusAccepted, op("answerQuestion", web.Operate, "POST /questions/{question}/answer", "Answer a question. The first valid answer counts.").
			explained("A confirm is an approval: claybot runs exactly what its text shows, or nothing. Answering it, or a question for approvers, needs the scope approve.").
			failing(http.StatusNotFound, http.StatusConflict, http.StatusGone), a.answer).replying("The run continues once it has everything it waits for."),
	)
}

func (a questionRoutes) answer(r *http.Request, in web.AnswerRequest) (none web.AnswerDone, err error) {
	if in.Value == nil {
		return none, bad("The field value is missing.", "")
	}
	id := r.PathValue("question")
	q, err := a.questions.Question(r.Context(), id)
	if err != nil {
		return none, err
	}
	in.Reason = strings.TrimSpace(strings.ReplaceAll(in.Reason, "\x00", ""))
	if string(in.Args) == "null" {
		in.Args = nil
	}
	if err := fits(in, q.Question); err != nil {
		return none, err
	}
	if questions.Reserved(q.Question) && !web.CallerOf(r).Scope.Allows(web.Approve) {
		return none, questions.ErrReserved
	}
	if in.Scope == claybot.ApproveAlways && !web.CallerOf(r).Scope.Allows(web.Admin) {
		return none, forbidden("Approving permanently changes a setting of the agent and needs the scope admin.",
			"Omit scope to approve only this action, or use a token with the scope admin.")
	}
	said := claybot.Answer{
		Text: string(*in.Value), By: web.User(r), Via: claybot.ViaHTTP, Reason: in.Reason, Scope: in.Scope, Args: string(in.Args),
	}
	err = a.closed(r.Context(), q, true)
	if err == nil {
		err = a.questions.AnswerQuestion(r.Context(), id, said)
	}
	if errors.Is(err, storage.ErrState) { // answered or expired concurrently
		if now, again := a.questions.Question(r.Context(), id); again == nil {
			q = now
		}
		err = a.closed(r.Context(), q, false)
	}
	if err != nil {
		return none, err
	}
	return web.AnswerDone{ID: id, Run: q.Run, More: a.questions.Lacking(q.Question, said)}, nil
}

// reasonLimit is the maximum length of a reason in characters.
const reasonLimit = 1000

var approvalScopes = []string{string(claybot.ApproveOnce), string(claybot.ApproveSession), string(claybot.ApproveAlways)}

// fits rejects fields that do not match an answer: only an approval has a scope, and only a
// denial a reason. An invalid value is rejected later, with the message of the question.
func fits(in web.AnswerRequest, q claybot.Question) error {
	switch {
	case len(in.Args) > 0 && in.Args[0] != '{':
		return bad("The field args must be a JSON object.", "Use the arguments of the tool, for example {\"command\": \"ls\"}.")
	case in.Scope == claybot.ApproveOnce && in.Reason == "" && len(in.Args) == 0:
		return nil
	}
	v, err := q.Check(string(*in.Value), nil)
	switch {
	case !slices.Contains(approvalScopes, string(in.Scope)):
		return bad(fmt.Sprintf("Invalid scope %.40q.", in.Scope), "Use session or always, or omit it to approve only this action.")
	case q.Type != claybot.QuestionConfirm:
		return bad("This question is not an approval, so its answer has no scope, reason or arguments.", "Send only the value.")
	case in.Scope != claybot.ApproveOnce && q.Tool == "":
		return bad("This approval is not for a tool, so it applies only once.", "Omit scope.")
	case err != nil:
		return nil
	case in.Scope != claybot.ApproveOnce && string(v) != "true":
		return bad("Only an approval has a scope.", "Omit scope to deny this action.")
	case in.Reason != "" && string(v) == "true":
		return bad("Only a denial has a reason.", "Omit reason to approve this action.")
	case utf8.RuneCountInString(in.Reason) > reasonLimit:
		return bad(fmt.Sprintf("The field reason has %d characters; the limit is %d.", utf8.RuneCountInString(in.Reason), reasonLimit), "Shorten it.")
	}
	return nil
}

// closed explains why a question cannot be answered; nil if it may be open and mayBeOpen is
// set. For an insufficient approval it refers to the next one.
func (a questionRoutes) closed(ctx context.Context, q storage.OpenQuestion, mayBeOpen bool) error {
	switch {
	case q.Answer != nil:
		next, ok, err := a.nextApproval(ctx, q)
		if err != nil {
			return err
		}
		if ok {
			return conflict("The question is already answered. The action now waits for another approval, question "+next.ID+".", "See GET /questions/"+next.ID+".")
		}
		return conflict("The question is already answered.", "See GET /questions/"+q.ID+".")
	case q.Expires != 0 && q.Expires <= claybot.Now():
		return &web.Problem{Status: http.StatusGone, Code: "expired", Message: "The question has expired.", Fix: "See GET /agents/runs/" + string(q.Run) + " for the outcome of its run."}
	case mayBeOpen:
		return nil
	}
	return conflict("The run no longer waits for this answer.", "See GET /agents/runs/"+string(q.Run)+" for its outcome.")
}

// nextApproval returns the later question about the action of an approved one; false if
// there is none.
func (a questionRoutes) nextApproval(ctx context.Context, q storage.OpenQuestion) (next storage.OpenQuestion, ok bool, err error) {
	if q.Need < 2 {
		return next, false, nil
	}
	open, err := a.questions.OpenQuestions(ctx, q.Agent)
	if err != nil {
		return next, false, err
	}
	next, ok = questions.NextApproval(q.Question, q.Run, open)
	return next, ok, nil
}
