package worker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

// maxResult is the most bytes of what a graph has put out that a run is stored
// with. History has all of it.
const maxResult = 256 << 10

// engine returns an engine by name; nil when there is none.
func (s *Worker) engine(name string) (string, runs.Engine) {
	name = cmp.Or(name, claybot.EngineReact)
	return name, s.engines[name]
}

// keeper looks after the size of what the agents of a profile remember: their
// engine or, where that cannot, the one of chats.
func (s *Worker) keeper(profile profiles.Profile) (runs.Upkeeper, bool) {
	_, engine := s.engine(profile.Engine)
	if k, ok := engine.(runs.Upkeeper); ok {
		return k, true
	}
	k, ok := s.engines[claybot.EngineReact].(runs.Upkeeper)
	return k, ok
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

// engineName is the engine of the run. It stays what it began with, whatever is
// configured meanwhile.
func (p *pass) engineName() string {
	return cmp.Or(p.run.Engine, engineFor(p.messages, p.profile)) // runs of older versions have none
}

// EngineOf is the engine of a run that no pass has told it of yet.
func (s *Worker) EngineOf(ctx context.Context, run claybot.Run) (string, error) {
	for _, id := range slices.Backward(run.Messages) {
		r, err := s.Receipts.Receipt(ctx, id)
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
	e, err := s.Index.IndexedAgentByID(ctx, run.Agent)
	if err != nil {
		return "", storage.Ignore(err, storage.ErrNotFound)
	}
	return cmp.Or(s.Profiles.Of(run.Agent, e.Descriptor).Engine, claybot.EngineReact), nil
}

// undoes is the run whose effects this run takes back; empty for others.
func (p *pass) undoes() claybot.RunID {
	for _, m := range p.messages {
		if m.Undo != nil {
			return m.Undo.Run
		}
	}
	return ""
}

// resultJSON is what a graph has put out so far; nil for other engines.
func (p *pass) resultJSON() json.RawMessage {
	if !p.graph {
		return nil
	}
	b, err := json.Marshal(runs.OutputOf(p.history.Records(), p.run.ID))
	if err != nil || len(b) > maxResult {
		p.log.Warn("output too large, kept in history only", "bytes", len(b), "err", err)
		return nil
	}
	return b
}

// saveFile is Turn.SaveFile.
func (p *pass) saveFile(ctx context.Context, name, mimeType string, content []byte) (claybot.FileReference, error) {
	f := claybot.FileReference{Name: name, MIMEType: mimeType}
	return p.Files.SaveFile(ctx, p.agent.ID, f, bytes.NewReader(content), inbox.MaxFile)
}
