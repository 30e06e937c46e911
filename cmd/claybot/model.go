package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/anthropic"
	"github.com/claybot/claybot/llm/demo"
	"github.com/claybot/claybot/llm/openai"
	"github.com/claybot/claybot/overview"
)

// models makes the model of each profile once, so that its connections are
// kept. A changed configuration makes a new one.
type models struct {
	log     *slog.Logger
	limiter llm.Limiter // set before the first model; nil: no budget applies
	mu      sync.Mutex
	all     map[string]*watched
}

func (m *models) of(c configs.Model) llm.Model {
	key := fingerprint(c)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all[key] == nil {
		if m.all == nil {
			m.all = make(map[string]*watched)
		}
		m.all[key] = &watched{model: newModel(c, m.limiter, m.log)}
	}
	return m.all[key]
}

// health is that of the model that failed last and has not answered since, among
// those that are configured; of the common model when none fails.
func (m *models) health(c configs.Config) overview.ModelStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	st := overview.ModelStatus{Name: modelName(c.Model)}
	if w := m.all[fingerprint(c.Model)]; w != nil {
		st.LastOK, _, _ = w.health()
	}
	if why := c.Model.Off(); why != "" {
		st.Err = why + ". " + correctModel
		return st
	}
	var last time.Time
	for _, p := range c.Agents.Profiles {
		w := m.all[fingerprint(p.Model)]
		if w == nil {
			continue
		}
		if ok, failed, problem := w.health(); problem != "" && failed.After(last) {
			last = failed
			st = overview.ModelStatus{Name: modelName(p.Model), LastOK: ok, Err: problem}
		}
	}
	return st
}

// model returns the model of an agent: that of its profile, unless the agent or who
// started it has chosen another one by name.
func (d *daemon) model(a claybot.Agent) configs.Model {
	c := d.config.Load()
	m, name := c.Profile(a.Descriptor).Model, d.system.Profiles.OwnSettings(a.ID).Model
	if bg := a.State.Background; name == "" && bg != nil {
		name = bg.Model
	}
	if name != "" {
		m, _ = c.ModelNamed(m, name)
	}
	return m
}

// modelsOf returns the names of the configured models that an agent can choose.
func (d *daemon) modelsOf(a claybot.Agent) []string {
	c := d.config.Load()
	own := c.Profile(a.Descriptor).Model
	return slices.DeleteFunc(modelNames(c), func(name string) bool {
		_, refused := c.ModelNamed(own, name)
		return refused
	})
}

// A watched model notes how its calls end.
type watched struct {
	model llm.Model

	mu         sync.Mutex
	ok, failed time.Time
	problem    string // since the last success; empty for none
}

// Chat asks the model. What one conversation is too long for, no budget
// has room for, or that a user stopped, says nothing about the model.
func (w *watched) Chat(ctx context.Context, r llm.Request) (llm.Response, error) {
	resp, err := w.model.Chat(ctx, r)
	w.mu.Lock()
	defer w.mu.Unlock()
	var e *llm.Error
	switch {
	case err == nil:
		w.ok, w.problem = time.Now(), ""
	case ctx.Err() == nil && errors.As(err, &e) && e.Class != llm.Context && e.Class != llm.Budget && e.Class != llm.Off:
		w.failed, w.problem = time.Now(), advice(e)
	}
	return resp, err
}

func (w *watched) health() (ok, failed time.Time, problem string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ok, w.failed, w.problem
}

// advice is what went wrong with the next step.
func advice(e *llm.Error) string {
	s := e.Text
	if e.Status != 0 {
		s += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	switch {
	case strings.Contains(e.Text, "; check "): // said already
	case e.Class == llm.Permanent:
		s += "; check the account and the settings of the model: CLAYBOT_MODEL, OPENAI_API_KEY, OPENAI_BASE_URL, ANTHROPIC_API_KEY"
	default:
		s += "; the next message tries again"
	}
	return s
}

// fingerprint is equal for models that are reached in the same way and cost the
// same.
func fingerprint(c configs.Model) string {
	var parts []string
	for _, r := range c.Routes() {
		parts = append(parts, r.Off(), r.API(), r.Name, r.BaseURL, r.SystemFallback, fmt.Sprint(r.MaxTokens, r.Prices))
		for _, key := range r.Credentials() {
			parts = append(parts, key.Value())
		}
		for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
			parts = append(parts, name, r.Headers[name].Value())
		}
		parts = append(parts, "\x01")
	}
	return strings.Join(parts, "\x00")
}

// newModel makes the chain behind a model: routes in their order, each of which
// tries again, with one key after another, and pays for each attempt.
//
// A route that a bad setting switches off is none; where all are off, so is the model.
func newModel(c configs.Model, limiter llm.Limiter, log *slog.Logger) llm.Model {
	if c.Demo() {
		return demo.New(demo.Config{})
	}
	var routes []llm.Route
	for _, r := range c.Routes() {
		if r.Off() != "" {
			continue
		}
		routes = append(routes, llm.Route{Name: r.ID(), Model: newRoute(r, limiter, log)})
	}
	if len(routes) == 0 {
		return offModel{why: c.Off()}
	}
	return llm.Fallback(log, routes...)
}

func newRoute(c configs.Model, limiter llm.Limiter, log *slog.Logger) llm.Model {
	prices := make(llm.Prices, len(c.Prices))
	for name, p := range c.Prices {
		prices[name] = llm.Price(p)
	}
	prices = llm.DefaultPrices().With(prices)
	keys := []string{""} // a server of one's own may need none
	if all := c.Credentials(); len(all) > 0 {
		keys = keys[:0]
		for _, k := range all {
			if k.Value() != "" { // one that could not be read is said elsewhere
				keys = append(keys, k.Value())
			}
		}
		if len(keys) == 0 {
			keys = append(keys, "")
		}
	}
	most := func(model string) int64 { return llm.SmallestBound(c.MaxTokens, llm.MaxOutput(model)) }
	var keyed []llm.Keyed
	for _, key := range keys {
		m := llm.Metered(newClient(c, key, log), prices)
		if limiter != nil {
			m = llm.Budgeted(m, c.ID(), limiter, prices, most)
		}
		keyed = append(keyed, llm.Keyed{Fingerprint: llm.Fingerprint(key), Model: m})
	}
	return llm.Retried(llm.Rotated(log, keyed...), llm.Retries{Route: c.ID(), Log: log})
}

// newClient makes what speaks with a provider, one attempt at a time.
func newClient(c configs.Model, key string, log *slog.Logger) llm.Model {
	headers := make(map[string]string, len(c.Headers))
	for name, v := range c.Headers {
		headers[name] = v.Value()
	}
	if c.API() == configs.ProviderAnthropic {
		return anthropic.New(anthropic.Config{
			BaseURL: c.BaseURL, Key: key, Model: c.ID(), Headers: headers, MaxTokens: c.MaxTokens, Log: log,
		})
	}
	return openai.New(openai.Config{
		BaseURL: c.BaseURL, Key: key, Model: c.ID(), Headers: headers, MaxTokens: c.MaxTokens,
		SystemFallback: openai.Fallback(c.SystemFallback), Log: log,
	})
}

// modelName is what /status calls the model.
func modelName(c configs.Model) string {
	if c.Demo() {
		return "the built-in demo model"
	}
	return c.ID()
}
