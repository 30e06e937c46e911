package texts

// The labels of buttons below a question.
const (
	LabelApprove    = "Approve"
	LabelDeny       = "Deny"
	LabelDenyReason = "Deny with a reason…"
	LabelSession    = "Approve for this session"
	LabelEdit       = "Edit"
	LabelEditForm   = "Edit…"
	LabelYes        = "Yes"
	LabelNo         = "No"
	LabelDone       = "Done"
	LabelSkip       = "Skip"
	LabelStop       = "Stop"
	LabelAnswer     = "Answer…"
	LabelAnswerAll  = "Answer all…"
	LabelGood       = "A good answer"
	LabelBad        = "A bad answer"

	FeedbackThanks   = "Thank you for your feedback."
	FeedbackNotTaken = "Your feedback was not recorded."
)

// What the form of a shortcut says.
const (
	AskQuestion = "Your question"
	AskWhere    = "The answer comes as a direct message."
	AskNoDirect = "I cannot open a direct chat with you now. Try again, or write to me in direct messages."
)

// What a form with one question says.
const (
	FormTitle     = "A question"
	FormTitles    = "Questions"
	FormAnswer    = "Your answer"
	FormSend      = "Send"
	FormCancel    = "Cancel"
	FormClose     = "Close"
	FormWhyNot    = "Why not?"
	FormArguments = "Arguments"
	FormRunEdited = "Run edited"
	FormChooseOne = "Choose one"
	FormChoose    = "Choose"

	HintArguments = "A JSON object. What you send here is what runs."
	HintEmails    = "Several addresses: on lines of their own, or with commas."
	HintZone      = "In your own time zone."
	HintOption    = "The answer as it stands in the question."
	HintOptions   = "The answers as they stand in the question, each on a line of its own."
)
