package configs

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot/llm"
)

// The values of model.provider are the names of the presets.
func TestPresetNames(t *testing.T) {
	var names []string
	for _, p := range llm.Presets() {
		names = append(names, p.Name)
	}
	f, _ := reflect.TypeFor[Model]().FieldByName("Provider")
	if words := strings.Split(f.Tag.Get("words"), ","); !slices.Equal(words, names) {
		t.Errorf("the key takes %q, the presets are %q", words, names)
	}
	if p, _ := llm.PresetAt("https://api.openai.com/v1"); p.Name != ProviderOpenAI {
		t.Errorf("the provider at OpenAI's address is %s", p.Name)
	}
}

// A provider with a name is reached at its own address, with the key that the file names for it alone: no key and no
// address of the environment goes there, and its own goes nowhere else.
func TestPresetProviders(t *testing.T) {
	both := map[string]string{"OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a", "OPENAI_BASE_URL": "http://h/v1", "K": "k", "L": "l"}
	for _, tt := range []struct{ name, file, want string }{
		{"with a key", "model: {provider: deepseek, name: d, key: env:K}", "openai d https://api.deepseek.com k"},
		{"without a key", "model: {provider: deepseek, name: d}", "openai d https://api.deepseek.com "},
		{"on this machine", "model: {provider: ollama, name: llama3.3}", "openai llama3.3 http://127.0.0.1:11434/v1 "},
		{"on another machine", "model: {provider: vllm, name: q, base_url: http://gpu:8000/v1}", "openai q http://gpu:8000/v1 "},
		{"Claude by name", "model: {provider: openrouter, name: claude-x, key: env:K}", "openai claude-x https://openrouter.ai/api/v1 k"},
		{"an address of its own", "model: {provider: azure, name: d, base_url: https://x.openai.azure.com, key: env:K}", "openai d https://x.openai.azure.com k"},
		{"fallback by name", "model: {provider: deepseek, name: d, key: env:K, fallback: [e]}", "openai d https://api.deepseek.com k | openai e https://api.deepseek.com k"},
		{"fallback to itself", "model: {provider: deepseek, name: d, key: env:K, fallback: [{provider: deepseek, name: e}]}", "openai d https://api.deepseek.com k | openai e https://api.deepseek.com k"},
		{"fallback to another", "model: {provider: deepseek, name: d, key: env:K, fallback: [{provider: kimi, name: e}, {provider: kimi, name: f, key: env:L}]}", "openai d https://api.deepseek.com k | openai e https://api.moonshot.ai/v1  | openai f https://api.moonshot.ai/v1 l"},
		{"fallback to the API that it has", "model: {provider: deepseek, name: d, key: env:K, fallback: [{provider: openai, name: e}]}", "openai d https://api.deepseek.com k | openai e http://h/v1 o"},
		{"fallback to Anthropic", "model: {provider: deepseek, name: d, key: env:K, fallback: [{provider: anthropic, name: e}]}", "openai d https://api.deepseek.com k | anthropic e  a"},
		{"fallback by the name of a model of Anthropic", "model: {provider: deepseek, name: d, key: env:K, fallback: [claude-x]}", "openai d https://api.deepseek.com k | anthropic claude-x  a"},
		{"such a name at a broker", "model: {provider: openrouter, name: d, key: env:K, fallback: [claude-x]}", "openai d https://openrouter.ai/api/v1 k | openai claude-x https://openrouter.ai/api/v1 k"},
		{"such a name at a server of one's own", "model: {provider: vllm, name: d, fallback: [claude-x]}", "openai d http://127.0.0.1:8000/v1  | openai claude-x http://127.0.0.1:8000/v1 "},
		{"Responses API", "model: {provider: openai-responses, name: d, fallback: [{provider: openai, name: e}]}", "openai d http://h/v1 o | openai e http://h/v1 o"},
		{"fallback from OpenAI", "model: {provider: openai, name: d, fallback: [{provider: mistral, name: e}]}", "openai d http://h/v1 o | openai e https://api.mistral.ai/v1 "},
	} {
		c, warnings := load(t, tt.file+"\n", both)
		if got := reached(c.Model); got != tt.want || len(warnings) > 0 || c.Model.Demo() {
			t.Errorf("%s: got %q, want %q; %v", tt.name, got, tt.want, warnings)
		}
	}
}

