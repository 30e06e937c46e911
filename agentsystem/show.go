package agentsystem

import (
	"context"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/tools"
)

var _ tools.Display = (*AgentSystem)(nil)

// Show implements tools.Display. The first text of a name is a message of its
// own; later ones of the same run replace it.
func (s *AgentSystem) Show(ctx context.Context, env tools.Env, name, text string) error {
	t := s.turns.Of(env.Run)
	first := fmt.Sprintf("shown/%s/%s", env.Run, name)
	out := s.deliverer.Compose(claybot.Outgoing{
		Kind: claybot.OutgoingNotice, Run: env.Run, Agent: env.Agent.ID, Message: t.Newest().ID, Route: t.Route(), Shown: name,
	}, text)
	if len(out) == 0 {
		return nil
	}
	o := out[0] // one message only; what does not fit there is cut
	o.Part, o.Parts, o.ID = 1, 1, first
	sent, err := s.deliverer.Send(ctx, o)
	if err == nil && sent == 0 {
		o.ID, o.EditOf = first+"/"+env.CallID, first
		_, err = s.deliverer.Send(ctx, o)
	}
	if err != nil {
		return fmt.Errorf("show %s: %w", name, err)
	}
	return nil
}
