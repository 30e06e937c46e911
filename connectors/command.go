package connectors

import (
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/lazyregexp"
)

// A Command is one chat command, as menus show it.
type Command struct {
	Name string
	Help string
}

// Commands lists the chat commands for menus, in the order of /help.
var Commands = []Command{
	{"help", "show what I can do"},
	{"new", "start a new conversation; text after it is the first message"},
	{"reset", "forget this conversation"},
	{"stop", "stop the current task; /stop all also stops my subagents"},
	{"plan", "plan what follows, and ask before I act"},
	{"undo", "undo what the last run did"},
	{"approve", "approve an action; add its id if there are several"},
	{"deny", "deny an action; text after it is the reason"},
	{"status", "show what I am doing"},
	{"why", "show what happened to the last message"},
	{"resend", "send again the last reply that may not have reached you"},
	{"usage", "show what I cost you, and what is left of your budgets"},
	{"tasks", "list active subagents, reminders and scheduled tasks"},
	{"privacy", "show who reads this conversation, and what I can read of you"},
	{"model", "show or choose the model that answers here"},
	{"language", "choose the language that I speak here"},
	{"timezone", "choose the time zone of dates and times"},
	{"context", "show how full my context is"},
	{"compact", "compact our conversation now"},
}

// OperatorCommands are the commands for operators alone: menus do not show them, and to other
// people they are unknown.
var OperatorCommands = []Command{
	{"pair", "list pairing requests; approve one by its code"},
	{"allow", "give a person or a channel access by a stable id"},
}

// Unknown is the Command of what looks like a command that there is not: a word with a slash,
// in a message to the bot. Text is the word.
const Unknown = "unknown"

// commandWord is how commands look; a path such as /etc/hosts is none.
var commandWord = lazyregexp.New(`^[a-z][a-z0-9_]{0,31}$`)

// Interpret converts a user message whose text is a command into a reset, a
// cancel, or a command for the system to answer. It returns all other messages
// unchanged, and all messages that are not FirstHand. prefixes are the characters that begin a command on this platform
// ("/" or "!"); self is the bot's own name for /command@name, compared without
// case, and a command for another bot is reported as not ours. A command of OperatorCommands
// without a slash stays a user message with its whole text, because of other people than
// operators it is one: Command alone names it, and Argument returns what follows it.
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
		if text[0] != '/' || !commandWord.MatchString(word) || !toUs && (addressed || m.Context.Unaddressed) {
			return m, true
		}
		m.Type, m.Command, m.Text = claybot.MessageCommand, Unknown, word
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
