package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/discord"
	"github.com/claybot/claybot/connectors/slack"
	"github.com/claybot/claybot/connectors/telegram"
	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/platforms"
)

// secretForms are the forms of keys and tokens, and the steps that they belong to.
var secretForms = []struct {
	step, what string
	is         func(string) bool
}{
	{platforms.Telegram, "the token of a Telegram bot", matches(platforms.TelegramToken)},
	{platforms.Slack, "the bot token of a Slack app (xoxb-…)", starts("xoxb-")},
	{platforms.Slack, "the app-level token of a Slack app (xapp-…)", starts("xapp-")},
	{"model", "the key of a model (sk-…)", starts("sk-")},
	{platforms.Discord, "the token of a Discord bot", func(s string) bool { // and no signed token of a provider
		return !strings.HasPrefix(s, "eyJ") && platforms.DiscordToken.MatchString(s)
	}},
}

func matches(form *lazyregexp.Regexp) func(string) bool {
	return func(s string) bool { return form.MatchString(s) }
}

func starts(prefix string) func(string) bool {
	return func(s string) bool { return strings.HasPrefix(s, prefix) }
}

// misplaced returns an error for a secret that belongs to another step, so that it goes to no other
// platform or provider.
func misplaced(secret, step string) error {
	for _, f := range secretForms {
		if f.is(secret) {
			if f.step == step {
				return nil
			}
			return fmt.Errorf("that is %s, which belongs to the step %s; nothing was sent or stored", f.what, f.step)
		}
	}
	return nil
}

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

// slackToken asks Slack about a token, by its prefix.
func (s *guide) slackToken(config configs.Config, token string) error {
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
			return unanswered(err)
		}
		s.say("✓ slack: the app-level token opens connections.\n")
	case platforms.SlackBotToken.MatchString(token):
		bot, err := c.ExamineBot(ctx)
		if err != nil {
			return unanswered(err)
		}
		s.say("✓ slack: the bot token is that of %s in %s.\n", bot.Name, bot.Team)
		if len(bot.Lacks) > 0 {
			s.say("! The app lacks the scopes %s. Add them at https://api.slack.com/apps, OAuth & Permissions, and install the app again; until then, claybot runs without what they are for.\n", strings.Join(bot.Lacks, ", "))
		}
	case strings.HasPrefix(token, "xoxe"):
		return errors.New("that is a token that Slack rotates; see docs/slack.md, Token rotation, or create the app without it")
	default:
		if err := misplaced(token, platforms.Slack); err != nil {
			return err
		}
		return errors.New("that is neither a bot token (xoxb-…) nor an app-level token (xapp-…); copy all of it and paste it again")
	}
	return nil
}

