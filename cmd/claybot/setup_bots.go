package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/platforms"
)

// token asks for the token of a bot until its platform accepts it, or takes that of a flag. It returns
// the change that stores it.
func (s *setup) token(config configs.Config, b botStep, ref string) (made setting, found botFound, err error) {
	flag := b.name + "-token"
	if ref != "" {
		secret, reference, err := s.secretOf(flag, ref)
		if err == nil && !b.form.MatchString(secret) {
			err = fmt.Errorf("--%s: %s does not hold the token of a bot", flag, ref)
		}
		if err == nil {
			found, err = s.bot(config, b.name, secret)
		}
		return secretSetting(b.key, secret, reference), found, err
	}
	for {
		answer, err := s.askSecret("Token of the bot (not shown; Enter skips): ")
		if err != nil {
			return setting{}, found, err
		}
		token, err := tokenIn(answer, b)
		if err != nil {
			s.say("✗ %s, or press Enter to skip this step.\n", err)
			continue
		}
		if found, err = s.bot(config, b.name, token); err == nil {
			return setting{key: b.key, secret: token}, found, nil
		}
		if s.ctx.Err() != nil {
			return setting{}, found, errInterrupted
		}
		next := mending(err, "paste another token")
		s.say("✗ %s\n  %s, or press Enter to skip this step.\n", cause(err), strings.ToUpper(next[:1])+next[1:])
	}
}

// telegram sets up the bot of the connector telegram.
func (s *setup) telegram() error {
	return s.oneBot(botSteps[platforms.Telegram], s.flags.TelegramToken, "get the token from @BotFather (/mybots)",
		"Telegram. Open https://t.me/BotFather, send /newbot, answer its two questions, and copy the token that it shows.")
}

// discord sets up the bot of the connector discord.
func (s *setup) discord() error {
	return s.oneBot(botSteps[platforms.Discord], s.flags.DiscordToken, "get a token from https://discord.com/developers/applications, Bot, Reset Token",
		"Discord. Open https://discord.com/developers/applications, create an application, and copy the token from Bot, Reset Token.")
}

// oneBot sets up a bot that has one token, and pairs its owner. ref is that of its flag, mend says where
// the token is, and help how to make a bot.
func (s *setup) oneBot(b botStep, ref, mend, help string) error {
	config, _, err := s.load()
	if err != nil {
		return err
	}
	if ref == "" && b.of(config).Wanted() {
		found, err := s.botWorks(config, b)
		if err == nil {
			s.invitesBot(found)
			return s.owner(b.name, found.name)
		}
		s.say("✗ %s: %s\n", b.name, cause(err))
		if s.term == nil {
			return fmt.Errorf("%s, then: claybot setup %s --%s-token file:PATH", mending(err, mend), b.name, b.name)
		}
	} else if ref == "" {
		if s.term == nil {
			return s.needs(b.name, "--"+b.name+"-token")
		}
		s.say("\n%s\n", help)
	}
	made, found, err := s.token(config, b, ref)
	if err != nil {
		return s.refused(err, mending(err, mend)+", then: claybot setup "+b.name)
	}
	s.invitesBot(found)
	if err := s.save(made); err != nil {
		return err
	}
	return s.owner(b.name, found.name)
}

// invitesBot shows where the owner of a server adds a Discord bot to it.
func (s *setup) invitesBot(found botFound) {
	if link := found.inviteURL(); link != "" {
		s.say("Invite it to your server:\n  %s\n", link)
	}
}

// slack sets up the app of the connector slack.
func (s *setup) slack() error {
	config, _, err := s.load()
	if err != nil {
		return err
	}
	c := &config.Connectors.Slack
	if s.flags.SlackBotToken+s.flags.SlackAppToken == "" {
		switch {
		case c.Rotates() || c.Hooked():
			s.say("✓ slack: it is set up by hand, with receive: http or token rotation; check it with: claybot doctor\n")
			return nil
		case c.BotToken.Named() && c.AppToken.Named():
			if err = s.slackWorks(config); err == nil {
				return s.owner(platforms.Slack, "")
			}
			s.say("✗ slack: %s\n", cause(err))
			if s.term == nil {
				return fmt.Errorf("%s, then: claybot setup slack --slack-bot-token file:PATH --slack-app-token file:PATH", mending(err, "copy the tokens from https://api.slack.com/apps"))
			}
		case s.term == nil:
			return s.needs("slack", "--slack-bot-token and --slack-app-token")
		}
		s.slackHelp(config)
	}
	bot, app, err := s.slackTokens(config)
	if err != nil {
		return s.refused(err, mending(err, "copy the token from https://api.slack.com/apps")+", then: claybot setup slack")
	}
	all := slices.DeleteFunc([]setting{app, bot}, func(x setting) bool { return x.key == "" }) // the other one stays
	if err := s.save(all...); err != nil {
		return err
	}
	return s.owner(platforms.Slack, "")
}

