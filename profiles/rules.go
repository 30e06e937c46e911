package profiles

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// A Rule is what a person approved for good: what one agent does without asking.
type Rule struct {
	Agent claybot.AgentID `json:"agent"`
	Rule  string          `json:"rule"`         // a tool, or tool(subject)
	By    string          `json:"by,omitempty"` // as Answer.By; empty: it was set by an operator
	At    claybot.Time    `json:"at,omitempty"`
}

// ApprovedRules lists what was approved for good, for one agent or, when none is
// named, for all; by agent, the oldest first.
func (s *Profiles) ApprovedRules(ctx context.Context, agent claybot.AgentID) ([]Rule, error) {
	if err := s.Refresh(ctx); err != nil {
		return nil, err
	}
	all := []Rule{}
	for id, own := range s.settings.copy() {
		if agent != "" && id != agent {
			continue
		}
		for _, rule := range own.Approved {
			made := own.ApprovedBy[rule]
			all = append(all, Rule{id, rule, made.By, made.At})
		}
	}
	slices.SortStableFunc(all, func(x, y Rule) int { return strings.Compare(string(x.Agent), string(y.Agent)) })
	return all, nil
}

// RemoveRule has an agent ask again; storage.ErrNotFound when it has no such rule.
func (s *Profiles) RemoveRule(ctx context.Context, id claybot.AgentID, rule string) error {
	s.settings.saving.Lock()
	defer s.settings.saving.Unlock()
	if err := s.Refresh(ctx); err != nil {
		return err
	}
	own := s.settings.of(id)
	if !slices.Contains(own.Approved, rule) {
		return fmt.Errorf("rule %.80q of agent %s: %w", rule, id, storage.ErrNotFound)
	}
	before := own
	own.Approved = slices.DeleteFunc(slices.Clone(own.Approved), func(r string) bool { return r == rule })
	own.ApprovedBy = approvedBy(before, own.Approved)
	if err := s.Index.SaveAgentSettings(ctx, id, own); err != nil {
		return fmt.Errorf("remove a rule of %s: %w", id, err)
	}
	s.settings.set(id, own)
	s.Log.Info("agent rule removed", "agent", id)
	return nil
}

// ApproveAlways adds a rule of a person. An agent has at most maxApproved of
// them; what is beyond counts once.
func (s *Profiles) ApproveAlways(ctx context.Context, id claybot.AgentID, rule, by string) error {
	s.settings.saving.Lock()
	defer s.settings.saving.Unlock()
	if err := s.Refresh(ctx); err != nil { // a rule that was removed elsewhere must not come back
		return err
	}
	own := s.settings.of(id)
	if rule == "" || slices.Contains(own.Approved, rule) {
		return nil
	}
	if len(own.Approved) >= maxApproved {
		s.Log.Warn("too many rules, approval counts once", "agent", id)
		return nil
	}
	before := own
	own.Approved = append(slices.Clone(own.Approved), rule)
	own.ApprovedBy = approvedBy(before, own.Approved)
	if own.ApprovedBy == nil {
		own.ApprovedBy = make(map[string]claybot.Approving)
	}
	own.ApprovedBy[rule] = claybot.Approving{By: by, At: claybot.Now()}
	if err := s.Index.SaveAgentSettings(ctx, id, own); err != nil {
		return fmt.Errorf("save a rule of %s: %w", id, err)
	}
	s.settings.set(id, own)
	s.Log.Info("permanent approval added", "agent", id, "by", by)
	return nil
}

// approvedBy returns a copy of the approvers of the rules that stay; nil for none.
func approvedBy(before claybot.Settings, rules []string) map[string]claybot.Approving {
	var kept map[string]claybot.Approving
	for _, rule := range rules {
		made, known := before.ApprovedBy[rule]
		if !known {
			continue
		}
		if kept == nil {
			kept = make(map[string]claybot.Approving)
		}
		kept[rule] = made
	}
	return kept
}

// copy are the settings of all agents that have some.
func (o *ownSettings) copy() map[claybot.AgentID]claybot.Settings {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return maps.Clone(o.all)
}
