package texts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/runs"
)

// Question is the i-th of some questions in a chat of a connector, with how to
// answer it.
func Question(q claybot.Question, i int, all []claybot.Question, place string, zone *time.Location) string {
	var b strings.Builder
	if i == 0 && len(all) > 1 {
		fmt.Fprintf(&b, "I have %d questions. Answer them one by one, or all at once with a line for each, such as `%s: …`.\n\n", len(all), QuestionKey(q))
	}
	if len(all) > 1 {
		fmt.Fprintf(&b, "`%s` ", QuestionKey(q))
	}
	text := strings.TrimSpace(q.Text)
	if !strings.ContainsAny(text, "\n*`") { // else it has a form of its own
		text = "**" + text + "**"
	}
	b.WriteString(text + "\n\n")
	for n, o := range q.Options {
		mark := "-"
		if q.Numbered() {
			mark = fmt.Sprintf("%d.", n+1)
		}
		fmt.Fprintf(&b, "%s %s\n", mark, o)
	}
	if len(q.Options) > 0 {
		b.WriteByte('\n')
	}
	b.WriteByte('*')
	if far := q.Progress(); far != "" {
		b.WriteString(far + ". ")
	}
	fmt.Fprintf(&b, "%s Expires %s.*", HowToAnswer(q, place), q.Expires.Time().In(zone).Format("2 Jan 2006 15:04 MST"))
	return b.String()
}

// hasButtons reports whether people can press buttons in the chats of a connector.
func hasButtons(connector string) bool { return connector != "terminal" }

// HowToAnswer says what an answer to q looks like in the chats of a connector.
func HowToAnswer(q claybot.Question, connector string) string {
	if q.Explicit {
		how := "Send `/approve " + shortID(q) + "` or `/deny " + shortID(q) + "`. Other messages have to wait."
		if hasButtons(connector) {
			how = "Press a button, or s" + how[1:]
		}
		return how
	}
	how := map[claybot.QuestionType]string{
		claybot.QuestionText:        "Answer with text",
		claybot.QuestionTextarea:    "Answer with text",
		claybot.QuestionEmail:       "Answer with an email address",
		claybot.QuestionEmailList:   "Answer with one or more email addresses",
		claybot.QuestionDatetime:    "Answer with a date and a time such as 2026-03-31 15:04",
		claybot.QuestionDate:        "Answer with a date such as 2026-03-31",
		claybot.QuestionTime:        "Answer with a time such as 15:04",
		claybot.QuestionNumber:      "Answer with a number",
		claybot.QuestionSelect:      "Answer with one of these",
		claybot.QuestionMultiselect: "Answer with one or more of these, separated by commas",
		claybot.QuestionBoolean:     "Answer yes or no",
		claybot.QuestionConfirm:     "Answer approve or deny",
	}[q.Type]
	if len(q.Options) > 0 && q.Numbered() {
		how = strings.Replace(how, "of these", "of these or its number", 1)
	}
	if hint := connectors.OneLine(q.Example, 200); hint != "" {
		how += ", for example: " + hint
	}
	how += "."
	if q.Default != "" {
		how += " Default: " + connectors.OneLine(q.Default, 200) + "."
	}
	return how
}

// Next asks the first of the questions that are still open.
func Next(left []claybot.Question, connector string) string {
	return "Thank you. Next: **" + connectors.OneLine(left[0].Text, 500) + "** " + HowToAnswer(left[0], connector)
}

// Unfit says what is wrong with an answer, by question.
func Unfit(faults []string) string {
	return strings.Join(faults, "\n") + "\n\nPlease try again. If your next message isn't a valid answer either, I'll drop the question and work on that message instead."
}

// Unanswered ends a run whose question got no answer in time.
func Unanswered(q claybot.Question) string {
	return "I stopped waiting because I got no answer: " + connectors.OneLine(q.Text, 300)
}

// Answered replaces a question that has an answer.
func Answered(q claybot.Question, a claybot.Answer) string {
	how := "answered"
	switch a.Via {
	case claybot.ViaText:
		how = "answered in the chat"
	case claybot.ViaDefault:
		how = "no answer in time"
	case claybot.ViaWeb:
		how = "answered on the page"
	case claybot.ViaHTTP:
		how = "answered over HTTP"
	case claybot.ViaLimit:
		return fmt.Sprintf("**%s**\n\n*(the limit has changed; this question no longer needs an answer)*", Headline(q))
	}
	if (q.Type == claybot.QuestionConfirm || len(q.Approvers) > 0) && a.By != "" {
		how += ", by " + a.By
	}
	return fmt.Sprintf("**%s**\n\n%s%s *(%s)*", Headline(q), subjectLine(q), connectors.OneLine(saidText(q, a), 500), how)
}

// subjectLine is what a confirm was about, for the message that replaces it: the
// arguments as they were asked about. Empty: nothing is known of them.
func subjectLine(q claybot.Question) string {
	args := strings.ReplaceAll(connectors.OneLine(q.Args, 500), "`", "'") // ends no code span
	if q.Type != claybot.QuestionConfirm || args == "" || args == "{}" {
		return ""
	}
	return "`" + args + "`\n\n"
}

// Headline is a question in one line.
func Headline(q claybot.Question) string {
	if q.Type == claybot.QuestionConfirm && q.Tool != "" {
		return "Approval of " + q.Tool
	}
	return connectors.OneLine(q.Text, 500)
}

// saidText formats an answer for people.
func saidText(q claybot.Question, a claybot.Answer) string {
	if q.Type != claybot.QuestionConfirm {
		return ValueText(a.Value)
	}
	switch {
	case string(a.Value) != "true" && a.Reason != "":
		return "denied: " + a.Reason
	case string(a.Value) != "true":
		return "denied"
	case a.Args != "":
		return "approved with changed arguments: " + a.Args
	case a.Scope == claybot.ApproveSession:
		return "approved for this conversation"
	case a.Scope == claybot.ApproveAlways:
		return "approved from now on"
	}
	return "approved"
}

