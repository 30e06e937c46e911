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
	return "Hello! I do not know you yet. Your pairing code is **" + code + "**. " +
		"Ask the operator of this bot to run `claybot pair approve " + code + "`. The code is valid for one hour."
}

// Approved tells a user that their pairing request was approved.
func Approved() string {
	return "You are in. Write to me whenever you like; /help shows what I can do."
}

// Help lists the commands.
func Help() string {
	var b strings.Builder
	b.WriteString("Write to me and I answer. I also know these commands:\n\n")
	for _, c := range connectors.Commands {
		fmt.Fprintf(&b, "- `/%s`: %s\n", c.Name, c.Help)
	}
	b.WriteString("\nIn Slack, `!` works in place of `/`.")
	return b.String()
}

// Greeting answers /start.
func Greeting() string {
	return "Hello! Write to me and I answer. /help shows what I can do."
}

const (
	Reset       = "Done. I have forgotten our conversation; we start afresh."
	Stopped     = "Stopped."
	NothingRuns = "Nothing is running."
	OnlyHelpers = "I am not working on anything; my helpers are. /stop all stops them, /tasks shows them."
	Empty       = "Your message has no text that I can read."
	Late        = "That came too late: the question has an answer already."
	MarkStopped = "*(stopped)*"

	// What takes the place of a sign of life that nothing follows.
	NothingToAdd  = "Done. I have nothing to add."
	NeedsInput    = "I need your input to continue."
	Parked        = "Your message is safe but has to wait: I can't use my files about our conversation right now. I'll answer as soon as that works again. An operator finds the reason with `claybot status`."
	ParkingFull   = "the parking table is full: too many messages wait for agents that cannot be used; repair what the log names, or drop messages with `claybot parked drop`"
	AnswerAgain   = "I couldn't save your answer. Please give it again in a minute."
	ParkedDamaged = "A message of yours was damaged in my storage before I could read it. Please send it again."

	NotCompacted  = "There is nothing worth shortening yet."
	CompactFailed = "I could not shorten our conversation now; nothing has changed."
	Idle          = "I am waiting for you."
	NoContext     = "How full my memory is cannot be told here."
)

// Unusable says since when the files of an agent cannot be used.
func Unusable(since claybot.Time, zone *time.Location) string {
	return "I can't use my files about our conversation since " + Clock(since, zone) + ". What you write is kept, and I'll take it up as soon as that works again; " +
		"/stop drops it. An operator finds the reason with `claybot status`."
}

// TaskWaits says that a background agent cannot go on with m.
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
	return what + " has to wait: I can't use its files right now. It continues as soon as that works again. An operator finds the reason with `claybot status`."
}

// TextStillWorking returns the sign of life of a run that shows nothing else. It says
// what the run waits for: the named tool, or the model.
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
		return fmt.Sprintf("My clock was wrong, so I cannot tell for how long I was offline before %s. Messages sent until then may not have reached me; please send again what I have not answered.",
			m.To.In(zone).Format(layout+" MST"))
	}
	return fmt.Sprintf("I was offline from %s to %s. Messages sent in that time may not have reached me; please send again what I have not answered.",
		m.From.In(zone).Format(layout), m.To.In(zone).Format(layout+" MST"))
}

// Compacted answers /compact with the number of records in the summary and after it.
func Compacted(folded, kept int) string {
	return fmt.Sprintf("Done. I have folded %d records of our conversation into a summary and kept the newest %d as they are.", folded, kept)
}

// Context tells how full the context is, by part.
func Context(c runs.ContextSize) string {
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

// Exchange tells a person that agents were kept from talking on.
func Exchange(times int, last string) string {
	return fmt.Sprintf("I stopped my agents from keeping each other at work: it went on %d times without a word of yours. The last one was %s.", times, last)
}

// TooLong refuses a message of n characters where most are allowed.
func TooLong(n, most int) string {
	return fmt.Sprintf("Your message has %d characters; I can read up to %d at once. Please send it in pieces.", n, most)
}

// InboxFull says that an inbox takes no more messages.
func InboxFull() string {
	return "Too many of your messages are waiting; I did not take the last one. Please wait, or /stop what I am doing."
}

// Failed is what a person hears of a failed run: a sentence and the run id,
// never the error itself.
func Failed(run claybot.RunID, code string) string {
	return SentenceFailed(code) + " (run " + string(run) + ")"
}

// SentenceFailed is Failed without the run id.
func SentenceFailed(code string) string {
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

// TaskFailed is Failed for a task that nobody waits for.
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

// HelperFailed is the failure notice of a background agent, for the agent
// that made it.
func HelperFailed(d claybot.Descriptor, id claybot.AgentID, run claybot.RunID, why claybot.RunError) string {
	name := "A background agent"
	if d.Name != "" {
		name = fmt.Sprintf("The agent %q", connectors.OneLine(d.Name, 80))
	}
	return fmt.Sprintf("%s (id %s) failed in run %s: %s: %s", name, id, run, why.Code, connectors.OneLine(why.Text, 300))
}

// What somebody reads who taps at a question.
const (
	Taken    = "Thank you, I have it."
	NotYours = "This question is not for you."
	Closed   = "This question is closed."
	Expired  = "Too late: nobody answered in time."
)

// What /undo answers.
const (
	NothingToUndo = "I did nothing lately that could be taken back."
	NoSuchRun     = "I know no such run of mine."
)

// Undoing announces what the undo of a run will do.
func Undoing(run claybot.Run) string {
	var what []string
	for _, u := range slices.Backward(run.Undo) {
		what = append(what, connectors.OneLine(cmp.Or(u.What, u.Tool), 100))
	}
	return fmt.Sprintf("I take back what run %s did: %s.", run.ID, strings.Join(what, "; "))
}

// What /plan, /approve and /deny answer.
const (
	PlanWhat      = "Tell me what to plan in the same message: /plan book a room for Friday"
	NothingToSay  = "Nothing waits for your approval."
	NoSuchRequest = "Nothing with that id waits for your approval."
	OnceOnly      = "This can be approved for this one time only: say /approve without more."
	NoScope       = "I did not understand what follows the id. Nothing is there for once, session for this conversation, or always."
	Allowed       = "Approved."
	AllowedEdited = "Approved with your arguments."
	EditOnce      = "An action with other arguments can be approved for this one time only."
	NoEdit        = "The arguments of this cannot be changed; approve or deny it as it is."
	EditDenied    = "Other arguments go with an approval only."
	Denied        = "Denied."
	YouApproved   = "You have approved this already; it waits for somebody else."
)

// clock is a moment as people read it: with its date, unless it is today.
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
