package llm

import (
	"strings"
)

// DefaultWindow is the context window of a model that Window does not know, in
// tokens.
const DefaultWindow = 128_000

// Window returns how many tokens the context of a model has, by the longest
// well-known beginning of its name; DefaultWindow when none fits. The case of
// letters and a provider in front of the name, as in openai/gpt-5, say nothing.
// Where the versions of a name differ, it is the smaller window: one that is
// believed too small costs a summary too early, one too large a refused
// request.
func Window(model string) int64 { return longest(windows, model, DefaultWindow) }

func longest(table map[string]int64, model string, unknown int64) int64 {
	model = plainName(model)
	best, tokens := -1, unknown
	for name, n := range table {
		if len(name) > best && strings.HasPrefix(model, name) {
			best, tokens = len(name), n
		}
	}
	return tokens
}

func plainName(model string) string {
	model = strings.ToLower(strings.TrimSpace(model))
	model = model[strings.LastIndexByte(model, '/')+1:]
	for _, vendor := range [...]string{"us.", "eu.", "apac.", "global.", "anthropic.", "meta.", "mistral.", "meta-"} {
		model = strings.TrimPrefix(model, vendor)
	}
	return model
}

const k = 1024

// windows are the sizes that the vendors publish, of hosted models and of those that
// anybody may run.
var windows = map[string]int64{
	"gpt-3.5": 16_385, "gpt-4": 8_192, "gpt-4-32k": 32_768, "gpt-4-turbo": 128_000,
	"gpt-4-0125": 128_000, "gpt-4-1106": 128_000, "gpt-4o": 128_000, "chatgpt-4o": 128_000,
	"gpt-4.1": 1_047_576, "gpt-4.5": 128_000, "gpt-5": 400_000, "gpt-5-chat": 128_000,
	"gpt-oss": 128 * k, "codex-mini": 200_000, "o1": 200_000, "o1-mini": 128_000,
	"o1-preview": 128_000, "o3": 200_000, "o4": 200_000,

	"claude": 200_000, "claude-2.0": 100_000, "claude-instant": 100_000,

	"gemini": 1_048_576, "gemini-pro": 32_760, "gemini-1.0": 32_760,
	"gemini-1.5-pro": 2_097_152, "grok": 128 * k, "grok-4": 256_000, "kimi-k2": 128 * k,
	"moonshot-v1-8k": 8 * k, "moonshot-v1-32k": 32 * k, "glm-4": 128_000, "command-r": 128_000,
	"command-a": 256_000,

	"gemma": 8 * k, "gemma-3": 128 * k, "gemma3": 128 * k, "gemma-3-1b": 32 * k,
	"gemma3:1b": 32 * k,

	"llama": 8 * k, "llama-2": 4 * k, "llama2": 4 * k, "llama-3.1": 128 * k,
	"llama3.1": 128 * k, "llama3-1": 128 * k, "llama-v3p1": 128 * k, "llama-3.2": 128 * k,
	"llama3.2": 128 * k, "llama3-2": 128 * k, "llama-v3p2": 128 * k, "llama-3.3": 128 * k,
	"llama3.3": 128 * k, "llama3-3": 128 * k, "llama-v3p3": 128 * k, "llama-4": 1_048_576,
	"llama4": 1_048_576,

	"qwen": 32 * k, "qwen-plus": 128 * k, "qwen-turbo": 128 * k, "qwen3-coder": 256 * k,
	"qwen3-max": 256 * k, "qwen3-next": 256 * k, "qwq": 128 * k,

	"mistral": 32 * k, "mistral-large": 128 * k, "mistral-medium": 128 * k,
	"mistral-small": 128 * k, "mistral-nemo": 128 * k, "open-mistral": 32 * k,
	"open-mistral-nemo": 128 * k, "mixtral": 32 * k, "mixtral-8x22b": 64 * k,
	"open-mixtral": 32 * k, "open-mixtral-8x22b": 64 * k, "ministral": 128 * k,
	"magistral": 40 * k, "codestral": 32 * k, "devstral": 128 * k, "pixtral": 128 * k,

	"deepseek": 128_000, "deepseek-v4": 1_000_000, "deepseek-flash": 1_000_000, "deepseek-coder": 16 * k, "deepseek-coder-v2": 128_000,
	"deepseek-v2": 128_000,

	"phi-3": 4 * k, "phi-4": 16 * k,
}

// MaxOutput returns how many tokens an answer of a model can have at most, by
// the longest well-known beginning of its name as in Window; 0 when none fits.
func MaxOutput(model string) int64 { return longest(outputs, model, 0) }

// outputs are the limits that the vendors publish.
var outputs = map[string]int64{
	"gpt-3.5": 4_096, "gpt-4": 8_192, "gpt-4-turbo": 4_096, "gpt-4o": 16_384,
	"gpt-4o-2024-05-13": 4_096, "gpt-4.1": 32_768, "gpt-5": 128_000, "gpt-5-chat": 16_384,
	"o1": 100_000, "o1-mini": 65_536, "o1-preview": 32_768, "o3": 100_000, "o4": 100_000,

	"claude-2": 4_096, "claude-instant": 4_096, "claude-3-opus": 4_096,
	"claude-3-sonnet": 4_096, "claude-3-haiku": 4_096, "claude-3-5": 8_192,
	"claude-3-7": 64_000, "claude-opus-4": 32_000, "claude-opus-4-5": 64_000,
	"claude-opus-4-6": 128_000, "claude-sonnet-4": 64_000, "claude-haiku-4": 64_000,

	"gemini-1.5": 8_192, "gemini-2.0": 8_192, "gemini-2.5": 65_536, "deepseek-chat": 8_192,
	"deepseek-v4": 384_000, "deepseek-flash": 384_000,
}
