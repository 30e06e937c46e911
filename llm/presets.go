package llm

import (
	"net/url"
	"slices"
	"strings"
)

// The APIs that claybot speaks. Each is also the name of the preset whose API it is.
const (
	APIOpenAI    = "openai"
	APIAnthropic = "anthropic"
)

// A Preset is a provider with a name: the address of its API, and how that differs from others.
type Preset struct {
	Name  string // as configurations have it
	Title string // as people read it
	API   string // APIOpenAI or APIAnthropic
	URL   string // empty: each account has its own, see Example
	// Example is an address where each account has its own.
	Example string
	Host    string // of the provider itself, with all below it; empty for servers that anybody may run
	Key     string // the variable that usually holds the key; empty: a key may not be needed
	Brokers bool   // it has models of other providers
	Form    string // how a key begins that no other provider has; empty: unknown
	Quirks  Quirks
}

// Quirks are the differences of an API from most that are like it. The zero value stands for a server that
// is not known: what it refuses is found out by the first request that it refuses.
type Quirks struct {
	Responses  bool   // requests go to /responses instead of /chat/completions
	KeyHeader  string // has the key as it is; empty: Authorization, with a bearer token
	BasePath   string // of an address without a path
	Query      string // of the operation, where the address names a deployment
	System     bool   // models honour the system role, so the prompt is not repeated
	Completion bool   // the bound of an answer is max_completion_tokens, not max_tokens
	NoUser     bool   // the field user is refused
	CacheKey   bool   // prompt_cache_key makes reads from the cache likelier
	NoUsage    bool   // stream_options is refused; usage comes without it
	NoSchema   bool   // response_format takes json_object only
	CallID     int    // ids of calls are of so many letters and digits; 0: of any
	Between    bool   // between results and a message of the user, there has to be an answer
	// NoDocuments: PDF files are refused, or the provider's pages do not say how it takes them.
	NoDocuments bool
	Charges     bool   // usage.cost is what the provider charged, in US dollars
	Native      bool   // plugins has to ask for documents to be passed to the model as they are
	Marks       string // models whose names begin so are marked for the cache by cache_control; empty: none
}

