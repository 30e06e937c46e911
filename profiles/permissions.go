package profiles

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// The bounds of the search for the creators of a subagent.
const (
	maxCreators = 100
	readTime    = 10 * time.Second
)

// Permissions returns what an agent may do now: what its own settings permit and, for a
// subagent, also what it was started with and what all of its creators may do now. The
// settings of a creator that was deleted no longer count.
func (s *Profiles) Permissions(ctx context.Context, a claybot.Agent) (claybot.Permissions, error) {
	return s.permitted(ctx, a, s.settings.of(a.ID))
}

func (s *Profiles) permitted(ctx context.Context, a claybot.Agent, own claybot.Settings) (claybot.Permissions, error) {
	p := own.Permitted()
	seen := []claybot.AgentID{a.ID}
	for {
		if b := a.State.Background; b != nil && b.Permissions != nil {
			p = b.Permissions.Narrow(p)
		}
		id := a.Descriptor.Parent
		if id == "" || slices.Contains(seen, id) || len(seen) == maxCreators {
			return p, nil
		}
		seen = append(seen, id)
		p = s.settings.of(id).Permitted().Narrow(p)
		var err error
		a, err = s.Agents.Agent(ctx, id)
		if errors.Is(err, storage.ErrNotFound) {
			return p, nil
		}
		if err != nil {
			return p, fmt.Errorf("read the permissions of agent %s: %w", id, err)
		}
	}
}

// allowed are the tools that an agent may use.
func (s *Profiles) allowed(a claybot.Agent, p claybot.Permissions) []string {
	if s.Tools == nil {
		return nil
	}
	forbids := func(string) string { return "" }
	if s.Forbids != nil {
		forbids = s.Forbids(a, p)
	}
	return slices.DeleteFunc(s.Tools(a), func(tool string) bool { return !p.Uses(tool) || forbids(tool) != "" })
}

// Grant gives an agent a right that its own settings take away, see
// claybot.Permissions.Widen, and stores it. An error is a sentence for the model.
func (s *Profiles) Grant(ctx context.Context, id claybot.AgentID, right string) error {
	s.settings.saving.Lock()
	defer s.settings.saving.Unlock()
	if err := s.Refresh(ctx); err != nil { // what was changed elsewhere must not come back
		return err
	}
	own := s.settings.of(id)
	if own.Permissions == nil {
		return nil
	}
	p, err := own.Permissions.Widen(right)
	if err != nil {
		return err
	}
	if own.Permissions = &p; p.IsZero() {
		own.Permissions = nil
	}
	if err := s.Index.SaveAgentSettings(ctx, id, own); err != nil {
		return fmt.Errorf("save the permissions of %s: %w", id, err)
	}
	s.settings.set(id, own)
	s.Log.Info("permission granted", "agent", id, "permission", right)
	return nil
}

// permissions returns settings with their permissions as they are stored: clean, with the
// allowed tools in Tools, where older versions look for them. wrong says what cannot be.
func (v SettingsView) permissions(own claybot.Settings) (_ claybot.Settings, wrong string) {
	if own.Permissions == nil {
		return own, ""
	}
	p, err := own.Permissions.Cleaned()
	if err != nil {
		return own, err.Error() + "."
	}
	var before []string // a tool that is gone for now can stay denied
	if v.Own.Permissions != nil {
		before = v.Own.Permissions.Tools.Deny
	}
	for _, name := range p.Tools.Deny {
		if !slices.Contains(v.Tools, name) && !slices.Contains(before, name) {
			return own, fmt.Sprintf("tools.deny: %.64q is not a tool of this agent.", name)
		}
	}
	if p.Tools.Allow != nil {
		own.Tools, p.Tools.Allow = p.Tools.Allow, nil
	}
	if own.Permissions = &p; p.IsZero() {
		own.Permissions = nil
	}
	return own, ""
}
