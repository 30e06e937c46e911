package configs

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The values of Model.Provider: whose API is spoken.
const (
	ProviderOpenAI    = "openai"
	ProviderAnthropic = "anthropic"
)

// The models that are asked for when none is named.
const (
	DefaultClaude = "claude-sonnet-4-5"
	// DemoModel is the name that asks for the built-in demo model.
	DemoModel = "demo"
)

// The bounds of a model's settings.
const (
	maxFallbacks = 8
	maxKeys      = 32
	maxAnswer    = 1_000_000 // tokens
)

// Model is how a model is reached.
type Model struct {
	Name     string // empty: see ID
	Provider string // openai or anthropic; empty: see API
	BaseURL  string // empty: the provider's own
	Key      Secret
	Keys     []Secret          // further ones, see Credentials
	Headers  map[string]Secret // sent with each request
	// SystemFallback says whether the system prompt is repeated as the first
	// user message: auto, always or never.
	SystemFallback string
	MaxTokens      int64            // of an answer; 0: as the provider or the client sets it
	Prices         map[string]Price // by the beginning of a model's name
	// Fallback are those that are asked when this one does not answer, in their
	// order, as they are written; see Routes.
	Fallback []Model

	env    providerEnv
	where  string // the key or variable that BaseURL is of
	faults reasons
	// keysAt and headersAt are the keys of the file that Key and Keys, and Headers, are
	// of; empty for none.
	keysAt, headersAt string
}

// AddressKey is the setting that says where the model is, or could.
func (m Model) AddressKey() string {
	switch {
	case m.BaseURL != "" && m.where != "":
		return m.where
	case m.API() == ProviderAnthropic:
		return "model.base_url"
	}
	return variableBase
}

// Demo reports that no model is configured, so that the built-in one answers.
func (m Model) Demo() bool {
	return m.Name == DemoModel || m.Name == "" && m.BaseURL == "" && m.faults == nil && len(m.Credentials()) == 0
}

