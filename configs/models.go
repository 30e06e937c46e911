package configs

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/llm"
)

// The APIs of models, which are values of Model.Provider as well; the others are the names of llm.Presets.
const (
	ProviderOpenAI    = llm.APIOpenAI
	ProviderAnthropic = llm.APIAnthropic
)

// The models that are asked for when none is named.
const (
	DefaultClaude = "claude-sonnet-4-5"
	// DemoModel is the name that asks for the built-in demo model.
	DemoModel = "demo"
)

// The most entries of lists of a model.
const (
	maxFallbacks = 8
	maxKeys      = 32
)

// Model is how a model is reached.
type Model struct {
	Name string `key:"name" kind:"model name" env:"CLAYBOT_MODEL"` // empty: see ID
	// Provider is the name of a preset; empty: see API.
	Provider string            `key:"provider" words:"openai,openai-responses,anthropic,gemini,mistral,deepseek,kimi,openrouter,azure,ollama,vllm,llama.cpp"`
	BaseURL  string            `key:"base_url" kind:"model address"` // empty: the provider's own
	Key      Secret            `key:"key" kind:"model key"`
	Keys     []Secret          `key:"keys" kind:"model keys"`       // further ones, see Credentials
	Headers  map[string]Secret `key:"headers" kind:"model headers"` // sent with each request
	// SystemFallback says whether the system prompt is repeated as the first
	// user message.
	SystemFallback string           `key:"system_fallback" class:"harmless" words:"auto,always,never"`
	MaxTokens      int64            `key:"max_tokens" class:"narrowing" limits:"0..1000000"` // of an answer; 0: as the provider or the client sets it
	Prices         map[string]Price `key:"prices" class:"narrowing" kind:"prices"`           // by the beginning of a model's name
	// Fallback are those that are asked when this one does not answer, in their
	// order, as they are written; see Routes.
	Fallback []Model `key:"fallback" kind:"fallback"`

	env   providerEnv
	where string // the key or variable that BaseURL is of
	// keysAt and headersAt are the keys of the file that Key and Keys, and Headers, are
	// of; empty for none.
	keysAt, headersAt string

	faults // why this model must not be asked: it reaches no host
}

func (m *Model) off(path, why string) string {
	if lastName(path) == "fallback" {
		m.Fallback = nil
		return "no fallback is asked"
	}
	m.with(lastName(path), why)
	if strings.HasPrefix(path, "model.fallback[]") {
		return "this fallback is off"
	}
	return "the model is off"
}

func (m *Model) on(path string) { m.faults.on(lastName(path)) }

// AddressKey is the setting that says where the model is, or could.
func (m Model) AddressKey() string {
	switch {
	case m.BaseURL != "" && m.where != "":
		return m.where
	case m.API() == ProviderAnthropic, m.elsewhere():
		return "model.base_url"
	}
	return variableBase
}

// Demo reports that no model is configured, so that the built-in one answers.
func (m Model) Demo() bool {
	return m.Name == DemoModel || m.Name == "" && m.BaseURL == "" && m.Off() == "" && len(m.Credentials()) == 0
}

// Keyless reports whether the model is asked at its provider, which takes no request without a key, and has
// no key.
func (m Model) Keyless() bool {
	p, ok := llm.PresetNamed(cmp.Or(m.Provider, m.API()))
	return ok && p.Key != "" && ownAddress(m.BaseURL, m.API()) && !m.Demo() && m.Off() == "" && len(m.Credentials()) == 0 && len(m.Headers) == 0
}

// API returns the API that the model uses, ProviderOpenAI or ProviderAnthropic: that of Provider if set. Otherwise it is
// Anthropic's if BaseURL is Anthropic's, or if BaseURL is empty and the name begins with claude.
func (m Model) API() string {
	switch p, ok := llm.PresetNamed(m.Provider); {
	case ok:
		return p.API
	case m.BaseURL == "" && claude(m.Name), m.BaseURL != "" && ownAddress(m.BaseURL, ProviderAnthropic):
		return ProviderAnthropic
	}
	return ProviderOpenAI
}

func claude(name string) bool { return strings.HasPrefix(strings.ToLower(name), "claude") }

