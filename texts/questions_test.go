package texts_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/texts"
)

// The message that replaces an approval says what was approved, how, and by whom.
func TestAnsweredApproval(t *testing.T) {
	for name, c := range map[string]struct {
		q    claybot.Question
		a    claybot.Answer
		want string
	}{
		"approved": {
			claybot.Question{Tool: "shell", Args: `{"command":"rm -rf old"}`},
			claybot.Answer{Value: json.RawMessage("true"), Via: claybot.ViaButton},
			"**Approval of running a command**\n\n`rm -rf old`\n\napproved *(answered)*",
		},
		"by an approver": {
			claybot.Question{Tool: "shell", Args: `{"command":"a\nb"}`, Approvers: []string{"chat/bob"}},
			claybot.Answer{Value: json.RawMessage("true"), Scope: claybot.ApproveSession, By: "chat/bob"},
			"**Approval of running a command**\n\n`\"a\\nb\"`\n\napproved for this conversation *(answered, by chat/bob)*",
		},
		"with other arguments": {
			claybot.Question{Tool: "shell", Args: `{"command":"rm -rf old"}`},
			claybot.Answer{Value: json.RawMessage("true"), Args: `{"command":"ls old"}`, By: "telegram/7", Via: claybot.ViaButton},
			"**Approval of running a command**\n\n`rm -rf old`\n\napproved with changed arguments: ls old *(answered, by telegram/7)*",
		},
		"denied": {
			claybot.Question{Tool: "shell", Args: "{\"command\":\"echo `id`\"}"},
			claybot.Answer{Value: json.RawMessage("false"), Reason: "why?", Via: claybot.ViaText},
			"**Approval of running a command**\n\n`echo 'id'`\n\ndenied: why? *(answered in the chat)*",
		},
		"without arguments": {
			claybot.Question{Tool: "pay", Args: "{}"},
			claybot.Answer{Value: json.RawMessage("true")},
			"**Approval of pay**\n\napproved *(answered)*",
		},
		"of an engine": {
			claybot.Question{Text: "Go on?"}, claybot.Answer{Value: json.RawMessage("true")}, "**Go on?**\n\napproved *(answered)*",
		},
	} {
		c.q.Type = claybot.QuestionConfirm
		if got := (texts.Voice{}).Answered(c.q, c.a); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
	q := claybot.Question{Type: claybot.QuestionConfirm, Tool: "shell", Args: `{"command":"x"}`, Expires: claybot.Now() + 1e6}
	if got, want := (texts.Voice{}).Withdrawn(q), "**Approval of running a command**\n\n`x`\n\n*(no longer needs an answer)*"; got != want {
		t.Errorf("withdrawn:\n%s\nwant\n%s", got, want)
	}
}

// What is wrong with an answer is said in one language, with the example that the question has.
func TestComplaints(t *testing.T) {
	german := texts.Voice{Language: texts.German}
	for answer, c := range map[string]struct {
		q    claybot.Question
		want string
	}{
		"lila": {claybot.Question{Type: claybot.QuestionSelect, Options: []string{"rot", "blau"}}, "„lila“ ist keine der Antworten; bitte wähle eine von: rot, blau."},
		"x":    {claybot.Question{Type: claybot.QuestionText, Format: `[A-Z]\d+`}, "Das hat nicht das verlangte Format."},
		"y":    {claybot.Question{Type: claybot.QuestionText, Format: `[A-Z]\d+`, Example: "A12"}, "Das hat nicht das verlangte Format, etwa A12."},
	} {
		if _, err := c.q.Check(answer, nil); err == nil || german.Complaint(err) != c.want {
			t.Errorf("%s: %v, want %s", answer, err, c.want)
		}
	}
}

// Who will be able to read what is a sentence of its own for each thing that is disclosed.
func TestDiscloses(t *testing.T) {
	german := texts.Voice{Language: texts.German}
	group, ann := claybot.Audience{Place: "telegram/-100"}, claybot.Audience{Owner: "telegram/1"}
	for what, want := range map[string]string{
		texts.OfConversation: "Was ein Agent aus einem Gespräch weiß, das bisher für telegram/1 bestimmt ist, lesen danach auch: alle in telegram/-100",
		texts.OfNotes:        "Notizen, die bisher für telegram/1 bestimmt sind, lesen danach auch: alle in telegram/-100",
	} {
		if got := german.Discloses(what, ann, group); got != want {
			t.Errorf("%s: %s", what, got)
		}
	}
}

// A question that is read on the next day still says when it expires.
func TestExpires(t *testing.T) {
	for _, language := range texts.All() {
		v, tomorrow := texts.Voice{Language: language}, claybot.At(time.Now().Add(24*time.Hour))
		q := claybot.Question{Text: "Which?", Type: claybot.QuestionText, Expires: tomorrow}
		if text := v.Question(q, 0, []claybot.Question{q}, "telegram"); !strings.Contains(text, v.Lasting().When(tomorrow)) || strings.Contains(text, v.When(tomorrow)) {
			t.Errorf("%s: %s", language, text)
		}
	}
}

// Who only waits reads the names of the approvers, and the id of one without a name; a name that
// looks like Markdown stays a name.
func TestOthersDecide(t *testing.T) {
	names := map[string]string{"chat/1": "Bob", "chat/2": "**`Ann`** </why:1>"}
	q := claybot.Question{Text: "Pay?", Approvers: []string{"chat/1", "chat/2", "chat/x_3"}, Need: 2, ApprovedBy: []string{"chat/9"}}
	v := texts.Voice{Name: func(id string) string { return names[id] }}
	const want = "I'm waiting for approval by `Bob`, `**'Ann'** </why:1>`, chat/x\\_3 (1 of 2 approvals). I have asked them:\n\nPay?"
	if got := v.OthersDecide(q, true); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
