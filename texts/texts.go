// Package texts is the catalogue of what claybot itself says to people in chats: answers to
// commands, notices, questions and what replaces them. A text is a constant, or a function
// of the values in it, so that all of them can be reviewed side by side and translated.
//
// It reads nothing and knows no store, so every package that talks to people may import it.
package texts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/runs"
)

// Pairing answers an unknown user with a pairing code.
func Pairing(code string) string {
	return "Hello! I don't know you yet. Your pairing code is **" + code + "**. " +
		"Ask the operator of this bot to run `claybot pair approve " + code + "`. The code is valid for one hour."
}

// Approved tells a user that their pairing request was approved.
func Approved() string {
	return "Your access is approved. Send me a message at any time; /help shows what I can do."
}

// Help lists the commands.
func Help() string {
	var b strings.Builder
	b.WriteString("Send me a message and I'll answer. I also understand these commands:\n\n")
	for _, c := range connectors.Commands {
		fmt.Fprintf(&b, "- `/%s`: %s\n", c.Name, c.Help)
	}
	b.WriteString("\nIn Slack, you can use `!` instead of `/`.")
	return b.String()
}

// UnknownCommand answers what looks like a command and is none.
func UnknownCommand(word string) string {
	return "I don't know the command /" + word + ". /help shows what I can do."
}

// Greeting answers /start.
func Greeting() string {
	return "Hello! Send me a message and I'll answer. /help shows what I can do."
}

// What answers commands and messages.
const (
	Reset       = "Done. I have forgotten our conversation; your next message starts a new one."
	Stopped     = "Stopped."
	NothingRuns = "Nothing is running."
	OnlyHelpers = "I'm not working on anything, but my subagents are. /stop all stops them, /tasks lists them."
	Empty       = "Your message has no text that I can read."
	Late        = "Too late: this question has already been answered."
	MarkStopped = "*(stopped)*"

	// What replaces a progress notice that nothing follows.
	NothingToAdd  = "Done. I have nothing to add."
	NeedsInput    = "I need your input to continue."
	Parked        = "Your message is stored, but it has to wait: I can't access the files of our conversation right now. I'll answer as soon as I can. Operators can see why with `claybot status`."
	ParkingFull   = "the parking table is full: too many messages are waiting for agents that cannot be used; fix the cause that the log names, or drop messages with `claybot parked drop`"
	AnswerAgain   = "I couldn't save your answer. Please send it again in a minute."
	ParkedDamaged = "One of your messages was damaged in storage before I could read it. Please send it again."

	NotCompacted  = "There is nothing to compact yet."
	CompactFailed = "I couldn't compact our conversation; nothing has changed."
	Idle          = "I am waiting for you."
	NoContext     = "Context usage isn't available here."
)

// Unusable says since when the files of an agent have been unavailable.
func Unusable(since claybot.Time, zone *time.Location) string {
	return "I haven't been able to access the files of our conversation since " + Clock(since, zone) + ". I keep your messages and answer them as soon as I can; " +
		"/stop drops them. Operators can see why with `claybot status`."
}

// TaskWaits says that the subagent, task or heartbeat of d cannot continue with m.
func TaskWaits(d claybot.Descriptor, m claybot.AgentMessage) string {
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
	return what + " has to wait: I can't access its files right now. It continues as soon as I can. Operators can see why with `claybot status`."
}

// StillWorking is the progress notice of a run that shows nothing else. It names what the
// run waits for: the tool, or the model.
func StillWorking(tool string) string {
	if tool == "" {
		return "Still working: waiting for the model."
	}
	return "Still working: `" + connectors.OneLine(tool, 64) + "` is running."
}

// Gap says that messages of a time may be missing.
func Gap(m connectors.Missed, zone *time.Location) string {
	const layout = "2 Jan 15:04"
	if m.Assumed {
		return fmt.Sprintf("My clock was wrong, so I don't know how long I was offline before %s. Messages sent before then may not have reached me; please resend any that I haven't answered.",
			m.To.In(zone).Format(layout+" MST"))
	}
	return fmt.Sprintf("I was offline from %s to %s. Messages sent during that time may not have reached me; please resend any that I haven't answered.",
		m.From.In(zone).Format(layout), m.To.In(zone).Format(layout+" MST"))
}

