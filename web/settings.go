package web

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/profiles"
)

// Settings reads and changes the settings of agents.
type Settings interface {
	// Settings returns the settings in force for an agent, and its own.
	Settings(ctx context.Context, id claybot.AgentID) (profiles.SettingsView, error)
	// Configure replaces the settings of an agent; they apply at once. by is who changes them.
	Configure(ctx context.Context, id claybot.AgentID, s claybot.Settings, by string) error
	// ApprovedRules lists standing approvals, of one agent or, with an empty id, of all.
	ApprovedRules(ctx context.Context, id claybot.AgentID) ([]profiles.Rule, error)
	// RemoveRule removes a standing approval: the agent asks again.
	RemoveRule(ctx context.Context, id claybot.AgentID, rule string) error
}

// SettingNames are the names of the settings of an agent that can be changed, as Settings has them in JSON.
func SettingNames() (all []string) {
	for f := range reflect.TypeFor[claybot.Settings]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !slices.Contains([]string{"approvedBy", "modelChoice"}, name) { // which the daemon keeps
			all = append(all, name)
		}
	}
	return all
}

// A RuleList lists standing approvals.
type RuleList struct {
	Rules []profiles.Rule `json:"rules"`
}

// A SettingsView is the settings of an agent.
type SettingsView struct {
	Profile string           `json:"profile"`
	Now     claybot.Settings `json:"now" doc:"The effective settings."`
	Own     claybot.Settings `json:"own" doc:"The settings changed for this agent."`
	Models  []string         `json:"models" doc:"Models that the agent may use."`
	Tools   []string         `json:"tools" doc:"Tools that the agent may get."`
}
