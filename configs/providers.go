package configs

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	"github.com/claybot/claybot/llm"
)

// A providerEnv is what the environment says about providers.
type providerEnv struct {
	openAI, anthropic Secret
	base              string // OPENAI_BASE_URL
	fault             string // what is wrong with it
	// Addresses of the providers' APIs in variables that are not read. They matter
	// where nothing else says where a model is.
	openAIFault, anthropicFault string
}

// based reports whether an address was set, even if it cannot be used.
func (e providerEnv) based() bool { return e.base != "" || e.fault != "" || e.openAIFault != "" }

func (e providerEnv) key(provider string) Secret {
	if provider == ProviderAnthropic {
		return e.anthropic
	}
	return e.openAI
}

// ProviderName is Provider, or the API where that follows from the address or the name of the model.
func (m Model) ProviderName() string { return cmp.Or(m.Provider, m.API()) }

// elsewhere reports a provider by name whose keys and address the environment does not have.
func (m Model) elsewhere() bool {
	p, ok := llm.PresetNamed(m.Provider)
	return ok && p.Key != openAIKey && p.Key != anthropicKey
}

const (
	openAIKey    = "OPENAI_API_KEY"
	anthropicKey = "ANTHROPIC_API_KEY"
)

// locate gives a model of a provider with a name the address of that, which nothing else has named.
func (m *Model) locate() {
	if why := m.lost(); why != "" {
		m.off("base_url", why)
		return
	}
	if p, _ := llm.PresetNamed(m.Provider); m.BaseURL == "" {
		m.BaseURL, m.where = p.URL, ofProvider
	}
}

// lost says that a model of a provider with a name lacks an address; empty if it does not.
func (m Model) lost() string {
	p, ok := llm.PresetNamed(m.Provider)
	if !ok || p.URL != "" || m.BaseURL != "" {
		return ""
	}
	return fmt.Sprintf("the provider %s needs the address of your own resource in base_url, such as %s", p.Name, p.Example)
}

// ofProvider stands for a provider as that what has named an address.
const ofProvider = "model.provider"

// Quirks returns the quirks of the API of the model: of the provider that Provider names, else of the one whose
// own address it has.
func (m Model) Quirks() llm.Quirks {
	p, ok := llm.PresetNamed(m.ProviderName())
	if ok && (m.BaseURL == "" || m.elsewhere() || p.Quirks.Responses) {
		return p.Quirks
	}
	return llm.QuirksAt(m.BaseURL)
}

// modelEnviron puts the environment above what the file said about the common model.
// The key of one provider never goes to the other one, nor, in the place of the key
// that the file names for it, to a server that the file names.
func (r *reader) modelEnviron(m *Model) {
	if m.elsewhere() {
		switch why := m.lost(); {
		case m.Off() != "": // it was said
		case why != "":
			r.warn(place{key: "model.provider"}, "%s", why)
			r.warnings[len(r.warnings)-1].shut(m, "model.base_url", why)
		case m.Name == "":
			r.warn(place{key: "model.name"}, "is missing: name one of the models of %s", m.Provider)
		}
		m.locate()
		return
	}
	theirs := m.Provider == ProviderAnthropic || m.Provider == "" && (m.BaseURL != "" && ownAddress(m.BaseURL, ProviderAnthropic) ||
		m.BaseURL == "" && claude(m.Name) && (!m.env.based() || m.env.anthropic.Named()))
	named := m.BaseURL
	switch {
	case theirs || !m.env.based():
	case m.env.fault != "":
		m.off("base_url", m.env.fault)
	case m.env.base != "":
		m.BaseURL, m.where, named = m.env.base, variableBase, ""
		m.on("base_url")
		r.mended("model.base_url", variableBase)
	case m.BaseURL == "":
		m.off("base_url", m.env.openAIFault)
	}
	if m.Name == "" && m.Provider == "" && m.BaseURL == "" && len(m.Credentials()) == 0 && !m.env.openAI.Named() && m.env.anthropic.Named() {
		m.Name = DefaultClaude
	}
	elsewhere := named != "" && !ownAddress(named, m.API()) && (m.Key.Named() || m.why.has("key"))
	if key := m.env.key(m.API()); key.Named() && len(m.Keys) == 0 && !elsewhere {
		m.Key = key
		m.on("key")
		r.mended("model.key", key.String())
	}
	if m.API() == ProviderAnthropic {
		m.fromEnvironment()
	}
}

// fromEnvironment puts the address of the environment in the place of that of
// the provider itself, which nothing else has named.
func (m *Model) fromEnvironment() {
	switch {
	case m.BaseURL != "":
	case m.elsewhere():
		m.locate()
	case m.API() == ProviderAnthropic:
		if m.env.anthropicFault != "" {
			m.off("base_url", m.env.anthropicFault)
		}
	default:
		m.BaseURL, m.where = m.env.base, variableBase
		if why := cmp.Or(m.env.fault, m.env.openAIFault); why != "" {
			m.off("base_url", why)
		}
	}
}

// part takes from a model that began as another one, and has become that of another
// API or server, what belongs to the first.
func (m *Model) part(began Model) {
	if m.ProviderName() == began.ProviderName() && m.server() == began.server() {
		return
	}
	if m.where == began.where {
		m.BaseURL = ""
		m.fromEnvironment()
	}
	if m.keysAt == began.keysAt {
		m.Key, m.Keys = Secret{}, nil
		if !m.elsewhere() && (ownAddress(m.BaseURL, m.API()) || m.BaseURL == m.env.base && m.API() == ProviderOpenAI) {
			m.Key = m.env.key(m.API())
		}
	}
	if m.headersAt == began.headersAt {
		m.Headers = nil
	}
}

// server is the scheme, host and port that m is reached at; those of a provider itself
// are one server.
func (m Model) server() string {
	u, err := url.Parse(cmp.Or(m.BaseURL, "https://"))
	if err != nil {
		return m.BaseURL
	}
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if ownAddress(m.BaseURL, m.API()) {
		host = m.API()
	}
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + " " + host + " " + port
}
