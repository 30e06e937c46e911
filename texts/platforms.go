package texts

import "fmt"

// What replies to a button press or a form that has no effect.
const (
	ButtonDead      = "This button no longer works."
	TelegramAgain   = "Telegram rejected that. Please press the button again."
	SlackNoForm     = "The form did not open. Please press the button again, or write your answer here."
	AnswerRejected  = "That answer was not accepted."
	argumentsFormat = "To run it with other arguments, send them as JSON after the command:\n/approve %s {\"name\": \"value\"}"
)

// SendArguments says how to approve the action of a question with other arguments; id
// begins the id of the question.
func SendArguments(id string) string { return fmt.Sprintf(argumentsFormat, id) }

// Why a file of a message cannot be read: the end of a sentence, for people and models.
const (
	TelegramFileTooLarge = "it is too large; Telegram limits bots to 20 MB"
	TelegramFileGone     = "Telegram no longer provides it; please send it again"
	SlackFileTooLarge    = "it is too large; the limit is 20 MiB"
	SlackFileGone        = "it no longer exists"
	SlackFileExternal    = "it is stored outside Slack and cannot be read here"
	SlackFileNoScope     = "Slack refuses to serve it because the app lacks the scope files:read; an operator can add it at api.slack.com/apps, OAuth & Permissions"
	SlackFileForeign     = "its URL does not point to Slack"
)

// FileTooLarge is the reason for a file of more than limit bytes.
func FileTooLarge(limit int64) string {
	return fmt.Sprintf("it is too large; the limit is %d MiB", limit>>20)
}