// API is whose API is spoken: Provider, or else Anthropic's at its own address,
// or where no address is set and the name begins with claude.
func (m Model) API() string {
	switch {
	case m.Provider != "":
		return m.Provider
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

// ID is the name of the model to ask for.
func (m Model) ID() string {
	if m.Name == "" && m.API() == ProviderAnthropic {
		return DefaultClaude
	}
	return cmp.Or(m.Name, DefaultModel)
}

// Credentials are the keys to use, the first one first. One that was named but
// could not be read is among them, so that somebody can say so.
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
		if f.BaseURL == "" && f.faults == nil {
			f.faults = m.faults
		}
		switch keyless := !f.Key.Named() && len(f.Keys) == 0; {
		case keyless && f.BaseURL == "" && m.speaks(f):
			f.Provider, f.BaseURL, f.Key, f.Keys = m.API(), m.BaseURL, m.Key, m.Keys
			if f.Headers == nil {
				f.Headers = m.Headers
			}
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
// m's server: it says so, or nothing speaks against it.
func (m Model) speaks(f Model) bool {
	if f.Provider != "" {
		return f.Provider == m.API()
	}
	return claude(f.Name) == (m.API() == ProviderAnthropic) || !ownAddress(m.BaseURL, m.API())
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
	Input       float64
	CachedInput float64 // 0: as Input
	Output      float64
	CacheWrite  float64 // 0: as Input
}

// Transcription says where speech is turned into text.
type Transcription struct {
	Model   string // empty: the client's default
	BaseURL string // empty: OpenAI's
	Key     Secret
	wanted  bool
	faults  reasons
}

// Wanted reports whether recordings are to be transcribed.
func (t Transcription) Wanted() bool { return t.wanted && t.faults == nil }

func setTranscription(r *reader, at place, n *yaml.Node, c *Config) {
	t := &c.Transcription
	switch v, scalar := strings.TrimSpace(n.Value), n.Kind == yaml.ScalarNode; {
	case scalar && slices.Contains([]string{"false", "off", "no"}, strings.ToLower(v)):
		*t = Transcription{}
		return
	case scalar && (v == "true" || v == "on"):
	case scalar:
		before := len(r.warnings)
		if r.modelName(at, v, &t.Model); (len(v) == 1 || noSpeech(v)) && len(r.warnings) == before { // y or n
			r.warn(at, "%s is not the name of a model; ignored", quote(v))
		}
		if len(r.warnings) > before {
			return
		}
	case n.Kind == yaml.MappingNode:
		group(r, at, n, t, transcriptionKeys())
	default:
		group(r, at, n, t, transcriptionKeys()) // says what is wrong
		return
	}
	t.wanted = true
}

func transcriptionKeys() []key[Transcription] {
	return []key[Transcription]{
		text("model", func(r *reader, at place, v string, t *Transcription) { r.modelName(at, v, &t.Model) }),
		text("base_url", func(r *reader, at place, v string, t *Transcription) {
			u, ok := r.url(at, v)
			store(&t.BaseURL, u, ok)
		}),
		text("key", func(r *reader, at place, v string, t *Transcription) { t.Key = r.account(at, v, t) }),
	}
}

// environ gives a transcription that names no other server the address and the key
// of the environment: the key is for that address alone.
func (t *Transcription) environ(e providerEnv) {
	if !t.wanted || t.BaseURL != "" && !ownAddress(t.BaseURL, ProviderOpenAI) {
		return
	}
	if t.BaseURL == "" && e.based() {
		if t.BaseURL = e.base; e.base == "" {
			t.off("transcription.base_url", cmp.Or(e.fault, e.openAIFault))
		}
	}
	if !t.Key.Named() {
		t.Key = e.openAI
	}
}

// setModel reads a model over the settings that it begins with.
func setModel(r *reader, at place, n *yaml.Node, m *Model) {
	if n.Kind == yaml.ScalarNode {
		before := len(r.warnings)
		if r.model(at, n.Value, m); len(r.warnings) == before {
			m.on("name")
		}
		return
	}
	group(r, at, n, m, modelKeys())
}

// addressForm is what only an address looks like: one with a scheme, an IP address or
// localhost, or a host with a port. Names such as llama3:8b are none.
var addressForm = regexp.MustCompile(`(?i)://|^(localhost|[0-9]{1,3}(\.[0-9]{1,3}){3}|\[[0-9a-f:.]+\])(:[0-9]+)?(/|$)|^[^/:@\s]+:[0-9]{4,5}(/|$)`)

// model sets the name of a model.
func (r *reader) model(at place, v string, m *Model) { r.modelName(at, v, &m.Name) }

func (r *reader) modelName(at place, v string, to *string) {
	v = strings.TrimSpace(v)
	if addressForm.MatchString(v) { // it may hold a password
		r.warn(at, "that is an address, not the name of a model: put it into base_url; ignored")
		return
	}
	if noName(v) || secretive(v) || v == "" || len(v) > 200 || strings.ContainsAny(v, " \t\n") {
		r.warn(at, "%s is not the name of a model; ignored", quote(v))
		return
	}
	*to = v
}

// switches are words that mean on, off or nothing, and numbers.
var switches = regexp.MustCompile(`(?i)^(yes|no|on|off|true|false|null|nil|none|never|always|undefined|(dis|en)abled?|~|[-+]?\.?[0-9][0-9._]*(e[-+]?[0-9]+)?)$`)

// noName reports what is meant to switch something and is not the name of a model.
func noName(v string) bool { return switches.MatchString(v) }

// noSpeech is noName for a model that writes speech down, also mistyped: a word alone
// switches it on.
func noSpeech(v string) bool {
	return noName(v) || slices.ContainsFunc([]string{"true", "false", "off", "none", "null", "disable", "disabled", "enable", "enabled"}, func(k string) bool { return typo(v, k) })
}

func modelKeys() []key[Model] {
	return append(routeKeys(), key[Model]{"fallback", setFallback})
}

// routeKeys are those of a model and of each entry of its fallback.
func routeKeys() []key[Model] {
	return []key[Model]{
		text("name", func(r *reader, at place, v string, m *Model) { r.model(at, v, m) }),
		text("provider", func(r *reader, at place, v string, m *Model) {
			word, ok := r.word(at, v, ProviderOpenAI, ProviderAnthropic)
			store(&m.Provider, word, ok)
		}),
		text("base_url", func(r *reader, at place, v string, m *Model) {
			u, ok := r.url(at, v)
			store(&m.BaseURL, u, ok)
			store(&m.where, at.key, ok)
		}),
		text("key", func(r *reader, at place, v string, m *Model) {
			m.Key, m.Keys, m.keysAt = r.account(at, v, m), nil, at.key
		}),
		{"keys", setKeys},
		{"headers", func(r *reader, at place, n *yaml.Node, m *Model) {
			before := len(r.warnings)
			setHeaders(r, at, n, &m.Headers)
			m.headersAt = at.key
			r.sealAll(m, at.path, before)
		}},
		text("system_fallback", fallback),
		text("max_tokens", func(r *reader, at place, v string, m *Model) {
			n, ok := r.number(at, v, 0, maxAnswer)
			store(&m.MaxTokens, int64(n), ok)
		}),
		{"prices", setPrices},
	}
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

// account is reference for a key without which nothing may be sent.
func (r *reader) account(at place, v string, o owner) Secret {
	before := len(r.warnings)
	s := r.reference(at, v)
	r.sealAll(o, at.path, before)
	return s
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
		if e.Kind != yaml.MappingNode && (e.Kind != yaml.ScalarNode || empty(e)) {
			r.warn(where, "want the name of a model, or a group of keys (%s), found %s; ignored", strings.Join(names(routeKeys()), ", "), kind(e))
			continue
		}
		if e.Kind == yaml.ScalarNode {
			before := len(r.warnings)
			r.model(where, e.Value, &f)
			r.seal(&f, where.path, before)
		} else {
			group(r, where, e, &f, routeKeys())
		}
		switch {
		case f.faults != nil: // it was said
		case f.Name == DemoModel:
			r.warn(where, "the demo model answers always, and says nothing; ignored")
		case f.Name != "":
			m.Fallback = append(m.Fallback, f)
		case e.Kind == yaml.MappingNode:
			r.warn(where, "has no name; ignored")
		}
	}
}

func fallback(r *reader, at place, v string, m *Model) {
	word, ok := r.word(at, v, "auto", "always", "never")
	store(&m.SystemFallback, word, ok)
}

func setPrices(r *reader, at place, n *yaml.Node, m *Model) {
	if n.Kind != yaml.MappingNode {
		r.warn(at, "want names of models with their prices, found %s; ignored", kind(n))
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
		group(r, price.at, price.value, &p, priceKeys())
		if len(r.warnings) == before { // half a price would be a wrong sum
			prices[price.name] = p
		}
	}
	m.Prices = prices
}

func priceKeys() []key[Price] {
	return []key[Price]{
		text("input", func(r *reader, at place, v string, p *Price) { r.price(at, v, &p.Input) }),
		text("output", func(r *reader, at place, v string, p *Price) { r.price(at, v, &p.Output) }),
		text("cached_input", func(r *reader, at place, v string, p *Price) { r.price(at, v, &p.CachedInput) }),
		text("cache_write", func(r *reader, at place, v string, p *Price) { r.price(at, v, &p.CacheWrite) }),
	}
}

func (r *reader) price(at place, v string, to *float64) {
	f, ok := decimal(v)
	if !ok || f > 1e6 {
		r.warn(at, "%s is not a price in US dollars per million tokens; ignored", quote(v))
		return
	}
	*to = f
}
