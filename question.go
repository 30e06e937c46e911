package claybot

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

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
	Default     string       `json:"default,omitempty"` // the answer when no user gave one in time
	Expires     Time         `json:"expires,omitempty"`
	ToolCallID  string       `json:"toolCallId,omitempty"`
	Digest      string       `json:"digest,omitempty"` // of what a confirm is about
	// Approvers are who alone may answer, as "connector/userId"; none: the
	// agent's own person.
	Approvers []string `json:"approvers,omitempty"`
	// Person is the person who alone answers a question without approvers, where its agent is
	// shared: the sender of the message that the run answers. Empty there: no member of the group.
	Person string `json:"person,omitempty"`
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

// The bounds of a question.
const (
	maxQuestion = 2000 // characters of its text
	maxOptions  = 50
	maxOption   = 100 // characters
	maxFormat   = 500 // bytes
	maxHint     = 500 // characters of placeholder, example and default
)

var keyForm = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`) // and at most 64 bytes

var questionTypes = []QuestionType{
	QuestionText, QuestionTextarea, QuestionEmail, QuestionEmailList, QuestionDatetime, QuestionDate, QuestionTime,
	QuestionNumber, QuestionSelect, QuestionMultiselect, QuestionBoolean, QuestionConfirm,
}

// Valid reports what is wrong with the definition of a question, naming the
// field, in words for the model that made it. A valid question can be answered,
// unless its format leaves no room for that.
func (q Question) Valid() error {
	for _, check := range []func() error{q.validTexts, q.validOptions, q.validBounds, q.validFormat, q.validDefault} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (q Question) validTexts() error {
	switch {
	case strings.TrimSpace(q.Text) == "":
		return fmt.Errorf("field question: must not be empty")
	case utf8.RuneCountInString(q.Text) > maxQuestion:
		return fmt.Errorf("field question: has more than %d characters", maxQuestion)
	case !slices.Contains(questionTypes, q.Type):
		return fmt.Errorf("field type: invalid question type %.40q; want one of %v", q.Type, questionTypes)
	case q.Key != "" && (len(q.Key) > 64 || !keyForm.MatchString(q.Key)):
		return fmt.Errorf("field key: %.80q; want 1 to 64 of A-Z a-z 0-9 _ . -", q.Key)
	}
	for field, v := range map[string]string{"placeholder": q.Placeholder, "example": q.Example, "default": q.Default} {
		if utf8.RuneCountInString(v) > maxHint {
			return fmt.Errorf("field %s: has more than %d characters", field, maxHint)
		}
	}
	return nil
}

func (q Question) validOptions() error {
	choice := q.Type == QuestionSelect || q.Type == QuestionMultiselect
	switch {
	case !choice && len(q.Options) > 0:
		return fmt.Errorf("field options: only select and multiselect have options, not %s", q.Type)
	case choice && len(q.Options) == 0:
		return fmt.Errorf("field options: must not be empty for %s", q.Type)
	case len(q.Options) > maxOptions:
		return fmt.Errorf("field options: %d are given, at most %d are taken", len(q.Options), maxOptions)
	}
	known := make(map[string]bool)
	for i, o := range q.Options {
		name := strings.ToLower(strings.TrimSpace(o))
		switch {
		case name == "":
			return fmt.Errorf("field options: option %d is empty", i+1)
		case utf8.RuneCountInString(o) > maxOption:
			return fmt.Errorf("field options: option %d has more than %d characters", i+1, maxOption)
		case o != strings.TrimSpace(o) || strings.Map(readable, o) != o || strings.ContainsAny(o, "\n\t") || !utf8.ValidString(o):
			return fmt.Errorf("field options: option %d must be one line without blanks around it", i+1)
		case known[name]:
			return fmt.Errorf("field options: %.80q is there twice", o)
		}
		known[name] = true
	}
	return nil
}

func (q Question) validBounds() error {
	if q.Min == nil && q.Max == nil {
		return nil
	}
	whole, most := true, float64(maxAnswer)
	switch q.Type {
	case QuestionText, QuestionTextarea:
	case QuestionMultiselect:
		most = float64(len(q.Options))
	case QuestionNumber:
		whole, most = false, math.MaxFloat64
	default:
		return fmt.Errorf("fields min and max: only text, textarea, number and multiselect have bounds, not %s", q.Type)
	}
	for field, v := range map[string]*float64{"min": q.Min, "max": q.Max} {
		switch {
		case v == nil:
		case math.IsNaN(*v) || math.IsInf(*v, 0):
			return fmt.Errorf("field %s: must be a number", field)
		case !whole:
		case *v < 0 || *v != math.Trunc(*v):
			return fmt.Errorf("field %s: %v; want a whole number that is not negative", field, *v)
		case field == "min" && *v > most:
			return fmt.Errorf("field min: %v is more than the possible %v", *v, most)
		case field == "max" && *v == 0:
			return fmt.Errorf("field max: 0 leaves no answer")
		}
	}
	if q.Min != nil && q.Max != nil && *q.Min > *q.Max {
		return fmt.Errorf("fields min and max: min %v is more than max %v", *q.Min, *q.Max)
	}
	return nil
}

func (q Question) validFormat() error {
	switch {
	case q.Format == "":
		return nil
	case q.Type != QuestionText && q.Type != QuestionTextarea:
		return fmt.Errorf("field format: only text and textarea have a format, not %s", q.Type)
	case len(q.Format) > maxFormat:
		return fmt.Errorf("field format: has %d bytes, at most %d are taken", len(q.Format), maxFormat)
	}
	if _, err := q.format(); err != nil {
		return fmt.Errorf("field format: no regular expression in the syntax of RE2: %w", err)
	}
	return nil
}

// validDefault refuses a default that would be refused as an answer. Silence is
// never an approval.
func (q Question) validDefault() error {
	if q.Default == "" {
		return nil
	}
	v, err := q.Check(q.Default, nil)
	if err != nil {
		return fmt.Errorf("field default: %w", err)
	}
	if q.Type == QuestionConfirm && string(v) == "true" {
		return fmt.Errorf("field default: an approval without an answer is not approved, so true is not allowed")
	}
	return nil
}
