package slack

import (
	"encoding/json"
	"strings"
	"testing"

	slackapi "github.com/slack-go/slack"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/texts"
)

// The window of Edit has the arguments, and what is sent in it approves with
// those that stand there. Ones that fit into no button are edited by writing.
func TestEditForm(t *testing.T) {
	q := claybot.Question{ID: "q1", Text: "Pay?", Type: claybot.QuestionConfirm, Required: true, Tool: "pay", Args: `{"sum":5,"to":"<b> & co"}`}
	edit := func(q claybot.Question) (f form, ok bool) {
		for _, e := range approval(texts.Voice{}, q) {
			if b := e.(*slackapi.ButtonBlockElement); b.Text.Text == "Edit…" {
				return f, json.Unmarshal([]byte(b.Value), &f) == nil
			}
		}
		return f, false
	}
	f, ok := edit(q)
	if !ok || !f.Edit || f.Default != q.Args {
		t.Fatalf("%+v %v", f, ok)
	}
	f.Channel = "T1/D1"
	view := f.view(texts.Voice{}, "Pay?")
	input, ok := view.Blocks.BlockSet[len(view.Blocks.BlockSet)-1].(*slackapi.InputBlock)
	if !ok || input.Element.(*slackapi.PlainTextInputBlockElement).InitialValue != q.Args || view.Submit.Text != "Run edited" {
		t.Errorf("the window is %+v", view)
	}
	for sent, want := range map[string]string{` {"sum":3} `: `{"sum":3}`, " ": ""} {
		var p interactive
		p.Type, p.User.ID, p.User.Team = "view_submission", "U1", "T1"
		p.View.Callback, p.View.Metadata = callbackForm, view.PrivateMetadata
		p.View.State.Values = map[string]map[string]field{blockQuestion + "q1": {actionAnswer: {Value: sent}}}
		got, ok := p.submission("slack", me)
		if ok != (want != "") || ok && (got.press.Answer.Text != "approve" || got.press.Answer.Args != want || got.press.Answer.Reason != "") {
			t.Errorf("%q: %+v %v", sent, got.press, ok)
		}
	}
	q.Args = `{"a":"` + strings.Repeat("x", maxValueChars) + `"}`
	if _, ok := edit(q); ok {
		t.Error("a button has more than Slack takes")
	}
	if _, ok := edit(claybot.Question{ID: "q1", Type: claybot.QuestionConfirm, Tool: "pay"}); ok {
		t.Error("what has no arguments can be edited")
	}
}
