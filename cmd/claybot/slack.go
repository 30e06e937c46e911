package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors/slack"
	"github.com/claybot/claybot/platforms"
	"github.com/claybot/claybot/profiles"
)

type slackCmd struct {
	Install  slackInstallCmd  `cmd:"" eg:"slack install" help:"Print a link by which one workspace can install the Slack app, within a day; needs no running daemon."`
	Manifest slackManifestCmd `cmd:"" eg:"slack manifest --link" help:"Print the manifest of a Slack app, for what the configuration switches on; needs no running daemon."`
}

type slackManifestCmd struct {
	Connector string `arg:"" optional:"" default:"slack" help:"Name of the connector. Default: slack."`
	Name      string `placeholder:"NAME" help:"Name of the app, as people see it. Default: claybot."`
	JSON      bool   `name:"json" xor:"form" help:"Print JSON."`
	Link      bool   `xor:"form" help:"Print a link that opens Slack's page for new apps with the manifest filled in."`
	Create    string `xor:"form" placeholder:"REF" help:"Create the app at Slack with an app configuration token (xoxe.xoxp-…): env:NAME, file:PATH or -."`
}

// Run prints the manifest of a connector, which needs no tokens yet, or creates the app.
func (c slackManifestCmd) Run(e *env) error {
	config, _, err := e.load()
	if err != nil {
		return err
	}
	app, err := slackApp(config, c.Connector)
	if err != nil {
		return err
	}
	if app.Name = c.Name; app.Check() != nil {
		return usageError{app.Check()}
	}
	switch {
	case c.Create != "":
		return c.create(e, config, app)
	case c.JSON:
		return e.text(app.JSON())
	case !c.Link:
		return e.text(app.YAML())
	}
	link, err := app.Link()
	if err != nil {
		return fmt.Errorf("%w; choose From a manifest on https://api.slack.com/apps?new_app=1 and paste what this prints: claybot slack manifest", err)
	}
	if _, err := fmt.Fprintln(e.err, "If Slack's page shows no manifest, choose From a manifest and paste what this prints: claybot slack manifest"); err != nil {
		return err
	}
	return e.text(link + "\n")
}

// create creates the app at Slack. The token is used once and kept nowhere.
func (c slackManifestCmd) create(e *env, config configs.Config, app slack.App) error {
	s, err := slackSettings(config, c.Connector)
	if err == nil {
		err = secretReference("create", c.Create)
	}
	if err != nil {
		return err
	}
	var token string
	if c.Create == "-" {
		token, err = e.readSecret("app configuration token")
	} else {
		token, err = config.ReadSecret(c.Create, os.LookupEnv)
	}
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, createTime)
	defer cancel()
	made, err := slack.New(slack.Config{APIURL: s.APIURL, Log: slog.New(slog.DiscardHandler)}).CreateApp(ctx, strings.TrimSpace(token), app)
	if err != nil {
		return err
	}
	second := "under Basic Information, App-Level Tokens, generate a token with connections:write (xapp-…)"
	if app.Hook != "" {
		second = "under Basic Information, copy the Signing Secret"
	}
	if app.Redirect != "" {
		return e.text(fmt.Sprintf("Created the app %s in the workspace %s.\nNext, at https://api.slack.com/apps/%s, under Basic Information: copy the Client ID, the Client Secret and the Signing Secret;\nunder Manage Distribution, allow other workspaces to install it;\nthen set the three, see docs/slack.md, and run: claybot slack install\n",
			made.ID, cmp.Or(made.Team, "of the token"), made.ID))
	}
	return e.text(fmt.Sprintf("Created the app %s in the workspace %s.\nNext, at https://api.slack.com/apps/%s: install the app under Install App and copy the Bot User OAuth Token (xoxb-…);\n%s;\nthen set both, see docs/slack.md.\n",
		made.ID, cmp.Or(made.Team, "of the token"), made.ID, second))
}

// createTime is how long Slack may take to create an app.
const createTime = 30 * time.Second

// slackSettings returns the settings of the Slack connector with a name.
func slackSettings(c configs.Config, name string) (*configs.Slack, error) {
	s, names := &c.Connectors.Slack, []string{platforms.Slack}
	found := name == platforms.Slack
	for _, i := range c.Connectors.Named {
		if named, ok := i.Settings.(*configs.Slack); ok {
			if names = append(names, i.Name); i.Name == name {
				s, found = named, true
			}
		}
	}
	s = s.Tokenless()
	switch {
	case !found:
		return nil, usageError{fmt.Errorf("no Slack connector %.40q; there are: %s", name, strings.Join(names, ", "))}
	case s.Off() != "":
		return nil, configError{fmt.Errorf("%s is off: %s", name, s.Off())}
	}
	return s, nil
}

// slackApp returns the app of a Slack connector.
func slackApp(c configs.Config, name string) (slack.App, error) {
	s, err := slackSettings(c, name)
	if err != nil {
		return slack.App{}, err
	}
	app := slack.App{Without: slackWithout(c, name, s), Rotate: s.Rotates()}
	if s.Hooked() {
		if app.Hook = hookURL(c, "", name); app.Hook == "" {
			return slack.App{}, configError{errors.New("http.public_url is not set: Slack needs the address for receive: http")}
		}
	}
	if s.Install {
		app.Redirect = slackURL(c, name) + "callback"
	}
	return app, nil
}

// slackWithout returns the features of an app that the settings and the profiles of its chats
// switch off.
func slackWithout(c configs.Config, name string, s *configs.Slack) (off []slack.Feature) {
	var groups, reactions, marks bool
	for _, p := range c.Agents.Profiles {
		if p.Name != configs.DefaultProfile && !slices.ContainsFunc(p.Match, func(m string) bool { return m == name || strings.HasPrefix(m, name+":") }) {
			continue
		}
		groups = groups || p.Respond != profiles.RespondOff
		reactions = reactions || p.Reactions.Feedback || len(p.Reactions.Stop)+len(p.Reactions.Approve) > 0
		marks = marks || p.Acknowledge != configs.Acknowledge{} || p.Tools == nil || slices.Contains(p.Tools, "set_reaction")
	}
	for _, f := range []struct {
		feature slack.Feature
		on      bool
	}{{slack.Groups, groups}, {slack.Reactions, reactions}, {slack.Marks, marks}, {slack.Backfill, s.Backfill}, {slack.Home, s.Home}, {slack.Shortcuts, s.Shortcut}, {slack.Panel, s.Panel}} {
		if !f.on {
			off = append(off, f.feature)
		}
	}
	return off
}
