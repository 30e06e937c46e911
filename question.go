package claybot

import "fmt"

// QuestionType says what an answer must look like.
type QuestionType string

// The types of questions.
const (
	QuestionText        QuestionType = "text"
	QuestionTextarea    QuestionType = "textarea"
	QuestionEmail       QuestionType = "email"
	QuestionEmailList   QuestionType = "email_list"
	QuestionDatetime    QuestionType = "datetime"
	QuestionDate        QuestionType = "date"
	QuestionTime        QuestionType = "time"
	QuestionNumber      QuestionType = "number"
	QuestionSelect      QuestionType = "select"
	QuestionMultiselect QuestionType = "multiselect"
	QuestionBoolean     QuestionType = "boolean"
	QuestionConfirm     QuestionType = "confirm" // approve or deny
)

// A Question is something a run must know before it goes on.
type Question struct {
	ID          string       `json:"id"`
	Key         string       `json:"key,omitempty"` // what the run calls the answer
	Text        string       `json:"text"`
	Type        QuestionType `json:"type"`
	Options     []string     `json:"options,omitempty"`
	Min         *float64     `json:"min,omitempty"` // length, number or count, by type
	Max         *float64     `json:"max,omitempty"`
	Format      string       `json:"format,omitempty"` // a regular expression for text
	Placeholder string       `json:"placeholder,omitempty"`
	Example     string       `json:"example,omitempty"`
	Required    bool         `json:"required"`
	Default     string       `json:"default,omitempty"` // the answer when nobody gave one in time
	Expires     Time         `json:"expires,omitempty"`
	ToolCallID  string       `json:"toolCallId,omitempty"`
	Digest      string       `json:"digest,omitempty"` // of what a confirm is about
	// Approvers are who alone may answer, as "connector/userId"; none: the
	// agent's own person.
	Approvers []string `json:"approvers,omitempty"`
	// Need is how many different people approve what a confirm is about, 0 for one,
	// and ApprovedBy who of them have: each is asked in a question of his own.
	Need       int      `json:"need,omitempty"`
	ApprovedBy []string `json:"approvedBy,omitempty"`
	Tool       string   `json:"tool,omitempty"` // that a confirm is about
	// Args are the arguments of that tool, as JSON, where who approves may edit
	// them; Rule is what approving it for good lets the agent do.
	Args string `json:"args,omitempty"`
	Rule string `json:"rule,omitempty"`
	// Once: a confirm for this action alone; it has no scope.
	Once bool `json:"once,omitempty"`
	// Explicit: in a chat, only a button or a command such as /approve answers.
	// What its person writes otherwise is a message like any other, and waits.
	Explicit bool `json:"explicit,omitempty"`
}

// Progress tells how far a confirm is that several people approve, such as "1 of 2
// approvals"; empty for any other question.
func (q Question) Progress() string {
	if q.Need < 2 {
		return ""
	}
	return fmt.Sprintf("%d of %d approvals", len(q.ApprovedBy), q.Need)
}

// AnswerID is the id of the message that answers q. There is one, so the first
// valid answer wins.
func (q Question) AnswerID() MessageID { return MessageID("answer/" + q.ID) }