// ownAddress reports whether base is an address of the provider itself; an empty
// one is.
func ownAddress(base, provider string) bool {
	if base == "" {
		return true
	}
	u, err := url.Parse(base)
	if err != nil {
		return false
	}
	own := "openai.com"
	if provider == ProviderAnthropic {
		own = "anthropic.com"
	}
	return u.Hostname() == own || strings.HasSuffix(u.Hostname(), "."+own)
}

// ID is the name of the model to ask for; empty for a provider whose models claybot does not choose from.
func (m Model) ID() string {
	switch {
	case m.Name == "" && m.elsewhere():
		return ""
	case m.Name == "" && m.API() == ProviderAnthropic:
		return DefaultClaude
	}
	return cmp.Or(m.Name, DefaultModel)
}

// Credentials are the keys to use, the first one first. One that was named but
// could not be read is among them, so that it can be reported.
func (m Model) Credentials() []Secret {
	var all []Secret
	for _, s := range append([]Secret{m.Key}, m.Keys...) {
		same := func(t Secret) bool { return t.Value() == s.Value() && t.Value() != "" }
		if s.Named() && !slices.ContainsFunc(all, same) {
			all = append(all, s)
		}
	}
	return all
}

// Routes are the ways to this model, first its own, then those of Fallback,
// each complete and without a Fallback. An entry without base_url and keys is
// reached as the model itself when it has the same API, else with the key of the
// environment. What is wrong with the settings of the model switches off the
// entries that have no address of their own.
func (m Model) Routes() []Model {
	first := m
	first.Fallback = nil
	routes := []Model{first}
	for _, f := range m.Fallback {
		f.env = m.env
		f.SystemFallback = cmp.Or(f.SystemFallback, m.SystemFallback)
		if f.BaseURL == "" && f.Off() == "" {
			f.faults = m.faults
		}
		switch keyless := !f.Key.Named() && len(f.Keys) == 0; {
		case keyless && f.BaseURL == "" && m.speaks(f):
			f.Provider, f.BaseURL, f.Key, f.Keys = m.ProviderName(), m.BaseURL, m.Key, m.Keys
			if f.Headers == nil {
				f.Headers = m.Headers
			}
		case f.elsewhere():
			f.locate()
		case keyless && ownAddress(f.BaseURL, f.API()):
			f.Key = m.env.key(f.API())
			f.fromEnvironment()
		}
		prices := maps.Clone(m.Prices)
		if prices == nil && f.Prices != nil {
			prices = make(map[string]Price, len(f.Prices))
		}
		maps.Copy(prices, f.Prices)
		f.Prices = prices
		routes = append(routes, f)
	}
	return routes
}

// speaks reports whether an entry of m's fallback without an address belongs to
// m's server: it says so, or nothing speaks against it. The name of a model of Anthropic does where the server is that of a
// provider with models of its own alone.
func (m Model) speaks(f Model) bool {
	at, ok := llm.PresetAt(m.BaseURL)
	if f.Provider != "" {
		return f.Provider == m.ProviderName() || m.Provider == "" && ok && f.Provider == at.Name
	}
	alone := ownAddress(m.BaseURL, m.API()) || ok && !at.Brokers && at.Name != ProviderAnthropic
	return claude(f.Name) == (m.API() == ProviderAnthropic) || !alone
}

// Secrets are all values of m that must not be shown.
func (m Model) Secrets() []Secret {
	all := m.Credentials()
	for _, r := range m.Fallback {
		all = append(all, r.Secrets()...)
	}
	return slices.AppendSeq(append(all, m.env.openAI, m.env.anthropic), maps.Values(m.Headers))
}

// A Price is in US dollars per million tokens.
type Price struct {
	Input       float64 `key:"input" kind:"price"`
	CachedInput float64 `key:"cached_input" kind:"price"` // 0: as Input
	Output      float64 `key:"output" kind:"price"`
	CacheWrite  float64 `key:"cache_write" kind:"price"` // 0: as Input
}

func price(v string) (float64, error) {
	f, ok := plainDecimal(v)
	if !ok || f > 1e6 {
		return 0, fmt.Errorf("%s is not a price in US dollars per million tokens", quote(v))
	}
	return f, nil
}

// Transcription says where speech is turned into text.
type Transcription struct {
	Model   string `key:"model" kind:"model name"` // empty: the client's default
	BaseURL string `key:"base_url" kind:"url"`     // empty: OpenAI's
	Key     Secret `key:"key" kind:"account"`

	wanted bool
	faults // why nothing is transcribed
}

