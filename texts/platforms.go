package texts

import "github.com/claybot/claybot"

// What replies to a button press or a form that has no effect.
const (
	ButtonDead = "This button no longer works."
	// NotYourRun replies to a person who presses the button that stops the answer to another one.
	NotYourRun    = "This answers another person, so it is not yours to stop."
	TelegramAgain = "Telegram rejected that. Please press the button again."
	SlackNoForm   = "The form did not open. Please press the button again, or write your answer here."
	SlackUnknown  = "I don't know what this belongs to, so nothing happened. Please write to me what you want."
	// SlackAnswersElsewhere stands above the answer to a slash command that Slack no longer shows where
	// the command was written.
	SlackAnswersElsewhere = "This answers your command in another conversation:"
	PromptsTitle          = "You can ask me, for example:"
	AnswerRejected        = "That answer was not accepted."
	argumentsFormat       = "To run it with other arguments, send them as JSON after the command:\n/approve %s {\"name\": \"value\"}"
)

// NoBusiness answers a user of Telegram who connected the bot to their business account.
const NoBusiness = "I can't act for a business account: I get none of its chats, and answer only what you write to me directly. You can disconnect me in Telegram's settings."

// What a person reads where they open the app.
const (
	HomeNow             = "Right now"
	HomeConversations   = "Your conversations"
	HomeTasks           = "Your tasks and reminders"
	HomeUsage           = "Your usage"
	HomePrivacy         = "Your privacy"
	HomeSettings        = "Your settings"
	HomeConversation    = "%d conversation, the last message %s|%d conversations, the last message %s"
	HomeNoConversations = "You have not written to me yet. Send me a message to begin."
	HomeNoAccess        = "You have no access to this app."
)

// A Prompt is what a person may ask, and its short name.
type Prompt struct{ Title, Message string }

// Prompts are suggested where a person opens a chat; PromptsTitle stands above them.
var Prompts = []Prompt{
	{"What can you do?", "What can you do for me?"},
	{"What is planned?", "Which tasks and reminders of mine are planned?"},
	{"Where were we?", "What did we talk about last?"},
}

// SendArguments says how to approve the action of a question with other arguments. People type the beginning of
// its id.
func (v Voice) SendArguments(question string) string {
	return v.Say(argumentsFormat, shortID(claybot.Question{ID: question}))
}
