package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors/discord"
	"github.com/claybot/claybot/connectors/slack"
	"github.com/claybot/claybot/connectors/telegram"
	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/platforms"
)

// tokensIn returns the tokens of an answer. A token has no white space: what a line break cut in two
// is one again.
func tokensIn(answer string, forms ...*lazyregexp.Regexp) []string {
	words := strings.Fields(strings.NewReplacer(`"`, "", "'", "").Replace(answer))
	whole := func(w string) bool {
		return slices.ContainsFunc(forms, func(f *lazyregexp.Regexp) bool { return f.MatchString(w) })
	}
	starts := func(w string) bool { return strings.HasPrefix(w, "xoxb-") || strings.HasPrefix(w, "xapp-") }
	var all []string
	for i, w := range words {
		if i > 0 && (!whole(w) || !whole(all[len(all)-1])) && !starts(w) {
			all[len(all)-1] += w
			continue
		}
		all = append(all, w)
	}
	return all
}

// token asks for a token until check accepts it, or takes that of a flag. It returns the change that
// stores it.
func (s *setup) token(key, flag, ref, prompt string, form *lazyregexp.Regexp, check func(string) error) (setting, error) {
	if ref != "" {
		secret, reference, err := s.secretOf(flag, ref)
		if err == nil && !form.MatchString(secret) {
			err = fmt.Errorf("--%s: %s does not hold such a token; copy it again", flag, ref)
		}
		if err == nil {
			err = check(secret)
		}
		return secretSetting(key, secret, reference), err
	}
	for {
		answer, err := s.askSecret(prompt)
		if err != nil {
			return setting{}, err
		}
		all := tokensIn(answer, form)
		switch {
		case len(all) != 1 || !form.MatchString(all[0]):
			s.say("✗ That is not such a token. Copy all of it and paste it again, or press Enter to skip this step.\n")
			continue
		}
		if err = check(all[0]); err == nil {
			return setting{key: key, secret: all[0]}, nil
		}
		if s.ctx.Err() != nil {
			return setting{}, errInterrupted
		}
		s.say("✗ %s\n  Paste another token, or press Enter to skip this step.\n", cause(err))
	}
}

// telegram sets up the bot of the connector telegram.
func (s *setup) telegram() error {
	config, _, err := s.load()
	if err != nil {
		return err
	}
	t := &config.Connectors.Telegram
	check := func(token string) error {
		ctx, cancel := context.WithTimeout(s.ctx, platformTime)
		defer cancel()
		name, err := telegram.New(telegram.Config{Name: platforms.Telegram, Token: token, BaseURL: t.APIURL, Log: slog.New(slog.DiscardHandler)}).Examine(ctx)
		if err == nil {
			s.bot = name
			s.say("✓ telegram: the token is that of @%s (https://t.me/%s)\n", name, name)
		}
		return err
	}
	if t.Wanted() && s.flags.TelegramToken == "" {
		if err = s.works(platforms.Telegram, t, func() error { return check(t.Token.Value()) }); err == nil {
			return s.owner(platforms.Telegram)
		}
		s.say("✗ telegram: %s\n", cause(err))
		if s.term == nil {
			return errors.New("get a token from @BotFather (/mybots), then: claybot setup telegram --telegram-token file:PATH")
		}
	} else if s.flags.TelegramToken == "" {
		if s.term == nil {
			return s.needs("telegram", "--telegram-token")
		}
		s.say("\nTelegram. Open https://t.me/BotFather, send /newbot, answer its two questions, and copy the token that it shows.\n")
	}
	made, err := s.token("telegram.token", "telegram-token", s.flags.TelegramToken, "Token of the bot (not shown; Enter skips): ", platforms.TelegramToken, check)
	if err != nil {
		return s.refused(err, "get the token from @BotFather (/mybots), then: claybot setup telegram")
	}
	if err := s.save(made); err != nil {
		return err
	}
	return s.owner(platforms.Telegram)
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
			err := s.works(platforms.Slack, c, func() error {
				if err := s.slackToken(config, c.BotToken.Value()); err != nil {
					return err
				}
				return s.slackToken(config, c.AppToken.Value())
			})
			if err == nil {
				return s.owner(platforms.Slack)
			}
			s.say("✗ slack: %s\n", cause(err))
			if s.term == nil {
				return errors.New("copy the tokens from https://api.slack.com/apps, then: claybot setup slack --slack-bot-token file:PATH --slack-app-token file:PATH")
			}
		case s.term == nil:
			return s.needs("slack", "--slack-bot-token and --slack-app-token")
		}
		s.slackHelp(config)
	}
	bot, app, err := s.slackTokens(config)
	if err != nil {
		return s.refused(err, "copy the token from https://api.slack.com/apps, then: claybot setup slack")
	}
	all := slices.DeleteFunc([]setting{app, bot}, func(x setting) bool { return x.key == "" }) // the other one stays
	if err := s.save(all...); err != nil {
		return err
	}
	return s.owner(platforms.Slack)
}

