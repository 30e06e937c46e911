package openai

import (
	"encoding/json"
	"errors"

	sdk "github.com/sashabaranov/go-openai"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm/provider"
)

// maxCalls bounds what a broken server can make the assembler hold.
const maxCalls = 1024

var errTooManyCalls = errors.New("the answer has too many tool calls")

// An assembler joins the pieces in which tool calls arrive. Pieces belong
// together by index; servers that leave the index out, or give every call the
// same one, begin a new call with a new id.
type assembler struct {
	*provider.Answer
	byIndex map[int]int // index on the wire to position in calls
}

func (a *assembler) add(piece sdk.ToolCall) error {
	at, known := a.find(piece)
	if !known {
		if len(a.Calls) == maxCalls {
			return errTooManyCalls
		}
		at = len(a.Calls)
		a.Calls = append(a.Calls, claybot.ToolCall{ID: piece.ID})
		a.Args = append(a.Args, nil)
		if piece.Index != nil {
			if a.byIndex == nil {
				a.byIndex = map[int]int{}
			}
			a.byIndex[*piece.Index] = at
		}
	}
	c := &a.Calls[at]
	if c.ID == "" {
		c.ID = piece.ID
	}
	if piece.Function.Name != c.Name { // some servers repeat the whole name
		c.Name += piece.Function.Name
	}
	a.Args[at] = append(a.Args[at], piece.Function.Arguments...)
	return nil
}

func (a *assembler) find(piece sdk.ToolCall) (at int, known bool) {
	at = len(a.Calls) - 1
	known = at >= 0
	if piece.Index != nil {
		at, known = a.byIndex[*piece.Index]
	}
	if !known {
		return 0, false
	}
	last := a.Calls[at]
	switch {
	case piece.Function.Name == "":
		return at, true
	case piece.ID != "":
		return at, last.ID == "" || last.ID == piece.ID
	}
	return at, piece.Index != nil || last.Name == ""
}

// half reports whether a call's arguments are not complete.
func (a *assembler) half() bool {
	for _, args := range a.Args {
		if len(args) > 0 && !json.Valid(args) {
			return true
		}
	}
	return false
}
