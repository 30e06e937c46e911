package agentsystem

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

// Everything claybot itself says to people stands in this file.

func textPairing(code string) string {
	return "Hello! I do not know you yet. Your pairing code is **" + code + "**. " +
		"Ask the operator of this bot to run `claybot pair approve " + code + "`. The code is valid for one hour."
}

func textApproved() string {
	return "You are in. Write to me whenever you like; /help shows what I can do."
}

func textHelp() string {
	var b strings.Builder
	b.WriteString("Write to me and I answer. I also know these commands:\n\n")
	for _, c := range connectors.Commands {
		fmt.Fprintf(&b, "- `/%s`: %s\n", c.Name, c.Help)
	}
	b.WriteString("\nIn Slack, `!` works in place of `/`.")
	return b.String()
}

func textGreeting() string {
	return "Hello! Write to me and I answer. /help shows what I can do."
}

const (
	textReset       = "Done. I have forgotten our conversation; we start afresh."
	textStopped     = "Stopped."
	textNothingRuns = "Nothing is running."
	textOnlyHelpers = "I am not working on anything; my helpers are. /stop all stops them, /tasks shows them."
	textEmpty       = "Your message has no text that I can read."
	textLate        = "That came too late: the question has an answer already."
	markStopped     = "*(stopped)*"

	// What takes the place of a sign of life that nothing follows.
	textNothingToAdd  = "Done. I have nothing to add."
	textNeedsInput    = "I need your input to continue."
	textParked        = "Your message is safe but has to wait: I can't use my files about our conversation right now. I'll answer as soon as that works again. An operator finds the reason with `claybot status`."
	textParkingFull   = "the parking table is full: too many messages wait for agents that cannot be used; repair what the log names, or drop messages with `claybot parked drop`"
	textAnswerAgain   = "I couldn't save your answer. Please give it again in a minute."
	textParkedDamaged = "A message of yours was damaged in my storage before I could read it. Please send it again."

	textNotCompacted  = "There is nothing worth shortening yet."
	textCompactFailed = "I could not shorten our conversation now; nothing has changed."
	textIdle          = "I am waiting for you."
	textNoContext     = "How full my memory is cannot be told here."
)

// textUnusable says since when the files of an agent cannot be used.
func textUnusable(since claybot.Time, zone *time.Location) string {
	return "I can't use my files about our conversation since " + clock(since, zone) + ". What you write is kept, and I'll take it up as soon as that works again; " +
		"/stop drops it. An operator finds the reason with `claybot status`."
}

// textTaskWaits says that a background agent cannot go on with m.
func textTaskWaits(d claybot.Descriptor, m claybot.AgentMessage) string {
	what := "A background task"
	switch name := connectors.OneLine(d.Name, 80); {
	case m.Kind == claybot.KindHeartbeat:
		what = "The heartbeat"
	case m.Firing != nil && name != "":
		what = "The scheduled task “" + name + "”"
	case m.Firing != nil:
		what = "A scheduled task"
	case name != "":
		what = "The subagent “" + name + "”"
	}
	return what + " has to wait: I can't use its files right now. It continues as soon as that works again. An operator finds the reason with `claybot status`."
}

// TextStillWorking returns the sign of life of a run that shows nothing else. It says
// what the run waits for: the named tool, or the model.
func TextStillWorking(tool string) string {
	if tool == "" {
		return "Still working: waiting for the model."
	}
	return "Still working: `" + connectors.OneLine(tool, 64) + "` is running."
}

// textGap says that messages of a time may be missing.
func textGap(m connectors.Missed, zone *time.Location) string {
	const layout = "2 Jan 15:04"
	if m.Assumed {
		return fmt.Sprintf("My clock was wrong, so I cannot tell for how long I was offline before %s. Messages sent until then may not have reached me; please send again what I have not answered.",
			m.To.In(zone).Format(layout+" MST"))
	}
	return fmt.Sprintf("I was offline from %s to %s. Messages sent in that time may not have reached me; please send again what I have not answered.",
		m.From.In(zone).Format(layout), m.To.In(zone).Format(layout+" MST"))
}