// Compacted answers /compact with the number of records in the summary and after it.
func Compacted(folded, kept int) string {
	return fmt.Sprintf("Done. I have compacted %d records of our conversation into a summary and kept the newest %d as they are.", folded, kept)
}

// Context shows context usage by part.
func Context(c runs.ContextSize) string {
	used := c.System + c.Notes + c.Tools + c.Summary + c.Conversation + c.Results
	room := max(c.Window-c.Reserve, 1)
	var b strings.Builder
	fmt.Fprintf(&b, "About %d of %d tokens are used (%d %%).\n\n", used, room, used*100/room)
	for _, x := range []struct {
		name string
		n    int64
		more string
	}{
		{"instructions", c.System, ""},
		{"notes and skills", c.Notes, ""},
		{"tools", c.Tools, toolGroups(c.Groups)},
		{"summary of earlier messages", c.Summary, ""},
		{"conversation", c.Conversation, ""},
		{"tool results", c.Results, ""},
		{"free", max(room-used, 0), ""},
		{"reserved for the answer", c.Reserve, ""},
	} {
		fmt.Fprintf(&b, "- %s: %d%s\n", x.name, x.n, x.more)
	}
	if c.Last > 0 {
		fmt.Fprintf(&b, "- last request, as counted by the model: %d\n", c.Last)
	}
	b.WriteString("\n/compact compacts it now, /new starts a new conversation.")
	return b.String()
}

// toolGroups shows the tokens of each group of tools.
func toolGroups(groups []runs.GroupSize) string {
	if len(groups) == 0 {
		return ""
	}
	all := make([]string, len(groups))
	for i, g := range groups {
		all[i] = fmt.Sprintf("%s %d", cmp.Or(g.Name, "no group"), g.Tokens)
		if g.Added {
			all[i] += ", added"
		}
	}
	return " (" + strings.Join(all, "; ") + ")"
}

// Exchange says that a loop between agents was stopped after some messages.
func Exchange(times int, last string) string {
	return fmt.Sprintf("I stopped a loop between my agents: they handed work to each other %d times without any message from you. The last one was %s.", times, last)
}

// TooLong refuses a message of n characters where most are allowed.
func TooLong(n, most int) string {
	return fmt.Sprintf("Your message has %d characters; I can read up to %d at once. Please send it in parts.", n, most)
}

// SecretMasked says that secrets of some kinds were taken out of a message.
func SecretMasked(kinds []string) string {
	return "Your message contained " + list(kinds) + ". I removed that before I stored the message, so I can't use it; keep secrets out of chats and renew this one if others could read it here."
}

// SecretRefused says that a message was not accepted because of the secrets in it.
func SecretRefused(kinds []string) string {
	return "I didn't accept your message because it contained " + list(kinds) + ". Please send it again without that; keep secrets out of chats and renew this one if others could read it here."
}

// list joins words as in a sentence.
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// InboxFull says that an inbox takes no more messages.
func InboxFull() string {
	return "Too many of your messages are waiting, so I didn't accept the last one. Please wait, or stop my current task with /stop."
}

// Flood says that a person writes faster than the limit of messages a minute allows.
func Flood(most int) string {
	return fmt.Sprintf("You send messages faster than I may take them, which is %d a minute. I won't answer those above that; please send what matters again in a minute.", most)
}

// Failed notifies a person of a failed run with a sentence and the run id, never the
// error itself.
func Failed(run claybot.RunID, code string) string {
	return SentenceFailed(code) + " (run " + string(run) + ")"
}

// SentenceFailed is Failed without the run id.
func SentenceFailed(code string) string {
	switch code {
	case "model_error":
		return "The model didn't answer. Please try again later."
	case "model_refused":
		return "The model refused this request; the operator can see why."
	case "model_off":
		return "The model is not configured correctly; the operator can see why with `claybot status`."
	case "agent_off":
		return "This agent is not configured correctly; the operator can see why with `claybot status`."
	case "context_too_long":
		return "Our conversation has become too long for the model. /new starts a new one."
	case "too_many_steps":
		return "I stopped because I reached my step limit."
	case "repeating":
		return "I stopped because I kept repeating the same steps."
	case "tool_budget":
		return "I stopped because my tools used up their budget."
	case "deadline":
		return "I stopped because this took longer than allowed."
	case "interrupted":
		return "I was interrupted several times while working on this and gave up."
	}
	return "Something went wrong while I worked on this."
}

