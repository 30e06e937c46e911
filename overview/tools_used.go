package overview

import (
	"context"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

// maxToolsUsed bounds the tool calls listed of a run, newest first.
const maxToolsUsed = 100

// ToolsOf lists the tool calls of a finished run in the order in which they ended. It
// lists none for an unfinished run or after its events were pruned.
func (o *Listings) ToolsOf(ctx context.Context, id claybot.RunID) ([]connectors.ToolUse, error) {
	run, err := o.Runs.Run(ctx, id)
	if err != nil {
		return nil, storage.Ignore(err, storage.ErrNotFound)
	}
	if !run.State.Ended() || run.Usage.ToolCalls == 0 {
		return nil, nil
	}
	var used []connectors.ToolUse
	args := make(map[string]string)
	for e, err := range o.Runs.Events(ctx, id, max(0, run.LastSeq-maxStoryEvents)) {
		if err != nil {
			return nil, fmt.Errorf("read the events of run %s: %w", id, err)
		}
		switch e.Type {
		case claybot.EventToolCalled:
			d := runs.DataOf[runs.ToolStarted](e)
			args[d.CallID] = d.ArgsPreview
		case claybot.EventToolSucceeded, claybot.EventToolFailed:
			d := runs.DataOf[runs.ToolEnded](e)
			used = append(used, connectors.ToolUse{
				CallID: d.CallID, Tool: d.Tool, Args: args[d.CallID], OK: e.Type == claybot.EventToolSucceeded, Error: d.Error, MS: d.MS,
			})
		}
	}
	return used[max(0, len(used)-maxToolsUsed):], nil
}
