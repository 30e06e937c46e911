package main

import (
	"context"
	"log/slog"
	"strings"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors/slack"
)

// rotation checks what an app needs whose bot tokens Slack rotates. It asks Slack for nothing: a refresh
// token counts once.
func (d *doctor) rotation(i configs.Instance, s *configs.Slack) {
	switch {
	case !s.Rotates():
	case s.ClientID == "":
		d.problem("credential-missing", clientIDName(i)+" is missing", "copy the Client ID from api.slack.com/apps, Basic Information")
	case s.BotToken.Named():
		d.warn("slack-token-unused", s.BotToken.String()+" is not used: Slack rotates the bot tokens of this app", "remove it")
	default:
		d.ok("Slack rotates its bot tokens, and claybot renews them")
	}
}

// installs checks what an app needs that workspaces install themselves.
func (d *doctor) installs(i configs.Instance, s *configs.Slack) {
	if !s.Install {
		return
	}
	if s.ClientID == "" {
		d.problem("credential-missing", clientIDName(i)+" is missing", "copy the Client ID from api.slack.com/apps, Basic Information")
	}
	for _, unused := range []configs.Secret{s.BotToken, s.Refresh} {
		if unused.Named() {
			d.warn("slack-token-unused", unused.String()+" is not used: workspaces install this app themselves", "remove it")
		}
	}
}

// askWorkspaces asks Slack about each workspace that has installed the app.
func (d *doctor) askWorkspaces(ctx context.Context, i configs.Instance, s *configs.Slack) {
	secrets, release, err := secretsOutside(ctx, d.config, slack.Folder)
	if err != nil {
		d.refused(err)
		return
	}
	defer release()
	oauth := slackOAuth(d.config, i, s, secrets)
	all, err := slack.NewWorkspaces(slack.Config{
		Name: i.Name, APIURL: s.APIURL, Hook: hookURL(d.config, "", i.Name), Without: slackWithout(d.config, i.Name, s), Log: slog.New(slog.DiscardHandler),
	}, oauth).Examine(ctx)
	if err != nil {
		d.refused(err)
		return
	}
	if len(all) == 0 {
		d.warn("slack-not-installed", "no workspace has installed the app", "open the link that this prints: "+oauth.Again)
	}
	for _, x := range all {
		switch {
		case x.Gone:
			d.warn("slack-not-installed", x.Name+" has removed the app", "to install it again, open the link that this prints: "+oauth.Again)
		case x.Err != nil:
			d.refused(x.Err)
		case len(x.Lacks) > 0:
			d.warn("slack-scopes-missing", "in "+x.Name+", the app lacks the scopes "+strings.Join(x.Lacks, ", "), "install it there again: open the link that this prints: "+oauth.Again)
		default:
			d.ok("Slack takes the token of " + x.Name)
		}
	}
}
