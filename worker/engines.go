package worker

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

// maxResult is the most bytes of the output of a graph that are stored with a run. History
// has all of it.
const maxResult = 256 << 10

// engines are those that agents may have, by name.
type engines map[string]runs.Engine

// named returns an engine by name, by default the one of chats; nil when there is none.
func (e engines) named(name string) runs.Engine { return e[cmp.Or(name, claybot.EngineReact)] }

// compactor looks after the size of what agents remember: their engine or, where that
// cannot, the one of chats.
func (e engines) compactor(name string) (runs.Compactor, bool) {
	if c, ok := e.named(name).(runs.Compactor); ok {
		return c, true
	}
	c, ok := e[claybot.EngineReact].(runs.Compactor)
	return c, ok
}

// Engines are the names of those that an agent may have.
func (s *Worker) Engines() []string {
	var names []string
	for name := range s.engines {
		if name != claybot.EngineUndo {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Shapes are the engines that are graphs, to be drawn.
func (s *Worker) Shapes() map[string]runs.Shape {
	all := make(map[string]runs.Shape)
	for name, e := range s.engines {
		if g, ok := e.(runs.Shaped); ok {
			all[name] = g.Shape()
		}
	}
	return all
}

// engineFor is the engine of a run that begins with a batch: the one it was
// asked for, or that of the profile.
func engineFor(batch []claybot.AgentMessage, profile profiles.Profile) string {
	engine := ""
	for _, m := range batch {
		if m.Undo != nil {
			return claybot.EngineUndo
		}
		engine = cmp.Or(m.Engine, engine)
	}
	return cmp.Or(engine, profile.Engine, claybot.EngineReact)
}

// EngineOf is the engine of a run that no pass has told it of yet.
func (s *Worker) EngineOf(ctx context.Context, run claybot.Run) (string, error) {
	for _, id := range slices.Backward(run.Messages) {
		r, err := s.stores.Receipts.Receipt(ctx, id)
		switch {
		case errors.Is(err, storage.ErrNotFound): // forgotten by now
			continue
		case err != nil:
			return "", err
		case r.Message.Engine != "":
			return r.Message.Engine, nil
		}
	}
	if run.State.Ended() {
		return claybot.EngineReact, nil // the only one there was
	}
	e, err := s.stores.Index.IndexedAgentByID(ctx, run.Agent)
	if err != nil {
		return "", storage.Ignore(err, storage.ErrNotFound)
	}
	return cmp.Or(s.parts.Profiles.Of(run.Agent, e.Descriptor).Engine, claybot.EngineReact), nil
}
