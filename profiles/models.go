package profiles

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
)

// A ModelView is the model of an agent, and what a person can choose in its place.
type ModelView struct {
	Now     string   // the model of the next run
	Default string   // that of the profile
	Names   []string // to choose from, with Default; nil if the person may not choose
}

// Named returns the name that a person can choose in any case.
func (v ModelView) Named(word string) (name string, ok bool) {
	i := slices.IndexFunc(v.Names, func(n string) bool { return strings.EqualFold(n, word) })
	if i < 0 {
		return "", false
	}
	return v.Names[i], true
}

// ModelsOf returns the model of an agent and those that a person can choose for it: an operator
// among all that are configured, other people among those that the profile lists.
func (s *Profiles) ModelsOf(a claybot.Agent, operator bool) ModelView {
	p := s.Profile(a.Descriptor)
	v := ModelView{Now: cmp.Or(s.modelOf(p, s.settings.of(a.ID)), p.Model), Default: p.Model}
	if !operator && len(p.Models) == 0 {
		return v
	}
	v.Names = []string{p.Model}
	if s.Models == nil {
		return v
	}
	for _, name := range s.Models(a) {
		if name != p.Model && (operator || slices.Contains(p.Models, name)) {
			v.Names = append(v.Names, name)
		}
	}
	return v
}

// modelOf returns the model that is set for an agent with the profile p alone; empty for that of
// the profile. The choice of a person who is no operator counts only while the profile lists it.
func (s *Profiles) modelOf(p Profile, own claybot.Settings) string {
	if c := own.ModelChoice; c != nil && c.Listed && !slices.Contains(p.Models, own.Model) {
		return ""
	}
	return own.Model
}

// OwnModel returns the name of the model that the present run of an agent has in place of that
// of its profile; empty for none. A choice leaves a run as it is that had begun before it.
func (s *Profiles) OwnModel(a claybot.Agent) string {
	own := s.settings.of(a.ID)
	if c := own.ModelChoice; c != nil && c.During != "" {
		ctx, cancel := context.WithTimeout(context.Background(), readTime)
		defer cancel()
		if e, err := s.Index.IndexedAgentByID(ctx, a.ID); err != nil {
			s.Log.Warn("failed to read the run of an agent, using its new model", "agent", a.ID, "err", err)
		} else if e.Run == c.During {
			return c.Was
		}
	}
	return s.modelOf(s.Profile(a.Descriptor), own)
}

// ChooseModel sets the model of an agent for the runs that begin from now on, and stores it; the
// empty name is that of the profile. It does nothing if c is not newer than the last choice, so
// that a command which comes twice takes nothing back.
func (s *Profiles) ChooseModel(ctx context.Context, a claybot.Agent, name string, c claybot.ModelChoice) error {
	s.settings.saving.Lock()
	defer s.settings.saving.Unlock()
	if err := s.Refresh(ctx); err != nil { // what was changed elsewhere must not come back
		return err
	}
	own := s.settings.of(a.ID)
	last := own.ModelChoice
	if last != nil && (last.Message == c.Message || last.At > c.At || last.At == c.At && slices.Contains(last.Before, c.Message)) {
		return nil
	}
	if c.Before = nil; last != nil && last.At == c.At {
		c.Before = append(slices.Clone(last.Before), last.Message)
	}
	e, err := s.Index.IndexedAgentByID(ctx, a.ID)
	if err != nil {
		return fmt.Errorf("find the run of agent %s: %w", a.ID, err)
	}
	if e.Run != "" {
		if c.During, c.Was = e.Run, s.modelOf(s.Profile(a.Descriptor), own); last != nil && last.During == e.Run {
			c.Was = last.Was
		}
	}
	own.Model, own.ModelChoice = name, &c
	if err := s.Index.SaveAgentSettings(ctx, a.ID, own); err != nil {
		return fmt.Errorf("save the model of %s: %w", a.ID, err)
	}
	s.settings.set(a.ID, own)
	s.Log.Info("model chosen", "agent", a.ID, "model", name, "by", c.By)
	return nil
}

// choiceAfter returns what settings keep of the last choice when an operator replaces them: that
// it was made, so that a redelivered command does not take the change back.
func choiceAfter(before, own claybot.Settings) *claybot.ModelChoice {
	last := before.ModelChoice
	if last == nil || own.Model == before.Model {
		return last
	}
	return &claybot.ModelChoice{Message: last.Message, At: last.At, Before: last.Before}
}