// slackHelp says how to make an app.
func (s *setup) slackHelp(config configs.Config) {
	app, err := slackApp(config, platforms.Slack)
	link := ""
	if err == nil {
		link, err = app.Link()
	}
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
			if strings.HasPrefix(token, "xapp-") {
				app = setting{key: "slack.app_token", secret: token}
			} else {
				bot = setting{key: "slack.bot_token", secret: token}
			}
		}
	}
	return bot, app, nil
}

// slackToken asks Slack about a token, by its prefix.
func (s *setup) slackToken(config configs.Config, token string) error {
	of := config.Connectors.Slack
	c := slack.New(slack.Config{
		Name: platforms.Slack, APIURL: of.APIURL, BotToken: token, AppToken: token, BotTokenName: "the bot token", AppTokenName: "the app-level token",
		Without: slackWithout(config, platforms.Slack, &of), Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithTimeout(s.ctx, platformTime)
	defer cancel()
	switch {
	case platforms.SlackAppToken.MatchString(token):
		if err := c.ExamineApp(ctx); err != nil {
			return err
		}
		s.say("✓ slack: the app-level token opens connections.\n")
	case platforms.SlackBotToken.MatchString(token):
		bot, err := c.ExamineBot(ctx)
		if err != nil {
			return err
		}
		s.say("✓ slack: the bot token is that of %s in %s.\n", bot.Name, bot.Team)
		if len(bot.Lacks) > 0 {
			s.say("! The app lacks the scopes %s. Add them at https://api.slack.com/apps, OAuth & Permissions, and install the app again; until then, claybot runs without what they are for.\n", strings.Join(bot.Lacks, ", "))
		}
	case strings.HasPrefix(token, "xoxe"):
		return errors.New("that is a token that Slack rotates; see docs/slack.md, Token rotation, or create the app without it")
	default:
		return errors.New("that is neither a bot token (xoxb-…) nor an app-level token (xapp-…); copy all of it and paste it again")
	}
	return nil
}

// discord sets up the bot of the connector discord.
func (s *setup) discord() error {
	config, _, err := s.load()
	if err != nil {
		return err
	}
	d := &config.Connectors.Discord
	check := func(token string) error {
		ctx, cancel := context.WithTimeout(s.ctx, platformTime)
		defer cancel()
		bot, err := discord.New(discord.Config{Name: platforms.Discord, Token: token, BaseURL: d.APIURL, TokenName: "the token", Log: slog.New(slog.DiscardHandler)}).Examine(ctx)
		if err != nil {
			return err
		}
		s.say("✓ discord: the token is that of %s. Invite it to your server:\n  https://discord.com/oauth2/authorize?client_id=%s&scope=bot+applications.commands&permissions=274878024768\n", bot.Name, bot.App)
		if !bot.Content {
			s.say("! The Message Content intent is off: in servers, the bot reads only messages that mention it. Switch it on at https://discord.com/developers/applications, Bot, Privileged Gateway Intents, and restart claybot.\n")
		}
		return nil
	}
	if d.Wanted() && s.flags.DiscordToken == "" {
		if err = s.works(platforms.Discord, d, func() error { return check(d.Token.Value()) }); err == nil {
			return s.owner(platforms.Discord)
		}
		s.say("✗ discord: %s\n", cause(err))
		if s.term == nil {
			return errors.New("get a token from https://discord.com/developers/applications, Bot, then: claybot setup discord --discord-token file:PATH")
		}
	} else if s.flags.DiscordToken == "" {
		if s.term == nil {
			return s.needs("discord", "--discord-token")
		}
		s.say("\nDiscord. Open https://discord.com/developers/applications, create an application, and copy the token from Bot, Reset Token.\n")
	}
	made, err := s.token("discord.token", "discord-token", s.flags.DiscordToken, "Token of the bot (not shown; Enter skips): ", platforms.DiscordToken, check)
	if err != nil {
		return s.refused(err, "get a token from https://discord.com/developers/applications, Bot, Reset Token, then: claybot setup discord")
	}
	if err := s.save(made); err != nil {
		return err
	}
	return s.owner(platforms.Discord)
}

// works reports why a connector that is set does not work: by its settings, by a secret that cannot be
// read, or as check says.
func (s *setup) works(group string, c configs.ConnectorSettings, check func() error) error {
	if why := c.Off(); why != "" {
		return errors.New(why)
	}
	for _, x := range c.Credentials() {
		if err := s.readable(group+"."+x.Key, x.Value); err != nil {
			return err
		}
	}
	return check()
}

// readable returns why a secret that a key names cannot be read; nil if it can, or none is named.
func (s *setup) readable(key string, secret configs.Secret) error {
	if !secret.Named() || secret.Value() != "" {
		return nil
	}
	_, warnings, err := s.load()
	if err != nil {
		return err
	}
	for _, w := range warnings {
		if w.Concerns(key) {
			return errors.New(w.String())
		}
	}
	return fmt.Errorf("%s: %s has no value", key, secret)
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
