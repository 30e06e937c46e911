package main

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/llm"
)

// model sets up the model that answers.
func (s *setup) model() error {
	config, _, err := s.load()
	if err != nil {
		return err
	}
	m := config.Model
	given := s.flags.ModelKey+s.flags.ModelURL != "" || s.Model != "" && s.Model != configs.DemoModel
	if !m.Demo() && !given {
		if err = s.modelWorks(m); err == nil {
			return nil
		}
		if s.ctx.Err() != nil {
			return errInterrupted
		}
		s.say("✗ model: %s\n", cause(err))
		if s.term == nil {
			return errors.New("correct its key, address or name, then: claybot setup model --model-key env:NAME")
		}
	}
	if given {
		return s.modelByFlags(config)
	}
	if s.term == nil {
		return s.needs("the model", "--model-key, or --model-url for a server that needs no key")
	}
	for {
		c, err := s.chooseModel()
		if err == nil {
			c.moves = c.base != m.BaseURL || c.provider != m.Provider
			if err = s.tried(c); err == nil {
				return nil
			}
		}
		if s.ctx.Err() != nil || errors.Is(err, errSkipped) || errors.Is(err, errInterrupted) || errors.Is(err, errInputEnded) {
			return err
		}
		s.say("✗ %s\n", cause(err))
	}
}

// modelByFlags stores the model that flags describe. A key alone is that of the server that is
// configured, unless it is one of Anthropic's.
func (s *setup) modelByFlags(config configs.Config) (err error) {
	now := config.Model
	c := choiceOfModel{base: s.flags.ModelURL, name: s.Model}
	if s.flags.ModelKey != "" {
		if c.key, c.reference, err = s.secretOf("model-key", s.flags.ModelKey); err != nil {
			return err
		}
		if c.base == "" && strings.HasPrefix(c.key, "sk-ant-") {
			c.provider = configs.ProviderAnthropic
		}
	}
	if c.base == "" && c.provider == "" {
		c.base, c.provider = inFile(config, "model.base_url"), inFile(config, "model.provider")
		c.name = cmp.Or(c.name, inFile(config, "model.name"))
	}
	c.moves = c.base != now.BaseURL || c.provider != now.Provider
	if s.flags.ModelKey+s.flags.ModelURL == "" { // another name alone
		if err := s.rename(now); err != nil {
			return s.refused(err, "claybot setup model --model NAME")
		}
		return nil
	}
	if err := s.tried(c); err != nil {
		return s.refused(err, "correct it, then: claybot setup model --model-key env:NAME [--model-url URL] [--model NAME]")
	}
	return nil
}

// chooseModel asks for a provider, and for its key.
func (s *setup) chooseModel() (c choiceOfModel, err error) {
	ollama := s.ollama()
	s.say("\nThe model that answers:\n  1  OpenAI\n  2  Anthropic\n  3  another provider, or a server of your own\n")
	if ollama != "" {
		s.say("  4  Ollama on this machine (%s)\n", ollama)
	}
	answer, err := s.ask("Number (Enter skips; then the built-in demo model answers): ")
	if err != nil {
		return c, err
	}
	switch {
	case answer == "":
		return c, errSkipped
	case answer == "1":
	case answer == "2":
		c.provider = configs.ProviderAnthropic
	case answer == "3":
		if err = s.providerOf(&c); err != nil {
			return c, err
		}
		if _, err = s.trial(c); err != nil { // before there is a key
			return c, err
		}
	case answer == "4" && ollama != "":
		c.base = ollama
		return c, nil
	default:
		return c, errors.New("give one of the numbers, or press Enter to skip this step")
	}
	key, err := s.term.ask(s.ctx, "API key (not shown; Enter if it needs none): ", true)
	c.key = strings.Join(tokensIn(key), "")
	if err == nil && c.key == "" && c.base == "" && !anywhere(c.provider) {
		err = errSkipped
	}
	return c, err
}

// anywhere reports a provider by name whose server anybody may run.
func anywhere(provider string) bool {
	p, ok := llm.PresetNamed(provider)
	return ok && p.Host == ""
}

// providerOf asks for a provider by its name, or for the address of its API.
func (s *setup) providerOf(c *choiceOfModel) error {
	var names []string
	for _, p := range llm.Presets() {
		if p.Name != configs.ProviderOpenAI && p.Name != configs.ProviderAnthropic {
			names = append(names, p.Name)
		}
	}
	s.say("  %s\n", strings.Join(names, ", "))
	answer, err := s.ask("One of these names, or the address of an API such as https://api.example.org/v1: ")
	if err != nil {
		return err
	}
	p, known := llm.PresetNamed(answer)
	switch {
	case answer == "":
		return errSkipped
	case !known && !strings.Contains(answer, "://") && configs.Nearest(answer, names) != "":
		return fmt.Errorf("%q is not a provider; did you mean %s?", answer, configs.Nearest(answer, names))
	case !known:
		c.base = answer
		return nil
	}
	c.provider = p.Name
	if p.URL == "" {
		c.base, err = s.ask("Address of your own resource, such as " + p.Example + ": ")
		if err == nil && c.base == "" {
			err = errSkipped
		}
	}
	return err
}

// tried asks the provider for its models, lets the user choose, and asks the model once. Only a model
// that answers is stored.
func (s *setup) tried(c choiceOfModel) error {
	m, all, err := s.listed(c)
	if asks, ok := errors.AsType[*consentError](err); ok {
		if c.agreed, err = s.agrees(asks); err == nil {
			m, all, err = s.listed(c)
		}
	}
	if err == nil && c.name == "" && all != nil {
		c.name, err = s.nameOf(m, all)
	}
	if err != nil {
		return err
	}
	return s.take(c)
}

// agrees asks whether a key that the user did not give may go to a server.
func (s *setup) agrees(e *consentError) (bool, error) {
	if s.term == nil {
		return false, fmt.Errorf("%w: if that is meant, add --model-key env:%s; if not, unset it here and where the daemon runs", e, e.key)
	}
	sends, err := s.yes(fmt.Sprintf("%s is set, and claybot would send that key to %s. Is that meant?", e.key, e.host))
	if err == nil && !sends {
		s.say("! Unset %s here and where the daemon runs, then: claybot setup model\n", e.key)
		err = errSkipped
	}
	return sends, err
}

// nameOf lets the user choose a model of a provider.
func (s *setup) nameOf(m configs.Model, all []string) (string, error) {
	usual := usualOf(m, all)
	if s.term == nil {
		if len(all) > 1 && usual != m.ID() {
			return "", fmt.Errorf("the server has several models; name one: --model NAME, such as %s", strings.Join(all[:min(len(all), 8)], ", "))
		}
		return usual, nil
	}
	for i, name := range all[:min(len(all), maxListed)] {
		s.say("  %2d  %s\n", i+1, name)
	}
	if more := len(all) - maxListed; more > 0 {
		s.say("  and %d more\n", more)
	}
	answer, err := s.ask(fmt.Sprintf("Model, by its number or name [%s]: ", usual))
	if n, bad := strconv.Atoi(answer); bad == nil && n >= 1 && n <= len(all) {
		answer = all[n-1]
	}
	return cmp.Or(answer, usual), err
}
