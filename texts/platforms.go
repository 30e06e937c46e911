package texts

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
func (v Voice) SendArguments(id string) string { return v.Say(argumentsFormat, id) }