// TaskFailed is Failed for an unattended task.
func TaskFailed(name, failed string) string {
	if name == "" {
		return failed
	}
	return "The scheduled task “" + connectors.OneLine(name, 80) + "” failed. " + failed
}

// Recovered says that a scheduled task works again.
func Recovered(name string) string {
	return "The scheduled task “" + connectors.OneLine(name, 80) + "” works again."
}

// SubagentFailed is the failure notice of a subagent, for the agent that started it.
func SubagentFailed(d claybot.Descriptor, id claybot.AgentID, run claybot.RunID, why claybot.RunError) string {
	name := "A subagent"
	if d.Name != "" {
		name = fmt.Sprintf("The subagent %q", connectors.OneLine(d.Name, 80))
	}
	return fmt.Sprintf("%s (id %s) failed in run %s: %s: %s", name, id, run, why.Code, connectors.OneLine(why.Text, 300))
}

// StoppedBeforeStart is why a task of a subagent did not run.
const StoppedBeforeStart = "stopped by the operator before it started"

// LateReminder is the note of a reminder that comes late.
func LateReminder(note string, due claybot.Time) string {
	return note + fmt.Sprintf("\n(late: it was due at %s)", due.Time().UTC().Format(time.RFC3339))
}

// What replies to a button of a question.
const (
	Taken    = "Thank you, I have it."
	NotYours = "This question is not for you."
	Closed   = "This question is closed."
	Expired  = "Too late: this question has expired."
)

// What /undo answers.
const (
	NothingToUndo = "There is nothing recent to undo."
	UndoButton    = "Undo"
	NoSuchRun     = "I have no run with that id."
)

// Undoing announces what the undo of a run will do.
func Undoing(run claybot.Run) string {
	var what []string
	for _, u := range slices.Backward(run.Undo) {
		what = append(what, connectors.OneLine(cmp.Or(u.What, u.Tool), 100))
	}
	return fmt.Sprintf("Undoing run %s: %s.", run.ID, strings.Join(what, "; "))
}

// What /plan, /approve and /deny answer.
const (
	PlanWhat      = "Tell me what to plan in the same message: /plan book a room for Friday"
	NothingToSay  = "Nothing needs your approval."
	NotByProgram  = "Your token may not approve or deny actions. Use one with the scope approve."
	NoSuchRequest = "No pending approval has that id."
	NotAlways     = "Your token may not approve a tool permanently. Leave out always, or use a token with the scope admin."
	OnceOnly      = "This can only be approved once: send /approve with the id alone."
	NoScope       = "I don't understand what follows the id. Leave it out to approve once, or write session for this conversation, or always."
	Allowed       = "Approved."
	AllowedEdited = "Approved with your arguments."
	EditOnce      = "An action with changed arguments can only be approved once."
	NoEdit        = "The arguments of this action can't be changed; approve or deny it as it is."
	EditDenied    = "You can only change the arguments when you approve."
	Denied        = "Denied."
	YouApproved   = "You have already approved this; it still needs another approval."
)

// InvalidEdit refuses changed arguments that the tool does not accept.
func InvalidEdit(err error) string {
	return "These arguments aren't valid: " + err.Error() + ". I approved nothing; please correct them."
}

// What is wrong with a set of answers.
const (
	NoAnswers      = "Please answer at least one question."
	NoSuchQuestion = "There is no such question."
	AnsweredTwice  = "This question is answered twice."
)

// Clock is a moment as people read it: with its date, unless it is today.
func Clock(t claybot.Time, zone *time.Location) string {
	if zone == nil {
		zone = time.UTC
	}
	at, now := t.Time().In(zone), time.Now().In(zone)
	switch {
	case at.Year() == now.Year() && at.YearDay() == now.YearDay():
		return at.Format("15:04:05 MST")
	case at.Year() == now.Year():
		return at.Format("2 Jan 15:04:05 MST")
	}
	return at.Format("2 Jan 2006 15:04:05 MST")
}

// Shorten cuts a text at a rune border.
func Shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + fmt.Sprintf("\n[… %d bytes left out]", len(text)-limit)
}