// Wanted reports whether recordings are to be transcribed.
func (t Transcription) Wanted() bool { return t.wanted && t.Off() == "" }

// Speech says where text is turned into speech.
type Speech struct {
	Model   string `key:"model" kind:"model name"` // empty: the client's default
	Voice   string `key:"voice" kind:"model name"` // empty: the client's default
	BaseURL string `key:"base_url" kind:"url"`     // empty: OpenAI's
	Key     Secret `key:"key" kind:"speech account"`

	wanted bool
	faults // why nothing is spoken
}

// Wanted reports whether replies can be spoken.
func (s Speech) Wanted() bool { return s.wanted && s.Off() == "" }

func setTranscription(r *reader, at place, n *yaml.Node, t *Transcription) {
	setAudio(r, at, n, t, &t.Model, &t.wanted)
}

func setSpeech(r *reader, at place, n *yaml.Node, s *Speech) {
	setAudio(r, at, n, s, &s.Model, &s.wanted)
}

// setAudio reads the route of a model for audio: a group of keys, the name of its model, or a word
// that switches it on or off.
func setAudio[T any](r *reader, at place, n *yaml.Node, t *T, model *string, wanted *bool) {
	switch v := strings.TrimSpace(n.Value); {
	case n.Kind != yaml.ScalarNode:
		r.group(at, n, t)
		*wanted = n.Kind == yaml.MappingNode
	case slices.Contains([]string{"false", "off", "no"}, strings.ToLower(v)):
		*t = *new(T)
	case v == "true" || v == "on":
		*wanted = true
	default:
		name, err := modelName(v)
		if err == nil && (len(v) == 1 || noSpeech(v)) { // y or n
			err = fmt.Errorf("%s is not the name of a model", quote(v))
		}
		if err != nil {
			r.refuse(at, err)
			return
		}
		*model, *wanted = name, true
	}
}

// environ gives a transcription that names no other server the address and the key
// of the environment: the key is for that address alone.
func (t *Transcription) environ(e providerEnv) {
	if t.wanted {
		e.audio("transcription", &t.BaseURL, &t.Key, &t.faults)
	}
}

// environ is that of a Transcription.
func (s *Speech) environ(e providerEnv) {
	if s.wanted {
		e.audio("speech", &s.BaseURL, &s.Key, &s.faults)
	}
}

// audio completes the address and the key of a route for audio.
func (e providerEnv) audio(group string, base *string, key *Secret, f *faults) {
	if *base != "" && !ownAddress(*base, ProviderOpenAI) {
		return
	}
	if *base == "" && e.based() {
		if *base = e.base; e.base == "" {
			f.off(group+".base_url", cmp.Or(e.fault, e.openAIFault))
		}
	}
	if !key.Named() {
		*key = e.openAI
	}
}

// setModel reads a model over the settings that it begins with.
func setModel(r *reader, at place, n *yaml.Node, m *Model) {
	if n.Kind != yaml.ScalarNode {
		r.group(at, n, m)
	} else if name, err := modelName(n.Value); err != nil {
		r.refuse(at, err)
	} else {
		m.Name = name
		m.on("name")
	}
}

// addressForm is what only an address looks like: one with a scheme, an IP address or
// localhost, or a host with a port. Names such as llama3:8b are none.
var addressForm = lazyregexp.New(`(?i)://|^(localhost|[0-9]{1,3}(\.[0-9]{1,3}){3}|\[[0-9a-f:.]+\])(:[0-9]+)?(/|$)|^[^/:@\s]+:[0-9]{4,5}(/|$)`)

func modelName(v string) (string, error) {
	v = strings.TrimSpace(v)
	if addressForm.MatchString(v) { // it may hold a password
		return "", errors.New("that is an address, not the name of a model: put it into base_url")
	}
	if noName(v) || secretive(v) || v == "" || len(v) > 200 || strings.ContainsAny(v, " \t\n") {
		return "", fmt.Errorf("%s is not the name of a model", quote(v))
	}
	return v, nil
}

// switches are words that mean on, off or nothing, and numbers.
var switches = lazyregexp.New(`(?i)^(yes|no|on|off|true|false|null|nil|none|never|always|undefined|(dis|en)abled?|~|[-+]?\.?[0-9][0-9._]*(e[-+]?[0-9]+)?)$`)

// noName reports what is meant to switch something and is not the name of a model.
func noName(v string) bool { return switches.MatchString(v) }

