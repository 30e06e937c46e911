package llm

import "testing"

func TestWindow(t *testing.T) {
	tests := []struct {
		model string
		want  int64
	}{
		{"gpt-5", 400_000},
		{"gpt-5.4-mini", 400_000},
		{"GPT-5", 400_000},
		{"openai/gpt-5-chat-latest", 128_000},
		{"gpt-4", 8_192},
		{"gpt-4-0613", 8_192},
		{"gpt-4-turbo-2024-04-09", 128_000},
		{"gpt-4o-mini", 128_000},
		{"gpt-4.1-nano", 1_047_576},
		{"gpt-3.5-turbo", 16_385},
		{"o1", 200_000},
		{"o1-mini-2024", 128_000},
		{"o3-mini", 200_000},
		{"o4-mini", 200_000},
		{" claude-sonnet-4-5 ", 200_000},
		{"us.anthropic.claude-3-5-haiku-20241022-v1:0", 200_000},
		{"claude-instant-1.2", 100_000},
		{"models/gemini-2.5-pro", 1_048_576},
		{"gemini-1.5-pro-002", 2_097_152},
		{"meta-llama/Llama-3.1-8B-Instruct", 131_072},
		{"meta-llama/Meta-Llama-3-8B-Instruct", 8_192},
		{"llama3.2:3b", 131_072},
		{"llama3", 8_192},
		{"accounts/fireworks/models/llama-v3p1-70b-instruct", 131_072},
		{"Qwen/Qwen2.5-7B-Instruct", 32_768},
		{"qwen3-coder-plus", 262_144},
		{"mistral-large-latest", 131_072},
		{"mistral:7b", 32_768},
		{"mixtral-8x22b-instruct", 65_536},
		{"deepseek-chat", 128_000},
		{"deepseek-flash", 1_000_000},
		{"deepseek/deepseek-r1:free", 128_000},
		{"deepseek-coder:6.7b", 16_384},
		{"demo", DefaultWindow},
		{"", DefaultWindow},
		{"/", DefaultWindow},
		{"openai/", DefaultWindow},
		{"my-gpt-4", DefaultWindow}, // a beginning, not a part
	}
	for _, tt := range tests {
		if got := Window(tt.model); got != tt.want {
			t.Errorf("Window(%q) = %d, want %d", tt.model, got, tt.want)
		}
	}
}

// No entry hides another, and none is nonsense.
func TestWindowTable(t *testing.T) {
	for name, tokens := range windows {
		if tokens < 4096 || name == "" {
			t.Errorf("entry %q: %d", name, tokens)
		}
		if got := Window(name); got != tokens {
			t.Errorf("Window(%q) = %d, want %d", name, got, tokens)
		}
	}
}