// presets is the table of providers, in the order in which people see it.
//
// Sources; not all of the pages were read again when the table was written:
//   - Azure: learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle (/openai/v1, api-key, no api-version) and
//     learn.microsoft.com/azure/ai-foundry/openai/reference (deployments, api-version 2024-10-21).
//   - DeepSeek: api-docs.deepseek.com/guides/json_mode (json_object, no schema).
//   - Gemini: ai.google.dev/gemini-api/docs/openai (address, bearer token).
//   - Kimi: platform.kimi.ai/docs/api/chat (address; the models think by default).
//   - Mistral: docs.mistral.ai/api (neither user nor stream_options); docs.mistral.ai, prompt caching (prompt_cache_key); error 3230 "Unexpected role 'user' after role 'tool'" as in
//     github.com/BerriAI/litellm/issues/17761, and ids of calls as in github.com/mistralai/mistral-common, validator.py.
//   - OpenRouter: openrouter.ai/docs/features/prompt-caching (cache_control for models of Anthropic).
//   - OpenRouter: openrouter.ai/docs/use-cases/usage-accounting (usage.cost, in credits, which are US dollars; with a key of one's own, the cost upstream comes on top).
//   - PDF files: developers.openai.com/api/docs/guides/file-inputs, openrouter.ai/docs/guides/overview/multimodal/pdfs; the pages of the others on
//     chat completions do not have them.
//   - Ollama, vLLM, llama.cpp: docs.ollama.com/api/openai-compatibility, docs.vllm.ai/en/latest/serving/openai_compatible_server,
//     github.com/ggml-org/llama.cpp, tools/server/README.md (addresses).
var presets = []Preset{
	{
		Name: APIOpenAI, Title: "OpenAI", API: APIOpenAI, URL: "https://api.openai.com/v1", Host: "openai.com", Key: "OPENAI_API_KEY",
		Form: "sk-proj-", Quirks: Quirks{System: true, Completion: true},
	},
	{
		Name: "openai-responses", Title: "OpenAI, Responses API", API: APIOpenAI, URL: "https://api.openai.com/v1", Host: "openai.com", Key: "OPENAI_API_KEY",
		Quirks: Quirks{Responses: true, System: true},
	},
	{
		Name: APIAnthropic, Title: "Anthropic", API: APIAnthropic, URL: "https://api.anthropic.com", Host: "anthropic.com", Key: "ANTHROPIC_API_KEY",
		Form: "sk-ant-", Quirks: Quirks{System: true},
	},
	{
		Name: "gemini", Title: "Google Gemini", API: APIOpenAI, URL: "https://generativelanguage.googleapis.com/v1beta/openai", Host: "googleapis.com",
		Key: "GEMINI_API_KEY", Form: "AIza", Quirks: Quirks{System: true, NoDocuments: true},
	},
	{
		Name: "mistral", Title: "Mistral", API: APIOpenAI, URL: "https://api.mistral.ai/v1", Host: "mistral.ai", Key: "MISTRAL_API_KEY",
		Quirks: Quirks{System: true, NoUser: true, CacheKey: true, NoUsage: true, CallID: 9, Between: true, NoDocuments: true},
	},
	{
		Name: "deepseek", Title: "DeepSeek", API: APIOpenAI, URL: "https://api.deepseek.com", Host: "deepseek.com", Key: "DEEPSEEK_API_KEY",
		Quirks: Quirks{System: true, NoSchema: true, NoDocuments: true},
	},
	{
		Name: "kimi", Title: "Kimi (Moonshot AI)", API: APIOpenAI, URL: "https://api.moonshot.ai/v1", Host: "moonshot.ai", Key: "MOONSHOT_API_KEY",
		Quirks: Quirks{System: true, NoDocuments: true},
	},
	{
		Name: "openrouter", Title: "OpenRouter", API: APIOpenAI, URL: "https://openrouter.ai/api/v1", Host: "openrouter.ai", Key: "OPENROUTER_API_KEY",
		Form: "sk-or-", Brokers: true, Quirks: Quirks{System: true, Charges: true, Native: true, Marks: "anthropic/"},
	},
	{
		Name: "azure", Title: "Azure OpenAI", API: APIOpenAI, Example: "https://NAME.openai.azure.com", Host: "openai.azure.com", Key: "AZURE_OPENAI_API_KEY",
		Quirks: Quirks{KeyHeader: "Api-Key", BasePath: "/openai/v1", Query: "api-version=2024-10-21", System: true, Completion: true},
	},
	{Name: "ollama", Title: "Ollama", API: APIOpenAI, URL: "http://127.0.0.1:11434/v1", Quirks: Quirks{NoDocuments: true}},
	{Name: "vllm", Title: "vLLM", API: APIOpenAI, URL: "http://127.0.0.1:8000/v1", Quirks: Quirks{NoDocuments: true}},
	{Name: "llama.cpp", Title: "llama.cpp", API: APIOpenAI, URL: "http://127.0.0.1:8080/v1", Quirks: Quirks{NoDocuments: true}},
}

// Presets returns the providers that have names, in the order in which people see them.
func Presets() []Preset { return slices.Clone(presets) }

// PresetNamed returns the provider with a name; ok is false for none.
func PresetNamed(name string) (p Preset, ok bool) {
	i := slices.IndexFunc(presets, func(p Preset) bool { return p.Name == name })
	if i < 0 {
		return Preset{}, false
	}
	return presets[i], true
}

// QuirksAt returns the quirks of the API at an address, as far as its host says them; how the address and the key are
// sent stays as it is.
func QuirksAt(address string) Quirks {
	p, _ := PresetAt(address)
	q := p.Quirks
	q.KeyHeader, q.BasePath, q.Query = "", "", ""
	return q
}

// PresetAt returns the provider whose own server an address is on, the first one of those that share it; ok is false for none,
// as for a server that anybody may run.
func PresetAt(address string) (p Preset, ok bool) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return Preset{}, false
	}
	host := strings.ToLower(u.Hostname())
	for _, p := range presets {
		if p.Host != "" && (host == p.Host || strings.HasSuffix(host, "."+p.Host)) {
			return p, true
		}
	}
	return Preset{}, false
}