// noSpeech is noName for a model that writes speech down, also mistyped: a word alone
// switches it on.
func noSpeech(v string) bool {
	return noName(v) || slices.ContainsFunc([]string{"true", "false", "off", "none", "null", "disable", "disabled", "enable", "enabled"}, func(k string) bool { return typo(v, k) })
}

// setKeys reads several keys, which take the place of one.
func setKeys(r *reader, at place, n *yaml.Node, m *Model) {
	items, ok := r.list(at, n)
	if !ok {
		return
	}
	if len(items) > maxKeys {
		r.warn(at, "has more than %d keys; the rest is ignored", maxKeys)
		items = items[:maxKeys]
	}
	m.Key, m.Keys, m.keysAt = Secret{}, nil, at.key
	before, read := len(r.warnings), 0
	for i, it := range items {
		s := r.reference(it.at, it.text)
		if s.Value() != "" {
			read++
		}
		if i == 0 {
			m.Key = s
			continue
		}
		m.Keys = append(m.Keys, s)
	}
	for i := range r.warnings[before:] {
		w := &r.warnings[before+i]
		text := strings.TrimSuffix(w.Text, "; ignored")
		if w.Text = text + "; the other keys are used"; read == 0 {
			w.shut(m, at.path, text)
		}
	}
}

// readAccount is reference for a key without which nothing may be sent.
func readAccount(r *reader, at place, v string, to any) Secret {
	before := len(r.warnings)
	s := r.reference(at, v)
	r.sealAll(to, at.path, before)
	return s
}

func setModelAddress(r *reader, at place, v string, m *Model) {
	u, err := address(v)
	if err != nil {
		r.refuse(at, err)
		return
	}
	m.BaseURL, m.where = u, at.key
}

func setModelKey(r *reader, at place, v string, m *Model) {
	m.Key, m.Keys, m.keysAt = readAccount(r, at, v, m), nil, at.key
}

func setModelHeaders(r *reader, at place, n *yaml.Node, m *Model) {
	before := len(r.warnings)
	setHeaders(r, at, n, &m.Headers)
	m.headersAt = at.key
	r.sealAll(m, at.path, before)
}

// setFallback reads the models that are asked when one does not answer. A bad
// entry is left out.
func setFallback(r *reader, at place, n *yaml.Node, m *Model) {
	entries := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		entries = n.Content
	}
	m.Fallback = nil
	for i, e := range entries {
		where := place{file: at.file, line: e.Line, key: fmt.Sprintf("%s[%d]", at.key, i), path: "model.fallback[]"}
		if len(m.Fallback) == maxFallbacks {
			r.warn(where, "only %d models can stand here; ignored", maxFallbacks)
			return
		}
		var f Model
		before := len(r.warnings)
		switch {
		case e.Kind == yaml.MappingNode:
			r.group(where, e, &f, "fallback")
		case e.Kind != yaml.ScalarNode || empty(e):
			keys := names(keysOf(reflect.TypeFor[Model]()))
			r.warn(where, "want the name of a model, or a group of keys (%s), found %s; ignored", strings.Join(keys[:len(keys)-1], ", "), kindOf(e))
			continue
		default:
			setModel(r, where, e, &f)
			r.seal(&f, where.path, before)
		}
		switch {
		case f.Off() != "": // it was said
		case f.Name == DemoModel:
			r.warn(where, "the demo model answers always, and says nothing; ignored")
		case f.lost() != "":
			r.warn(where, "%s; ignored", f.lost())
		case f.Name != "":
			m.Fallback = append(m.Fallback, f)
		case e.Kind == yaml.MappingNode:
			r.warn(where, "has no name; ignored")
		}
	}
}

func setPrices(r *reader, at place, n *yaml.Node, m *Model) {
	if n.Kind != yaml.MappingNode {
		r.warn(at, "want names of models with their prices, found %s; ignored", kindOf(n))
		return
	}
	began := len(r.warnings)
	defer func() { r.seal(m, at.path, began) }()
	prices := make(map[string]Price)
	for price := range r.members(at, n) {
		var p Price
		before := len(r.warnings)
		if empty(price.value) {
			r.warn(price.at, noValue+"; ignored")
		}
		r.group(price.at, price.value, &p)
		if len(r.warnings) == before { // half a price would be a wrong sum
			prices[price.name] = p
		}
	}
	m.Prices = prices
}
