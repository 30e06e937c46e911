package imports

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/platforms"
)

// servers are the addresses of providers that are no preset of claybot and have the API of OpenAI, by the names that OpenClaw and
// picoclaw have for them.
//
// Names and addresses: picoclaw pkg/providers/provider_metadata.go at cf67dd38, OpenClaw
// docs/gateway/configuration-reference.md at 005a1ad4 (Provider examples).
var servers = map[string]string{
	"cerebras": "https://api.cerebras.ai/v1", "groq": "https://api.groq.com/openai/v1", "lmstudio": "http://127.0.0.1:1234/v1",
	"nvidia": "https://integrate.api.nvidia.com/v1", "venice": "https://api.venice.ai/api/v1", "xai": "https://api.x.ai/v1",
	"zai": "https://api.z.ai/api/coding/paas/v4",
}

// aliases are the names that OpenClaw and picoclaw have for presets, where they are others.
var aliases = map[string]string{"google": "gemini", "moonshot": "kimi"}

// server returns the address of a provider, which is empty for the two whose own API claybot speaks, and whether it is on this
// machine and needs no key; ok is false for an unknown one.
func server(provider string) (address string, keyless, ok bool) {
	p, ok := llm.PresetNamed(cmp.Or(aliases[provider], provider))
	switch {
	case ok && p.Name == p.API:
		return "", false, true
	case ok && p.URL != "":
		return p.URL, p.Host == "", true
	}
	address, ok = servers[provider]
	return address, provider == "lmstudio", ok
}

// apis are the names of APIs, with the presets of claybot that have them.
var apis = map[string]string{
	"": "", "openai-completions": configs.ProviderOpenAI, "openai-responses": "openai-responses", "ollama": configs.ProviderOpenAI,
	"anthropic-messages": configs.ProviderAnthropic,
}

// NewModel returns a model of a provider, whose address and API may be given, or why claybot has no place
// for it.
func NewModel(provider, name, api, base string, key Secret) (m Model, why string) {
	known, keyless, there := server(provider)
	speaks, ok := apis[api]
	m = Model{Provider: cmp.Or(speaks, configs.ProviderOpenAI), BaseURL: known, Name: name, Key: key}
	if provider == configs.ProviderAnthropic && api == "" {
		m.Provider = configs.ProviderAnthropic
	}
	if base != "" {
		u := address(base)
		switch {
		case u == nil:
			return Model{}, "its address cannot be used, or may hold a secret"
		case ownHost(m.Provider, u):
			m.BaseURL = ""
		default:
			m.BaseURL = strings.TrimRight(base, "/")
		}
	}
	usual := there && m.BaseURL == known // the provider itself, which asks for a key
	switch {
	case name == "":
		return Model{}, "it has no name"
	case !ok:
		return Model{}, "claybot does not speak the API " + oneWord(api)
	case base == "" && !there:
		return Model{}, "the address of the provider " + oneWord(provider) + " is not known; set it up with: claybot setup model"
	case usual && !key.Given() && !keyless:
		return Model{}, "no key for " + oneWord(provider) + " was found; set it up with: claybot setup model"
	}
	return m, ""
}

// ownHost reports an address on the server of a preset itself.
func ownHost(preset string, u *url.URL) bool {
	p, _ := llm.PresetNamed(preset)
	own := address(p.URL)
	return own != nil && u.Hostname() == own.Hostname()
}

// address returns an address of HTTP that holds nothing secret, as far as its form shows; nil for any other.
func address(text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil
	}
	if _, kinds := platforms.MaskSecrets(text); len(kinds) > 0 {
		return nil
	}
	return u
}

// Elsewhere reports whether an address is set for a provider that is known, and is not that of the provider.
func Elsewhere(provider, base string) bool {
	known, _, there := server(provider)
	if known == "" {
		known = "https://api." + provider + ".com"
	}
	own, u := address(known), address(base)
	return there && base != "" && (u == nil || u.Scheme != own.Scheme || u.Host != own.Host)
}

// oneWord is a name of another program as a message shows it.
func oneWord(name string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r == 0x7f {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(name[:min(len(name), 60)], "?"))
}
