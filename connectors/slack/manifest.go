package slack

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/claybot/claybot/lazyregexp"
)

// Manifest is the app manifest of an App with everything, as YAML. docs/slack.md quotes it,
// and tests give it to the emulator.
//
//go:embed manifest.yaml
var Manifest string

// A Feature is a part of what an app does, with scopes and events of its own.
type Feature string

// The features that an App may be without. Direct messages, commands, files, buttons and forms
// are part of every app.
const (
	Groups    Feature = "groups"    // channels and group messages
	Reactions Feature = "reactions" // emoji reactions of people are input
	Marks     Feature = "marks"     // the bot puts emoji reactions on messages
	Backfill  Feature = "backfill"  // finds new direct messages after an outage
	Home      Feature = "home"      // the Home tab, with a person's own work
	Shortcuts Feature = "shortcuts" // "Ask claybot" for messages and everywhere
	Panel     Feature = "panel"     // the agent messaging experience with suggested prompts
)

// needs are the scopes and events of each feature; those of "" are part of every app.
//
// Scopes and events: docs.slack.dev/reference/scopes/<scope> and …/events/<event>; the
// scope of the panel: …/methods/assistant.threads.setSuggestedPrompts, read 2026-11-28.
var needs = []struct {
	feature        Feature
	scopes, events string
}{
	{"", "chat:write commands files:read files:write im:history users:read", "app_uninstalled message.im tokens_revoked"},
	{
		Groups, "app_mentions:read channels:history channels:read groups:history groups:read mpim:history",
		"app_mention channel_archive channel_deleted channel_id_changed channel_left channel_unarchive group_archive group_deleted group_left " +
			"group_unarchive member_joined_channel message.channels message.groups message.mpim",
	},
	{Reactions, "reactions:read", "reaction_added reaction_removed"},
	{Marks, "reactions:write", ""},
	{Backfill, "im:read", ""},
	{Home, "", "app_home_opened"},
	{Shortcuts, "im:write", ""},
	{Panel, "assistant:write", "agent_session_stopped app_home_opened"},
}

// An App is a Slack app as its manifest describes it.
type App struct {
	Name    string    // shown to people; default "claybot"
	Hook    string    // where Slack sends requests; empty: Socket Mode
	Without []Feature // that are switched off
	Rotate  bool      // Slack rotates the bot tokens
	// Redirect is where Slack leads the browsers of people who install the app by OAuth; empty: its owner
	// installs it.
	Redirect string
}

// scopes returns the bot scopes of the app.
func (a App) scopes() []string { return a.all(func(i int) string { return needs[i].scopes }) }

// events returns the events that the bot subscribes to.
func (a App) events() []string { return a.all(func(i int) string { return needs[i].events }) }

// all returns a part of the needs of the app, in order.
func (a App) all(part func(i int) string) (words []string) {
	for i, n := range needs {
		if n.feature == "" || a.with(n.feature) {
			words = append(words, strings.Fields(part(i))...)
		}
	}
	slices.Sort(words)
	return slices.Compact(words)
}

func (a App) with(f Feature) bool { return !slices.Contains(a.Without, f) }

// The limits of docs.slack.dev/reference/app-manifest, read 2026-11-28.
const maxAppNameChars = 35

// Check refuses a name that Slack refuses.
func (a App) Check() error {
	if n := len([]rune(a.Name)); n > maxAppNameChars {
		return fmt.Errorf("invalid app name of %d characters: Slack allows %d", n, maxAppNameChars)
	}
	if strings.ContainsFunc(a.Name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fmt.Errorf("invalid app name %q: it has control characters", a.Name)
	}
	return nil
}

// YAML returns the manifest as YAML.
func (a App) YAML() string {
	var b strings.Builder
	dec := json.NewDecoder(strings.NewReader(a.JSON()))
	_, _ = dec.Token() // the brace
	writeYAML(&b, dec, "", "")
	return b.String()
}

// writeYAML writes the members of an object, or with mark the items of a list, as YAML in block
// style, until the delimiter that ends them. The JSON is valid, so there are no errors.
func writeYAML(b *strings.Builder, dec *json.Decoder, indent, mark string) {
	for dec.More() {
		b.WriteString(indent + mark)
		if mark == "" {
			key, _ := dec.Token()
			fmt.Fprintf(b, "%s:", key)
		}
		switch value, _ := dec.Token(); value {
		case json.Delim('{'):
			if mark == "" {
				b.WriteByte('\n')
				writeYAML(b, dec, indent+"  ", "")
				continue
			}
			var item strings.Builder
			writeYAML(&item, dec, indent+"  ", "")
			b.WriteString(strings.TrimLeft(item.String(), " "))
		case json.Delim('['):
			b.WriteByte('\n')
			writeYAML(b, dec, indent+"  ", "- ")
		default:
			text, quoted := value.(string)
			if !quoted {
				text = fmt.Sprint(value)
			} else if !plainYAML.MatchString(text) || reservedYAML.MatchString(text) {
				text = compact(text)
			}
			if mark == "" {
				b.WriteByte(' ')
			}
			b.WriteString(text + "\n")
		}
	}
	_, _ = dec.Token() // the end
}

