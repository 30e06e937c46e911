package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"sync"

	sdk "github.com/sashabaranov/go-openai"

	"github.com/claybot/claybot/llm"
)

// SystemPromptFallback is the id of the message that repeats the system prompt.
const SystemPromptFallback = "system_prompt_fallback"

const fallbackPrefix = "[System instructions]\n"

// Optional fields of a request. A server that refuses one gets requests
// without it from then on.
const (
	fieldUsage  uint32 = 1 << iota // stream_options
	fieldUser                      // user, and prompt_cache_key
	fieldImages                    // images among the content
	fieldState                     // what the server wants back with its answers
	// Answers without reasoning_content, and calls without a signature: a server that refuses them gets
	// something in their place.
	fieldUnreasoned
	fieldUnsigned
	fieldFormat  // response_format
	fieldMarks   // cache_control
	fieldInclude // include, of the Responses API
	// Documents among the content.
	fieldDocuments
)

// nativeFiles makes OpenRouter pass documents to the model as they are. Otherwise it would read them with a service of another
// company, for a price by the page, where the model cannot: openrouter.ai/docs/guides/overview/multimodal/pdfs.
var nativeFiles = json.RawMessage(`[{"id":"file-parser","pdf":{"engine":"native"}}]`)

var noParameters = json.RawMessage(`{"type":"object","properties":{}}`)

// The wire form of a request. The SDK's own types marshal each message twice,
// which is a fifth of all the work of a busy daemon.
type (
	wireRequest struct {
		Model               string             `json:"model"`
		Stream              bool               `json:"stream"`
		StreamOptions       *sdk.StreamOptions `json:"stream_options,omitempty"`
		User                string             `json:"user,omitempty"`
		CacheKey            string             `json:"prompt_cache_key,omitempty"`
		MaxTokens           int64              `json:"max_tokens,omitempty"`
		MaxCompletionTokens int64              `json:"max_completion_tokens,omitempty"`
		Format              *wireFormat        `json:"response_format,omitempty"`
		Plugins             json.RawMessage    `json:"plugins,omitempty"`
	}
	wireFormat struct {
		Type   string      `json:"type"` // json_object or json_schema
		Schema *wireSchema `json:"json_schema,omitempty"`
	}
	wireSchema struct {
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"schema"`
		Strict bool            `json:"strict,omitempty"`
	}
	wireMessage struct {
		Role       llm.Role   `json:"role"`
		Content    any        `json:"content,omitempty"` // a string, or []wirePart
		ToolCalls  []wireCall `json:"tool_calls,omitempty"`
		ToolCallID string     `json:"tool_call_id,omitempty"`

		Reasoning *string           `json:"reasoning_content,omitempty"`
		Details   []json.RawMessage `json:"reasoning_details,omitempty"`
		Extra     json.RawMessage   `json:"extra_content,omitempty"`
	}
	wireCall struct {
		ID       string           `json:"id"`
		Type     sdk.ToolType     `json:"type"`
		Function sdk.FunctionCall `json:"function"`
		Extra    json.RawMessage  `json:"extra_content,omitempty"`
	}
)

func (a *api) Encode(r llm.Request, without uint32) ([]byte, error) {
	if without&fieldState != 0 {
		a.refused.add(r.Messages, a.of)
	}
	if a.quirks.Responses {
		return a.encodeResponses(r, without)
	}
	req := wireRequest{Model: a.cfg.Model, Stream: true}
	if without&fieldUsage == 0 && !a.quirks.NoUsage {
		req.StreamOptions = &sdk.StreamOptions{IncludeUsage: true}
	}
	if without&fieldUser == 0 && !a.quirks.NoUser {
		req.User = string(r.Agent)
	}
	if without&fieldUser == 0 && a.quirks.CacheKey {
		req.CacheKey = string(r.Agent)
	}
	if a.quirks.Native && without&fieldDocuments == 0 {
		req.Plugins = nativeFiles
	}
	if f := r.Format; f != nil && without&fieldFormat == 0 {
		req.Format = &wireFormat{Type: "json_object"}
		if len(f.Schema) > 0 && !a.quirks.NoSchema {
			req.Format = &wireFormat{Type: "json_schema", Schema: &wireSchema{cmp.Or(f.Name, "answer"), f.Schema, f.Strict}}
		}
	}
	if limit := cmp.Or(max(r.MaxTokens, 0), a.cfg.MaxTokens); limit > 0 {
		// OpenAI's newer models refuse the old name, most other servers do
		// not know the new one.
		if a.quirks.Completion {
			req.MaxCompletionTokens = limit
		} else {
			req.MaxTokens = limit
		}
	}
	body, err := encoded(req)
	if err != nil {
		return nil, err
	}
	body = slices.Grow(body, roughly(r))
	if body, err = a.appendChat(append(body[:len(body)-1], `,"messages":[`...), r, without); err != nil {
		return nil, err
	}
	body = append(body, ']')
	if len(r.Tools) > 0 {
		tools, err := a.tools.encode(r.Tools, false)
		if err != nil {
			return nil, err
		}
		body = append(append(body, `,"tools":`...), tools...)
	}
	return append(body, '}'), nil
}

// roughly is about how many bytes the chat and the tools of a request take.
func roughly(r llm.Request) int {
	n := 1<<10 + len(r.System)*9/8
	for i := range r.Messages {
		n += 64 + len(r.Messages[i].Content)*9/8 + r.Messages[i].State.Size()
	}
	for _, t := range r.Tools {
		n += 64 + t.Bytes()*9/8
	}
	return n
}

// encoded is the JSON of v, in which text stays as it is where it can: markup in messages
// would be six bytes for each angle.
func encoded(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// toolsCache keeps the JSON of the descriptions of tools, which are the largest
// part of most requests and the same in all of an agent's. The zero value is
// ready.
type toolsCache struct {
	mu    sync.Mutex
	lists []cachedTools
}

type cachedTools struct {
	tools []llm.Tool
	json  []byte
}

// maxToolLists is how many lists are kept; a daemon has one for each profile and
// kind of agent.
const maxToolLists = 16

// encode returns the JSON of tools; flat, as the Responses API has them. A cache belongs to one API.
func (t *toolsCache) encode(tools []llm.Tool, flat bool) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.lists {
		if slices.EqualFunc(l.tools, tools, sameTool) {
			return l.json, nil
		}
	}
	wire := make([]any, len(tools))
	for i, x := range tools {
		schema := noParameters
		if len(x.Parameters) > 0 {
			schema = x.Parameters
		}
		wire[i] = sdk.Tool{Type: sdk.ToolTypeFunction, Function: &sdk.FunctionDefinition{Name: x.Name, Description: x.Description, Parameters: schema}}
		if flat {
			wire[i] = flatTool{"function", x.Name, x.Description, schema, false}
		}
	}
	b, err := encoded(wire)
	if err != nil {
		return nil, err
	}
	if len(t.lists) == maxToolLists {
		t.lists = slices.Delete(t.lists, 0, 1)
	}
	t.lists = append(t.lists, cachedTools{slices.Clone(tools), b})
	return b, nil
}

func sameTool(a, b llm.Tool) bool {
	return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Parameters, b.Parameters)
}
