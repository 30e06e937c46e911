package agentsystem

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

// ways implements overview.Connectors.
type ways struct{ system *AgentSystem }

func (w ways) Running() bool {
	w.system.mu.Lock()
	defer w.system.mu.Unlock()
	return w.system.running
}

func (w ways) All() []connectors.Connector {
	w.system.mu.Lock()
	defer w.system.mu.Unlock()
	return slices.SortedFunc(maps.Values(w.system.connectors), func(a, b connectors.Connector) int { return strings.Compare(a.Name(), b.Name()) })
}

func (w ways) Held(name string) string { return w.system.holding.held(name) }

func (w ways) Stuck(name string) string { return w.system.intake.stuck(name) }

// health implements overview.Health.
type health struct{ system *AgentSystem }

func (h health) Unwell() (why string, ready bool) {
	return h.system.Worker.Unwell.Says(), !h.system.Worker.Unwell.Spread()
}

func (h health) Faults() []overview.AgentFault {
	faults := h.system.Worker.Faults.List()
	all := make([]overview.AgentFault, len(faults))
	for i, x := range faults {
		all[i] = overview.AgentFault{Key: x.Key, ID: x.Agent, Since: claybot.At(x.Since), Cause: x.Cause}
	}
	return all
}

func (h health) Parked() (totals storage.ParkedTotals, full bool) {
	if t := h.system.parking.totals.Load(); t != nil {
		totals = *t
	}
	return totals, h.system.parking.full.Load()
}

func (h health) CountParked(ctx context.Context) error {
	_, err := h.system.countParked(ctx)
	return err
}

func (h health) Start() *overview.StartStatus { return h.system.comingBack() }

// work implements overview.Work.
type work struct{ system *AgentSystem }

func (w work) Working() int { return w.system.Working() }

func (w work) Busy(id claybot.AgentID) bool { return w.system.boxes.Busy(id) }

func (w work) SwitchedOff(ctx context.Context, agent claybot.Agent) *runs.Error {
	if w.system.SwitchedOff == nil {
		return nil
	}
	return w.system.SwitchedOff(ctx, agent)
}

func (w work) Advice(agent claybot.Agent, e *runs.Error) string {
	return w.system.Worker.AdviceOn(agent, e)
}

func (w work) ContextSize(ctx context.Context, agent claybot.Agent) (string, error) {
	return w.system.Worker.ContextSize(ctx, agent)
}

func (w work) EngineOf(ctx context.Context, run claybot.Run) (string, error) {
	return w.system.Worker.EngineOf(ctx, run)
}
