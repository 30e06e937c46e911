package worker

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

// maxResult is the maximum size of a graph's output that is stored with a run, in bytes.
// The history has all of it.
const maxResult = 256 << 10

// engines are the registered engines by name.
type engines map[string]runs.Engine

// named returns an engine by name, or the default engine if name is empty; nil if it
// does not exist.
func (e engines) named(name string) runs.Engine {
	name, _, _ = strings.Cut(name, ":") // what follows is for the engine
	return e[cmp.Or(name, claybot.EngineReact)]
}

// compactor returns the compactor of an engine or, if it has none, that of the
// default engine.
func (e engines) compactor(name string) (runs.Compactor, bool) {
	if c, ok := e.named(name).(runs.Compactor); ok {
		return c, true
	}
	c, ok := e[claybot.EngineReact].(runs.Compactor)
	return c, ok
}

// Engines returns the names of all engines.
func (s *Worker) Engines() []string {
	var names []string
	for name := range s.engines {
		if name != claybot.EngineUndo && name != claybot.EngineFlow {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Shapes returns the shapes of the engines that are graphs.
func (s *Worker) Shapes() map[string]runs.Shape {
	all := make(map[string]runs.Shape)
	for name, e := range s.engines {
		if g, ok := e.(runs.Shaped); ok {
			all[name] = g.Shape()
		}
	}
	if s.parts.Flows != nil {
		maps.Copy(all, s.parts.Flows.Shapes())
	}
	return all
}

// Flows are the workflows of the installation.
type Flows interface {
	// Engine returns the engine of a run that begins now.
	Engine(claybot.FlowStart) string
	// Max is how many runs of a flow may be at work here at the same time; 0: there is no limit.
	Max(flow string) int
	// Shapes are the graphs of the flows, by their engines.
	Shapes() map[string]runs.Shape
}

// beginsWith returns what a run begins with: its engine is the version of its flow that is in force, or what
// engineFor returns.
func (s *Worker) beginsWith(batch []claybot.AgentMessage, profile profiles.Profile) storage.Beginning {
	with := storage.Beginning{Engine: engineFor(batch, profile), Traceparent: runs.Caller(batch)}
	for _, m := range batch {
		if m.Flow != nil && s.parts.Flows != nil {
			with.Engine = s.parts.Flows.Engine(*m.Flow)
			break
		}
	}
	return with
}

// engineFor returns the engine of a run that starts with a batch: the requested
// one, or that of the profile.
func engineFor(batch []claybot.AgentMessage, profile profiles.Profile) string {
	engine := ""
	for _, m := range batch {
		switch {
		case m.Undo != nil:
			return claybot.EngineUndo
		case m.Flow != nil:
			return claybot.EngineFlow
		}
		engine = cmp.Or(m.Engine, engine)
	}
	return cmp.Or(engine, profile.Engine, claybot.EngineReact)
}

// Starting returns what lets a message begin a run as it is posted; nil if its agent has to
// be looked at first.
func (s *Worker) Starting(agent claybot.Agent, m claybot.AgentMessage) *storage.Start {
	if _, faulty := s.Faults.At(agent.Descriptor.Key()); faulty || s.Recovery.isActive() || s.isDraining() || s.parts.Stopped(agent) != "" {
		return nil
	}
	profile := s.parts.Profiles.Of(agent.ID, agent.Descriptor)
	return s.parts.Boxes.Starting(claybot.RunID(runs.NewID()), s.beginsWith([]claybot.AgentMessage{m}, profile))
}

// EngineOf returns the engine of a run that has none recorded.
func (s *Worker) EngineOf(ctx context.Context, run claybot.Run) (string, error) {
	for _, id := range slices.Backward(run.Messages) {
		r, err := s.stores.Receipts.Receipt(ctx, id)
		switch {
		case errors.Is(err, storage.ErrNotFound): // pruned
			continue
		case err != nil:
			return "", err
		case r.Message.Engine != "":
			return r.Message.Engine, nil
		}
	}
	if run.State.Ended() {
		return claybot.EngineReact, nil // the only one in older versions
	}
	e, err := s.stores.Index.IndexedAgentByID(ctx, run.Agent)
	if err != nil {
		return "", storage.Ignore(err, storage.ErrNotFound)
	}
	return cmp.Or(s.parts.Profiles.Of(run.Agent, e.Descriptor).Engine, claybot.EngineReact), nil
}
