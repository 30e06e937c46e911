package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

type questionsCmd struct {
	List questionsListCmd `cmd:"" default:"withargs" eg:"questions" help:"List pending questions and approvals, oldest first."`
	Show questionsShowCmd `cmd:"" eg:"questions show QUESTION" help:"Show a question and its answer, if any."`
}

type (
	questionsListCmd struct {
		Agent string `placeholder:"ID" help:"ID of the agent that asked. Default: all."`
		JSON  bool   `name:"json" help:"Print JSON."`
	}
	questionsShowCmd struct {
		ID   string `arg:"" name:"question" help:"ID of the question, or the first characters of a pending one."`
		JSON bool   `name:"json" help:"Print JSON."`
	}
	answerCmd struct {
		ID     string `arg:"" name:"question" help:"ID of the question, or its first characters."`
		Value  string `arg:"" help:"Answer; precede one that starts with a dash by --."`
		Reason string `placeholder:"TEXT" help:"Reason for a denial."`
		Scope  string `placeholder:"SCOPE" values:"session,always" help:"Scope of an approval: session or always. Default: this action only."`
	}
	approveCmd struct {
		ID    string `arg:"" name:"question" help:"ID of the approval, or its first characters."`
		Scope string `placeholder:"SCOPE" values:"session,always" help:"Scope of the approval: session (this tool until the next reset) or always (this tool for this agent). Default: this action only."`
		Args  string `placeholder:"JSON" help:"Arguments to run the action with instead of its own, as a JSON object."`
	}
	denyCmd struct {
		ID     string   `arg:"" name:"question" help:"ID of the approval, or its first characters."`
		Reason []string `arg:"" optional:"" help:"Reason, which the agent sees."`
	}
)

// pending is the list of pending questions of an agent, or of all.
func pending(agent string) resource { return to("/questions").with(url.Values{"agent": {agent}}) }

func questionPath(id string) resource { return to("/questions/" + url.PathEscape(id)) }

// Run lists the pending questions, each in full: users must see what they approve.
func (c questionsListCmd) Run(e *env) error {
	return show(e, c.JSON, pending(c.Agent), func(out web.QuestionList) error {
		if len(out.Questions) == 0 {
			return e.text("No pending questions.\n")
		}
		texts := make([]string, len(out.Questions))
		for i, q := range out.Questions {
			texts[i] = questionText(q)
		}
		return e.text(strings.Join(texts, "\n"))
	})
}

// Run shows a question.
func (c questionsShowCmd) Run(e *env) error {
	id, err := e.question(c.ID)
	if err != nil {
		return err
	}
	return show(e, c.JSON, questionPath(id), func(q storage.OpenQuestion) error {
		if err := e.text(questionText(q)); err != nil || q.Answer == nil || q.Need < 2 {
			return err
		}
		open, err := ask[web.QuestionList](e, "GET", pending(string(q.Agent)), nil)
		if err != nil {
			return err
		}
		next, ok := questions.NextApproval(q.Question, q.Run, open.Questions)
		if !ok {
			return nil
		}
		return e.text("  needs another approval, as question " + next.ID + "\n")
	})
}

// questionText shows a question: its origin, its full text, and how to answer.
func questionText(q storage.OpenQuestion) string {
	var b strings.Builder
	until := ""
	if q.Expires != 0 {
		until = ", open until " + moment(q.Expires.Time())
	}
	fmt.Fprintf(&b, "%s  %s, asked by agent %s in run %s %s%s\n", q.ID, q.Type, q.Agent, q.Run, moment(q.Asked.Time()), until)
	for line := range strings.SplitSeq(strings.TrimRight(q.Text, "\n"), "\n") {
		b.WriteString("  " + line + "\n")
	}
	for i, o := range q.Options {
		fmt.Fprintf(&b, "  %d. %s\n", i+1, strings.Join(strings.Fields(o), " "))
	}
	if far := q.Progress(); far != "" && q.Answer == nil {
		b.WriteString("  " + far + "\n")
	}
	switch {
	case q.Answer != nil:
		b.WriteString("  " + answerText(*q.Answer) + "\n")
	case q.Type == claybot.QuestionConfirm:
		fmt.Fprintf(&b, "  claybot approve %s, or claybot deny %s\n", q.ID, q.ID)
	default:
		fmt.Fprintf(&b, "  claybot answer %s VALUE\n", q.ID)
	}
	return b.String()
}