func textCompacted(folded, kept int) string {
	return fmt.Sprintf("Done. I have folded %d records of our conversation into a summary and kept the newest %d as they are.", folded, kept)
}

// textContext tells how full the context is, by part.
func textContext(c runs.ContextSize) string {
	used := c.System + c.Tools + c.Summary + c.Conversation + c.Results
	room := max(c.Window-c.Reserve, 1)
	var b strings.Builder
	fmt.Fprintf(&b, "About %d of %d tokens are used (%d %%).\n\n", used, room, used*100/room)
	for _, x := range []struct {
		name string
		n    int64
	}{
		{"instructions", c.System},
		{"tools", c.Tools},
		{"summary of what was before", c.Summary},
		{"conversation", c.Conversation},
		{"results of tools", c.Results},
		{"kept free for the answer", c.Reserve},
	} {
		fmt.Fprintf(&b, "- %s: %d\n", x.name, x.n)
	}
	if c.Last > 0 {
		fmt.Fprintf(&b, "- the last request, as the model counted it: %d\n", c.Last)
	}
	b.WriteString("\n/compact shortens it now, /new starts afresh.")
	return b.String()
}

// textExchange tells a person that agents were kept from talking on.
func textExchange(a claybot.Agent) string {
	return fmt.Sprintf("I stopped my agents from keeping each other at work: it went on %d times without a word of yours. The last one was %s.", maxHops, speaker(a))
}

func textTooLong(n int) string {
	return fmt.Sprintf("Your message has %d characters; I can read up to %d at once. Please send it in pieces.", n, maxText)
}

func textInboxFull() string {
	return "Too many of your messages are waiting; I did not take the last one. Please wait, or /stop what I am doing."
}

// textFailed is what a person hears of a failed run: a sentence and the run id,
// never the error itself.
func textFailed(run claybot.RunID, code string) string {
	return sentenceFailed(code) + " (run " + string(run) + ")"
}

func sentenceFailed(code string) string {
	switch code {
	case "model_error":
		return "The model did not answer. Please try again in a while."
	case "model_refused":
		return "The model refused this request; the operator can see why."
	case "model_off":
		return "The model is not configured correctly; the operator can see why with `claybot status`."
	case "agent_off":
		return "This agent is not configured correctly; the operator can see why with `claybot status`."
	case "context_too_long":
		return "Our conversation has become too long for the model. /new starts afresh."
	case "too_many_steps":
		return "I stopped, because I needed more steps than I am allowed."
	case "repeating":
		return "I stopped, because I was going round in circles."
	case "tool_budget":
		return "I stopped, because my tools took more than they are allowed."
	case "deadline":
		return "I stopped, because this took longer than I am allowed."
	case "interrupted":
		return "I was interrupted several times while working on this and gave up."
	}
	return "Something went wrong while I worked on this."
}

// textTaskFailed is textFailed for a task that nobody waits for.
func textTaskFailed(name, failed string) string {
	if name == "" {
		return failed
	}
	return "The scheduled task “" + connectors.OneLine(name, 80) + "” failed. " + failed
}

func textRecovered(name string) string {
	return "The scheduled task “" + connectors.OneLine(name, 80) + "” works again."
}

// textHelperFailed is the failure notice of a background agent, for the agent
// that made it.
func textHelperFailed(d claybot.Descriptor, id claybot.AgentID, run claybot.RunID, why claybot.RunError) string {
	name := "A background agent"
	if d.Name != "" {
		name = fmt.Sprintf("The agent %q", connectors.OneLine(d.Name, 80))
	}
	return fmt.Sprintf("%s (id %s) failed in run %s: %s: %s", name, id, run, why.Code, connectors.OneLine(why.Text, 300))
}

