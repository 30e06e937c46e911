package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/platforms"
	"github.com/claybot/claybot/web"
)

// variableName is the form of the names of variables that have keys and tokens.
var variableName = lazyregexp.New(`^[A-Z][A-Z0-9_]{2,100}$`)

// given returns the secret that a form of the page has, and the reference that the file can have;
// without one, the secret itself is stored. Files are named on the terminal: a page reads none.
func (s *guide) given(text string) (secret, reference string, err error) {
	text = strings.TrimSpace(text)
	switch kind, name, _ := strings.Cut(text, ":"); {
	case kind == "file":
		return "", "", errors.New("the page reads no files: paste what is in it, or run claybot setup on the machine")
	case kind == "env":
		secret, _ = s.lookup(name)
		if secret = strings.TrimSpace(secret); secret == "" {
			return "", "", fmt.Errorf("the variable %.60q is not set where claybot runs: paste the key, or set it there and restart claybot", name)
		}
		reference = text
	case variableName.MatchString(text):
		if value, _ := s.lookup(text); value != "" {
			return "", "", fmt.Errorf("that is the name of a variable; to use what it has, write env:%s", text)
		}
		secret = text
	default:
		secret = strings.Join(tokensIn(text), "")
	}
	if len(secret) > maxSecretInput || strings.ContainsAny(secret, "\r\n\x00") {
		return "", "", errors.New("the secret is not one line; copy it again")
	}
	return secret, reference, nil
}

// The providers that the page offers besides those of the configuration.
const (
	providerOllama = "ollama"
	providerOther  = "other"
)

// choice returns the model that an answer of the page describes.
func (s *guide) choice(in web.SetupAnswer) (c choiceOfModel, err error) {
	c = choiceOfModel{name: strings.TrimSpace(in.Model), agreed: in.Consent}
	preset, known := llm.PresetNamed(in.Provider)
	switch {
	case in.Provider == configs.ProviderOpenAI:
	case in.Provider == providerOllama:
		if c.base = s.ollama(); c.base == "" {
			return c, setupProblem(errors.New("Ollama does not answer on this machine; start it with: ollama serve"), "provider") //nolint:staticcheck // a name
		}
	case known:
		c.provider = preset.Name
		if preset.URL == "" {
			if c.base = strings.TrimSpace(in.Address); c.base == "" {
				return c, setupProblem(fmt.Errorf("the address is missing: give that of your own resource, such as %s", preset.Example), "address")
			}
		}
	case in.Provider == providerOther:
		if c.base = strings.TrimSpace(in.Address); c.base == "" {
			return c, setupProblem(errors.New("the address is missing: give that of its API, such as https://openrouter.ai/api/v1"), "address")
		}
	default:
		return c, setupProblem(errors.New("the provider is missing: choose one"), "provider")
	}
	if in.Provider != providerOllama {
		if c.key, c.reference, err = s.given(in.Secret); err != nil {
			return c, setupProblem(err, "secret")
		}
	}
	if err := misplaced(c.key, web.SetupModel); err != nil {
		return c, setupProblem(err, "secret")
	}
	config, _, err := s.load()
	if err != nil {
		return c, configProblem("", err)
	}
	c.moves = c.base != config.Model.BaseURL || c.provider != config.Model.Provider
	m, err := s.trial(c)
	switch {
	case err != nil && c.base != "" && in.Provider != providerOllama:
		return c, setupProblem(err, "address")
	case err != nil:
		return c, setupProblem(err, "")
	case known && preset.Key != "" && keyOf(m).Value() == "":
		return c, setupProblem(fmt.Errorf("the key is missing: paste it, or name the variable that has it, such as env:%s", preset.Key), "secret")
	}
	return c, nil
}

// answerModel stores the model of an answer: another name alone, or a provider with its key.
func (s *guide) answerModel(config configs.Config, in web.SetupAnswer) error {
	if in.Provider == "" && in.Model != "" && !config.Model.Demo() {
		m := config.Model
		m.Name = strings.TrimSpace(in.Model)
		return setupProblem(s.rename(m), "model")
	}
	c, err := s.choice(in)
	if err != nil {
		return err
	}
	return setupProblem(s.take(c), "secret")
}

// answerBot stores the token of a bot.
func (s *guide) answerBot(config configs.Config, in web.SetupAnswer) error {
	b, reference := botSteps[in.Step], ""
	token, err := tokenIn(in.Secret, b)
	if strings.Contains(in.Secret, "env:") || strings.Contains(in.Secret, "file:") {
		if token, reference, err = s.given(in.Secret); err == nil {
			token, err = tokenIn(token, b)
		}
	}
	if err == nil {
		_, err = s.bot(config, b.name, token)
	}
	if err == nil {
		err = s.save(secretSetting(b.key, token, reference))
	}
	return setupProblem(err, "secret")
}

// answerSlack stores the tokens of an answer, each once Slack accepts it, and reports whether there
// are both.
func (s *guide) answerSlack(config configs.Config, in web.SetupAnswer) (whole bool, err error) {
	all, reference := tokensIn(in.Secret, platforms.SlackBotToken, platforms.SlackAppToken), ""
	if strings.Contains(in.Secret, "env:") || strings.Contains(in.Secret, "file:") {
		token, ref, err := s.given(in.Secret)
		if err != nil {
			return false, setupProblem(err, "secret")
		}
		all, reference = []string{token}, ref
	}
	if len(all) == 0 {
		return false, setupProblem(errors.New("the token is missing: paste one of them"), "secret")
	}
	set := map[string]string{"slack.bot_token": config.Connectors.Slack.BotToken.Value(), "slack.app_token": config.Connectors.Slack.AppToken.Value()}
	for _, token := range all {
		key := slackKey(token)
		switch {
		case len(all) == 1 && token == set["slack.bot_token"] && set["slack.app_token"] == "":
			return false, setupProblem(errors.New("that is the bot token, which is stored already; the app-level token, which begins with xapp-, is missing"), "secret")
		case len(all) == 1 && token == set["slack.app_token"] && set["slack.bot_token"] == "":
			return false, setupProblem(errors.New("that is the app-level token, which is stored already; the bot token, which begins with xoxb-, is missing"), "secret")
		}
		err := s.slackToken(config, token)
		if err == nil {
			err = s.save(secretSetting(key, token, reference))
		}
		if err != nil {
			return false, setupProblem(err, "secret")
		}
		set[key] = token
	}
	return set["slack.bot_token"] != "" && set["slack.app_token"] != "", nil
}
