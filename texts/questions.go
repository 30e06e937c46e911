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
	fmt.Fprintf(&b, "%s I wait until %s.*", HowToAnswer(q, place), q.Expires.Time().In(zone).Format("2 Jan 2006 15:04 MST"))
	return b.String()
}

// hasButtons reports whether people can press buttons in the chats of a connector.
func hasButtons(connector string) bool { return connector != "terminal" }

// howToAnswer says what an answer to q looks like in the chats of a connector.
func HowToAnswer(q claybot.Question, connector string) string {
	if q.Explicit {
		how := "Write `/approve " + shortID(q) + "` or `/deny " + shortID(q) + "`. Anything else you write waits."
		if hasButtons(connector) {
			how = "Press a button, or w" + how[1:]
		}
		return how
	}
	how := map[claybot.QuestionType]string{
		claybot.QuestionText:        "Answer with a text",
		claybot.QuestionTextarea:    "Answer with a text",
		claybot.QuestionEmail:       "Answer with an email address",
		claybot.QuestionEmailList:   "Answer with one or more email addresses",
		claybot.QuestionDatetime:    "Answer with a date and a time such as 2026-03-31 15:04",
		claybot.QuestionDate:        "Answer with a day such as 2026-03-31",
		claybot.QuestionTime:        "Answer with a time such as 15:04",
		claybot.QuestionNumber:      "Answer with a number",
		claybot.QuestionSelect:      "Answer with one of these",
		claybot.QuestionMultiselect: "Answer with one or more of these, with commas between them",
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
		how += " Without an answer I take: " + connectors.OneLine(q.Default, 200) + "."
	}
	return how
}

// Next asks for what is open after an answer to a part of the questions.
func Next(left []claybot.Question, connector string) string {
	return "Thank you. Next: **" + connectors.OneLine(left[0].Text, 500) + "** " + HowToAnswer(left[0], connector)
}

// Unfit tells what is wrong with an answer, by question.
func Unfit(faults []string) string {
	return strings.Join(faults, "\n") + "\n\nPlease try again. If your next message does not fit either, I drop the question and take that up instead."
}

// Unanswered ends a run whose question nobody answered.
func Unanswered(q claybot.Question) string {
	return "I stopped waiting, because nobody answered: " + connectors.OneLine(q.Text, 300)
}

// Answered replaces a question that was answered elsewhere than by a text.
func Answered(q claybot.Question, a claybot.Answered) string {
	how := "answered"
	switch a.Via {
	case claybot.ViaText:
		how = "answered in the chat"
	case claybot.ViaDefault:
		how = "nobody answered in time"
	case claybot.ViaWeb:
		how = "answered on the page"
	case claybot.ViaHTTP:
		how = "answered over HTTP"
	case claybot.ViaLimit:
		return fmt.Sprintf("**%s**\n\n*(the limit has changed; this question needs no answer any more)*", Headline(q))
	}
	if len(q.Approvers) > 0 && a.By != "" {
		how += ", by " + a.By
	}
	return fmt.Sprintf("**%s**\n\n%s *(%s)*", Headline(q), connectors.OneLine(saidText(q, a), 500), how)
}

// headline is a question in one line.
func Headline(q claybot.Question) string {
	if q.Type == claybot.QuestionConfirm && q.Tool != "" {
		return "Approval of " + q.Tool
	}
	return connectors.OneLine(q.Text, 500)
}

// saidText is an answer as a person reads it.
func saidText(q claybot.Question, a claybot.Answered) string {
	if q.Type != claybot.QuestionConfirm {
		return ValueText(a.Value)
	}
	switch {
	case string(a.Value) != "true" && a.Reason != "":
		return "denied: " + a.Reason
	case string(a.Value) != "true":
		return "denied"
	case a.Args != "":
		return "approved with other arguments: " + a.Args
	case a.Scope == claybot.ApproveSession:
		return "approved for this conversation"
	case a.Scope == claybot.ApproveAlways:
		return "approved from now on"
	}
	return "approved"
}

// Withdrawn replaces a question that needs no answer any more.
func Withdrawn(q claybot.Question) string {
	why := "no answer is needed any more"
	if q.Expires <= claybot.Now() {
		why = "nobody answered in time"
	}
	return fmt.Sprintf("**%s**\n\n*(%s)*", Headline(q), why)
}

// OthersDecide tells a person that his run waits for somebody else.
func OthersDecide(q claybot.Question, asked bool) string {
	how := "They are asked this:"
	if !asked {
		how = "None of them has written to me yet, so an operator must answer, on the page or with `claybot approve`:"
	}
	far := ""
	if p := q.Progress(); p != "" {
		far = " (" + p + ")"
	}
	return "I wait for the approval of " + strings.Join(q.Approvers, ", ") + far + ". " + how + "\n\n" + q.Text
}

// Elsewhere asks somebody who is not the agent's own person. What he writes
// goes to his own agent, so he answers by button or command.
func Elsewhere(q claybot.Question, zone *time.Location) string {
	text := Question(q, 0, []claybot.Question{q}, "", zone)
	how := "Answer with `/approve " + shortID(q) + "` or `/deny " + shortID(q) + "`."
	return strings.Replace(text, HowToAnswer(q, ""), how, 1)
}

// Already tells what a question was answered with.
func Already(a claybot.Answered) string {
	return "This was answered already: " + connectors.OneLine(ValueText(a.Value), 100)
}

// Followed answers who approves what has an answer; q is what is asked since.
func Followed(q claybot.Question) string {
	return "That has an answer already. " + NextApproval(q) + " Say `/approve " + shortID(q) + "`."
}

// NextApproval says under which id an action waits for somebody else.
func NextApproval(q claybot.Question) string {
	return "It now waits for another approval as question " + shortID(q) + "."
}

// Which asks which of several approvals is meant.
func Which(qs []claybot.Question) string {
	var b strings.Builder
	b.WriteString("Several things wait for your approval. Say which, for example `/approve " + shortID(qs[0]) + "`:\n\n")
	for _, q := range qs {
		fmt.Fprintf(&b, "- `%s` %s\n", shortID(q), Headline(q))
	}
	return b.String()
}

// shortID is enough of an id to type.
func shortID(q claybot.Question) string { return q.ID[:min(len(q.ID), 6)] }

// questionKey is what a question is called by those who answer several.
func QuestionKey(q claybot.Question) string {
	if q.Key != "" {
		return q.Key
	}
	return q.ID
}

// valueText is a stored value as a person reads it.
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

// Pending tells a person who writes behind an open question what their message
// waits for. own: they can answer it themselves.
func Pending(q claybot.Question, connector string, own bool) string {
	const rest = " /stop ends what I was doing, and I take up your message at once."
	if own {
		return "Your message waits, because I need an answer first: **" + Headline(q) + "**\n\n" + HowToAnswer(q, connector) + rest
	}
	what := WaitsFor(claybot.Run{Awaiting: &claybot.Awaiting{Questions: []claybot.Question{q}}}, nil)
	if _, budget := runs.BudgetAskOf(q); budget {
		return "Your message waits for " + what + ". I take it up as soon as that is decided." + rest
	}
	return "Your message waits, because what you asked for before waits for " + what + "." + rest
}
