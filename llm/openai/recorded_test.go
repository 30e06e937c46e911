package openai

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/claybot/claybot/llm"
)

// A recorded answer is one of a provider, as its pages show it; the last one of a shape is repeated.
type recorded struct {
	status int
	header string // one header with its value
	body   string
}

// A playing transport answers with recorded answers, and counts those that are paid for: they came with status 200, and the
// provider does not call them an error, or counts tokens all the same.
type playing struct {
	all            []recorded
	requests, paid int
}

func (p *playing) RoundTrip(*http.Request) (*http.Response, error) {
	a := p.all[min(p.requests, len(p.all)-1)]
	p.requests++
	kind := "application/json"
	if a.status == http.StatusOK && strings.HasPrefix(strings.TrimLeft(a.body, ": \n"), "data:") || strings.HasPrefix(a.body, ":") {
		kind = "text/event-stream"
	}
	if a.status == http.StatusOK && (!strings.Contains(a.body, `"error":{`) || strings.Contains(a.body, `"usage":{`)) {
		p.paid++
	}
	h := http.Header{"Content-Type": {kind}}
	if name, value, ok := strings.Cut(a.header, ": "); ok {
		h.Set(name, value)
	}
	return &http.Response{StatusCode: a.status, Header: h, Body: io.NopCloser(strings.NewReader(a.body))}, nil
}

// answered is a stream of events with an end mark.
func answered(all ...string) recorded {
	return recorded{200, "", "data: " + strings.Join(all, "\n\ndata: ") + "\n\ndata: [DONE]\n\n"}
}

// piece is an event with a delta, and finished one with the reason of the end.
func piece(d string) string {
	return `{"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` + d + `,"finish_reason":null}]}`
}

