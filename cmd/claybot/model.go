package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/budgets"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/anthropic"
	"github.com/claybot/claybot/llm/demo"
	"github.com/claybot/claybot/llm/openai"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/texts"
)

// models builds the model of each profile once, so that its connections are reused. A
// changed configuration builds a new one, and prune forgets the one before.
type models struct {
	config  *settings
	log     *slog.Logger
	system  func() *agentsystem.AgentSystem
	limiter *budgets.Limiter // set before the first model

	mu     sync.Mutex
	all    map[string]*watched // by fingerprint
	cached *configs.Config     // the configuration of the choices
	chosen map[choice]*watched
}

// A choice is how an agent has its model in one configuration.
type choice struct{ profile, name string }

// maxChoices bounds the choices, and the models, in memory: subagents may be given any name.
const maxChoices = 1000

func (m *models) of(c configs.Model) *watched {
	key := fingerprint(c)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all[key] == nil {
		if m.all == nil {
			m.all = make(map[string]*watched)
		}
		if len(m.all) >= maxChoices {
			m.drop(func(*configs.Config, *watched) bool { return false })
		}
		m.all[key] = &watched{config: c, model: newModel(c, m.limiter, m.logOf(c))}
	}
	return m.all[key]
}

// logOf is the log of a model: its lines name its node, as its routes may have other names.
func (m *models) logOf(c configs.Model) *slog.Logger {
	if of := modelNodesOf(m.config.Load(), c); len(of) > 0 {
		return m.log.With("node", of[0].String())
	}
	return m.log
}

// prune forgets the models that the configuration no longer has, with their keys. Calls in flight go on.
func (m *models) prune() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cached, m.chosen = nil, nil
	m.drop(func(c *configs.Config, w *watched) bool { // an agent may choose it by its name
		for _, p := range c.Agents.Profiles {
			if fingerprint(byName(c, p.Model, w.config.Name)) == fingerprint(w.config) {
				return true
			}
		}
		return false
	})
}

// renew has the next call of a model ask also the routes and keys that rest after a failure, and forgets what
// failed.
func (m *models) renew(c configs.Model) {
	w := m.of(c)
	llm.Refresh(w.model)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.renewed, w.problem, w.code = cmp.Or(w.problem, w.renewed), "", ""
}

