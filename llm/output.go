package llm

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
}