// textWhy tells what became of a message.
func textWhy(r storage.Receipt, unusable bool, zone *time.Location) string {
	what := fmt.Sprintf("Your message of %s ", clock(r.Message.At, zone))
	switch {
	case r.Skipped == skippedAnswer:
		return what + "answered a question of mine."
	case r.Skipped == skippedUnfit:
		return what + "did not fit my question; I said so."
	case r.Skipped != "":
		return what + "was not handed to the agent: " + skippedWords(r.Skipped) + "."
	case r.Parked != "", r.Run == nil && unusable:
		return what + "is safe. " + VerdictOf(r, unusable, zone).Text
	case r.Run == nil:
		return what + "waits for its turn. " + verdictWaiting(r, zone)
	case !r.Run.State.Ended():
		what += fmt.Sprintf("went into run %s at %s. ", r.Run.ID, clock(r.Run.Started, zone))
	default:
		what += fmt.Sprintf("went into run %s. ", r.Run.ID)
	}
	v := VerdictOf(r, unusable, zone)
	if v.Outcome == OutcomeFailed { // an operator reads the cause on the page
		v.Text = "The run failed"
		if r.Run.Error != nil {
			v.Text += " (" + r.Run.Error.Code + ")"
		}
		v.Text += "."
	}
	what += v.Text
	for _, o := range r.Replies {
		if strings.HasPrefix(o.ID, delivery.NoticePrefix) {
			continue // it tells of another reply
		}
		what += fmt.Sprintf(" Reply part %d of %d: %s", o.Part, o.Parts, o.State)
		if o.Cause != "" && o.State != claybot.SendSent {
			what += " (" + o.Cause + ")"
		}
		what += "."
	}
	return what
}

