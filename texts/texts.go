// Package texts is the catalogue of what claybot itself says to people in chats: answers to
// commands, notices, questions and what replaces them, in the languages of people, so that all of
// them can be reviewed side by side.
//
// To add a text, write it here in English: as a constant, or in a method of Voice that puts values
// in place with Say, and counts with Count. Then add its line to the table of each other language,
// such as german.go; TestLanguages names what is missing. Commands in a text, such as /stop, are
// written as the platform takes them, and a time is told with Moment or When.
//
// The Voice for a text is Of(ctx) for an answer to a message or a text of a run, To(ctx, person) in a
// connector, and that of people.Directory for a notice to another person.
//
// To add a language, add a table like german.go and its line in grammars. A text without a
// translation stays English. What agents and programs read is in agents.go, in English alone.
//
// It reads nothing and knows no store, so every package that talks to people may import it.
package texts

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

// Pairing answers an unknown user with a pairing code.
func (v Voice) Pairing(code string) string {
	return v.Say("Hello! I don't know you yet. Your pairing code is **%[1]s**. Ask the operator of this bot to run `claybot pair approve %[1]s`. The code is valid for one hour.", code)
}

// Approved tells a user that their pairing request was approved.
func (v Voice) Approved() string {
	return v.Say("Your access is approved. Send me a message at any time; /help shows what I can do.")
}

// maxSkillCommands is how many commands of skills /help lists.
const maxSkillCommands = 40

