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
	agreed               bool // a key that the user did not give may go to its server
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

// inFile returns the value that the configuration file gives a key; empty for none.
func inFile(c configs.Config, key string) string {
	if v := c.Value(key); len(v) == 1 && strings.HasPrefix(v[0].Origin, c.Source.File+":") && !v[0].Refused {
		return v[0].Plain()
	}
	return ""
}

// ollama returns the address of Ollama's API if it runs on this machine, as its variable OLLAMA_HOST
// says or by default; empty if not.
func (s *guide) ollama() string {
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

// A consentError is of a choice with which a key that the user did not give, such as that of
// OPENAI_API_KEY, would go to a server that has not had it so far.
type consentError struct{ key, host string }

func (e *consentError) Error() string {
	return fmt.Sprintf("the key of %s would go to %s", e.key, e.host)
}

// consents returns a consentError unless the user has agreed.
func (s *guide) consents(c choiceOfModel, m configs.Model) error {
	config, _, err := s.env.load()
	if err != nil || c.agreed || c.key != "" || c.base == "" || keyOf(m).Value() == "" || c.base == config.Model.BaseURL && keyOf(m).Value() == keyOf(config.Model).Value() {
		return err
	}
	return &consentError{originOf(config, "model.key"), hostOf(m)}
}

// listed asks the provider of a choice for its models; nil where it has no list. Nothing is stored.
func (s *guide) listed(c choiceOfModel) (m configs.Model, names []string, err error) {
	if err := misplaced(c.key, "model"); err != nil {
		return m, nil, err
	}
	if m, err = s.trial(c); err == nil {
		err = s.consents(c, m)
	}
	if err != nil {
		return m, nil, err
	}
	ctx, cancel := context.WithTimeout(s.ctx, platformTime)
	defer cancel()
	names, err = listModels(ctx, m)
	var e *llm.Error
	if errors.As(err, &e) && (e.Account || e.Status == 0 || e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden) {
		return m, nil, err
	}
	if err != nil {
		return m, nil, nil // it has no list, and the call that follows tells
	}
	return m, append([]string{}, names...), nil
}

// usualOf is the model of a list to begin with.
func usualOf(m configs.Model, names []string) string {
	if len(names) == 0 || slices.Contains(names, m.ID()) {
		return m.ID()
	}
	return names[0]
}

// take asks the model of a choice once, and stores the choice.
func (s *guide) take(c choiceOfModel) error {
	m, err := s.trial(c)
	if err == nil {
		err = s.consents(c, m)
	}
	if err != nil {
		return err
	}
	s.say("Asking %s …\n", m.ID())
	if err := askModel(s.ctx, m); err != nil {
		return err
	}
	s.say("✓ model: %s answers.\n", m.ID())
	return s.save(c.settings()...)
}

// rename asks another model of the same provider once, and stores its name.
func (s *guide) rename(m configs.Model) error {
	if err := askModel(s.ctx, m); err != nil {
		return err
	}
	s.say("✓ model: %s answers.\n", m.ID())
	return s.save(setting{key: "model.name", value: m.Name})
}

// modelWorks reports why the model that is set does not work.
func (s *guide) modelWorks(m configs.Model) error {
	if err := s.readable("model.key", m.Key); err != nil {
		return err
	}
	if why := m.Off(); why != "" {
		return errors.New(why)
	}
	if err := askModel(s.ctx, m); err != nil {
		return err
	}
	s.say("✓ model: %s answers.\n", m.ID())
	return nil
}

// trial returns the model as it will be once c is stored. A bad address is an error, and never
// another address.
func (s *guide) trial(c choiceOfModel) (m configs.Model, err error) {
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
		if err := strange(c.key, m); err != nil {
			return m, err
		}
		m.Key, m.Keys = configs.NewSecret("the key", c.key), nil
	}
	return m, nil
}

// otherKeys are the forms of keys of providers that have no name in the configuration.
var otherKeys = []llm.Preset{{Form: "gsk_", Title: "Groq"}, {Form: "xai-", Title: "xAI"}, {Form: "hf_", Title: "Hugging Face"}}

// strange returns an error for a key of another provider than the one whose own address a model has, so that it
// does not go there.
func strange(key string, m configs.Model) error {
	own, _ := llm.PresetNamed(m.ProviderName())
	if m.BaseURL != "" && (m.BaseURL != own.URL || own.Host == "") {
		return nil
	}
	for _, p := range append(llm.Presets(), otherKeys...) {
		if p.Form != "" && p.Key != own.Key && strings.HasPrefix(key, p.Form) {
			return fmt.Errorf("that is a key of %s (%s…), not of %s; choose its provider. Nothing was sent or stored", p.Title, p.Form, own.Title)
		}
	}
	return nil
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
func keyOf(m configs.Model) (first configs.Secret) {
	for _, k := range m.Credentials() {
		return k
	}
	return first
}
