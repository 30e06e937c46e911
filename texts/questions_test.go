package texts_test

import (
	"encoding/json"
	"testing"

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
			"**Approval of shell**\n\n`{\"command\":\"rm -rf old\"}`\n\napproved *(answered)*",
		},
		"by an approver": {
			claybot.Question{Tool: "shell", Args: `{"command":"a\nb"}`, Approvers: []string{"chat/bob"}},
			claybot.Answer{Value: json.RawMessage("true"), Scope: claybot.ApproveSession, By: "chat/bob"},
			"**Approval of shell**\n\n`{\"command\":\"a\\nb\"}`\n\napproved for this conversation *(answered, by chat/bob)*",
		},
		"with other arguments": {
			claybot.Question{Tool: "shell", Args: `{"command":"rm -rf old"}`},
			claybot.Answer{Value: json.RawMessage("true"), Args: `{"command":"ls old"}`, By: "telegram/7", Via: claybot.ViaButton},
			"**Approval of shell**\n\n`{\"command\":\"rm -rf old\"}`\n\napproved with changed arguments: {\"command\":\"ls old\"} *(answered, by telegram/7)*",
		},
		"denied": {
			claybot.Question{Tool: "shell", Args: "{\"command\":\"echo `id`\"}"},
			claybot.Answer{Value: json.RawMessage("false"), Reason: "why?", Via: claybot.ViaText},
			"**Approval of shell**\n\n`{\"command\":\"echo 'id'\"}`\n\ndenied: why? *(answered in the chat)*",
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
	if got, want := (texts.Voice{}).Withdrawn(q), "**Approval of shell**\n\n`{\"command\":\"x\"}`\n\n*(no longer needs an answer)*"; got != want {
		t.Errorf("withdrawn:\n%s\nwant\n%s", got, want)
	}
}
