package slacktest

import (
	"fmt"
	"strings"
)

// An app is what a manifest says.
type app struct {
	scopes      map[string]bool   // of the bot
	events      map[string]bool   // that the bot subscribes to
	commands    map[string]bool   // slash commands
	shortcuts   map[string]string // types, by callback id
	view        string            // agent or assistant; empty: the app has no panel
	home        bool              // it has a Home tab
	interactive bool
	sockets     bool
}

// eventScopes are the scopes by which Slack delivers an event; of several, one is enough.
// Each is on https://docs.slack.dev/reference/events/<name>, as of 2026-11-28.
var eventScopes = map[string][]string{
	"app_mention":     {"app_mentions:read"},
	"app_uninstalled": nil,
	"tokens_revoked":  nil,

	"message.channels": {"channels:history"},
	"message.groups":   {"groups:history"},
	"message.im":       {"im:history"},
	"message.mpim":     {"mpim:history"},

	"member_joined_channel": {"channels:read", "groups:read"},
	"member_left_channel":   {"channels:read", "groups:read"},
	"channel_id_changed":    {"channels:read", "groups:read"},

	"channel_archive":   {"channels:read"},
	"channel_deleted":   {"channels:read"},
	"channel_left":      {"channels:read"},
	"channel_unarchive": {"channels:read"},
	"group_archive":     {"groups:read"},
	"group_deleted":     {"groups:read"},
	"group_left":        {"groups:read"},
	"group_unarchive":   {"groups:read"},

	"agent_session_stopped":    nil,
	"app_home_opened":          nil,
	"assistant_thread_started": {"assistant:write"},

	"reaction_added":   {"reactions:read"},
	"reaction_removed": {"reactions:read"},
}

// readManifest reads a manifest in YAML, in the block style that Slack shows: it knows
// nested keys, scalars and lists, which is all that a manifest has.
func readManifest(text string) (app, error) {
	a := app{scopes: make(map[string]bool), events: make(map[string]bool), commands: make(map[string]bool), shortcuts: make(map[string]string)}
	var path []string // keys, by depth
	var kind string   // of a shortcut
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || strings.HasPrefix(trimmed, "#") {
			continue
		}
		depth := (len(line) - len(strings.TrimLeft(line, " "))) / 2
		item, listed := strings.CutPrefix(trimmed, "- ")
		key, value, _ := strings.Cut(item, ":")
		at := strings.Join(path[:min(depth, len(path))], ".")
		switch {
		case listed && at == "oauth_config.scopes.bot":
			a.scopes[item] = true
		case listed && at == "settings.event_subscriptions.bot_events":
			a.events[item] = true
		case listed && at == "features.slash_commands" && key == "command":
			a.commands[strings.TrimSpace(value)] = true
		case listed:
		case depth > len(path):
			switch {
			case at == "features.shortcuts" && key == "type":
				kind = strings.TrimSpace(value)
			case at == "features.shortcuts" && key == "callback_id":
				a.shortcuts[strings.TrimSpace(value)] = kind
			}
			if at == "features.slash_commands" || at == "features.shortcuts" { // a further key
				continue
			}
			return app{}, fmt.Errorf("manifest: %q is too deep", trimmed)
		default:
			path = append(path[:depth:depth], key)
			switch value = strings.TrimSpace(value); strings.Join(path, ".") {
			case "features.agent_view", "features.assistant_view":
				a.view = strings.TrimSuffix(key, "_view")
			case "features.app_home.home_tab_enabled":
				a.home = value == "true"
			case "settings.interactivity.is_enabled":
				a.interactive = value == "true"
			case "settings.socket_mode_enabled":
				a.sockets = value == "true"
			}
		}
	}
	return a, a.check()
}

// check refuses what Slack refuses when a manifest is pasted.
func (a app) check() error {
	for event := range a.events {
		needed, known := eventScopes[event]
		if !known {
			return fmt.Errorf("manifest: event %s is not known here", event)
		}
		ok := len(needed) == 0
		for _, scope := range needed {
			ok = ok || a.scopes[scope]
		}
		if !ok {
			return fmt.Errorf("manifest: event %s needs the scope %s", event, strings.Join(needed, " or "))
		}
	}
	if len(a.commands)+len(a.shortcuts) > 0 && !a.scopes["commands"] {
		return fmt.Errorf("manifest: slash commands and shortcuts need the scope commands")
	}
	if a.scopes["assistant:write"] && a.view == "" {
		return fmt.Errorf("manifest: the scope assistant:write needs agent_view or assistant_view")
	}
	return nil
}

// Uninstall removes the app from the workspace: from then on the tokens are invalid.
func (s *Server) Uninstall() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.event(s.cfg.Team, answer{"type": "app_uninstalled"})
	s.uninstalled = true
}

// hears reports whether the app gets an event: it has subscribed to it, has a scope for it,
// and is a member of its channel. The server's lock is held.
func (s *Server) hears(name, channel string) bool {
	if !s.app.events[name] || channel != "" && s.left[channel] {
		return false
	}
	needed := eventScopes[name]
	for _, scope := range needed {
		if s.granted(scope) {
			return true
		}
	}
	return len(needed) == 0
}
