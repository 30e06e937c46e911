package configs

import (
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
)

const twoBots = `
connectors:
  work: {type: slack, bot_token: env:WORK_BOT, app_token: env:WORK_APP, backfill: off}
  sales: {type: telegram, token: env:SALES, api_url: "http://127.0.0.1:9/"}
access:
  allow: ["work:U012ABC", "work:T012/C012", "sales:-100123", "slack:U1"]
people: {ann: [work/U012ABC, telegram/123, sales/123]}
operators: [sales/123]
heartbeat: {route: sales/123}
agents:
  selling: {match: [sales, "work:T012/C012"], max_steps: 3}
budgets: [{match: sales, tokens: 100, per: agent, every: day}]
`

var botVars = map[string]string{"WORK_BOT": "xoxb-1", "WORK_APP": "xapp-1", "SALES": "77:not-a-token", "TELEGRAM_BOT_TOKEN": "78:not-a-token"}

// Instances have the ids of their type wherever a connector is named.
func TestInstances(t *testing.T) {
	c, warnings := load(t, twoBots, botVars)
	if len(warnings) > 0 {
		t.Fatalf("warnings: %v", warnings)
	}
	var names []string
	for _, i := range c.Connectors.Instances() {
		names = append(names, i.Name+" "+i.Settings.Type())
	}
	if want := []string{"telegram telegram", "work slack", "sales telegram"}; !slices.Equal(names, want) {
		t.Errorf("instances %q, want %q", names, want)
	}
	work, _ := c.Connectors.Instance("work")
	if s, ok := work.(*Slack); !ok || s.BotToken.Value() != "xoxb-1" || s.AppToken.Value() != "xapp-1" || s.Backfill || s.APIURL != DefaultSlackURL {
		t.Errorf("work is %+v", work)
	}
	sales, _ := c.Connectors.Instance("sales")
	if s, ok := sales.(*Telegram); !ok || s.Token.Value() != "77:not-a-token" || s.APIURL != "http://127.0.0.1:9" || s.Delivery != "stream" {
		t.Errorf("sales is %+v", sales)
	}
	if !c.Access.Allows("work", "U012ABC") || !c.Access.Allows("sales", "-100123") || c.Access.Allows("slack", "U012ABC") {
		t.Errorf("allowed: %v", c.Access.Allow)
	}
	for d, want := range map[claybot.Descriptor]string{
		claybot.User("sales", "1", "1"): "selling", claybot.User("work", "T012/C012", "U1"): "selling",
		claybot.User("telegram", "1", "1"): "default", claybot.User("slack", "T012/C012", "U1"): "default",
	} {
		if got := c.Profile(d).Name; got != want {
			t.Errorf("%v has the profile %s, want %s", d, got, want)
		}
	}
	if ids := c.Identities("sales/123"); len(ids) != 3 || c.Schedule.Heartbeat.Route != "sales/123" || !slices.Equal(c.Access.Operators, []string{"sales/123"}) {
		t.Errorf("ids %v, route %s, operators %v", ids, c.Schedule.Heartbeat.Route, c.Access.Operators)
	}
	for s, good := range map[string]bool{"work:U1": true, "work:123": false, "sales:123": true, "sales:U1": false, "nowhere:123": false} {
		if _, err := c.ParseAllowed(s); (err == nil) != good {
			t.Errorf("%s: %v", s, err)
		}
	}
	if all := c.Connectors.Secrets(); len(all) != 4 {
		t.Errorf("secrets: %v", all)
	}
}