func finished(reason string) string {
	return `{"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}

func refused(status int, body string) recorded { return recorded{status, "", body} }

const callOf = `{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"look","arguments":"{}"}}]}`

// A shape is how a provider answers, as its page shows it. want is the text and the calls, or ! and the class of the error.
type shape struct {
	provider, name, source string
	answers                []recorded
	want                   string
	requests               int
}

// shapes are those of the providers that have names. They are written after what the named pages and threads say; not all of these
// were read again, and no shape was recorded from a live server.
var shapes = []shape{
	{"openai", "usage behind the end", "platform.openai.com/docs/api-reference/chat-streaming", []recorded{answered(piece(`{"role":"assistant","content":"","refusal":null}`), piece(`{"content":"hi"}`), finished("stop"), `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1}}`)}, "hi", 1},
	{"openai", "obfuscation", "platform.openai.com/docs/api-reference/chat-streaming", []recorded{answered(`{"service_tier":"default","system_fingerprint":"fp","obfuscation":"aG","choices":[{"index":0,"delta":{"content":"hi"},"logprobs":null,"finish_reason":null}]}`, finished("stop"))}, "hi", 1},
	{"openai", "two calls", "platform.openai.com/docs/guides/function-calling", []recorded{answered(piece(callOf), piece(`{"tool_calls":[{"index":1,"id":"call_2","type":"function","function":{"name":"read","arguments":""}}]}`), piece(`{"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]}`), finished("tool_calls"))}, " look read", 1},
	{"openai", "refusal", "platform.openai.com/docs/guides/structured-outputs", []recorded{answered(piece(`{"refusal":"I cannot"}`), finished("stop"))}, "I cannot", 1},
	{"openai", "filtered", "platform.openai.com/docs/api-reference/chat/object", []recorded{answered(piece(`{"content":"ha"}`), finished("content_filter"))}, "ha", 1},
	{"openai", "wrong key", "platform.openai.com/docs/guides/error-codes", []recorded{refused(401, `{"error":{"message":"Incorrect API key provided.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`)}, "!permanent", 1},
	{"openai", "a rate for an hour", "platform.openai.com/docs/guides/rate-limits", []recorded{{429, "Retry-After: 3600", `{"error":{"message":"Rate limit reached for gpt-5","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`}}, "!rate", 1},
	{"openai", "no quota", "platform.openai.com/docs/guides/error-codes", []recorded{refused(429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`)}, "!permanent", 1},
	{"openai", "too long", "platform.openai.com/docs/guides/error-codes", []recorded{refused(400, `{"error":{"message":"This model's maximum context length is 400000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`)}, "!context", 1},
	{"openai", "schema that it does not take", "platform.openai.com/docs/guides/structured-outputs", []recorded{refused(400, `{"error":{"message":"Invalid schema for response_format 'answer'","type":"invalid_request_error","param":"response_format","code":null}}`), answered(piece(`{"content":"hi"}`), finished("stop"))}, "hi", 2},
	{"openai", "unknown model", "platform.openai.com/docs/guides/error-codes", []recorded{refused(404, `{"error":{"message":"The model does not exist","type":"invalid_request_error","param":null,"code":"model_not_found"}}`)}, "!permanent", 1},

	{"gemini", "signature with a call", "ai.google.dev/gemini-api/docs/thought-signatures", []recorded{answered(piece(`{"role":"assistant","tool_calls":[{"index":0,"id":"function-call-1","type":"function","extra_content":{"google":{"thought_signature":"c2ln"}},"function":{"name":"look","arguments":"{}"}}]}`), finished("tool_calls"))}, " look", 1},
	{"gemini", "signature with a text", "ai.google.dev/gemini-api/docs/thought-signatures", []recorded{answered(piece(`{"role":"assistant","content":"hi","extra_content":{"google":{"thought_signature":"c2ln"}}}`), finished("stop"))}, "hi", 1},
	{"gemini", "errors in a list", "ai.google.dev/gemini-api/docs/troubleshooting", []recorded{refused(400, `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`)}, "!permanent", 1},
	{"gemini", "too long", "ai.google.dev/gemini-api/docs/troubleshooting", []recorded{refused(400, `[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]`)}, "!context", 1},
	{"gemini", "overloaded", "ai.google.dev/gemini-api/docs/troubleshooting", []recorded{refused(503, `[{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}]`), answered(piece(`{"content":"hi"}`), finished("stop"))}, "hi", 2},
	{"gemini", "rate", "ai.google.dev/gemini-api/docs/rate-limits", []recorded{refused(429, `[{"error":{"code":429,"message":"Resource has been exhausted","status":"RESOURCE_EXHAUSTED"}}]`), answered(piece(`{"content":"hi"}`), finished("stop"))}, "hi", 2},
	{"gemini", "rate with a time", "github.com/googleapis/python-genai/issues/1875", []recorded{refused(429, `[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details. Please retry in 53.016342224s.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"53s"}]}}]`), answered(piece(`{"content":"hi"}`), finished("stop"))}, "hi", 2},
	{"gemini", "a call without a signature", "ai.google.dev/gemini-api/docs/thought-signatures", []recorded{refused(400, `[{"error":{"code":400,"message":"Function call is missing a thought_signature in functionCall parts.","status":"INVALID_ARGUMENT"}}]`), answered(piece(`{"content":"hi"}`), finished("stop"))}, "hi", 2},

	{"mistral", "thinking as parts", "docs.mistral.ai/capabilities/reasoning", []recorded{answered(piece(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}],"closed":true}]}`), piece(`{"content":[{"type":"text","text":"hi"}]}`), finished("stop"))}, "hi", 1},
	{"mistral", "references", "docs.mistral.ai/capabilities/citations", []recorded{answered(piece(`{"content":[{"type":"text","text":"hi"},{"type":"reference","reference_ids":[1,2]}]}`), finished("stop"))}, "hi", 1},
	{"mistral", "whole call in one piece", "docs.mistral.ai/capabilities/function_calling", []recorded{answered(`{"choices":[{"index":0,"delta":{"content":"","tool_calls":[{"id":"D681PevKs","function":{"name":"look","arguments":"{}"},"index":0}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":9,"total_tokens":10,"completion_tokens":1}}`)}, " look", 1},
	{"mistral", "as long as the model can", "docs.mistral.ai/api, finish_reason", []recorded{answered(piece(`{"content":"half"}`), finished("model_length"))}, "half (length)", 1},
	{"mistral", "unknown field", "github.com/mistralai/client-python, HTTPValidationError", []recorded{refused(422, `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","seed"],"msg":"Extra inputs are not permitted","input":1}]},"type":"invalid_request_error","param":null,"code":null}`)}, "!permanent", 1},
	{"mistral", "order", "github.com/BerriAI/litellm/issues/17761", []recorded{refused(400, `{"object":"error","message":"Unexpected role 'user' after role 'tool'","type":"invalid_request_message_order","param":null,"code":"3230"}`)}, "!permanent", 1},
	{"mistral", "wrong key", "docs.mistral.ai/api", []recorded{refused(401, `{"detail":"Unauthorized"}`)}, "!permanent", 1},
	{"mistral", "rate", "docs.mistral.ai/deployment/laplateforme/tier", []recorded{refused(429, `{"object":"error","message":"Requests rate limit exceeded","type":"rate_limited","param":null,"code":"1300"}`), answered(piece(`{"content":"hi"}`), finished("stop"))}, "hi", 2},
	{"mistral", "too long", "docs.mistral.ai/api", []recorded{refused(400, `{"object":"error","message":"Prompt contains 140000 tokens and 0 draft tokens, too large for model with 131072 maximum context length","type":"invalid_request_prompt","param":null,"code":"3051"}`)}, "!context", 1},

	{"deepseek", "reasoning", "api-docs.deepseek.com/guides/thinking_mode", []recorded{answered(piece(`{"content":null,"reasoning_content":"hm"}`), piece(`{"content":"hi","reasoning_content":null}`), finished("stop"))}, "hi", 1},
	{"deepseek", "keep-alive", "api-docs.deepseek.com/quick_start/rate_limit", []recorded{{200, "", ": keep-alive\n\n: keep-alive\n\n" + answered(piece(`{"content":"hi"}`), finished("stop")).body}}, "hi", 1},
	{"deepseek", "empty JSON", "api-docs.deepseek.com/guides/json_mode", []recorded{answered(piece(`{"content":""}`), finished("stop"))}, "", 1},
	{"deepseek", "no money", "api-docs.deepseek.com/quick_start/error_codes", []recorded{refused(402, `{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}`)}, "!permanent", 1},
	{"deepseek", "interrupted", "api-docs.deepseek.com/api/create-chat-completion, finish_reason", []recorded{answered(piece(`{"content":"ha"}`), finished("insufficient_system_resource")), answered(piece(`{"content":"hi"}`), finished("stop"))}, "hi", 2},
	{"deepseek", "reasoning that is missing", "api-docs.deepseek.com/guides/thinking_mode", []recorded{refused(400, "{\"error\":{\"message\":\"The `reasoning_content` in the thinking mode must be passed back to the API.\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":\"invalid_request_error\"}}"), answered(piece(`{"content":"hi"}`), finished("stop"))}, "hi", 2},
	{"deepseek", "overloaded", "api-docs.deepseek.com/quick_start/error_codes", []recorded{refused(503, `{"error":{"message":"Server overloaded"}}`), answered(piece(`{"content":"hi"}`), finished("stop"))}, "hi", 2},

	{"kimi", "usage in the choice", "platform.kimi.ai/docs/guide/utilize-the-streaming-output-feature-of-kimi-api", []recorded{answered(piece(`{"reasoning_content":"hm"}`), piece(`{"content":"hi"}`), `{"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":19,"completion_tokens":13,"total_tokens":32}}]}`)}, "hi", 1},
	{"kimi", "overloaded", "platform.kimi.ai/docs/api/errors", []recorded{refused(429, `{"error":{"type":"engine_overloaded_error","message":"The engine is currently overloaded, please try again later"}}`), answered(piece(`{"content":"hi"}`), finished("stop"))}, "hi", 2},
	{"kimi", "no money", "platform.kimi.ai/docs/api/errors", []recorded{refused(429, `{"error":{"type":"exceeded_current_quota_error","message":"Your account is not active, current state: suspended due to insufficient balance"}}`)}, "!permanent", 1},
	{"kimi", "wrong key", "platform.kimi.ai/docs/api/errors", []recorded{refused(401, `{"error":{"type":"invalid_authentication_error","message":"Invalid Authentication"}}`)}, "!permanent", 1},
	{"kimi", "filtered", "platform.kimi.ai/docs/api/errors", []recorded{refused(400, `{"error":{"type":"content_filter","message":"The request was rejected because it was considered high risk"}}`)}, "!permanent", 1},
	{"kimi", "too long", "platform.kimi.ai/docs/api/errors", []recorded{refused(400, `{"error":{"type":"invalid_request_error","message":"Invalid request: Your request exceeded model token limit: 262144"}}`)}, "!context", 1},

	{"openrouter", "comments", "openrouter.ai/docs/api/reference/streaming", []recorded{{200, "", ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n" + answered(piece(`{"role":"assistant","content":"hi"}`), finished("stop")).body}}, "hi", 1},
	{"openrouter", "reasoning details", "openrouter.ai/docs/guides/best-practices/reasoning-tokens", []recorded{answered(piece(`{"content":"","reasoning":"hm","reasoning_details":[{"type":"reasoning.encrypted","data":"ZW5j","id":"rs_1","format":"openai-responses-v1","index":0}]}`), piece(callOf), finished("tool_calls"))}, " look", 1},
	{"openrouter", "error in the stream", "openrouter.ai/docs/api/reference/errors-and-debugging", []recorded{answered(piece(`{"content":"ha"}`), `{"id":"x","object":"chat.completion.chunk","error":{"code":"server_error","message":"Provider disconnected"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`), answered(piece(`{"content":"hi"}`), finished("stop"))}, "hi", 2},
	{"openrouter", "no credits", "openrouter.ai/docs/api/reference/errors-and-debugging", []recorded{refused(402, `{"error":{"code":402,"message":"Insufficient credits. Add more using https://openrouter.ai/settings/credits"}}`)}, "!permanent", 1},
	{"openrouter", "moderated", "openrouter.ai/docs/api/reference/errors-and-debugging", []recorded{refused(403, `{"error":{"code":403,"message":"Input was flagged","metadata":{"reasons":["violence"],"flagged_input":"x","provider_name":"OpenAI"}}}`)}, "!permanent", 1},
	{"openrouter", "upstream", "openrouter.ai/docs/api/reference/errors-and-debugging", []recorded{refused(502, `{"error":{"code":502,"message":"Provider returned error","metadata":{"raw":"upstream","provider_name":"x"}}}`), answered(piece(`{"content":"hi"}`), finished("stop"))}, "hi", 2},
	{"openrouter", "no tools", "openrouter.ai/docs/guides/features/tool-calling", []recorded{refused(404, `{"error":{"message":"No endpoints found that support tool use.","code":404}}`)}, "!permanent", 1},
	{"openrouter", "error in JSON", "openrouter.ai/docs/api/reference/errors-and-debugging", []recorded{refused(200, `{"error":{"code":400,"message":"x is not a valid model ID"},"user_id":"u"}`)}, "!permanent", 1},
	{"openrouter", "free models of a day", "github.com/Gitlawb/openclaude/issues/936", []recorded{refused(429, `{"error":{"message":"Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day","code":429,"metadata":{"headers":{"X-RateLimit-Limit":"50","X-RateLimit-Remaining":"0","X-RateLimit-Reset":"1777420800000"}}},"user_id":"user_1"}`)}, "!rate", 1},

	{"azure", "filter results first", "learn.microsoft.com/azure/ai-foundry/openai/concepts/content-filter", []recorded{answered(`{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}}}]}`, `{"choices":[{"content_filter_results":{"hate":{"filtered":false}},"delta":{"content":"hi"},"finish_reason":null,"index":0}],"model":"gpt-5"}`, finished("stop"))}, "hi", 1},
	{"azure", "filtered", "learn.microsoft.com/azure/ai-foundry/openai/concepts/content-filter", []recorded{refused(400, `{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}`)}, "!permanent", 1},
	{"azure", "wrong key", "learn.microsoft.com/azure/ai-foundry/openai/reference", []recorded{refused(401, `{"error":{"code":"401","message":"Access denied due to invalid subscription key or wrong API endpoint."}}`)}, "!permanent", 1},
	{"azure", "rate", "learn.microsoft.com/azure/ai-foundry/openai/how-to/quota", []recorded{{429, "Retry-After: 26", `{"error":{"code":"429","message":"Requests to the ChatCompletions_Create Operation have exceeded token rate limit. Please retry after 26 seconds."}}`}, answered(piece(`{"content":"hi"}`), finished("stop"))}, "hi", 2},
	{"azure", "no deployment", "learn.microsoft.com/azure/ai-foundry/openai/reference", []recorded{refused(404, `{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`)}, "!permanent", 1},

	{"ollama", "reasoning", "docs.ollama.com/api/openai-compatibility", []recorded{answered(piece(`{"role":"assistant","content":"","reasoning":"hm"}`), piece(`{"role":"assistant","content":"hi"}`), finished("stop"))}, "hi", 1},
	{"ollama", "think tags", "docs.ollama.com/capabilities/thinking", []recorded{answered(piece(`{"role":"assistant","content":"<think>hm</think>\n\nhi"}`), finished("stop"))}, "hi", 1},
	{"ollama", "not pulled", "docs.ollama.com/api/errors", []recorded{refused(404, `{"error":{"message":"model \"x\" not found, try pulling it first","type":"not_found_error","param":null,"code":null}}`)}, "!permanent", 1},
	{"ollama", "no tools", "docs.ollama.com/capabilities/tool-calling", []recorded{refused(400, `{"error":{"message":"registry.ollama.ai/library/x does not support tools","type":"invalid_request_error","param":null,"code":null}}`)}, "!permanent", 1},
	{"ollama", "stopped", "docs.ollama.com/api/errors", []recorded{refused(500, `{"error":{"message":"model runner has unexpectedly stopped","type":"api_error","param":null,"code":null}}`), answered(piece(`{"content":"hi"}`), finished("stop"))}, "hi", 2},

	{"vllm", "reasoning", "docs.vllm.ai/en/latest/features/reasoning_outputs", []recorded{answered(`{"choices":[{"index":0,"delta":{"reasoning":"hm","reasoning_content":"hm"},"logprobs":null,"finish_reason":null,"token_ids":null}],"prompt_token_ids":null}`, `{"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop","stop_reason":null}]}`)}, "hi", 1},
	{"vllm", "too long", "docs.vllm.ai/en/latest/serving/openai_compatible_server", []recorded{refused(400, `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.","type":"BadRequestError","param":null,"code":400}`)}, "!context", 1},
	{"vllm", "no parser", "docs.vllm.ai/en/latest/features/tool_calling", []recorded{refused(400, `{"error":{"message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","param":null,"code":400}}`)}, "!permanent", 1},
	{"vllm", "unknown model", "docs.vllm.ai/en/latest/serving/openai_compatible_server", []recorded{refused(404, `{"error":{"message":"The model x does not exist.","type":"NotFoundError","param":"model","code":404}}`)}, "!permanent", 1},

	{"llama.cpp", "timings", "github.com/ggml-org/llama.cpp, tools/server/README.md", []recorded{answered(piece(`{"role":"assistant","content":null}`), piece(`{"content":"hi"}`), finished("stop"), `{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1},"timings":{"predicted_ms":1.5}}`)}, "hi", 1},
	{"llama.cpp", "loading", "github.com/ggml-org/llama.cpp, tools/server/README.md", []recorded{refused(503, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`), answered(piece(`{"content":"hi"}`), finished("stop"))}, "hi", 2},
	{"llama.cpp", "too long", "github.com/ggml-org/llama.cpp, tools/server/server.cpp", []recorded{refused(400, `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}`)}, "!context", 1},
	{"llama.cpp", "unreadable each time", "a server that answers so each time", []recorded{answered(`{"choices":[{"index":0,"delta":{"content":{"text":"hi"}}}]}`)}, "!transient", 2},
}

// The table of docs/models.md says how many shapes of each provider were tried.
func TestTableOfShapes(t *testing.T) {
	doc, err := os.ReadFile("../../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	count := make(map[string]int)
	for _, s := range shapes {
		count[s.provider]++
	}
	for name, n := range count {
		if row := fmt.Sprintf("\n| `%s` | %d |", name, n); !strings.Contains(string(doc), row) {
			t.Errorf("docs/models.md has no row %q", row)
		}
	}
}

// Each shape of a provider is understood at once, or refused once; none is paid for more than once, and one that cannot be
// used no more than twice.
func TestRecordedShapes(t *testing.T) {
	if len(shapes) < 60 {
		t.Errorf("%d shapes", len(shapes))
	}
	for _, tt := range shapes {
		t.Run(tt.provider+"/"+tt.name, func(t *testing.T) {
			if tt.source == "" {
				t.Error("no source")
			}
			synctest.Test(t, func(t *testing.T) {
				rt := &playing{all: tt.answers}
				base := ""
				if tt.provider == "azure" {
					base = "https://x.openai.azure.com"
				}
				resp, err := llm.Retried(named(t, tt.provider, base, "m", rt), llm.Retries{}).Chat(t.Context(), toolTurn())
				got := resp.Text
				for _, c := range resp.Calls {
					got += " " + c.Name
				}
				if resp.Stop == llm.StopLength {
					got += " (length)"
				}
				if e, failed := errors.AsType[*llm.Error](err); failed {
					got = "!" + string(e.Class)
				}
				most := 1
				if tt.want == "!transient" || tt.name == "interrupted" {
					most = 2
				}
				if got != tt.want || rt.requests != tt.requests || rt.paid > most {
					t.Errorf("%q after %d requests, of which %d were paid for, want %q after %d; %v", got, rt.requests, rt.paid, tt.want, tt.requests, err)
				}
			})
		})
	}
}