// slackHelp says how to make an app.
func (s *setup) slackHelp(config configs.Config) {
	link, err := slackLink(config)
	if err != nil {
		link = "https://api.slack.com/apps?new_app=1 (choose From a manifest, and paste what this prints: claybot slack manifest)"
	}
	s.say("\nSlack. 1. Open this link, choose your workspace, create the app and install it:\n\n%s\n\n", link)
	s.say("2. Copy the bot token (xoxb-…) from OAuth & Permissions.\n3. In Basic Information, App-Level Tokens, generate a token with the scope connections:write (xapp-…).\n")
}

// slackTokens returns the changes that store both tokens, in whichever order they come.
func (s *setup) slackTokens(config configs.Config) (bot, app setting, err error) {
	for _, f := range []struct {
		to             *setting
		key, flag, ref string
		prefix         string
	}{
		{&bot, "slack.bot_token", "slack-bot-token", s.flags.SlackBotToken, "xoxb-"}, {&app, "slack.app_token", "slack-app-token", s.flags.SlackAppToken, "xapp-"},
	} {
		if f.ref == "" {
			continue
		}
		secret, reference, err := s.secretOf(f.flag, f.ref)
		if err == nil && !strings.HasPrefix(secret, f.prefix) {
			err = fmt.Errorf("--%s: the token does not begin with %s; give the other one there", f.flag, f.prefix)
		}
		if err == nil {
			err = s.slackToken(config, secret)
		}
		if err != nil {
			return bot, app, err
		}
		*f.to = secretSetting(f.key, secret, reference)
	}
	flagged := bot.key+app.key != ""
	hasBot, hasApp := flagged && config.Connectors.Slack.BotToken.Value() != "", flagged && config.Connectors.Slack.AppToken.Value() != ""
	for bot.key == "" && !hasBot || app.key == "" && !hasApp {
		if s.term == nil {
			return bot, app, errors.New("Slack needs both tokens: give --slack-bot-token and --slack-app-token") //nolint:staticcheck // a name
		}
		prompt := "Paste one of the tokens (not shown; Enter skips): "
		switch {
		case bot.key != "":
			prompt = "Now the app-level token, xapp-… (not shown; Enter skips): "
		case app.key != "":
			prompt = "Now the bot token, xoxb-… (not shown; Enter skips): "
		}
		answer, err := s.askSecret(prompt)
		if err != nil {
			return bot, app, err
		}
		for _, token := range tokensIn(answer, platforms.SlackBotToken, platforms.SlackAppToken) {
			if err := s.slackToken(config, token); err != nil {
				if s.ctx.Err() != nil {
					return bot, app, errInterrupted
				}
				s.say("✗ %s\n", cause(err))
				continue
			}
			if made := (setting{key: slackKey(token), secret: token}); made.key == "slack.app_token" {
				app = made
			} else {
				bot = made
			}
		}
	}
	return bot, app, nil
}

// needs ends a step that cannot ask.
func (s *setup) needs(step, flags string) error {
	if s.alone {
		return usageError{fmt.Errorf("%s is not set up, and there is no terminal to ask on; give %s", step, flags)}
	}
	return errSkipped
}

// refused adds the next step to an error, unless the user ended or skipped the step.
func (s *setup) refused(err error, next string) error {
	if s.ctx.Err() != nil || errors.Is(err, errSkipped) || errors.Is(err, errInterrupted) || errors.Is(err, errInputEnded) {
		return err
	}
	return fmt.Errorf("%s; next: %s", cause(err), next)
}
