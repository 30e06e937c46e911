package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/anthropic"
	"github.com/claybot/claybot/llm/openai"
)

const (
	// modelTime bounds the call by which setup checks a model: one that must be loaded takes long.
	modelTime = 90 * time.Second
	// ollamaTime bounds the look for Ollama on this machine.
	ollamaTime = time.Second
	// checkTokens bounds the answer to that call. Models that think refuse smaller bounds.
	checkTokens = 16
	// maxListed is how many models of a server setup shows.
	maxListed = 40
)

// A choiceOfModel is a model that the user chose, before it is stored.
type choiceOfModel struct {
	provider, base, name string
	key, reference       string
	moves                bool // another server than before gets what is written
}

// settings are the changes that store it. Where data goes stands first, and what is secret goes before:
// a crash in between sends no key of one provider to another.
func (m choiceOfModel) settings() []setting {
	all := []setting{{key: "model.key", unset: true}, {key: "model.keys", unset: true}}
	if m.moves {
		all = append(all, setting{key: "model.headers", unset: true})
	}
	for _, x := range []setting{{key: "model.provider", value: m.provider}, {key: "model.base_url", value: m.base}, {key: "model.name", value: m.name}} {
		x.unset = x.value == ""
		all = append(all, x)
	}
	if m.key != "" {
		all = append(all, secretSetting("model.key", m.key, m.reference))
	}
	return all
}

