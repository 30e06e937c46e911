package react

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

// The two nodes of the loop, as events call them.
const (
	nodeModel = "model"
	nodeTools = "tools"
)

// node tells that a part of the loop begins and ends. The beginning is told at
// once where somebody may have to wait for the part and nothing else is stored
// before it.
func (p *pass) node(ctx context.Context, name string, iteration int, now bool, part func() (result string, err error)) error {
	began, result := time.Now(), ""
	err := p.turn.Emit(ctx, now, runs.NodeBegan(p.turn.Run.ID, name, iteration))
	if err == nil { // else it may be told later all the same, and nodes come in pairs
		result, err = part()
	}
	var wait *runs.WaitError
	switch {
	case errors.As(err, &wait):
		result = "waits"
	case ctx.Err() != nil:
		result = "cut off"
	case err != nil:
		result = "failed"
	}
	told := p.turn.Emit(ctx, false, runs.NodeEnded(p.turn.Run.ID, name, iteration, result, time.Since(began)))
	if err == nil {
		err = told
	}
	return err
}

// summed says in a few words what a model call came to.
func summed(calls []claybot.ToolCall) string {
	switch n := len(calls); n {
	case 0:
		return "answered"
	case 1:
		return "1 tool call"
	default:
		return fmt.Sprintf("%d tool calls", n)
	}
}
