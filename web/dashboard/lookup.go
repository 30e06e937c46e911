package dashboard

import (
	"context"
	"errors"
	"net/http"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// A lookup reads rows of agents and runs, with their names.
type lookup struct {
	agents web.Agents
	runs   web.Runs
}

func (b lookup) agentRows(r *http.Request, all []storage.IndexEntry) (rows []agentRow, err error) {
	for _, e := range all {
		row, err := b.agentRow(r, e)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (b lookup) agentRow(r *http.Request, e storage.IndexEntry) (agentRow, error) {
	row := agentRow{Name: calledAs(e)}
	var err error
	if row.Model, err = b.lastModel(r.Context(), e); err != nil {
		return row, err
	}
	row.AgentView, err = web.ViewAgent(r.Context(), b.runs, e)
	return row, err
}

// lastModel is the model of the newest run of an agent that has tokens and no
// cost, see modelOf.
func (b lookup) lastModel(ctx context.Context, e storage.IndexEntry) (string, error) {
	if e.Usage.CostMicroUSD != 0 || e.Usage.Input+e.Usage.Output == 0 {
		return "", nil
	}
	newest, err := b.runs.RunPage(ctx, storage.RunQuery{Agent: e.ID, Limit: 2}) // a run in flight has no totals yet
	for _, run := range newest {
		if model, err := b.modelOf(ctx, run); err != nil || model != "" {
			return model, err
		}
	}
	return "", err
}

func (b lookup) runRowsOf(ctx context.Context, all []claybot.Run) ([]runRow, error) {
	names := make(map[claybot.AgentID]runRow)
	rows := make([]runRow, len(all))
	for i, run := range all {
		model, err := b.modelOf(ctx, run)
		if _, ok := names[run.Agent]; !ok && err == nil {
			names[run.Agent], err = b.runRowOf(ctx, run)
		}
		if err != nil {
			return nil, err
		}
		rows[i] = runRow{Run: run, Name: names[run.Agent].Name, Model: model, Of: names[run.Agent].Of}
	}
	return rows, nil
}

// runRowOf names the agent of a run.
func (b lookup) runRowOf(ctx context.Context, run claybot.Run) (runRow, error) {
	e, err := b.agents.Agent(ctx, run.Agent)
	if errors.Is(err, storage.ErrNotFound) {
		return runRow{Run: run, Name: string(run.Agent)}, nil
	}
	return runRow{Run: run, Name: calledAs(e), Of: e.Descriptor}, err
}

// firstAnswer is the number of first events of a run that are searched for its
// first answer.
const firstAnswer = 20

// modelOf is the model that a run used first, where it has tokens and no cost:
// its price is unknown, or it is free. Empty when its events are gone.
func (b lookup) modelOf(ctx context.Context, run claybot.Run) (string, error) {
	if run.Usage.CostMicroUSD != 0 || run.Usage.Input+run.Usage.Output == 0 {
		return "", nil
	}
	for e, err := range b.runs.Events(ctx, run.ID, 0) {
		if err != nil {
			return "", err
		}
		if e.Type == claybot.EventAssistantMessage {
			return facts[runs.AssistantMessage](e).Model, nil
		}
		if e.Seq >= firstAnswer {
			break
		}
	}
	return "", nil
}

// agentName returns the name of an agent, or the id of a deleted one.
func (b lookup) agentName(ctx context.Context, id claybot.AgentID) (string, error) {
	e, err := b.agents.Agent(ctx, id)
	if errors.Is(err, storage.ErrNotFound) {
		return string(id), nil
	}
	return calledAs(e), err
}

// maxDepth limits the walk to the root, in case of a cycle.
const maxDepth = 16

// ancestors returns the agents above e, up to the first deleted one.
func (b lookup) ancestors(ctx context.Context, e storage.IndexEntry) ([]agentRow, error) {
	var above []agentRow
	for range maxDepth {
		if e.Descriptor.Parent == "" {
			break
		}
		parent, err := b.agents.Agent(ctx, e.Descriptor.Parent)
		if err != nil {
			return above, ignoreGone(err)
		}
		above = append([]agentRow{{AgentView: web.AgentView{ID: parent.ID}, Name: calledAs(parent)}}, above...)
		e = parent
	}
	return above, nil
}
