package slack

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/texts"
)

// Buttons and forms are in the language of their readers; what a button sends is the same in all.
func TestButtonsInGerman(t *testing.T) {
	german := texts.Voice{Language: texts.German}
	for _, q := range []claybot.Question{
		{ID: "q", Type: claybot.QuestionConfirm, Tool: "pay", Args: "{}"},
		{ID: "q", Type: claybot.QuestionBoolean},
		{ID: "q", Type: claybot.QuestionText},
		{ID: "q", Type: claybot.QuestionDatetime},
		{ID: "q", Type: claybot.QuestionMultiselect},
		{ID: "q", Type: claybot.QuestionSelect, Options: manyOptions(9, 5)},
	} {
		view := formOf(q).view(german, "?")
		view.PrivateMetadata = ""
		b, err := json.Marshal([]any{(&Connector{}).layouts(german, claybot.Outgoing{Question: &q}, "?")[0], view})
		if err != nil {
			t.Fatal(err)
		}
		got := string(b)
		for _, english := range []string{"Approve", "Deny", "Edit", "Skip", "Answer", "Choose", "Your ", "Cancel", "A question", "In your", "The answer", "Yes", "No"} {
			if strings.Contains(got, `"text":"`+english) {
				t.Errorf("%s: %q in %s", q.Type, english, got)
			}
		}
		if q.Type == claybot.QuestionBoolean && (!strings.Contains(got, `"text":"Ja"`) || !strings.Contains(got, `\"v\":\"Yes\"`)) {
			t.Errorf("yes or no: %s", got)
		}
	}
}