// unasked is why a model failed before it was restarted, while it is not known how it does since; empty otherwise.
func (m *models) unasked(c configs.Model) string {
	m.mu.Lock()
	w := m.all[fingerprint(c)]
	m.mu.Unlock()
	if w == nil {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.problem != "" {
		return ""
	}
	return w.renewed
}

// drop forgets all models but those of profiles and those that kept keeps.
func (m *models) drop(kept func(*configs.Config, *watched) bool) {
	c := m.config.Load()
	own := map[string]bool{fingerprint(c.Model): true}
	for _, p := range c.Agents.Profiles {
		own[fingerprint(p.Model)] = true
	}
	maps.DeleteFunc(m.all, func(key string, w *watched) bool { return !own[key] && !kept(c, w) })
}

// model returns the model of an agent: that of its profile, unless the agent or its
// starter has chosen another one by name.
func (m *models) model(a claybot.Agent) configs.Model {
	c := m.config.Load()
	return byName(c, c.Profile(a.Descriptor).Model, m.own(a))
}

// own returns the name of the model that an agent or its starter has chosen; empty for none.
func (m *models) own(a claybot.Agent) string {
	name := m.system().Profiles.OwnModel(a)
	if bg := a.State.Background; name == "" && bg != nil {
		return bg.Model
	}
	return name
}

// byName returns the model of a profile, or the one with a name if that is not empty.
func byName(c *configs.Config, model configs.Model, name string) configs.Model {
	if name != "" {
		model, _ = c.ModelNamed(model, name)
	}
	return model
}

// names returns the names of the configured models that an agent can choose.
func (m *models) names(a claybot.Agent) []string {
	c := m.config.Load()
	own := c.Profile(a.Descriptor).Model
	return slices.DeleteFunc(modelNames(c), func(name string) bool {
		_, refused := c.ModelNamed(own, name)
		return refused
	})
}

// choose returns the model of an agent. If a setting of its profile is bad, that model
// refuses every call and says why.
func (m *models) choose(a claybot.Agent) llm.Model {
	c := m.config.Load()
	p := c.Profile(a.Descriptor)
	if why := p.Off(); why != "" {
		return offModel{why, true}
	}
	by := choice{p.Name, m.own(a)}
	m.mu.Lock()
	if m.cached != c || len(m.chosen) >= maxChoices {
		m.cached, m.chosen = c, make(map[choice]*watched)
	}
	known := m.chosen[by]
	m.mu.Unlock()
	if known != nil {
		return known
	}
	known = m.of(byName(c, p.Model, by.name))
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cached == c {
		m.chosen[by] = known
	}
	return known
}

// explorer returns the model that chooses the next action of an exploration; nil if a rule
// chooses, as with the demo model, which cannot read screens.
func (m *models) explorer(a claybot.Agent) llm.Model {
	if m.model(a).Demo() && m.config.profile(a).Off() == "" {
		return nil
	}
	return m.choose(a)
}

// switchedOff returns the error that every run of an agent ends with while a setting of its
// model, its profile or a budget is bad; nil while none is.
func (m *models) switchedOff(ctx context.Context, a claybot.Agent) *runs.Error {
	model := m.choose(a)
	if w, ok := model.(*watched); ok {
		model = w.model
	}
	if off, ok := model.(offModel); ok {
		return runs.Off(off.refusal())
	}
	if why := m.limiter.Refused(ctx, a.ID); why != "" && !m.model(a).Demo() {
		return &runs.Error{Code: runs.CodeBudget, Say: why}
	}
	return nil
}

// modelNames returns the names of all models in a configuration, except the demo.
func modelNames(c *configs.Config) []string {
	var names []string
	for _, p := range c.Agents.Profiles {
		if p.Model.Demo() {
			continue
		}
		names = append(append(names, p.Model.ID()), p.Models...)
		if p.Engine.Deep == nil {
			continue
		}
		for _, h := range p.Engine.Deep.Subagents {
			if h.Model != "" {
				names = append(names, h.Model)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// correctModel is the next step for settings that switch a model or a profile off.
const correctModel = "Correct it, then run: claybot config check; claybot reads the file again by itself, and its environment when it starts."

// An offModel refuses every call because of a bad setting.
type offModel struct {
	why   string
	agent bool // the profile of the agent is bad, not the model itself
}

// Chat implements llm.Model. No request leaves.
func (m offModel) Chat(context.Context, llm.Request) (llm.Response, error) {
	return llm.Response{}, m.refusal()
}

func (m offModel) refusal() *llm.Error {
	return &llm.Error{Class: llm.Off, Agent: m.agent, Text: connectors.SwitchedOff(m.why).Err}
}

// health returns the status of the configured model that failed last and has not answered
// since; that of the default model if none fails.
func (m *models) health(c configs.Config) overview.ModelStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	st := overview.ModelStatus{Name: modelName(c.Model)}
	if w := m.all[fingerprint(c.Model)]; w != nil {
		st.LastOK, _, _ = w.health()
	}
	if why := c.Model.Off(); why != "" {
		st.Err = connectors.SwitchedOff(why).Err
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

// problem is why the last call of a model failed; empty if it did not, or none was made.
func (m *models) problem(c configs.Model) string {
	m.mu.Lock()
	w := m.all[fingerprint(c)]
	m.mu.Unlock()
	if w == nil {
		return ""
	}
	_, _, problem := w.health()
	return problem
}

// state returns whether a model has answered, or its provider has listed it, and what failed since.
func (m *models) state(c configs.Model) (ok bool, problem modelProblem) {
	m.mu.Lock()
	w := m.all[fingerprint(c)]
	m.mu.Unlock()
	if w == nil {
		return false, problem
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.ok.IsZero() || w.listed, modelProblem{w.code, w.problem}
}

// A watched model records how its calls end.
type watched struct {
	config configs.Model
	model  llm.Model

	mu         sync.Mutex
	ok, failed time.Time
	problem    string // since the last success; empty for none
	code       string // of the problem, as the doctor has it
	renewed    string // the problem before a restart, until a call or a test shows how it does; empty for none
	listed     bool   // the provider took a key since the last problem
}

// Chat calls the model. A conversation that is too long, an exhausted budget or a stop by
// the user says nothing about the model.
func (w *watched) Chat(ctx context.Context, r llm.Request) (llm.Response, error) {
	resp, err := w.model.Chat(ctx, r)
	w.mu.Lock()
	defer w.mu.Unlock()
	var e *llm.Error
	switch {
	case err == nil:
		w.succeed()
	case ctx.Err() == nil && errors.As(err, &e) && e.Class != llm.Context && e.Class != llm.Budget && e.Class != llm.Off:
		w.failed, w.problem, w.code, w.listed = time.Now(), advice(e), failureCode(e), false
	}
	return resp, err
}

// tested notes how a call has ended that an operator made outside of runs.
func (w *watched) tested(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.succeed()
		return
	}
	w.failed, w.problem, w.code, w.listed = time.Now(), err.Error(), "model-failing", false
	if e, ok := errors.AsType[*llm.Error](err); ok {
		w.problem, w.code = advice(e), failureCode(e)
	}
}

func (w *watched) succeed() { w.ok, w.problem, w.code, w.renewed = time.Now(), "", "", "" }

// failureCode is the code of the doctor for a call that failed.
func failureCode(e *llm.Error) string {
	switch {
	case e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden:
		return "credential-refused"
	case e.Status == 0 && e.Class == llm.Transient:
		return "model-unreachable"
	}
	return "model-failing"
}

// fresh reports whether the model answered after a time, and has not failed since.
func (w *watched) fresh(since time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.problem == "" && w.ok.After(since)
}

// probed notes how the provider answered when it was asked for its models: with a problem, that it took
// a key, or neither. A list says nothing about what else makes calls fail.
func (w *watched) probed(p modelProblem, took bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case p.code != "":
		w.failed, w.problem, w.code, w.listed = time.Now(), p.text, p.code, false
	case took:
		if w.listed = true; w.code == "credential-refused" || w.code == "model-unreachable" {
			w.problem, w.code = "", ""
		}
	}
}

func (w *watched) health() (ok, failed time.Time, problem string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ok, w.failed, w.problem
}

// advice returns the problem and the next step.
func advice(e *llm.Error) string {
	s := e.Text
	if e.Status != 0 {
		s += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	switch {
	case strings.Contains(e.Text, "; check "): // it has its next step
	case e.Class == llm.Permanent:
		s += "; check the account and the settings of the model: CLAYBOT_MODEL, OPENAI_API_KEY, OPENAI_BASE_URL, ANTHROPIC_API_KEY"
	default:
		s += "; the next message tries again"
	}
	return s
}

// fingerprint is equal for models with the same address, credentials and prices.
func fingerprint(c configs.Model) string {
	var parts []string
	for _, r := range c.Routes() {
		parts = append(parts, r.Off(), r.ProviderName(), r.Name, r.BaseURL, r.SystemFallback, fmt.Sprint(r.MaxTokens, r.Prices))
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

// newModel builds the chain behind a model: routes in their order, each of which retries,
// rotates its keys, and pays for each attempt. It skips routes that a bad setting switches
// off; if all are off, so is the model.
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

// pricesOf returns the known prices, with those of the settings.
func pricesOf(c configs.Model) llm.Prices { return llm.DefaultPrices().With(ownPrices(c)) }

// ownPrices returns the prices of the settings alone.
func ownPrices(c configs.Model) llm.Prices {
	own := make(llm.Prices, len(c.Prices))
	for name, p := range c.Prices {
		own[name] = llm.Price(p)
	}
	return own
}

func newRoute(c configs.Model, limiter llm.Limiter, log *slog.Logger) llm.Model {
	prices := pricesOf(c)
	var keys []configs.Secret
	for _, k := range c.Credentials() {
		if k.Value() != "" { // a warning reports one that could not be read
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		keys = make([]configs.Secret, 1) // a self-hosted server may need none
	}
	most := func(model string) int64 { return llm.SmallestBound(c.MaxTokens, llm.MaxOutput(model)) }
	var keyed []llm.Keyed
	for _, key := range keys {
		m := llm.Metered(newClient(c, key, log), prices)
		if limiter != nil {
			m = llm.Budgeted(m, c.ID(), limiter, prices, most)
		}
		keyed = append(keyed, llm.Keyed{Fingerprint: llm.Fingerprint(key.Value()), Model: m})
	}
	return llm.Retried(llm.Rotated(log, keyed...), llm.Retries{Route: c.ID(), Log: log})
}

// newClient returns the client of a provider. It makes one attempt per call.
func newClient(c configs.Model, key configs.Secret, log *slog.Logger) llm.Model {
	headers, name := revealed(c.Headers), "model.key, which is not set"
	if key.Named() {
		name = key.String()
	}
	if c.API() == configs.ProviderAnthropic {
		return anthropic.New(anthropic.Config{
			BaseURL: c.BaseURL, Key: key.Value(), KeyName: name, Model: c.ID(), Headers: headers, MaxTokens: c.MaxTokens, Log: log,
		})
	}
	quirks := c.Quirks()
	return openai.New(openai.Config{
		Quirks: &quirks, BaseURL: c.BaseURL, Key: key.Value(), KeyName: name, Model: c.ID(), Headers: headers, MaxTokens: c.MaxTokens,
		SystemFallback: openai.Fallback(c.SystemFallback), Log: log,
	})
}

// modelName is the name of the model in /status.
func modelName(c configs.Model) string {
	if c.Demo() {
		return texts.DemoModel
	}
	return c.ID()
}