// answerText shows an answer: its value, who gave it, and how.
func answerText(a claybot.Answer) string {
	said := string(a.Value)
	if said == "" || said == "null" {
		said = "nothing"
	}
	text := "answered with " + oneLine(said)
	if a.By != "" {
		text += " by " + a.By
	}
	text += fmt.Sprintf(" (%s)", a.Via)
	if a.Scope != claybot.ApproveOnce {
		text += ", scope " + string(a.Scope)
	}
	if a.Args != "" {
		text += ", with the arguments " + oneLine(a.Args)
	}
	if a.Reason != "" {
		text += ", because: " + oneLine(a.Reason)
	}
	return text
}

// Run answers a question.
func (c answerCmd) Run(e *env) error {
	id, err := e.question(c.ID)
	if err != nil {
		return err
	}
	in := web.AnswerRequest{Value: (*web.Value)(&c.Value), Reason: c.Reason, Scope: claybot.ApprovalScope(c.Scope)}
	return e.answer(id, in, "Answered; run %s resumes when all its questions are answered.\n")
}

// Run approves an action.
func (c approveCmd) Run(e *env) error {
	id, err := e.approval(c.ID)
	if err != nil {
		return err
	}
	if c.Args != "" && !json.Valid([]byte(c.Args)) {
		return usageError{errors.New("--args is not valid JSON; quote it as one word for the shell, such as --args '{\"command\": \"ls\"}'")}
	}
	in := web.AnswerRequest{Value: new(web.Value("approve")), Scope: claybot.ApprovalScope(c.Scope), Args: json.RawMessage(c.Args)}
	return e.answer(id, in, "Approved; run %s resumes.\n")
}

// Run denies an action.
func (c denyCmd) Run(e *env) error {
	id, err := e.approval(c.ID)
	if err != nil {
		return err
	}
	return e.answer(id, web.AnswerRequest{Value: new(web.Value("deny")), Reason: strings.Join(c.Reason, " ")}, "Denied; run %s resumes with the denial.\n")
}

// answer gives the daemon an answer and prints done with the ID of the run.
func (e *env) answer(id string, in web.AnswerRequest, done string) error {
	return reply(e, "POST", to("/questions/"+url.PathEscape(id)+"/answer"), in, func(out web.AnswerDone) string {
		if out.More > 0 {
			return fmt.Sprintf("Approved; run %s needs %s, by another user. claybot questions lists them.\n", out.Run, count(out.More, "more approval"))
		}
		return fmt.Sprintf(done, out.Run)
	})
}

// question resolves a pending question from the first characters of its ID.
func (e *env) question(ref string) (string, error) {
	return resolve(ref, "pending question", "claybot questions", func() ([]string, error) {
		out, err := ask[web.QuestionList](e, "GET", pending(""), nil)
		ids := make([]string, len(out.Questions))
		for i, q := range out.Questions {
			ids[i] = q.ID
		}
		return ids, err
	})
}

// approval resolves a pending approval.
func (e *env) approval(ref string) (string, error) {
	id, err := e.question(ref)
	if err != nil {
		return "", err
	}
	q, err := ask[storage.OpenQuestion](e, "GET", questionPath(id), nil)
	if err == nil && q.Type != claybot.QuestionConfirm {
		err = fmt.Errorf("question %s does not ask for an approval; answer it with: claybot answer %s VALUE", id, id)
	}
	return id, err
}