// works reports why a connector that is set does not work: by its settings, by a secret that cannot be
// read, or as check says.
func (s *guide) works(group string, c configs.ConnectorSettings, check func() error) error {
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
func (s *guide) readable(key string, secret configs.Secret) error {
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

// A botFound is what a platform says of the bot of a token.
type botFound struct {
	name string // of a Telegram bot
	app  string // the id of a Discord application
}

// inviteURL is the page on which the owner of a server adds a Discord bot to it.
func (b botFound) inviteURL() string {
	if b.app == "" {
		return ""
	}
	return "https://discord.com/oauth2/authorize?client_id=" + b.app + "&scope=bot+applications.commands&permissions=274878024768"
}

// An unansweredError says why a platform said nothing about a credential: it could not be reached, or failed.
type unansweredError struct{ error }

func (e unansweredError) Unwrap() error { return e.error }

// unanswered returns err as an unansweredError, unless the platform refuses the credential.
func unanswered(err error) error {
	if p := (*connectors.PermanentError)(nil); err == nil || errors.As(err, &p) {
		return err
	}
	return unansweredError{err}
}

// mending returns what mends err: mend, or where the platform was not reached, a look at the network.
func mending(err error, mend string) string {
	if _, is := errors.AsType[unansweredError](err); is {
		return lookAtNetwork + "; if an address is set for it, correct that"
	}
	return mend
}

// bot asks a platform about a token.
func (s *guide) bot(config configs.Config, name, token string) (found botFound, err error) {
	ctx, cancel := context.WithTimeout(s.ctx, platformTime)
	defer cancel()
	switch quiet := slog.New(slog.DiscardHandler); name {
	case platforms.Telegram:
		url := config.Connectors.Telegram.APIURL
		found.name, err = telegram.New(telegram.Config{Name: name, Token: token, BaseURL: url, Log: quiet}).Examine(ctx)
		if err = unanswered(err); err == nil {
			s.say("✓ telegram: the token is that of @%s (https://t.me/%s)\n", found.name, found.name)
		}
	case platforms.Discord:
		url := config.Connectors.Discord.APIURL
		bot, err := discord.New(discord.Config{Name: name, Token: token, BaseURL: url, TokenName: "the token", Log: quiet}).Examine(ctx)
		if err != nil {
			return found, unanswered(err)
		}
		found.app = bot.App
		s.say("✓ discord: the token is that of %s.\n", bot.Name)
		if !bot.Content {
			s.say("! The Message Content intent is off: in servers, the bot reads only messages that mention it. Switch it on at https://discord.com/developers/applications, Bot, Privileged Gateway Intents, and restart claybot.\n")
		}
	default:
		err = s.slackToken(config, token)
	}
	return found, err
}

// A botStep is the step of a bot that has one token.
type botStep struct {
	name, key string
	form      *lazyregexp.Regexp
	of        func(configs.Config) configs.ConnectorSettings
}

var botSteps = map[string]botStep{
	platforms.Telegram: {platforms.Telegram, "telegram.token", platforms.TelegramToken, func(c configs.Config) configs.ConnectorSettings { return &c.Connectors.Telegram }},
	platforms.Discord:  {platforms.Discord, "discord.token", platforms.DiscordToken, func(c configs.Config) configs.ConnectorSettings { return &c.Connectors.Discord }},
}

// botWorks reports why a bot that is set does not work, and what was found.
func (s *guide) botWorks(config configs.Config, b botStep) (found botFound, err error) {
	of := b.of(config)
	err = s.works(b.name, of, func() (err error) {
		found, err = s.bot(config, b.name, of.Credentials()[0].Value.Value())
		return err
	})
	return found, err
}

// slackWorks is botWorks for the tokens of Slack that are set.
func (s *guide) slackWorks(config configs.Config) error {
	c := config.Connectors.Slack
	if why := c.Off(); why != "" {
		return errors.New(why)
	}
	for key, token := range map[string]configs.Secret{"slack.bot_token": c.BotToken, "slack.app_token": c.AppToken} {
		if err := s.readable(key, token); err != nil {
			return err
		}
	}
	for _, token := range []configs.Secret{c.BotToken, c.AppToken} {
		if token.Named() {
			if err := s.slackToken(config, token.Value()); err != nil {
				return err
			}
		}
	}
	return nil
}

// slackKey is the key of the configuration for a token of Slack.
func slackKey(token string) string {
	if strings.HasPrefix(token, "xapp-") {
		return "slack.app_token"
	}
	return "slack.bot_token"
}

// tokenIn returns the token of a bot in an answer.
func tokenIn(answer string, b botStep) (string, error) {
	all := tokensIn(answer, b.form)
	switch {
	case len(all) == 1 && b.form.MatchString(all[0]):
		return all[0], nil
	case len(all) == 1:
		return "", cmp.Or(misplaced(all[0], b.name), errNoToken)
	}
	return "", errNoToken
}

var errNoToken = errors.New("that does not look like a token of this bot; copy all of it and paste it again")

// slackLink returns the address at which Slack creates the app with what the configuration switches on.
func slackLink(config configs.Config) (string, error) {
	app, err := slackApp(config, platforms.Slack)
	if err != nil {
		return "", err
	}
	return app.Link()
}
