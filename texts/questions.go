package texts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/tools"
)

// Question is the i-th of some questions in a chat of a connector, with how to
// answer it.
func (v Voice) Question(q claybot.Question, i int, all []claybot.Question, place string) string {
	return v.question(q, i, all, v.HowToAnswer(q, place))
}

func (v Voice) question(q claybot.Question, i int, all []claybot.Question, how string) string {
	var b strings.Builder
	if i == 0 && len(all) > 1 {
		b.WriteString(v.Say("I have %d questions. Answer them one by one, or all at once with a line for each, such as `%s: …`.", len(all), QuestionKey(q)) + "\n\n")
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
	if far := v.progress(q); far != "" {
		b.WriteString(far + ". ")
	}
	fmt.Fprintf(&b, "%s %s*", how, v.Say("Expires %s.", v.deadline(q.Expires)))
	return b.String()
}

// progress says how far a confirm is that several people approve; see claybot.Question.Progress.
func (v Voice) progress(q claybot.Question) string {
	if q.Need < 2 {
		return ""
	}
	return v.Say("%d of %d approvals", len(q.ApprovedBy), q.Need)
}

// hasButtons reports whether people can press buttons in the chats of a connector.
func hasButtons(connector string) bool { return connector != "terminal" }

// hasReplies reports whether people can reply to one message in the chats of a connector.
func hasReplies(connector string) bool { return connector != "terminal" && connector != "web" }

// howToAnswer says what an answer looks like, by the type of the question.
var howToAnswer = map[claybot.QuestionType]string{
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
}

// howToNumber is howToAnswer where the options have numbers.
var howToNumber = map[claybot.QuestionType]string{
	claybot.QuestionSelect:      "Answer with one of these or its number",
	claybot.QuestionMultiselect: "Answer with one or more of these or their numbers, separated by commas",
}

// HowToAnswer says what an answer to q looks like in the chats of a connector.
func (v Voice) HowToAnswer(q claybot.Question, connector string) string {
	if q.Explicit {
		if hasButtons(connector) {
			return v.Say("Press a button, or send `/approve %[1]s` or `/deny %[1]s`. Other messages have to wait.", shortID(q))
		}
		return v.Say("Send `/approve %[1]s` or `/deny %[1]s`. Other messages have to wait.", shortID(q))
	}
	how := howToAnswer[q.Type]
	if by, ok := howToNumber[q.Type]; ok && len(q.Options) > 0 && q.Numbered() {
		how = by
	}
	how = v.In(how)
	if hint := connectors.OneLine(q.Example, 200); hint != "" {
		how = v.Say("%s, for example: %s", how, hint)
	}
	how += "."
	if q.Default != "" {
		said := connectors.OneLine(q.Default, 200)
		if q.Type == claybot.QuestionNumber {
			said = v.decimal(said)
		}
		how += " " + v.Say("Default: %s.", said)
	}
	return how
}

// Next asks the first of the questions that are still open.
func (v Voice) Next(left []claybot.Question, connector string) string {
	return v.Say("Thank you. Next: **%s** %s", connectors.OneLine(left[0].Text, 500), v.HowToAnswer(left[0], connector))
}

// Unfit says what is wrong with an answer, by question.
func (v Voice) Unfit(faults []string) string {
	return strings.Join(faults, "\n") + "\n\n" + v.Say("Please try again. If your next message isn't a valid answer either, I'll drop the question and work on that message instead.")
}

// Unanswered ends a run whose question got no answer in time.
func (v Voice) Unanswered(q claybot.Question) string {
	return v.Say("I stopped waiting because I got no answer: %s", connectors.OneLine(q.Text, 300))
}

// Answered replaces a question that has an answer.
func (v Voice) Answered(q claybot.Question, a claybot.Answer) string {
	how := v.Say("answered")
	switch a.Via {
	case claybot.ViaText:
		how = v.Say("answered in the chat")
	case claybot.ViaDefault:
		how = v.Say("no answer in time")
	case claybot.ViaWeb:
		how = v.Say("answered on the page")
	case claybot.ViaHTTP:
		how = v.Say("answered over HTTP")
	case claybot.ViaLimit:
		return fmt.Sprintf("**%s**\n\n*(%s)*", v.Headline(q), v.Say("the limit has changed; this question no longer needs an answer"))
	}
	if (q.Type == claybot.QuestionConfirm || len(q.Approvers) > 0) && a.By != "" {
		how = v.Say("%s, by %s", how, connectors.Literal(a.By, 200))
	}
	return fmt.Sprintf("**%s**\n\n%s%s *(%s)*", v.Headline(q), subjectLine(q), connectors.OneLine(v.saidText(q, a), 500), how)
}

// subjectLine is what a confirm was about, for the message that replaces it: the
// arguments as they were asked about. Empty: nothing is known of them.
func subjectLine(q claybot.Question) string {
	args := connectors.Code(tools.InWords(q.Args), 500)
	if q.Type != claybot.QuestionConfirm || args == "" {
		return ""
	}
	return args + "\n\n"
}

// Headline is a question in one line.
func (v Voice) Headline(q claybot.Question) string {
	if q.Type == claybot.QuestionConfirm && q.Tool != "" {
		return v.Say("Approval of %s", v.DoingBy(q.Tool))
	}
	return connectors.OneLine(q.Text, 500)
}

// saidText formats an answer for people.
func (v Voice) saidText(q claybot.Question, a claybot.Answer) string {
	if q.Type != claybot.QuestionConfirm {
		return v.valueText(a.Value)
	}
	switch {
	case string(a.Value) != "true" && a.Reason != "":
		return v.Say("denied: %s", a.Reason)
	case string(a.Value) != "true":
		return v.Say("denied")
	case a.Args != "":
		return v.Say("approved with changed arguments: %s", tools.InWords(a.Args))
	case a.Scope == claybot.ApproveSession:
		return v.Say("approved for this conversation")
	case a.Scope == claybot.ApproveAlways:
		return v.Say("approved from now on")
	}
	return v.Say("approved")
}

// Withdrawn replaces a question that no longer needs an answer.
func (v Voice) Withdrawn(q claybot.Question) string {
	why := v.Say("no longer needs an answer")
	if q.Expires <= claybot.Now() {
		why = v.Say("no answer in time")
	}
	return fmt.Sprintf("**%s**\n\n%s*(%s)*", v.Headline(q), subjectLine(q), why)
}

// OthersDecide says that the approvers of q decide; asked: they got the question in a chat.
func (v Voice) OthersDecide(q claybot.Question, asked bool) string {
	var all []string
	for _, id := range q.Approvers {
		all = append(all, v.Known(id))
	}
	who := strings.Join(all, ", ")
	if p := v.progress(q); p != "" {
		who += " (" + p + ")"
	}
	if asked {
		return v.Say("I'm waiting for approval by %s. I have asked them:", who) + "\n\n" + q.Text
	}
	return v.Say("I'm waiting for approval by %s. None of them has written to me yet, so an operator must answer, on the page or with `claybot approve`:", who) + "\n\n" + q.Text
}

// Elsewhere asks a person in a chat of theirs for another agent. An approval needs a button or a command,
// because what they write goes to the agent of the chat; any other answer is their next message.
func (v Voice) Elsewhere(q claybot.Question, to claybot.Route) string {
	how := v.Say("Answer with `/approve %[1]s` or `/deny %[1]s`.", shortID(q))
	if q.Type != claybot.QuestionConfirm {
		how = v.HowToAnswer(q, to.Connector) + " "
		switch {
		case to.Group:
			how += v.Say("Reply to this message and mention me.")
		case hasReplies(to.Connector):
			how += v.Say("Your next message here is the answer, or a reply to this one.")
		default:
			how += v.Say("Your next message here is the answer.")
		}
	}
	return v.question(q, 0, []claybot.Question{q}, how)
}

// WhichQuestion asks which of several questions a message answers.
func (v Voice) WhichQuestion(qs []claybot.Question) string {
	var b strings.Builder
	b.WriteString(v.Say("Several questions wait for your answer here. Reply to the one that you mean, or begin your message with its id, for example `%s: …`:", shortID(qs[0])) + "\n\n")
	for _, q := range qs {
		fmt.Fprintf(&b, "- `%s` %s\n", shortID(q), v.Headline(q))
	}
	return b.String()
}

// UnfitThere says what is wrong with an answer to a question of another agent.
func (v Voice) UnfitThere(faults []string) string {
	return strings.Join(faults, "\n") + "\n\n" + v.Say("Please try again. The question stays open. If your next message isn't a valid answer either, I'll take it as a message to me, unless it replies to the question.")
}

// Already repeats the answer that a question has.
func (v Voice) Already(a claybot.Answer) string {
	return v.Say("This question has already been answered: %s", connectors.OneLine(v.valueText(a.Value), 100))
}

// AlreadyNext is Already for an approval that was not enough; next asks for another one.
func (v Voice) AlreadyNext(a claybot.Answer, next claybot.Question) string {
	return v.Already(a) + ". " + v.NextApproval(next)
}

// Followed answers an approval of a question that has an answer; q replaced it.
func (v Voice) Followed(q claybot.Question) string {
	return v.Say("That has already been answered.") + " " + v.NextApproval(q) + " " + v.Say("Send `/approve %s`.", shortID(q))
}

// NextApproval says under which id an action waits for another approval.
func (v Voice) NextApproval(q claybot.Question) string {
	return v.Say("It now waits for another approval as question %s.", shortID(q))
}

// Which asks which of several approvals is meant.
func (v Voice) Which(qs []claybot.Question) string {
	var b strings.Builder
	b.WriteString(v.Say("Several actions need your approval. Choose one, for example `/approve %s`:", shortID(qs[0])) + "\n\n")
	for _, q := range qs {
		fmt.Fprintf(&b, "- `%s` %s\n", shortID(q), v.Headline(q))
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

// ValueText formats a stored value for agents and programs.
func ValueText(value json.RawMessage) string { return Voice{}.valueText(value) }

// valueText formats a stored value for people.
func (v Voice) valueText(value json.RawMessage) string {
	var x any
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	if dec.Decode(&x) != nil {
		return ""
	}
	switch x := x.(type) {
	case nil:
		return ""
	case bool:
		if x {
			return v.Say("yes")
		}
		return v.Say("no")
	case []any:
		all := make([]string, len(x))
		for i, one := range x {
			all[i] = fmt.Sprint(one)
		}
		return strings.Join(all, ", ")
	case json.Number:
		return v.decimal(x.String())
	}
	return fmt.Sprint(x)
}

// WaitsFor says what a paused run waits for. /status, the notice to a person who
// writes meanwhile, and every verdict use these words.
func (v Voice) WaitsFor(run claybot.Run) string {
	a := run.Awaiting
	switch {
	case a == nil:
		return v.Say("an answer")
	case a.Reason == claybot.AwaitChildren:
		return v.Count(int64(len(a.Answers)), "%d subagent|%d subagents")
	case a.Reason == claybot.AwaitCallback:
		return v.Say("a call of a program")
	case len(a.Questions) == 0:
		return v.Say("an answer")
	}
	q := a.Questions[0]
	who, title := strings.Join(q.Approvers, v.Say(" or ")), v.Headline(q)
	text := ""
	switch _, budget := runs.BudgetAskOf(q); {
	case budget && who != "":
		text = v.Say("a decision by %s about a budget: “%s”", who, title)
	case budget:
		text = v.Say("a decision about a budget: “%s”", title)
	case who != "" && q.Type != claybot.QuestionConfirm:
		text = v.Say("an answer of %s to: “%s”", who, title)
	case who != "":
		text = v.Say("the approval of %s: “%s”", who, title)
	case q.Type == claybot.QuestionConfirm:
		text = v.Say("an approval: “%s”", title)
	default:
		text = v.Say("an answer to: “%s”", title)
	}
	if a.Until > 0 {
		return v.Say("%s, until %s at the latest", text, v.Moment(a.Until))
	}
	return text
}

// Pending says why a message has to wait behind the open question q. own: its sender can
// answer q.
func (v Voice) Pending(q claybot.Question, connector string, own bool) string {
	rest := " " + v.Say("/stop ends the current task, and I'll start on your message at once.")
	if own {
		return v.Say("Your message has to wait because I need an answer first: **%s**", v.Headline(q)) + "\n\n" + v.HowToAnswer(q, connector) + rest
	}
	what := v.WaitsFor(claybot.Run{Awaiting: &claybot.Awaiting{Questions: []claybot.Question{q}}})
	if _, budget := runs.BudgetAskOf(q); budget {
		return v.Say("Your message has to wait for %s. I'll start on it as soon as that is decided.", what) + rest
	}
	if _, group := claybot.SharedPlace(q.Person); group { // no member began the run
		return v.Say("Your message has to wait because I'm working on a task of this group, which waits for %s.", what) + rest
	}
	if q.Person != "" { // of a shared agent, and not of the sender
		return v.Say("Your message has to wait because another person in this group has an open request, which waits for %s.", what) + rest
	}
	return v.Say("Your message has to wait because your earlier request is waiting for %s.", what) + rest
}
