package configs

import "github.com/claybot/claybot/platforms"

// Slack are the settings of a Slack app.
type Slack struct {
	BotToken Secret `key:"bot_token" env:"SLACK_BOT_TOKEN"`
	AppToken Secret `key:"app_token" env:"SLACK_APP_TOKEN"`
	Receive  string `key:"receive" words:"socket,http"`
	Signing  Secret `key:"signing_secret" env:"SLACK_SIGNING_SECRET"` // with receive: http
	// Of an app whose bot tokens Slack rotates, in place of BotToken.
	Refresh      Secret `key:"refresh_token" env:"SLACK_REFRESH_TOKEN"`
	ClientID     string `key:"client_id" kind:"client id" env:"SLACK_CLIENT_ID"`
	ClientSecret Secret `key:"client_secret" env:"SLACK_CLIENT_SECRET"`
	// Install lets workspaces install the app by OAuth, with ClientID and ClientSecret and no other token.
	Install  bool   `key:"install" words:"on,off"`
	APIURL   string `key:"api_url" kind:"url with slash" env:"SLACK_API_URL"`
	Backfill bool   `key:"backfill" class:"harmless" words:"on,off"`         // read what was missed
	Feedback bool   `key:"feedback_buttons" class:"harmless" words:"on,off"` // below final replies
	Home     bool   `key:"home" class:"harmless" words:"on,off"`             // the Home tab of the app
	Shortcut bool   `key:"shortcuts" class:"harmless" words:"on,off"`        // "Ask claybot"
	Panel    bool   `key:"panel" class:"harmless" words:"on,off"`            // the app is one for agents

	faults // why the connector must not run
}

func plainSlack() Slack {
	return Slack{Receive: "socket", APIURL: DefaultSlackURL, Backfill: true, Panel: true, Home: true, Shortcut: true}
}

// Type implements ConnectorSettings.
func (Slack) Type() string { return platforms.Slack }

// Wanted implements ConnectorSettings. One of two tokens is enough, so that the connector
// can say which is missing.
func (s Slack) Wanted() bool {
	return s.BotToken.Named() || s.AppToken.Named() || s.Refresh.Named() || s.Install || s.Off() != ""
}

// Rotates reports whether Slack rotates the bot tokens of the app, of which the operator sets the first.
func (s Slack) Rotates() bool { return s.Refresh.Named() && !s.Install }

// Hooked reports whether Slack sends requests to claybot's HTTP server.
func (s Slack) Hooked() bool { return s.Receive == "http" }

// Receives is the value of the key receive.
func (s Slack) Receives() string { return s.Receive }

// Credentials implements ConnectorSettings. The first one is that of the bot, the second one that by
// which messages come.
func (s Slack) Credentials() []Credential {
	all := s.basic()
	if s.Rotates() {
		all = append(all, s.clientSecret())
	}
	if (s.Rotates() || s.Install) && s.BotToken.Named() { // it is not used, and no log may show it
		all = append(all, Credential{"bot_token", "SLACK_BOT_TOKEN", s.BotToken, nil, "remove it"})
	}
	if s.Install && s.Refresh.Named() {
		all = append(all, Credential{"refresh_token", "SLACK_REFRESH_TOKEN", s.Refresh, nil, "remove it"})
	}
	if s.Hooked() && s.AppToken.Value() != "" { // only the check whether Socket Mode is off uses it
		all = append(all, s.appToken())
	}
	return all
}

// Tokenless are the settings as they hold without a token, which the app for it does not need.
func (s Slack) Tokenless() *Slack {
	s.on(noCredential)
	return &s
}

func (s Slack) basic() []Credential {
	bot := Credential{"bot_token", "SLACK_BOT_TOKEN", s.BotToken, platforms.SlackBotToken, "copy it from api.slack.com/apps, OAuth & Permissions (xoxb-…)"}
	if s.Rotates() {
		bot = Credential{"refresh_token", "SLACK_REFRESH_TOKEN", s.Refresh, platforms.SlackRefreshToken, "copy it from api.slack.com/apps, OAuth & Permissions (xoxe-…)"}
	}
	if s.Install {
		bot = s.clientSecret()
	}
	if s.Hooked() {
		return []Credential{bot, {"signing_secret", "SLACK_SIGNING_SECRET", s.Signing, nil, "copy it from api.slack.com/apps, Basic Information, Signing Secret"}}
	}
	return []Credential{bot, s.appToken()}
}

func (s Slack) clientSecret() Credential {
	return Credential{"client_secret", "SLACK_CLIENT_SECRET", s.ClientSecret, nil, "copy it from api.slack.com/apps, Basic Information, Client Secret"}
}

func (s Slack) appToken() Credential {
	return Credential{"app_token", "SLACK_APP_TOKEN", s.AppToken, platforms.SlackAppToken, "copy it from api.slack.com/apps, Basic Information, App-Level Tokens (xapp-…)"}
}

// Accounts implements ConnectorSettings. Slack spreads the messages of an app over the
// sockets that its app token opens.
func (s Slack) Accounts() []string {
	if s.Install {
		return accounts(platforms.Slack, s.AppToken.Value(), s.ClientID)
	}
	return accounts(platforms.Slack, s.BotToken.Value(), s.AppToken.Value(), s.Refresh.Value())
}