// Where only the address says whose server it is, a fallback belongs to it as with the provider's name.
func TestFallbacksAtAddresses(t *testing.T) {
	vars := map[string]string{"OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a", "K": "k"}
	for _, tt := range []struct{ name, file, want string }{
		{"such a name at the address", "model: {name: d, base_url: https://api.deepseek.com, key: env:K, fallback: [claude-x]}", "openai d https://api.deepseek.com k | anthropic claude-x  a"},
		{"fallback to the provider at the address", "model: {name: d, base_url: https://api.deepseek.com, key: env:K, fallback: [{provider: deepseek, name: e}]}", "openai d https://api.deepseek.com k | openai e https://api.deepseek.com k"},
		{"fallback to a provider that is not at the address", "model: {name: d, base_url: https://api.deepseek.com.example, key: env:K, fallback: [{provider: deepseek, name: e}]}", "openai d https://api.deepseek.com.example k | openai e https://api.deepseek.com "},
	} {
		c, warnings := load(t, tt.file+"\n", vars)
		if got := reached(c.Model); got != tt.want || len(warnings) > 0 {
			t.Errorf("%s: got %q, want %q; %v", tt.name, got, tt.want, warnings)
		}
	}
}

// A profile with another provider takes nothing of the first one along, and one with the same keeps all.
func TestProfilesPartFromTheirPreset(t *testing.T) {
	vars := map[string]string{"OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a", "K": "k", "H": "h"}
	c, warnings := load(t, `
model: {provider: deepseek, name: d, key: env:K, headers: {X-Key: env:H}}
agents:
  same: {match: [telegram], model: e}
  said: {match: [discord], model: {provider: deepseek, name: f}}
  other: {match: [slack], model: {provider: kimi, name: g}}
  plain: {match: [web], model: {provider: openai, name: gpt-5}}
  claude: {match: [cron], model: {provider: anthropic, name: claude-x}}
  odd: {match: [heartbeat], model: {provider: azure, name: h}}
`, vars)
	if len(warnings) > 0 {
		t.Error(warnings)
	}
	for name, want := range map[string]string{
		"default": "openai d https://api.deepseek.com k", "same": "openai e https://api.deepseek.com k", "said": "openai f https://api.deepseek.com k",
		"other": "openai g https://api.moonshot.ai/v1 ", "plain": "openai gpt-5  o", "claude": "anthropic claude-x  a", "odd": "openai h  ",
	} {
		m := c.Agents.Profiles[name].Model
		if got := reached(m); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
		if kept := len(m.Headers) > 0; kept != slices.Contains([]string{"default", "same", "said"}, name) {
			t.Errorf("%s: headers %v", name, m.Headers)
		}
		if off := m.Off() != ""; off != (name == "odd") {
			t.Errorf("%s: off %q", name, m.Off())
		}
	}
}

// A quirk of a provider follows its name, else its own address; a server that is not known has nothing.
func TestQuirks(t *testing.T) {
	mistral, _ := llm.PresetNamed("mistral")
	azure, _ := llm.PresetNamed("azure")
	openai, _ := llm.PresetNamed("openai")
	byAddress := azure.Quirks
	byAddress.KeyHeader, byAddress.BasePath, byAddress.Query = "", "", ""
	for file, want := range map[string]llm.Quirks{
		"model: {provider: mistral, name: m}":                            mistral.Quirks,
		"model: {provider: mistral, name: m, base_url: http://proxy/v1}": mistral.Quirks,
		"model: {name: m, base_url: https://api.mistral.ai/v1}":          mistral.Quirks,
		"model: gpt-5": openai.Quirks,
		"model: {name: m, base_url: http://proxy/v1}":                             {},
		"model: {provider: openai, name: m, base_url: http://proxy/v1}":           {},
		"model: {name: m, base_url: https://x.openai.azure.com/openai/v1}":        byAddress,
		"model: {provider: azure, name: m, base_url: https://x.openai.azure.com}": azure.Quirks,
		"model: {name: m, base_url: https://api.mistral.ai.example/v1}":           {},
	} {
		if c, _ := load(t, file+"\n", map[string]string{"OPENAI_API_KEY": "o"}); c.Model.Quirks() != want {
			t.Errorf("%s: got %+v", file, c.Model.Quirks())
		}
	}
}