// Ids of claybot's own messages begin with these words, as those of a connector's messages do
// with its name.
func TestReservedIDs(t *testing.T) {
	for _, name := range []string{"reminder", "task", "failure", "answer", "ask", "undo", "stop", "cancel", "reset"} {
		c, warnings := load(t, "connectors: {"+name+": {type: webhook, secret: env:S}}\n", map[string]string{"S": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"})
		if len(warnings) != 1 || !strings.Contains(warnings[0].String(), "is reserved; choose another one") || len(c.Connectors.Named) > 0 {
			t.Errorf("%s: %+v, warnings %v", name, c.Connectors.Named, warnings)
		}
	}
}

// What is wrong with an instance switches it off, alone, and says so under its name.
func TestBadInstances(t *testing.T) {
	const good = `  good: {type: telegram, token: env:GOOD}` + "\n"
	for _, tt := range []struct{ entry, text string }{
		{"work: {type: sclak, bot_token: env:W}", `claybot.yaml:2: connectors.work: the type "sclak" is not one of telegram, slack`},
		{"work: {type: sclak}", `did you mean slack?`},
		{"work: {bot_token: env:W}", "connectors.work: has no type"},
		{"work: {type: slack, type: telegram}", "connectors.work: has two types"},
		{"work: slack", "connectors.work: want a group of keys with type"},
		{"work:", "connectors.work: want a group of keys with type"},
		{"web: {type: slack}", `the name "web" is reserved`},
		{"cron: {type: slack}", `the name "cron" is reserved`},
		{"slack: {type: telegram, token: env:W}", "a connector named slack must be of that type, not telegram"},
		{"Work: {type: slack}", `"Work" is not the name of a connector`},
		{"-w: {type: slack}", `"-w" is not the name of a connector`},
		{strings.Repeat("w", 33) + ": {type: slack}", "is not the name of a connector"},
		{"work: {type: telegram, token: 'not an env'}", "connectors.work.token: a secret must not stand in the file"},
		{"work: {type: telegram, token: env:W, api_url: h.example.org}", "connectors.work.api_url: "},
		{"work: {type: slack, bot_token: env:W, app_tokn: env:A}", "did you mean connectors.work.app_token?"},
		{"work: {type: slack, bot_token: env:W, <<: {app_token: env:A}}", "connectors.work"},
		{"good: {type: slack}", "was given in line 2 already"},
	} {
		c, warnings := load(t, "connectors:\n"+strings.Replace("  "+tt.entry+"\n", "  good", "  good: {type: telegram, token: env:GOOD}\n  good", 1)+map[bool]string{false: good}[strings.HasPrefix(tt.entry, "good")],
			map[string]string{"GOOD": "5:not-a-token", "W": "6:not-a-token", "A": "xapp-1"})
		var all []string
		off := false
		for _, w := range warnings {
			all = append(all, w.String())
			off = off || w.Off && strings.HasSuffix(w.Text, " is off until this is corrected") && !strings.Contains(w.Text, "connector slack is off")
		}
		name, _, _ := strings.Cut(tt.entry, ":")
		if said := strings.Join(all, "\n"); !strings.Contains(said, tt.text) || !off && name != "slack" {
			t.Errorf("%s: warnings\n%s\nwant %q and what is off", tt.entry, said, tt.text)
		}
		if s, ok := c.Connectors.Instance("work"); ok && s.Off() == "" {
			t.Errorf("%s: the instance runs", tt.entry)
		}
		if s, ok := c.Connectors.Instance("good"); !ok || s.Off() != "" {
			t.Errorf("%s: another instance does not run", tt.entry)
		}
	}
}

// Two instances with one token would take each other's messages: the second one is off,
// and the sentence names both.
func TestOneTokenTwice(t *testing.T) {
	vars := map[string]string{"A": "7:not-a-token", "B": "7:another-token", "X": "xoxb-1", "Y": "xapp-1", "Z": "xoxb-2"}
	for _, tt := range []struct{ file, off, both string }{
		{"telegram: {token: env:A}\nconnectors: {sales: {type: telegram, token: env:A}}\n", "sales", "the connectors telegram and sales have the same token"},
		{"connectors: {north: {type: telegram, token: env:A}, south: {type: telegram, token: env:B}}\n", "south", "the connectors north and south"},
		{"slack: {bot_token: env:X, app_token: env:Y}\nconnectors: {work: {type: slack, bot_token: env:Z, app_token: env:Y}}\n", "work", "the connectors slack and work"},
	} {
		c, warnings := load(t, tt.file, vars)
		if len(warnings) != 1 || !warnings[0].Off || !strings.Contains(warnings[0].String(), tt.both) || !strings.Contains(warnings[0].Text, "the connector "+tt.off+" is off") {
			t.Errorf("warnings: %v", warnings)
		}
		for _, i := range c.Connectors.Instances() {
			if (i.Settings.Off() != "") != (i.Name == tt.off) {
				t.Errorf("%s: off: %q", i.Name, i.Settings.Off())
			}
		}
	}
}

// The groups telegram and slack are the instances of those names, wherever they stand.
func TestInstanceNamedAsItsPlatform(t *testing.T) {
	vars := map[string]string{"TELEGRAM_API_URL": "http://127.0.0.1:1", "A": "7:x"}
	c, warnings := load(t, "connectors: {telegram: {token: env:A}}\n", vars)
	if len(warnings) > 0 || c.Connectors.Telegram.Token.Value() != "7:x" || c.Connectors.Telegram.APIURL != "http://127.0.0.1:1" || len(c.Connectors.Named) > 0 {
		t.Errorf("%+v, warnings %v", c.Connectors, warnings)
	}
	c, warnings = load(t, "telegram: {token: env:A}\nconnectors: {telegram: {token: env:A}}\n", vars)
	if len(warnings) != 1 || c.Connectors.Telegram.Off() == "" || !warnings[0].Off {
		t.Errorf("%+v, warnings %v", c.Connectors, warnings)
	}
}

// A webhook has keys of its own; what does not fit together switches it off.
func TestWebhooks(t *testing.T) {
	vars := map[string]string{"S": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "C": "whsec_bm90LWEtc2VjcmV0LWF0LWFsbA=="}
	for _, tt := range []struct{ keys, warning string }{
		{"secret: env:S", ""},
		{"secret: env:S, scheme: github, route: telegram/1, max_body: 2m", ""},
		{"secret: env:S, scheme: hmac, header: X-Sig, prefix: 'sha256='", ""},
		{"secret: env:S, callback: 'https://h.example.org/x', callback_secret: env:C", ""},
		{"secret: env:S, callback: 'http://127.0.0.1:8080/x', callback_secret: env:C", ""},
		{"secret: env:S, callback: 'http://[::1]/x', callback_secret: env:C", ""},
		{"secret: env:S, callback: 'http://localhost/x', callback_secret: env:C", ""},
		{"secret: env:S, callback: 'http://10.0.0.7/x', callback_secret: env:C", "callback is http:// to another machine; want https://; the connector ci is off"},
		{"secret: env:S, callback: 'http://h.example.org/x', callback_secret: env:C", "callback is http:// to another machine; want https://; the connector ci is off"},
		{"secret: env:S, callback: 'https://h.example.org/x'", "set callback_secret: env:NAME; the connector ci is off"},
		{"secret: env:S, callback: 'https://h.example.org/x', callback_secret: env:S", "secret and callback_secret are the same"},
		{"secret: env:NONE", "the environment variable \"NONE\" is not set"},
		{"secret: whsec_abc", "a secret must not stand in the file"},
		{"secret: env:S, scheme: hmac", "the scheme hmac has no header; the connector ci is off"},
		{"secret: env:S, header: X-Sig", "header and prefix are for the scheme hmac, not standard; the connector ci is off"},
		{"secret: env:S, scheme: md5", `"md5" is not one of standard, github, stripe, hmac, bearer; the connector ci is off`},
		{"secret: env:S, route: telegram/1, callback: 'https://h'", "has a route and a callback; keep one of the two; the connector ci is off"},
		{"secret: env:S, route: nowhere/1", "is not a connector"},
		{"secret: env:S, callback: 'https://user:password@h', callback_secret: env:C", "must not hold a user name or password; the connector ci is off"},
		{"secret: env:S, callback: h.example.org, callback_secret: env:C", "has no scheme"},
		{"secret: env:S, max_body: 33m", "is not a size such as"},
		{"secret: env:S, sercet: env:S", "did you mean connectors.ci.secret?"},
	} {
		c, warnings := load(t, "connectors: {ci: {type: webhook, "+tt.keys+"}}\n", vars)
		s, ok := c.Connectors.Instance("ci")
		if tt.warning == "" {
			if w, is := s.(*Webhook); !ok || !is || len(warnings) > 0 || w.Off() != "" || w.Secret.Value() != vars["S"] {
				t.Errorf("%s: %+v, warnings %v", tt.keys, s, warnings)
			}
			continue
		}
		if len(warnings) != 1 || !strings.Contains(warnings[0].String(), tt.warning) {
			t.Errorf("%s: warnings %v, want %q", tt.keys, warnings, tt.warning)
		}
		if !ok || s.Off() == "" && !strings.Contains(tt.keys, "NONE") {
			t.Errorf("%s: it runs: %+v", tt.keys, s)
		}
	}
	c, warnings := load(t, "connectors: {ci: {type: webhook, secret: env:S}}\nheartbeat: {route: ci/x}\nagents: {b: {match: ['ci:nightly']}}\n", vars)
	if d := claybot.User("ci", "nightly", "ci"); len(warnings) > 0 || c.Profile(d).Name != "b" {
		t.Errorf("profile %s, warnings %v", c.Profile(d).Name, warnings)
	}
	for _, text := range []string{"people: {ann: [telegram/7, ci:ci]}", "operators: [ci/ci, telegram/7]", "agents: {default: {approvals: {approvers: [telegram/7, ci/ci]}}}"} {
		c, warnings := load(t, "connectors: {ci: {type: webhook, secret: env:S}}\n"+text+"\n", vars)
		if len(warnings) != 1 || !strings.Contains(warnings[0].String(), "is a webhook, which is no person") || len(c.Identities("telegram/7")) != 1 || slices.Contains(c.Access.Operators, "ci/ci") {
			t.Errorf("%s: %v, warnings %v", text, c.Access, warnings)
		}
	}
	for _, name := range []string{"ci:ci", "webhook:x"} { // a type is no connector
		if _, err := c.ParseAllowed(name); err == nil {
			t.Errorf("%s is allowed", name)
		}
	}
	c, _ = load(t, "http: {public_url: 'https://Bot.example.org:8443/'}\nhttp_hosts: [a.example.org]\n", nil)
	if !slices.Equal(c.HTTP.Hosts, []string{"a.example.org", "bot.example.org:8443"}) || c.HTTP.PublicURL != "https://Bot.example.org:8443" {
		t.Errorf("hosts %v, address %s", c.HTTP.Hosts, c.HTTP.PublicURL)
	}
}

// Agents write into chats of Telegram and Slack: ids of the page and of terminals are names that
// several logins can have.
func TestSendTo(t *testing.T) {
	for to, want := range map[string]string{
		"telegram:-100":     "",
		"slack/T012/C012":   "",
		"web:ann":           "web:ann is a conversation of the page or a terminal, which agents cannot write into",
		"terminal:terminal": "terminal:terminal is a conversation of the page or a terminal",
		"ci:nightly":        "ci:nightly is a webhook, which takes no messages of its own",
	} {
		c, warnings := load(t, "connectors: {ci: {type: webhook, secret: env:S}}\nagents: {default: {send_to: ['"+to+"', 'telegram:1001']}}\n", map[string]string{"S": "whsec_" + strings.Repeat("A", 44)})
		got := c.Profile(claybot.User("telegram", "1001", "1001")).SendTo
		if want == "" && (len(warnings) > 0 || len(got) != 2) || want != "" && (len(warnings) != 1 || !strings.Contains(strings.ReplaceAll(warnings[0].String(), `"`, ""), want) || len(got) == 2) {
			t.Errorf("%s: %v, warnings %v", to, got, warnings)
		}
	}
}

// A credential is called by what sets it: the variable that the file refers to, or the key.
func TestNameOf(t *testing.T) {
	telegram, sales := &Telegram{}, &Telegram{}
	for _, tt := range []struct {
		name, secret, want string
	}{
		{"telegram", "TELEGRAM_BOT_TOKEN", "TELEGRAM_BOT_TOKEN"},
		{"telegram", "", "TELEGRAM_BOT_TOKEN"},
		{"telegram", "env:MY_BOT", "MY_BOT"},
		{"telegram", "file:token.txt", "telegram.token"},
		{"sales", "env:SALES_BOT", "SALES_BOT"},
		{"sales", "file:token.txt", "connectors.sales.token"},
		{"sales", "", "connectors.sales.token"},
	} {
		i := Instance{Name: tt.name, Settings: telegram}
		if tt.name == "sales" {
			i.Settings = sales
		}
		var secret Secret
		if tt.secret != "" {
			secret = NewSecret(tt.secret, "x")
		}
		if got := i.NameOf("token", "TELEGRAM_BOT_TOKEN", secret); got != tt.want {
			t.Errorf("%s of %q: %s, want %s", tt.name, tt.secret, got, tt.want)
		}
	}
	telegram.Token = NewSecret("env:MY_BOT", "x")
	if got := (Instance{Name: "telegram", Settings: telegram}).Names(); len(got) == 0 || got[0] != "MY_BOT" {
		t.Errorf("the names are %q", got)
	}
}