// model sets up the model that answers.
func (s *setup) model() error {
	config, _, err := s.load()
	if err != nil {
		return err
	}
	m := config.Model
	given := s.flags.ModelKey+s.flags.ModelURL != "" || s.Model != "" && s.Model != configs.DemoModel
	if !m.Demo() && !given {
		err = s.readable("model.key", m.Key)
		if why := m.Off(); err == nil && why != "" {
			err = errors.New(why)
		}
		if err == nil {
			err = askModel(s.ctx, m)
		}
		if err == nil {
			s.say("✓ model: %s answers.\n", m.ID())
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
			if err = s.tried(&c); err == nil {
				return s.save(c.settings()...)
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
		if err := askModel(s.ctx, now); err != nil {
			return s.refused(err, "claybot setup model --model NAME")
		}
		s.say("✓ model: %s answers.\n", now.ID())
		return s.save(setting{key: "model.name", value: s.Model})
	}
	if err := s.tried(&c); err != nil {
		return s.refused(err, "correct it, then: claybot setup model --model-key env:NAME [--model-url URL] [--model NAME]")
	}
	return s.save(c.settings()...)
}

// inFile returns the value that the configuration file gives a key; empty for none.
func inFile(c configs.Config, key string) string {
	if v := c.Value(key); len(v) == 1 && strings.HasPrefix(v[0].Origin, c.Source.File+":") && !v[0].Refused {
		return v[0].Plain()
	}
	return ""
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
		if c.base, err = s.ask("Address of its API, such as https://openrouter.ai/api/v1: "); err != nil {
			return c, err
		}
		if c.base == "" {
			return c, errSkipped
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
	if err == nil && c.key == "" && c.base == "" {
		err = errSkipped
	}
	return c, err
}

// ollama returns the address of Ollama's API if it runs on this machine, as its variable OLLAMA_HOST
// says or by default; empty if not.
func (s *setup) ollama() string {
	host, _ := s.lookup("OLLAMA_HOST")
	host, _, _ = strings.Cut(strings.TrimPrefix(host, "http://"), "/")
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = host, "11434"
	}
	if ip := net.ParseIP(name); name == "" || ip != nil && ip.IsUnspecified() {
		name = "127.0.0.1"
	}
	if name != "localhost" && !net.ParseIP(name).IsLoopback() {
		return ""
	}
	base := "http://" + net.JoinHostPort(name, port) + "/v1"
	ctx, cancel := context.WithTimeout(s.ctx, ollamaTime)
	defer cancel()
	if _, err := listModels(ctx, configs.Model{BaseURL: base}); err != nil {
		return ""
	}
	return base
}

// tried asks the provider for its models, lets the user choose, and asks the model once. Nothing is
// stored.
func (s *setup) tried(c *choiceOfModel) error {
	m, err := s.trial(*c)
	if err != nil {
		return err
	}
	if err := s.consents(*c, m); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.ctx, platformTime)
	all, err := listModels(ctx, m)
	cancel()
	var e *llm.Error
	switch {
	case errors.As(err, &e) && (e.Account || e.Status == 0 || e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden):
		return err
	case err != nil: // it has no list, and the call below tells
	case err == nil && c.name == "":
		if c.name, err = s.nameOf(m, all); err != nil {
			return err
		}
		if m, err = s.trial(*c); err != nil {
			return err
		}
	}
	s.say("Asking %s …\n", m.ID())
	if err := askModel(s.ctx, m); err != nil {
		return err
	}
	s.say("✓ model: %s answers.\n", m.ID())
	return nil
}

// consents asks before a key that the user did not give, such as that of OPENAI_API_KEY, goes to a
// server that has not had it so far.
func (s *setup) consents(c choiceOfModel, m configs.Model) error {
	config, _, err := s.env.load()
	if err != nil || c.key != "" || c.base == "" || keyOf(m) == "" || c.base == config.Model.BaseURL && keyOf(m) == keyOf(config.Model) {
		return err
	}
	key := originOf(config, "model.key")
	if s.term == nil {
		return fmt.Errorf("the key of %s would go to %s: if that is meant, add --model-key env:%s; if not, unset it here and where the daemon runs", key, hostOf(m), key)
	}
	sends, err := s.yes(fmt.Sprintf("%s is set, and claybot would send that key to %s. Is that meant?", key, hostOf(m)))
	if err == nil && !sends {
		s.say("! Unset %s here and where the daemon runs, then: claybot setup model\n", key)
		err = errSkipped
	}
	return err
}

// trial returns the model as it will be once c is stored. A bad address is an error, and never
// another address.
func (s *setup) trial(c choiceOfModel) (m configs.Model, err error) {
	f, err := s.configFile()
	if err != nil {
		return m, err
	}
	next := f.text
	for _, x := range c.settings() {
		switch {
		case x.unset:
			next, err = configs.Unset(next, x.key)
		case x.key != "model.key":
			next, err = configs.Set(next, x.key, x.value)
		}
		if err != nil {
			return m, fmt.Errorf("%s: %w", f.path, err)
		}
	}
	config, _, err := f.load(s.env, next)
	if err != nil {
		return m, err
	}
	m = config.Model
	if why := m.Off(); why != "" {
		return m, errors.New(why)
	}
	if c.key != "" {
		m.Key, m.Keys = configs.NewSecret("the key", c.key), nil
	}
	return m, nil
}

// nameOf lets the user choose a model of a provider.
func (s *setup) nameOf(m configs.Model, all []string) (string, error) {
	usual := ""
	switch {
	case slices.Contains(all, m.ID()):
		usual = m.ID()
	case len(all) > 0:
		usual = all[0]
	}
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
	usual = cmp.Or(usual, m.ID())
	answer, err := s.ask(fmt.Sprintf("Model, by its number or name [%s]: ", usual))
	if n, bad := strconv.Atoi(answer); bad == nil && n >= 1 && n <= len(all) {
		answer = all[n-1]
	}
	return cmp.Or(answer, usual), err
}

// askModel asks a model once, without any message of a person. Each way to it must answer.
func askModel(ctx context.Context, m configs.Model) error {
	ctx, cancel := context.WithTimeout(ctx, modelTime)
	defer cancel()
	for _, k := range m.Credentials() {
		if k.Value() == "" {
			return fmt.Errorf("the key %s is not set or cannot be read", k)
		}
	}
	_, err := newClient(m, keyOf(m), slog.New(slog.DiscardHandler)).Chat(ctx, llm.Request{
		Messages: []llm.Message{{Role: llm.RoleUser, Content: "Reply with: ok"}}, MaxTokens: checkTokens,
	})
	var e *llm.Error
	if errors.As(err, &e) {
		return fmt.Errorf("%s: %w", hostOf(m), e)
	}
	return err
}

// hostOf is where a model is.
func hostOf(m configs.Model) string {
	base := cmp.Or(m.BaseURL, openai.DefaultBaseURL)
	if m.API() == configs.ProviderAnthropic {
		base = cmp.Or(m.BaseURL, anthropic.DefaultBaseURL)
	}
	u, err := url.Parse(base)
	if err != nil {
		return "the provider"
	}
	return u.Host
}

// listModels returns the names of the models of a provider.
func listModels(ctx context.Context, m configs.Model) ([]string, error) {
	client := newClient(m, keyOf(m), slog.New(slog.DiscardHandler))
	names, err := client.(interface { //nolint:forcetypeassert // all clients have it
		Models(ctx context.Context) ([]string, error)
	}).Models(ctx)
	var e *llm.Error
	if errors.As(err, &e) {
		err = fmt.Errorf("%s: %w", hostOf(m), e)
	}
	return names, err
}

// keyOf is the first key of a model; empty for none.
func keyOf(m configs.Model) string {
	for _, k := range m.Credentials() {
		return k.Value()
	}
	return ""
}
