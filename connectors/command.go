package connectors

import (
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/lazyregexp"
)

// A Command is one chat command, as menus and /help show it.
type Command struct {
	Name string
	Help string
	// Arguments is a hint of what follows the name; empty: nothing is shown.
	Arguments string
}

// Commands lists the chat commands for menus, in the order of /help.
var Commands = []Command{
	{Name: "help", Help: "show what I can do"},
	{Name: "new", Help: "start a new conversation; text after it is the first message"},
	{Name: "reset", Help: "forget this conversation"},
	{Name: "stop", Help: "stop the current task; /stop all also stops my subagents"},
	{Name: "plan", Help: "plan what follows, and ask before I act"},
	{Name: "undo", Help: "undo what the last run did"},
	{Name: "approve", Help: "approve an action; add its id if there are several"},
	{Name: "deny", Help: "deny an action; text after it is the reason"},
	{Name: "status", Help: "show what I am doing"},
	{Name: "why", Help: "show what happened to the last message"},
	{Name: "resend", Help: "send again the last reply that may not have reached you"},
	{Name: "usage", Help: "show what I cost you, and what is left of your budgets"},
	{Name: "tasks", Help: "list active subagents, reminders and scheduled tasks"},
	{Name: "privacy", Help: "show who reads this conversation, and what I can read of you"},
	{Name: "model", Help: "show or choose the model that answers here"},
	{Name: "language", Help: "choose the language that I speak here"},
	{Name: "timezone", Help: "choose the time zone of dates and times"},
	{Name: "context", Help: "show how full my context is"},
	{Name: "compact", Help: "compact our conversation now"},
}

// OperatorCommands are the commands for operators alone: menus do not show them, and to other
// people they are unknown.
var OperatorCommands = []Command{
	{Name: "pair", Help: "list pairing requests; approve one by its code"},
	{Name: "allow", Help: "give a person or a channel access by a stable id"},
}

// Unknown is the Command of a text that begins with a command word that is none of claybot. A user
// message with it may use a skill that declares the command, which the connector does not know;
// as a message of type command, it is none of those either. Text is the whole text.
const Unknown = "unknown"

// Business is the Command of a message that says that its user made the bot act for their business
// account, which claybot refuses. It is no word: a connector reports it of its platform.
const Business = "business"

// commandWord is how commands look; a path such as /etc/hosts is none.
var commandWord = lazyregexp.New(`^[a-z][a-z0-9_-]{0,31}$`)

// CommandForm reports whether a name can be a command of a skill: it looks like one, and is none
// of claybot's own, which own reports.
func CommandForm(name string) (ok, own bool) {
	m, _ := Interpret(claybot.AgentMessage{Type: claybot.MessageUser, Text: "/" + name, FirstHand: true}, "/", "")
	own = m.Type != claybot.MessageUser
	return commandWord.MatchString(name) && !own, own
}

// Named returns the word of a text that begins with a command, in lower case.
func Named(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	word, _ := cutCommand(text[1:])
	return strings.ToLower(word)
}

// SameCommand reports whether two names in lower case are those of one command: Telegram makes
// links of commands with _ alone, where names of skills have a hyphen.
func SameCommand(a, b string) bool {
	return strings.ReplaceAll(a, "_", "-") == strings.ReplaceAll(b, "_", "-")
}

// Interpret converts a user message whose text is a command into a reset, a
// cancel, or a command for the system to answer. It returns all other messages
// unchanged, and all messages that are not FirstHand. prefixes are the characters that begin a command on this platform
// ("/" or "!"); self is the bot's own name for /command@name, compared without
// case, and a command for another bot is reported as not ours. A command of OperatorCommands
// without a slash stays a user message with its whole text, because of other people than
// operators it is one: Command alone names it, and Argument returns what follows it. So does a
// text that begins with a command word that claybot does not have; see Unknown. Its text loses
// @name, and it is no longer Unaddressed where it had that.
func Interpret(m claybot.AgentMessage, prefixes, self string) (out claybot.AgentMessage, ours bool) {
	text := strings.TrimSpace(m.Text)
	if !m.FirstHand || text == "" || !strings.ContainsRune(prefixes, rune(text[0])) {
		return m, true
	}
	word, rest := cutCommand(text[1:])
	word, bot, addressed := strings.Cut(word, "@")
	word = strings.ToLower(word)
	toUs := addressed && strings.EqualFold(bot, self)
	switch word {
	case "reset", "new":
		m.Type, m.Text = claybot.MessageReset, rest
	case "stop":
		m.Type, m.Text = claybot.MessageCancel, rest
	case "plan":
		if rest == "" {
			m.Type, m.Command, m.Text = claybot.MessageCommand, word, ""
			break
		}
		m.Engine, m.Text = claybot.EnginePlan, rest
	case "undo", "approve", "deny", "help", "status", "why", "start", "usage", "resend", "tasks", "privacy", "context", "compact", "model", "language", "timezone":
		m.Type, m.Command, m.Text = claybot.MessageCommand, word, rest
	case "pair", "allow":
		if !toUs && (addressed || m.Context.Unaddressed) {
			return m, true
		}
		if m.Command = word; text[0] == '/' {
			m.Type, m.Text = claybot.MessageCommand, rest
		}
	default:
		if !commandWord.MatchString(word) || addressed && !toUs {
			return m, true
		}
		if m.Command = Unknown; toUs {
			end := strings.IndexByte(text, '@')
			m.Text, m.Context.Unaddressed = text[:end]+text[end+1+len(bot):], false
		}
	}
	return m, !addressed || strings.EqualFold(bot, self)
}

// Argument returns what follows the command word of a text.
func Argument(text string) string {
	_, rest := cutCommand(strings.TrimSpace(text))
	return rest
}

// cutCommand cuts a text after its first word.
func cutCommand(text string) (word, rest string) {
	if i := strings.IndexAny(text, " \t\r\n"); i >= 0 {
		return text[:i], strings.TrimSpace(text[i:])
	}
	return text, ""
}
