package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/workspace"
	"github.com/claybot/claybot/workspace/docker"
)

// places looks whether the workspaces that profiles want can be had.
func (d *doctor) places(ctx context.Context) {
	wanted := make(map[string][]string) // profiles by provider
	for _, name := range slices.Sorted(maps.Keys(d.config.Agents.Profiles)) {
		p := d.config.Agents.Profiles[name].Workspace.Provider
		wanted[p] = append(wanted[p], name)
	}
	if by := wanted[configs.WorkspaceDocker]; len(by) > 0 {
		engine := docker.New(docker.Config{})
		defer func() { _ = engine.Close() }() // nothing was opened
		if err := engine.Check(ctx); err != nil {
			text, next, _ := strings.Cut(placeError(err), ": ")
			d.say("docker", levelWarning, text, next)
		} else if _, version, err := engine.Versions(ctx); err != nil {
			d.say("docker", levelWarning, placeError(err), "")
		} else {
			d.say("docker", levelOK, "the engine answers, version "+version, "")
		}
		if d.config.Storage.Shared() {
			d.say("docker", levelOK, "agents find their containers on all nodes only if all use one engine (DOCKER_HOST)", "")
		}
	}
	if by := wanted[configs.WorkspaceLocal]; len(by) > 0 {
		d.say("workspaces", levelWarning, "commands of agents run on this machine as the user who runs claybot, in the profiles "+strings.Join(by, ", "),
			"set workspaces.provider to docker or off, unless you trust everybody who writes to the bot")
	}
}

// placeError is what is wrong with a provider, in its words for people.
func placeError(err error) string {
	if e := (*workspace.Error)(nil); errors.As(err, &e) {
		return e.Text
	}
	return err.Error()
}

// A form is how a credential looks.
type form struct {
	name  string
	value configs.Secret
	looks *regexp.Regexp // nil: nobody knows
	where string
}

// credentials looks at the form of tokens and keys. Nobody is called.
func (d *doctor) credentials(context.Context) {
	c := d.config
	none := true
	for _, x := range []struct{ name, why string }{{"telegram", c.Connectors.Telegram.Off()}, {"slack", c.Connectors.Slack.Off()}} {
		if x.why != "" {
			none = false
			d.say(x.name, levelProblem, "it is off: "+x.why, correctConnector)
		}
	}
	if c.Connectors.Telegram.Wanted() && c.Connectors.Telegram.Off() == "" {
		none = false
		d.form("telegram", form{"TELEGRAM_BOT_TOKEN", c.Connectors.Telegram.Token, configs.TelegramToken, "get it from @BotFather (/mybots)"})
	}
	if c.Connectors.Slack.Wanted() && c.Connectors.Slack.Off() == "" {
		none = false
		d.form("slack", form{"SLACK_BOT_TOKEN", c.Connectors.Slack.BotToken, configs.SlackBotToken, "copy it from api.slack.com/apps, OAuth & Permissions (xoxb-…)"},
			form{"SLACK_APP_TOKEN", c.Connectors.Slack.AppToken, configs.SlackAppToken, "copy it from api.slack.com/apps, Basic Information, App-Level Tokens (xapp-…)"})
	}
	if none {
		d.say("connectors", levelOK, "neither Telegram nor Slack is set up; the web page and the terminal work without", "")
	}
	if c.Model.Demo() {
		d.say("model", levelWarning, "it is the demo, which answers by a script", "name a model; docs/models.md says how")
		return
	}
	if why := c.Model.Off(); why != "" {
		d.say("model", levelProblem, "it is off: "+why, correctModel)
		return
	}
	keys := c.Model.Credentials()
	if len(keys) == 0 {
		d.say("model", levelWarning, c.Model.ID()+" is asked without a key", "set OPENAI_API_KEY or ANTHROPIC_API_KEY, unless the server needs none")
		return
	}
	forms := make([]form, 0, len(keys))
	for _, k := range keys {
		forms = append(forms, form{k.String(), k, nil, "give it a value"})
	}
	d.form("model", forms...)
}

// form tells whether credentials look as they should.
func (d *doctor) form(what string, all ...form) {
	good := true
	for _, f := range all {
		name := f.name
		if f.value.Named() {
			name = f.value.String()
		}
		v := f.value.Value()
		switch {
		case v == "":
			d.say(what, levelProblem, name+" is not set or cannot be read", f.where)
		case strings.TrimSpace(v) != v || strings.ContainsAny(v, " \t\r\n\"'"):
			d.say(what, levelProblem, name+" has spaces or quotes in it", f.where+", and set it without them")
		case f.looks != nil && !f.looks.MatchString(v):
			d.say(what, levelProblem, name+" does not look like one", f.where)
		default:
			continue
		}
		good = false
	}
	if !good {
		return
	}
	d.say(what, levelOK, fmt.Sprintf("%s well formed; whether it is accepted, claybot status tells", plural(len(all), "the credential is", "all credentials are")), "")
}

// plural chooses between words for one and for several.
func plural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}