// textQuestion is the i-th of some questions in a chat of a connector, with how to
// answer it.
func textQuestion(q claybot.Question, i int, all []claybot.Question, place string, zone *time.Location) string {
	var b strings.Builder
	if i == 0 && len(all) > 1 {
		fmt.Fprintf(&b, "I have %d questions. Answer them one by one, or all at once with a line for each, such as `%s: …`.\n\n", len(all), questionKey(q))
	}
	if len(all) > 1 {
		fmt.Fprintf(&b, "`%s` ", questionKey(q))
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
	fmt.Fprintf(&b, "%s I wait until %s.*", howToAnswer(q, place), q.Expires.Time().In(zone).Format("2 Jan 2006 15:04 MST"))
	return b.String()
}

// hasButtons reports whether people can press buttons in the chats of a connector.
func hasButtons(connector string) bool { return connector != "terminal" }

// howToAnswer says what an answer to q looks like in the chats of a connector.
func howToAnswer(q claybot.Question, connector string) string {
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

// textNext asks for what is open after an answer to a part of the questions.
func textNext(left []claybot.Question, connector string) string {
	return "Thank you. Next: **" + connectors.OneLine(left[0].Text, 500) + "** " + howToAnswer(left[0], connector)
}

// textUnfit tells what is wrong with an answer, by question.
func textUnfit(faults []string) string {
	return strings.Join(faults, "\n") + "\n\nPlease try again. If your next message does not fit either, I drop the question and take that up instead."
}

// textUnanswered ends a run whose question nobody answered.
func textUnanswered(q claybot.Question) string {
	return "I stopped waiting, because nobody answered: " + connectors.OneLine(q.Text, 300)
}

// textAnswered replaces a question that was answered elsewhere than by a text.
func textAnswered(q claybot.Question, a claybot.Answered) string {
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
		return fmt.Sprintf("**%s**\n\n*(the limit has changed; this question needs no answer any more)*", headline(q))
	}
	if len(q.Approvers) > 0 && a.By != "" {
		how += ", by " + a.By
	}
	return fmt.Sprintf("**%s**\n\n%s *(%s)*", headline(q), connectors.OneLine(saidText(q, a), 500), how)
}

// headline is a question in one line.
func headline(q claybot.Question) string {
	if q.Type == claybot.QuestionConfirm && q.Tool != "" {
		return "Approval of " + q.Tool
	}
	return connectors.OneLine(q.Text, 500)
}

// saidText is an answer as a person reads it.
func saidText(q claybot.Question, a claybot.Answered) string {
	if q.Type != claybot.QuestionConfirm {
		return valueText(a.Value)
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

// textWithdrawn replaces a question that needs no answer any more.
func textWithdrawn(q claybot.Question) string {
	why := "no answer is needed any more"
	if q.Expires <= claybot.Now() {
		why = "nobody answered in time"
	}
	return fmt.Sprintf("**%s**\n\n*(%s)*", headline(q), why)
}

// textOthersDecide tells a person that his run waits for somebody else.
func textOthersDecide(q claybot.Question, asked bool) string {
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

// textElsewhere asks somebody who is not the agent's own person. What he writes
// goes to his own agent, so he answers by button or command.
func textElsewhere(q claybot.Question, zone *time.Location) string {
	text := textQuestion(q, 0, []claybot.Question{q}, "", zone)
	how := "Answer with `/approve " + shortID(q) + "` or `/deny " + shortID(q) + "`."
	return strings.Replace(text, howToAnswer(q, ""), how, 1)
}

// What somebody reads who taps at a question.
const (
	textTaken    = "Thank you, I have it."
	textNotYours = "This question is not for you."
	textClosed   = "This question is closed."
	textExpired  = "Too late: nobody answered in time."
)

// textAlready tells what a question was answered with.
func textAlready(a claybot.Answered) string {
	return "This was answered already: " + connectors.OneLine(valueText(a.Value), 100)
}

// What /undo answers.
const (
	textNothingToUndo = "I did nothing lately that could be taken back."
	textNoSuchRun     = "I know no such run of mine."
)

func textUndoing(run claybot.Run) string {
	var what []string
	for _, u := range slices.Backward(run.Undo) {
		what = append(what, connectors.OneLine(cmp.Or(u.What, u.Tool), 100))
	}
	return fmt.Sprintf("I take back what run %s did: %s.", run.ID, strings.Join(what, "; "))
}

// What /plan, /approve and /deny answer.
const (
	textPlanWhat      = "Tell me what to plan in the same message: /plan book a room for Friday"
	textNothingToSay  = "Nothing waits for your approval."
	textNoSuchRequest = "Nothing with that id waits for your approval."
	textOnceOnly      = "This can be approved for this one time only: say /approve without more."
	textNoScope       = "I did not understand what follows the id. Nothing is there for once, session for this conversation, or always."
	textAllowed       = "Approved."
	textAllowedEdited = "Approved with your arguments."
	textEditOnce      = "An action with other arguments can be approved for this one time only."
	textNoEdit        = "The arguments of this cannot be changed; approve or deny it as it is."
	textEditDenied    = "Other arguments go with an approval only."
	textDenied        = "Denied."
	textYouApproved   = "You have approved this already; it waits for somebody else."
)

// textFollowed answers who approves what has an answer; q is what is asked since.
func textFollowed(q claybot.Question) string {
	return "That has an answer already. " + textNextApproval(q) + " Say `/approve " + shortID(q) + "`."
}

// textNextApproval says under which id an action waits for somebody else.
func textNextApproval(q claybot.Question) string {
	return "It now waits for another approval as question " + shortID(q) + "."
}

// textWhich asks which of several approvals is meant.
func textWhich(qs []claybot.Question) string {
	var b strings.Builder
	b.WriteString("Several things wait for your approval. Say which, for example `/approve " + shortID(qs[0]) + "`:\n\n")
	for _, q := range qs {
		fmt.Fprintf(&b, "- `%s` %s\n", shortID(q), headline(q))
	}
	return b.String()
}

// shortID is enough of an id to type.
func shortID(q claybot.Question) string { return q.ID[:min(len(q.ID), 6)] }
