package plan

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/tools"
)

// genericIntent is the only intent where none are configured, noIntent what is
// none of those that are.
const (
	genericIntent = "task"
	noIntent      = "none"
)

func (c *Config) policy(s *state) Policy {
	var p Policy
	if c.Policy != nil {
		p = c.Policy(s.Turn.Agent)
	}
	return p.withDefaults()
}

func (c *Config) tools(s *state) *tools.Set {
	var set *tools.Set
	if c.Tools != nil {
		set = c.Tools(s.Turn.Agent)
	}
	if set == nil {
		set, _ = tools.NewSet() // no tools, no error
	}
	return set
}

// ready waits for the tools of the steps that are about to be there.
func (c *Config) ready(ctx context.Context, s *state) {
	if c.Ready == nil {
		return
	}
	names := make([]string, len(s.Scratch.Steps))
	for i, st := range s.Scratch.Steps {
		names[i] = st.Tool
	}
	c.Ready(ctx, names) // each stage takes the list anew
}

func (c *Config) zone(s *state) *time.Location {
	if c.Zone != nil {
		if z := c.Zone(s.Turn.Agent); z != nil {
			return z
		}
	}
	return time.UTC
}

func (c *Config) log(s *state) *slog.Logger {
	if c.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Log.With("agent", s.Turn.Agent.ID, "run", s.Turn.Run.ID)
}

func (c *Config) place(s *state) string {
	if c.Place == nil {
		return ""
	}
	return c.Place(s.Turn.Agent)
}

func (c *Config) dry(s *state) bool { return c.Dry != nil && c.Dry(s.Turn.Agent) }

func (c *Config) limits(s *state) (l tools.Limits) {
	if c.Limits != nil {
		l = c.Limits(s.Turn.Agent)
	}
	return l
}

// rules are when the calls of the agent ask.
func (c *Config) rules(s *state, p Policy) tools.Rules {
	var r tools.Rules
	if c.Rules != nil {
		r = c.Rules(s.Turn.Agent)
	}
	r.Ask = append(slices.Clone(r.Ask), p.Approve...)
	if c.Approved != nil {
		r.Always = append(slices.Clone(r.Always), c.Approved(s.Turn.Agent)...)
	}
	r.Quorum, r.Approvers = p.Approvals, p.Approvers
	return r
}

// intents are those of the agent.
func (c *Config) intents(a claybot.Agent) []Intent {
	if c.Intents != nil {
		if all := c.Intents(a); len(all) > 0 {
			return all
		}
	}
	return []Intent{{Name: genericIntent}}
}

// intent is that of the run; ok is false when the configuration has it no more.
func (c *Config) intent(s *state) (Intent, bool) {
	all := c.intents(s.Turn.Agent)
	i := slices.IndexFunc(all, func(in Intent) bool { return in.Name == s.Scratch.Intent })
	if i < 0 {
		return Intent{}, false
	}
	return all[i], true
}

func (c *Config) prompt(t *runs.Turn) (string, error) {
	if c.Prompt == nil {
		return "", nil
	}
	system, err := c.Prompt(t)
	if err != nil {
		return "", &runs.Error{Code: runs.CodePrompt, Text: err.Error(), Err: err}
	}
	return system, nil
}
