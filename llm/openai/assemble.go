package openai

import (
	"encoding/json"
	"errors"

	sdk "github.com/sashabaranov/go-openai"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
)

// maxCalls bounds what a broken server can make the assembler hold.
const maxCalls = 1024

var errTooManyCalls = errors.New("the answer has too many tool calls")

// An assembler joins the pieces in which tool calls arrive. Pieces belong
// together by index; servers that leave the index out, or give every call the
// same one, begin a new call with a new id.
type assembler struct {
	calls   []claybot.ToolCall
	args    [][]byte
	byIndex map[int]int // index on the wire to position in calls
}

// add takes one piece.
func (a *assembler) add(piece sdk.ToolCall) error {
	at, known := a.find(piece)
	if !known {
		if len(a.calls) == maxCalls {
			return errTooManyCalls
		}
		at = len(a.calls)
		a.calls = append(a.calls, claybot.ToolCall{ID: piece.ID})
		a.args = append(a.args, nil)
		if piece.Index != nil {
			if a.byIndex == nil {
				a.byIndex = map[int]int{}
			}
			a.byIndex[*piece.Index] = at
		}
	}
	c := &a.calls[at]
	if c.ID == "" {
		c.ID = piece.ID
	}
	if piece.Function.Name != c.Name { // some servers repeat the whole name
		c.Name += piece.Function.Name
	}
	a.args[at] = append(a.args[at], piece.Function.Arguments...)
	return nil
}

// find returns the call that a piece continues.
func (a *assembler) find(piece sdk.ToolCall) (at int, known bool) {
	at = len(a.calls) - 1
	known = at >= 0
	if piece.Index != nil {
		at, known = a.byIndex[*piece.Index]
	}
	if !known {
		return 0, false
	}
	last := a.calls[at]
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
	for _, args := range a.args {
		if len(args) > 0 && !json.Valid(args) {
			return true
		}
	}
	return false
}

// finish returns the calls, each with an id that is in no other call of the
// chat: missing, repeated and impossible ids are replaced. Names and arguments
// stay as the model wrote them.
func (a *assembler) finish(seed string, chat []llm.Message) []claybot.ToolCall {
	if len(a.calls) == 0 {
		return nil
	}
	used := map[string]bool{}
	for _, m := range chat {
		for _, c := range m.Calls {
			used[c.ID] = true
		}
	}
	for i := range a.calls {
		a.calls[i].ID = llm.RepairCallID(a.calls[i].ID, seed, used)
		a.calls[i].Args = string(a.args[i])
	}
	return a.calls
}