// Withdrawn replaces a question that no longer needs an answer.
func Withdrawn(q claybot.Question) string {
	why := "no longer needs an answer"
	if q.Expires <= claybot.Now() {
		why = "no answer in time"
	}
	return fmt.Sprintf("**%s**\n\n%s*(%s)*", Headline(q), subjectLine(q), why)
}

// OthersDecide says that the approvers of q decide; asked: they got the question in a chat.
func OthersDecide(q claybot.Question, asked bool) string {
	how := "I have asked them:"
	if !asked {
		how = "None of them has written to me yet, so an operator must answer, on the page or with `claybot approve`:"
	}
	far := ""
	if p := q.Progress(); p != "" {
		far = " (" + p + ")"
	}
	return "I'm waiting for approval by " + strings.Join(q.Approvers, ", ") + far + ". " + how + "\n\n" + q.Text
}

// Elsewhere asks an approver who is not the agent's own person. Their messages go to
// their own agent, so they answer by button or command.
func Elsewhere(q claybot.Question, zone *time.Location) string {
	text := Question(q, 0, []claybot.Question{q}, "", zone)
	how := "Answer with `/approve " + shortID(q) + "` or `/deny " + shortID(q) + "`."
	return strings.Replace(text, HowToAnswer(q, ""), how, 1)
}

// Already repeats the answer that a question has.
func Already(a claybot.Answer) string {
	return "This question has already been answered: " + connectors.OneLine(ValueText(a.Value), 100)
}

// AlreadyNext is Already for an approval that was not enough; next asks for another one.
func AlreadyNext(a claybot.Answer, next claybot.Question) string {
	return Already(a) + ". " + NextApproval(next)
}

// Followed answers an approval of a question that has an answer; q replaced it.
func Followed(q claybot.Question) string {
	return "That has already been answered. " + NextApproval(q) + " Send `/approve " + shortID(q) + "`."
}

// NextApproval says under which id an action waits for another approval.
func NextApproval(q claybot.Question) string {
	return "It now waits for another approval as question " + shortID(q) + "."
}

// Which asks which of several approvals is meant.
func Which(qs []claybot.Question) string {
	var b strings.Builder
	b.WriteString("Several actions need your approval. Choose one, for example `/approve " + shortID(qs[0]) + "`:\n\n")
	for _, q := range qs {
		fmt.Fprintf(&b, "- `%s` %s\n", shortID(q), Headline(q))
	}
	return b.String()
}

// shortID is enough of an id to type.
func shortID(q claybot.Question) string { return q.ID[:min(len(q.ID), 6)] }

// QuestionKey names a question where several are answered at once.
func QuestionKey(q claybot.Question) string {
	if q.Key != "" {
		return q.Key
	}
	return q.ID
}

// KeyFault says which of several answers is invalid, and why.
func KeyFault(q claybot.Question, why string) string { return QuestionKey(q) + ": " + why }

// ValueText formats a stored value for people.
func ValueText(v json.RawMessage) string {
	var x any
	dec := json.NewDecoder(bytes.NewReader(v))
	dec.UseNumber()
	if dec.Decode(&x) != nil {
		return ""
	}
	switch x := x.(type) {
	case nil:
		return ""
	case bool:
		if x {
			return "yes"
		}
		return "no"
	case []any:
		all := make([]string, len(x))
		for i, one := range x {
			all[i] = fmt.Sprint(one)
		}
		return strings.Join(all, ", ")
	}
	return fmt.Sprint(x)
}

// WaitsFor says what a paused run waits for. /status, the notice to a person who
// writes meanwhile, and every verdict use these words.
func WaitsFor(run claybot.Run, zone *time.Location) string {
	a := run.Awaiting
	switch {
	case a == nil:
		return "an answer"
	case a.Reason == claybot.AwaitChildren && len(a.Answers) == 1:
		return "1 subagent"
	case a.Reason == claybot.AwaitChildren:
		return fmt.Sprintf("%d subagents", len(a.Answers))
	case len(a.Questions) == 0:
		return "an answer"
	}
	q := a.Questions[0]
	what := "an answer to: "
	switch _, budget := runs.BudgetAskOf(q); {
	case budget && len(q.Approvers) > 0:
		what = "a decision by " + strings.Join(q.Approvers, " or ") + " about a budget: "
	case budget:
		what = "a decision about a budget: "
	case len(q.Approvers) > 0:
		what = "the approval of " + strings.Join(q.Approvers, " or ") + ": "
	case q.Type == claybot.QuestionConfirm:
		what = "an approval: "
	}
	text := what + "“" + Headline(q) + "”"
	if a.Until > 0 {
		text += ", until " + Clock(a.Until, zone) + " at the latest"
	}
	return text
}

// Pending says why a message has to wait behind the open question q. own: its sender can
// answer q.
func Pending(q claybot.Question, connector string, own bool) string {
	const rest = " /stop ends the current task, and I'll start on your message at once."
	if own {
		return "Your message has to wait because I need an answer first: **" + Headline(q) + "**\n\n" + HowToAnswer(q, connector) + rest
	}
	what := WaitsFor(claybot.Run{Awaiting: &claybot.Awaiting{Questions: []claybot.Question{q}}}, nil)
	if _, budget := runs.BudgetAskOf(q); budget {
		return "Your message has to wait for " + what + ". I'll start on it as soon as that is decided." + rest
	}
	return "Your message has to wait because your earlier request is waiting for " + what + "." + rest
}
