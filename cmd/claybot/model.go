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

	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/demo"
	"github.com/claybot/claybot/llm/openai"
)

// models makes the model of each profile once, so that its connections are
// kept. A changed configuration makes a new one.
type models struct {
	log *slog.Logger
	mu  sync.Mutex
	all map[string]*watched
}

func (m *models) of(c configs.Model) llm.Model {
	key := fingerprint(c)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all[key] == nil {
		if m.all == nil {
			m.all = make(map[string]*watched)
		}
		m.all[key] = &watched{model: newModel(c, m.log)}
	}
	return m.all[key]
}

// health is that of the model that failed last and has not answered since, among
// those that are configured; of the common model when none fails.
func (m *models) health(c configs.Config) agentsystem.ModelStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	st := agentsystem.ModelStatus{Name: modelName(c.Model)}
	if w := m.all[fingerprint(c.Model)]; w != nil {
		st.LastOK, _, _ = w.health()
	}
	var last time.Time
	for _, p := range c.Profiles {
		w := m.all[fingerprint(p.Model)]
		if w == nil {
			continue
		}
		if ok, failed, problem := w.health(); problem != "" && failed.After(last) {
			last = failed
			st = agentsystem.ModelStatus{Name: modelName(p.Model), LastOK: ok, Err: problem}
		}
	}
	return st
}

// A watched model notes how its calls end.
type watched struct {
	model llm.Model

	mu         sync.Mutex
	ok, failed time.Time
	problem    string // since the last success; empty for none
}

// Chat asks the model. What one conversation is too long for, or somebody
// stopped, says nothing about the model.
func (w *watched) Chat(ctx context.Context, r llm.Request) (llm.Response, error) {
	resp, err := w.model.Chat(ctx, r)
	w.mu.Lock()
	defer w.mu.Unlock()
	var e *llm.Error
	switch {
	case err == nil:
		w.ok, w.problem = time.Now(), ""
	case ctx.Err() == nil && errors.As(err, &e) && e.Class != llm.Context:
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
		s += "; check the account and the settings of the model: CLAYBOT_MODEL, OPENAI_API_KEY, OPENAI_BASE_URL"
	default:
		s += "; the next message tries again"
	}
	return s
}

// fingerprint is equal for models that are reached in the same way.
func fingerprint(c configs.Model) string {
	parts := []string{c.Name, c.BaseURL, c.Key.Value(), c.SystemFallback}
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		parts = append(parts, name, c.Headers[name].Value())
	}
	return strings.Join(parts, "\x00")
}

func newModel(c configs.Model, log *slog.Logger) llm.Model {
	if c.Demo() {
		return demo.New(demo.Config{})
	}
	headers := make(map[string]string, len(c.Headers))
	for name, v := range c.Headers {
		headers[name] = v.Value()
	}
	prices := make(llm.Prices, len(c.Prices))
	for name, p := range c.Prices {
		prices[name] = llm.Price(p)
	}
	client := openai.New(openai.Config{
		BaseURL: c.BaseURL, Key: c.Key.Value(), Model: c.ID(), Headers: headers,
		SystemFallback: openai.Fallback(c.SystemFallback), Log: log,
	})
	return llm.Metered(client, llm.DefaultPrices().With(prices))
}

// modelName is what /status calls the model.
func modelName(c configs.Model) string {
	if c.Demo() {
		return "the built-in demo model"
	}
	return c.ID()
}
