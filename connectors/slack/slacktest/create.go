package slacktest

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
)

// ConfigToken is the app configuration token of the person who owns the apps. It creates apps and does
// nothing else (docs.slack.dev/app-manifests/configuring-apps-with-app-manifests, read 2026-11-30).
const ConfigToken = "xoxe.xoxp-1-test"

// maxAppName is the longest name of an app: docs.slack.dev/reference/app-manifest, read 2026-11-28.
const maxAppName = 35

// create makes an app from its manifest, or names its faults. The lock is held.
func (s *Server) create(args url.Values) answer {
	var m struct {
		Display struct {
			Name string `json:"name"`
		} `json:"display_information"`
		Features struct {
			Commands []struct{ Command, URL string } `json:"slash_commands"`
		} `json:"features"`
		OAuth struct {
			Scopes struct{ Bot []string }
		} `json:"oauth_config"`
		Settings struct {
			Events struct {
				URL string   `json:"request_url"`
				Bot []string `json:"bot_events"`
			} `json:"event_subscriptions"`
			Interactivity struct {
				Enabled bool   `json:"is_enabled"`
				URL     string `json:"request_url"`
			} `json:"interactivity"`
			Sockets bool `json:"socket_mode_enabled"`
		} `json:"settings"`
	}
	if args.Get("manifest") == "" {
		return refuse("invalid_arguments")
	}
	var faults []object
	fault := func(pointer, format string, values ...any) {
		faults = append(faults, object{"message": fmt.Sprintf(format, values...), "pointer": pointer})
	}
	if err := json.Unmarshal([]byte(args.Get("manifest")), &m); err != nil {
		fault("/", "The manifest is not valid JSON")
	}
	if n := chars(m.Display.Name); n == 0 || n > maxAppName {
		fault("/display_information/name", "The name has %d characters", n)
	}
	if len(m.Settings.Events.Bot) > 0 && m.Settings.Events.URL == "" && !m.Settings.Sockets {
		fault("/settings/event_subscriptions", "Event Subscription requires either Request URL or Socket Mode Enabled")
	}
	if m.Settings.Interactivity.Enabled && m.Settings.Interactivity.URL == "" && !m.Settings.Sockets {
		fault("/settings/interactivity", "Interactivity requires a Request URL")
		fault("/settings/interactivity", "Interactivity requires Socket Mode enabled")
	}
	for _, event := range m.Settings.Events.Bot {
		needed, known := eventScopes[event]
		if !known || len(needed) > 0 && !slices.ContainsFunc(needed, func(scope string) bool { return slices.Contains(m.OAuth.Scopes.Bot, scope) }) {
			fault("/settings/event_subscriptions/bot_events", "The event %s is not known, or lacks its scope", event)
		}
	}
	if len(faults) > 0 {
		return answer{"ok": false, "error": "invalid_manifest", "errors": faults}
	}
	id := s.next("ACREATED")
	s.created = append(s.created, args.Get("manifest"))
	return answer{
		"ok": true, "app_id": id, "team_id": s.cfg.Team, "team_domain": "test", "oauth_authorize_url": "https://slack.com/oauth/v2/authorize?client_id=1.2",
		"credentials": object{"client_id": "1.2", "client_secret": "canary-client", "verification_token": "canary-verify", "signing_secret": "canary-sign"},
	}
}

// Created returns the manifests of the apps that were created.
func (s *Server) Created() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.created)
}
