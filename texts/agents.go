package texts

import (
	"fmt"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// What agents and operators read is in English, whatever language people have.

// ParkingFull reports in the status that parking is full.
const ParkingFull = "the parking table is full: too many messages are waiting for agents that cannot be used; fix the cause that the log names, or drop messages with `claybot parked drop`"

const edited = "The user has edited an earlier message of theirs. It now reads:\n"

// Edited tells an agent that a message which it has read was changed.
func Edited(text string) string { return edited + text }

// EditedText returns the text that Edited was called with.
func EditedText(note string) string { return strings.TrimPrefix(note, edited) }

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

// Shorten cuts a text at a rune border.
func Shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + fmt.Sprintf("\n[… %d bytes left out]", len(text)-limit)
}

// Why a file of a message cannot be read: the end of a sentence, for agents.
const (
	TelegramFileTooLarge = "it is too large; Telegram limits bots to 20 MB"
	TelegramFileGone     = "Telegram no longer provides it; please send it again"
	SlackFileTooLarge    = "it is too large; the limit is 20 MiB"
	SlackFileGone        = "it no longer exists"
	SlackFileExternal    = "it is stored outside Slack and cannot be read here"
	SlackFileNoScope     = "Slack refuses to serve it because the app lacks the scope files:read; an operator can add it at api.slack.com/apps, OAuth & Permissions"
	SlackFileForeign     = "its URL does not point to Slack"
	DiscordFileGone      = "Discord no longer provides it; please send it again"
	DiscordFileForeign   = "its URL does not point to Discord"
)

// FilesFull is the reason for a file that exceeds the quota of its owner.
func FilesFull(limit int64) string {
	return fmt.Sprintf("it was not stored, because the files of this person take up the %s that they may take; the person was told so", connectors.FileSize(limit))
}

// FileTooLarge is the reason for a file of more than limit bytes.
func FileTooLarge(limit int64) string {
	return fmt.Sprintf("it is too large; the limit is %d MiB", limit>>20)
}
