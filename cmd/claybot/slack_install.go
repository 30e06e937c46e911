package main

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors/slack"
	"github.com/claybot/claybot/platforms"
	"github.com/claybot/claybot/storage"
)

// slackPath is where browsers come that install a Slack app.
const slackPath = "/slack/"

type slackInstallCmd struct {
	Connector string `arg:"" optional:"" default:"slack" help:"Name of the connector. Default: slack."`
}

// Run prints an install link. It is signed with the Client Secret, and the daemon notes its use.
func (c slackInstallCmd) Run(e *env) error {
	config, _, err := e.load()
	if err != nil {
		return err
	}
	s, err := slackSettings(config, c.Connector)
	if err != nil {
		return err
	}
	i := configs.Instance{Name: c.Connector, Settings: s}
	switch {
	case !s.Install:
		return configError{fmt.Errorf("workspaces cannot install this app: set install: on of %s, see docs/slack.md", c.Connector)}
	case s.ClientID == "":
		return configError{errors.New(clientIDName(i) + " is missing: copy it from api.slack.com/apps, Basic Information, Client ID")}
	case s.ClientSecret.Value() == "":
		return configError{errors.New(i.Names()[0] + " is missing: copy it from api.slack.com/apps, Basic Information, Client Secret")}
	}
	link, end := slackOAuth(config, i, s, nil).InstallLink(c.Connector, time.Now())
	if _, err := fmt.Fprintf(e.err, "Until %s, one workspace can install the app with this link. Give it only to the person who does that.\n", end.Format(time.RFC1123)); err != nil {
		return err
	}
	return e.text(link + "\n")
}

// slackURL is the address below which browsers install the app of a connector.
func slackURL(c configs.Config, name string) string { return baseURL(c, "") + slackPath + name + "/" }

// slackOAuth returns what an app needs that workspaces install. The first of its credentials is the Client Secret.
func slackOAuth(c configs.Config, i configs.Instance, s *configs.Slack, secrets storage.Secrets) slack.OAuth {
	again := "claybot slack install"
	if i.Name != platforms.Slack {
		again += " " + i.Name
	}
	return slack.OAuth{
		ClientID: s.ClientID, ClientSecret: s.ClientSecret.Value(), ClientIDName: clientIDName(i), ClientSecretName: i.Names()[0],
		URL: slackURL(c, i.Name), Again: again, Secrets: secrets,
	}
}

// slackInstall serves browsers that install the app of a connector that runs. Without one it says nothing else than
// for a link that is not valid.
func (d *daemon) slackInstall(serve func(*slack.Workspaces, http.ResponseWriter, *http.Request)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		c, ok := d.roster.of(name).(*slack.Workspaces)
		if !ok || d.roster.order(name) != nil {
			slack.NoInstall(w)
			return
		}
		serve(c, w, r)
	})
}
