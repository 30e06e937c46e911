package connectors

import (
	"strings"

	"github.com/claybot/claybot"
)

// A Command is one chat command, as menus show it.
type Command struct {
	Name string
	Help string
}

// Commands lists the chat commands for menus, in the order of /help.
var Commands = []Command{
	{"help", "what I can do"},
	{"new", "start afresh; text after it is the first message"},
	{"reset", "forget this conversation"},
	{"stop", "stop what I am doing; /stop all: my helpers, too"},
	{"plan", "make a plan for what follows, and ask before I act"},
	{"undo", "take back what the last run did"},
	{"approve", "let me do what I asked about; with its id when there are several"},
	{"deny", "do not let me; text after it is the reason"},
	{"status", "what is going on"},
	{"why", "what became of the last message"},
	{"tasks", "helpers at work, reminders and scheduled tasks"},
	{"context", "how full my memory is"},
	{"compact", "shorten my memory now"},
}

// Interpret turns a user message whose text is a command into the message it
// stands for: a reset, a cancel, or a command for the system to answer. All
// other messages come back as they are. prefixes are the characters that begin
// a command on this platform ("/" or "!"); self is the bot's own name for
// /command@name, compared without case, and a command for another bot is
// reported as not ours.
func Interpret(m claybot.AgentMessage, prefixes, self string) (out claybot.AgentMessage, ours bool) {
	text := strings.TrimSpace(m.Text)
	if text == "" || !strings.ContainsRune(prefixes, rune(text[0])) {
		return m, true
	}
	word, rest := text[1:], ""
	if i := strings.IndexAny(word, " \t\r\n"); i >= 0 {
		word, rest = word[:i], strings.TrimSpace(word[i:])
	}
	word, bot, addressed := strings.Cut(word, "@")
	word = strings.ToLower(word)
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
	case "undo", "approve", "deny", "help", "status", "why", "start", "tasks", "context", "compact":
		m.Type, m.Command, m.Text = claybot.MessageCommand, word, rest
	default:
		return m, true
	}
	return m, !addressed || strings.EqualFold(bot, self)
}
