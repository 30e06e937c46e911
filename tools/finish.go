package tools

import (
	"context"

	"github.com/claybot/claybot/llm"
)

// Finish is the name of the tool with which a model ends its run where a reply without a call
// does not. It reaches nothing, so neither lists of tools nor permissions nor limits keep it back.
const Finish = "finish"

// maxNote is the most bytes of a note; the result of the call holds it whole.
const maxNote = 16 << 10

// Finisher is the tool finish. The text of its result is the note.
func Finisher() Tool {
	type input struct {
		Note string `json:"note" jsonschema:"what you did, or why nothing is left to do: your answer"`
	}
	spec := Spec{
		Tool:   llm.Tool{Name: Finish, Description: "Ends your work on this request with a note. Call it alone, after all other calls."},
		Effect: ReadOnly, Public: true,
	}
	return New(spec, func(_ context.Context, _ Env, in input) (Result, error) {
		note, err := Required("note", in.Note, maxNote)
		return Result{Text: note}, err
	})
}
