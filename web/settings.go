package web

import (
	"context"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
)

// Settings reads and changes how single agents are set.
type Settings interface {
	// Settings are those that apply to an agent, and those of its own.
	Settings(ctx context.Context, id claybot.AgentID) (agentsystem.SettingsView, error)
	// Configure replaces the settings of an agent; they apply at once.
	Configure(ctx context.Context, id claybot.AgentID, s claybot.Settings) error
	// ApprovedRules lists what was approved for good, of one agent or of all.
	ApprovedRules(ctx context.Context, id claybot.AgentID) ([]agentsystem.Rule, error)
	// RemoveRule has an agent ask again.
	RemoveRule(ctx context.Context, id claybot.AgentID, rule string) error
}

// A RuleList is what was approved for good.
type RuleList struct {
	Rules []agentsystem.Rule `json:"rules"`
}

// A SettingsView is how an agent is set.
type SettingsView struct {
	Profile string           `json:"profile"`
	Now     claybot.Settings `json:"now" doc:"What applies."`
	Own     claybot.Settings `json:"own" doc:"What was changed for this agent alone."`
	Models  []string         `json:"models" doc:"Those it may use."`
	Tools   []string         `json:"tools" doc:"Those it may be given."`
}