// Help lists the commands, with those that a role allows, and those of skills.
func (v Voice) Help(role storage.Role, skills []connectors.Command) string {
	all := connectors.Commands
	if role != storage.RoleUser {
		all = slices.Concat(all, connectors.OperatorCommands)
	}
	var b strings.Builder
	b.WriteString(v.Say("Send me a message and I'll answer. I also understand these commands:") + "\n\n")
	for _, c := range all {
		fmt.Fprintf(&b, "- %s: %s\n", v.In("/"+c.Name), v.In(c.Help))
	}
	if role == storage.RoleOwner {
		fmt.Fprintf(&b, "- %s\n", v.In(RoleHelp))
	}
	if len(skills) > 0 {
		b.WriteString("\n" + v.Say("These commands use my skills:") + "\n\n")
	}
	for _, c := range skills[:min(len(skills), maxSkillCommands)] {
		name := "/" + c.Name
		if v.Command != nil {
			name = v.Command(c.Name)
		}
		if c.Arguments != "" {
			name += " " + connectors.Literal(c.Arguments, 40)
		}
		fmt.Fprintf(&b, "- %s: %s\n", name, connectors.Literal(c.Help, 120))
	}
	if more := len(skills) - maxSkillCommands; more > 0 {
		b.WriteString("- " + v.Count(int64(more), "%d more|%d more") + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// UnknownCommand answers what looks like a command and is none.
func (v Voice) UnknownCommand(word string) string {
	return v.Say("I don't know the command %s. /help shows what I can do.", "/"+word)
}

// Greeting answers /start.
func (v Voice) Greeting() string {
	return v.Say("Hello! Send me a message and I'll answer. /help shows what I can do.")
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
	NothingToAdd   = "Done. I have nothing to add."
	CodeInFile     = "*The code is too long for a message. It is in the attached file %s.*"
	WholeInFile    = "*My reply is too long for a chat. The full reply is in the attached file.*"
	NeedsInput     = "I need your input to continue."
	Parked         = "Your message is stored, but it has to wait: I can't access the files of our conversation right now. I'll answer as soon as I can. Operators can see why with `claybot status`."
	ReactionFailed = "Your reaction had no effect: I couldn't save it. Please remove it and add it again in a minute."
	AnswerAgain    = "I couldn't save your answer. Please send it again in a minute."
	ParkedDamaged  = "One of your messages was damaged in storage before I could read it. Please send it again."

	NotCompacted  = "There is nothing to compact yet."
	CompactFailed = "I couldn't compact our conversation; nothing has changed."
	Idle          = "I am waiting for you."
	NoContext     = "Context usage isn't available here."
)

// states says how a connector does, by the state in its Health.
var states = map[string]string{
	connectors.StateStarting: "starting",
	connectors.StateLive:     "live",
	connectors.StateFailing:  "failed, tries again",
	connectors.StateStopped:  "off",
	connectors.StateStandby:  "standby",
	connectors.StateOff:      "stopped by an operator",
}

// State says how a connector does; see connectors.Health.
func (v Voice) State(state string) string { return v.In(cmp.Or(states[state], state)) }

// Unusable says since when the files of an agent have been unavailable.
func (v Voice) Unusable(since claybot.Time) string {
	return v.Say("I haven't been able to access the files of our conversation since %s. I keep your messages and answer them as soon as I can; /stop drops them. Operators can see why with `claybot status`.", v.Moment(since))
}

// TaskWaits says that the subagent, task or heartbeat of d cannot continue with m.
func (v Voice) TaskWaits(d claybot.Descriptor, m claybot.AgentMessage) string {
	what := v.Say("A background task")
	switch name := connectors.Literal(d.Name, 80); {
	case m.Kind == claybot.KindHeartbeat:
		what = v.Say("The heartbeat")
	case m.Firing != nil && name != "":
		what = v.Say("The scheduled task “%s”", name)
	case m.Firing != nil:
		what = v.Say("A scheduled task")
	case name != "":
		what = v.Say("The subagent “%s”", name)
	}
	return v.Say("%s has to wait: I can't access its files right now. It continues as soon as I can. Operators can see why with `claybot status`.", what)
}

// StillWorking is the progress notice of a run that shows nothing else. It says what the run
// waits for; see Step.
func (v Voice) StillWorking(tool string) string {
	return v.Say("Still working: %s.", v.Step(tool))
}

// Gap says that messages of a time may be missing.
func (v Voice) Gap(m connectors.Missed) string {
	if m.Assumed {
		return v.Say("My clock was wrong, so I don't know how long I was offline before %s. Messages sent before then may not have reached me; please resend any that I haven't answered.", v.Moment(claybot.At(m.To)))
	}
	return v.Say("I was offline from %s to %s. Messages sent during that time may not have reached me; please resend any that I haven't answered.", v.Moment(claybot.At(m.From)), v.Moment(claybot.At(m.To)))
}

// Compacted answers /compact with the number of records in the summary and after it.
func (v Voice) Compacted(folded, kept int) string {
	return v.Say("Done. I have compacted %d records of our conversation into a summary and kept the newest %d as they are.", folded, kept)
}

// Context shows context usage by part.
func (v Voice) Context(c runs.ContextSize) string {
	used := c.System + c.Files + c.Notes + c.Tools + c.Summary + c.Conversation + c.Results
	room := max(c.Window-c.Reserve, 1)
	var b strings.Builder
	b.WriteString(v.Say("About %d of %d tokens are used (%d %%).", used, room, used*100/room) + "\n\n")
	for _, x := range []struct {
		name string
		n    int64
		more string
	}{
		{"instructions", c.System, v.promptParts(c.Parts)},
		{"SOUL.md and USER.md", c.Files, ""},
		{"notes and skills", c.Notes, ""},
		{"tools", c.Tools, v.toolGroups(c.Groups)},
		{"summary of earlier messages", c.Summary, ""},
		{"conversation", c.Conversation, ""},
		{"tool results", c.Results, ""},
		{"free", max(room-used, 0), ""},
		{"reserved for the answer", c.Reserve, ""},
	} {
		fmt.Fprintf(&b, "- %s: %d%s\n", v.In(x.name), number{v, x.n}, x.more)
	}
	if c.Last > 0 {
		fmt.Fprintf(&b, "- %s: %d\n", v.In("last request, as counted by the model"), number{v, c.Last})
	}
	b.WriteString("\n" + v.Say("/compact compacts it now, /new starts a new conversation."))
	return b.String()
}

// The parts of a system prompt.
const (
	PartPrompt  = "prompt"
	PartRules   = "safety rules"
	PartReaders = "chat, language and time zone"
	PartUnsent  = "replies that are not sent by themselves"
)

// promptParts shows the tokens of each part of a system prompt.
func (v Voice) promptParts(parts []runs.PartSize) string {
	if len(parts) == 0 {
		return ""
	}
	all := make([]string, len(parts))
	for i, p := range parts {
		all[i] = fmt.Sprintf("%s %d", v.In(p.Name), number{v, p.Tokens})
	}
	return " (" + strings.Join(all, "; ") + ")"
}

// toolGroups shows the tokens of each group of tools.
func (v Voice) toolGroups(groups []runs.GroupSize) string {
	if len(groups) == 0 {
		return ""
	}
	all := make([]string, len(groups))
	for i, g := range groups {
		all[i] = fmt.Sprintf("%s %d", cmp.Or(g.Name, v.Say("no group")), number{v, g.Tokens})
		if g.Added {
			all[i] += v.Say(", added")
		}
	}
	return " (" + strings.Join(all, "; ") + ")"
}

// Exchange says that a loop between agents was stopped after some messages.
func (v Voice) Exchange(times int, last string) string {
	return v.Say("I stopped a loop between my agents: they handed work to each other %d times without any message from you. The last one was %s.", times, last)
}

// StoppedFlows says how many workflows a /stop has stopped.
func (v Voice) StoppedFlows(n int) string {
	return v.Count(int64(n), "I stopped %d workflow that was started here.|I stopped %d workflows that were started here.")
}

// TooLong refuses a message of n characters where most are allowed.
func (v Voice) TooLong(n, most int) string {
	return v.Say("Your message has %d characters; I can read up to %d at once. Please send it in parts.", n, most)
}

// SecretMasked says that secrets of some kinds were taken out of a message.
func (v Voice) SecretMasked(kinds []string) string {
	return v.Say("Your message contained %s. I removed that before I stored the message, so I can't use it; keep secrets out of chats and renew this one if others could read it here.", v.list(kinds))
}

// SecretRefused says that a message was not accepted because of the secrets in it.
func (v Voice) SecretRefused(kinds []string) string {
	return v.Say("I didn't accept your message because it contained %s. Please send it again without that; keep secrets out of chats and renew this one if others could read it here.", v.list(kinds))
}

// list joins words as in a sentence.
func (v Voice) list(words []string) string {
	all := make([]string, len(words))
	for i, word := range words {
		all[i] = v.In(word)
	}
	if len(all) < 2 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:len(all)-1], ", ") + v.Say(" and ") + all[len(all)-1]
}

// InboxFull says that an inbox takes no more messages.
func (v Voice) InboxFull() string {
	return v.Say("Too many of your messages are waiting, so I didn't accept the last one. Please wait, or stop my current task with /stop.")
}

// FlowBusy says that a message started no run of a workflow.
func (v Voice) FlowBusy(flow string) string {
	return v.Say("The workflow %s is still at work, so your last message did not start it again.", flow)
}

// FlowFull says that a message started no run of a workflow that has too many already.
func (v Voice) FlowFull(flow string) string {
	return v.Say("The workflow %s has as many unfinished runs as it may have, so your last message did not start it. Please send it again later.", flow)
}

// Flood says that a person writes faster than the limit of messages a minute allows.
func (v Voice) Flood(most int) string {
	return v.Say("You send messages faster than I may take them, which is %d a minute. I won't answer those above that; please send what matters again in a minute.", most)
}

// Failed notifies a person of a failed run with a sentence, never the error itself.
func (v Voice) Failed(code string) string {
	return v.In(cmp.Or(failures[code], "Something went wrong while I worked on this."))
}

// failures are what people read of a failed run, by the code of its error.
var failures = map[string]string{
	"model_error":      "The model didn't answer. Please try again later.",
	"model_refused":    "The model refused this request; the operator can see why.",
	"model_off":        "The model is not configured correctly; the operator can see why with `claybot status`.",
	"agent_off":        "This agent is not configured correctly; the operator can see why with `claybot status`.",
	"context_too_long": "Our conversation has become too long for the model. /new starts a new one.",
	"too_many_steps":   "I stopped because I reached my step limit.",
	"repeating":        "I stopped because I kept repeating the same steps.",
	"tool_budget":      "I stopped because my tools used up their budget.",
	"deadline":         "I stopped because this took longer than allowed.",
	"interrupted":      "I was interrupted several times while working on this and gave up.",
}

// TaskFailed is Failed for an unattended task.
func (v Voice) TaskFailed(name, failed string) string {
	if name == "" {
		return failed
	}
	return v.Say("The scheduled task “%s” failed. %s", connectors.Literal(name, 80), failed)
}

// Recovered says that a scheduled task works again.
func (v Voice) Recovered(name string) string {
	return v.Say("The scheduled task “%s” works again.", connectors.Literal(name, 80))
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
	UndoEarlier   = "To undo an earlier one, send /undo with its id."
)

// Why a run is not undone.
const (
	UndoAtWork    = "That run is still at work. Stop it first, or wait for its end."
	UndoOfUndo    = "An undo cannot be undone."
	UndoNoEffect  = "That run did nothing that could be undone."
	UndoTooOld    = "That run ended more than 30 days ago; it cannot be undone any more."
	UndoRevoked   = "The person of that run may not write any more, so it is not undone. Approve them again first."
	UndoneAlready = "That run was undone already."
	UndoBegun     = "That run is being undone already."
)

// NoUndo says why a run is not undone, as agents and programs read it.
func (v Voice) NoUndo(english string) string {
	if _, ok := valuesOf(english, UndoneByRun); ok {
		return v.In(UndoneAlready)
	}
	return v.In(english)
}

// Undoing announces what the undo of a run will do.
func (v Voice) Undoing(run claybot.Run) string {
	var what []string
	for _, u := range slices.Backward(run.Undo) {
		what = append(what, v.Effect(u))
	}
	return v.Say("Undoing: %s.", strings.Join(what, "; "))
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
func (v Voice) InvalidEdit(err error) string {
	return v.Say("These arguments aren't valid: %s. I approved nothing; please correct them.", v.In(err.Error()))
}

// What is wrong with a set of answers.
const (
	NoAnswers      = "Please answer at least one question."
	NoSuchQuestion = "There is no such question."
	AnsweredTwice  = "This question is answered twice."
)

// A Complaint is what is wrong with an answer, as a text of the catalogue and its values.
type complaint interface {
	error
	Text() (format string, args []any)
}

// Complaint says what is wrong with the answer to a question.
func (v Voice) Complaint(err error) string {
	if c, ok := errors.AsType[complaint](err); ok {
		format, args := c.Text()
		return v.Say(format, args...)
	}
	return err.Error()
}

// What /status, /why and /tasks answer.
const (
	NoMessage      = "There is no message of yours yet."
	SwitchedOff    = ", switched off"
	ModelIs        = "model: %s"
	AtWork         = "I am at work on something; /stop ends it."
	NoSight        = "I cannot look at what I am doing right now."
	AwaitsAnswer   = "I am waiting for your answer to: %s\n/stop ends it."
	AwaitsDecision = "I am waiting for your decision: %s\n%s /stop ends it."
	Awaits         = "I am waiting for %s.\n/stop ends it."
	AgentStopped   = "An operator has stopped me, or what I work with. What you write waits, and I answer once that is started again."
	NextUp         = "I am about to take up your message.|I am about to take up %d messages."
	NoTasks        = "No subagent is running, and nothing is scheduled."
	ReminderLine   = "reminder %s: %s"
	TaskNext       = "task “%s”: next %s"
	TaskOff        = "task “%s”: does not run"
)

// SubagentLine shows a subagent that is busy.
func (v Voice) SubagentLine(name string, paused bool) string {
	if name = connectors.Literal(name, 80); paused {
		return v.Say("subagent “%s”: waiting", name)
	}
	return v.Say("subagent “%s”: at work", name)
}