// plainYAML matches strings that mean themselves in YAML without quotes, but for those that
// reservedYAML matches.
var (
	plainYAML    = lazyregexp.New(`^[A-Za-z/][A-Za-z0-9,./_-]*([ :][A-Za-z0-9,./_-]+)*$`)
	reservedYAML = lazyregexp.New(`(?i)^(y|n|yes|no|on|off|true|false|null)$`)
)

// JSON returns the manifest as indented JSON.
func (a App) JSON() string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	_ = enc.Encode(a.manifest()) // strings and booleans always encode
	return b.String()
}

// maxLinkChars is how long a link may be: what common servers take as a request line. Slack
// names no limit.
const maxLinkChars = 8_000

// Link returns a link that opens Slack's page for new apps with the manifest filled in, as
// docs.slack.dev/app-manifests/configuring-apps-with-app-manifests describes it (Sharing
// manifests, read 2026-11-28).
func (a App) Link() (string, error) {
	link := "https://api.slack.com/apps?new_app=1&manifest_yaml=" + strings.ReplaceAll(url.QueryEscape(a.YAML()), "+", "%20")
	if len(link) > maxLinkChars {
		return "", fmt.Errorf("the manifest is too long for a link: %d characters, and %d are safe", len(link), maxLinkChars)
	}
	return link, nil
}

// A manifest has the keys of docs.slack.dev/reference/app-manifest that claybot sets, read
// 2026-11-28.
type manifest struct {
	Display  display  `json:"display_information"`
	Features features `json:"features"`
	OAuth    oauth    `json:"oauth_config"`
	Settings settings `json:"settings"`
}

type display struct {
	Name string `json:"name"`
}

type features struct {
	AgentView *agentView      `json:"agent_view,omitempty"`
	AppHome   appHome         `json:"app_home"`
	BotUser   botUser         `json:"bot_user"`
	Shortcuts []shortcutEntry `json:"shortcuts,omitempty"`
	Commands  []slashCommand  `json:"slash_commands"`
}

// An agentView is what apps for agents have; older apps may have an assistant_view, which Slack
// creates no more.
type agentView struct {
	Description string `json:"agent_description"` // at most 300 characters
}

type appHome struct {
	Home             bool `json:"home_tab_enabled"`
	Messages         bool `json:"messages_tab_enabled"`
	MessagesReadOnly bool `json:"messages_tab_read_only_enabled"`
}

type botUser struct {
	Name   string `json:"display_name"`
	Online bool   `json:"always_online"`
}

type slashCommand struct {
	Command     string `json:"command"`
	URL         string `json:"url,omitempty"`
	Description string `json:"description"`
	Hint        string `json:"usage_hint"`
	Escape      bool   `json:"should_escape"`
}

// A shortcutEntry is a shortcut: its name has at most 24 characters, its description 150.
type shortcutEntry struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Callback    string `json:"callback_id"`
	Description string `json:"description"`
}

type oauth struct {
	Redirects []string `json:"redirect_urls,omitempty"` // at most 1,000
	Scopes    struct {
		Bot []string `json:"bot"`
	} `json:"scopes"`
}

type settings struct {
	Events struct {
		URL string   `json:"request_url,omitempty"`
		Bot []string `json:"bot_events"`
	} `json:"event_subscriptions"`
	Interactivity struct {
		Enabled bool   `json:"is_enabled"`
		URL     string `json:"request_url,omitempty"`
	} `json:"interactivity"`
	Org    bool `json:"org_deploy_enabled"`
	Socket bool `json:"socket_mode_enabled"`
	Rotate bool `json:"token_rotation_enabled"`
}

func (a App) manifest() manifest {
	name := a.Name
	if name == "" {
		name = "claybot"
	}
	m := manifest{
		Display: display{name},
		Features: features{
			AppHome: appHome{Home: a.with(Home), Messages: true},
			BotUser: botUser{name, true},
			Commands: []slashCommand{{
				Command: "/claybot", URL: a.Hook, Description: "Talk to claybot itself", Hint: "[help | new | reset | stop | status | why]",
			}},
		},
	}
	if a.with(Panel) {
		m.Features.AgentView = &agentView{"Answers questions, works on tasks and reminds you."}
	}
	if a.with(Shortcuts) {
		label := cut("Ask "+name, maxShortcutChars)
		m.Features.Shortcuts = []shortcutEntry{
			{label, "global", callbackAsk, "Ask a question, answered as a direct message"},
			{label, "message", callbackAskMessage, "Ask about this message, answered as a direct message"},
		}
	}
	if a.Redirect != "" {
		m.OAuth.Redirects = []string{a.Redirect}
	}
	m.OAuth.Scopes.Bot = a.scopes()
	m.Settings.Events.URL, m.Settings.Events.Bot = a.Hook, a.events()
	m.Settings.Interactivity.Enabled, m.Settings.Interactivity.URL = true, a.Hook
	m.Settings.Socket, m.Settings.Rotate = a.Hook == "", a.Rotate
	return m
}
