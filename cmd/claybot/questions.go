package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// shortest is how many characters of an id must be given at least.
const shortest = 4

type questionsCmd struct {
	List questionsListCmd `cmd:"" default:"withargs" help:"List pending questions and approvals, oldest first."`
	Show questionsShowCmd `cmd:"" help:"Show a question and its answer, if any."`
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
		Scope  string `placeholder:"SCOPE" help:"Scope of an approval: session or always. Default: this action only."`
	}
	approveCmd struct {
		ID    string `arg:"" name:"question" help:"ID of the approval, or its first characters."`
		Scope string `placeholder:"SCOPE" help:"Scope of the approval: session (this tool until the next reset) or always (this tool for this agent). Default: this action only."`
		Args  string `placeholder:"JSON" help:"Arguments to run the action with instead of its own, as a JSON object."`
	}
	denyCmd struct {
		ID     string   `arg:"" name:"question" help:"ID of the approval, or its first characters."`
		Reason []string `arg:"" optional:"" help:"Reason, which the agent sees."`
	}
)

// Run lists the open questions. Each is printed whole: what is approved must
// have been seen.
func (c questionsListCmd) Run(e *env) error {
	path := "/questions"
	if c.Agent != "" {
		path += "?" + url.Values{"agent": {c.Agent}}.Encode()
	}
	return show(e, c.JSON, to(path), func(out web.QuestionList) error {
		if len(out.Questions) == 0 {
			return e.text("No pending questions.\n")
		}
		for i, q := range out.Questions {
			if i > 0 {
				if err := e.text("\n"); err != nil {
					return err
				}
			}
			if err := e.text(questionText(q)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Run shows a question.
func (c questionsShowCmd) Run(e *env) error {
	id, err := e.question(c.ID)
	if err != nil {
		return err
	}
	return show(e, c.JSON, to("/questions/"+url.PathEscape(id)), func(q storage.OpenQuestion) error {
		if err := e.text(questionText(q)); err != nil || q.Answer == nil || q.Need < 2 {
			return err
		}
		var open web.QuestionList
		if err := e.ask("GET", "/questions?"+url.Values{"agent": {string(q.Agent)}}.Encode(), nil, &open); err != nil {
			return err
		}
		next, ok := questions.NextApproval(q.Question, q.Run, open.Questions)
		if !ok {
			return nil
		}
		return e.text("  it now waits for another approval as question " + next.ID + "\n")
	})
}

// questionText shows a question: where it comes from, all of what is asked, and
// how to answer.
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

// answerText tells what was said to a question, by whom, and by which way.
func answerText(a claybot.Answered) string {
	said := string(a.Value)
	if said == "" || said == "null" {
		said = "nothing"
	}
	text := fmt.Sprintf("answered with %s by %s (%s)", oneLine(said), cmp.Or(a.By, "nobody"), a.Via)
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
	return e.answer(id, c.Value, c.Reason, c.Scope, "", "Answered; run %s resumes when all its questions are answered.\n")
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
	return e.answer(id, "approve", "", c.Scope, c.Args, "Approved; run %s resumes.\n")
}

// Run denies an action.
func (c denyCmd) Run(e *env) error {
	id, err := e.approval(c.ID)
	if err != nil {
		return err
	}
	return e.answer(id, "deny", strings.Join(c.Reason, " "), "", "", "Denied; run %s is told.\n")
}

// answer gives the daemon an answer; done is said about the run when it is
// taken.
func (e *env) answer(id, value, reason, scope, args, done string) error {
	in := web.AnswerRequest{Value: (*web.Value)(&value), Reason: reason, Scope: claybot.ApprovalScope(scope), Args: json.RawMessage(args)}
	out, err := ask[web.AnswerDone](e, "POST", to("/questions/"+url.PathEscape(id)+"/answer"), in)
	if err != nil {
		return err
	}
	if out.More > 0 {
		return e.text(fmt.Sprintf("Approved; run %s needs %s, by another user. claybot questions lists them.\n", out.Run, count(out.More, "more approval")))
	}
	return e.text(fmt.Sprintf(done, out.Run))
}

// question resolves the id of a pending question from its first characters. A whole id is
// taken as it is, so that the daemon says what became of a question that is not
// open any more.
func (e *env) question(ref string) (string, error) {
	if err := checkRef(ref, "claybot questions"); err != nil {
		return "", err
	}
	out, err := ask[web.QuestionList](e, "GET", to("/questions"), nil)
	if err != nil {
		return "", err
	}
	ids := make([]string, len(out.Questions))
	for i, q := range out.Questions {
		ids[i] = q.ID
	}
	return unfold(ref, ids, "open question")
}

// approval is question for one that is an approval.
func (e *env) approval(ref string) (string, error) {
	id, err := e.question(ref)
	if err != nil {
		return "", err
	}
	q, err := ask[storage.OpenQuestion](e, "GET", to("/questions/"+url.PathEscape(id)), nil)
	if err != nil {
		return "", err
	}
	if q.Type != claybot.QuestionConfirm {
		return "", fmt.Errorf("question %s does not ask for an approval; answer it with: claybot answer %s VALUE", id, id)
	}
	return id, nil
}

// checkRef refuses what cannot be the beginning of an id.
func checkRef(ref, list string) error {
	switch {
	case ref == "." || ref == "..": // in a path they mean something else
		return usageError{fmt.Errorf("invalid ID %q; %s lists them", ref, list)}
	case len(ref) < shortest:
		return usageError{fmt.Errorf("%q is too short; give at least %d characters of the id, %s lists them", ref, shortest, list)}
	}
	return nil
}

// unfold finds the one id that ref is or begins; ref itself when there is none.
func unfold(ref string, ids []string, what string) (string, error) {
	if slices.Contains(ids, ref) {
		return ref, nil
	}
	begins := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !strings.HasPrefix(id, ref) })
	slices.Sort(begins)
	switch begins = slices.Compact(begins); len(begins) {
	case 0:
		return ref, nil
	case 1:
		return begins[0], nil
	}
	return "", usageError{fmt.Errorf("%q begins the ids of more than one %s; give more of it: %s", ref, what, strings.Join(begins, ", "))}
}
