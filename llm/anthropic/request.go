package anthropic

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
)

// Optional fields of a request. A server that refuses one gets requests
// without it from then on.
const (
	fieldUser   uint32 = 1 << iota // metadata.user_id
	fieldCache                     // cache_control
	fieldImages                    // images among the content
	fieldState                     // the reasoning of answers
	// Calls without the reasoning before them: a server that refuses them is asked not to reason.
	fieldUnreasoned
	fieldFormat // output_config
	// Documents among the content.
	fieldDocuments
)

var noParameters = json.RawMessage(`{"type":"object","properties":{}}`)

// What stands where the API takes no blank text.
const (
	noText   = "(no text)"
	noOutput = "(no output)"
)

// The wire form of a request.
type (
	wireRequest struct {
		Model      string        `json:"model"`
		MaxTokens  int64         `json:"max_tokens"`
		Stream     bool          `json:"stream"`
		System     []wireBlock   `json:"system,omitempty"`
		Messages   []wireMessage `json:"messages"`
		Tools      []wireTool    `json:"tools,omitempty"`
		ToolChoice *wireChoice   `json:"tool_choice,omitempty"`
		Metadata   *wireMetadata `json:"metadata,omitempty"`
		Thinking   *wireChoice   `json:"thinking,omitempty"`
		Output     *wireOutput   `json:"output_config,omitempty"`
	}
	wireOutput struct {
		Format wireFormat `json:"format"`
	}
	wireFormat struct {
		Type   string          `json:"type"` // json_schema
		Schema json.RawMessage `json:"schema"`
	}
	wireMetadata struct {
		UserID string `json:"user_id"`
	}
	wireChoice struct {
		Type string `json:"type"`
	}
	wireMessage struct {
		Role    llm.Role    `json:"role"`
		Content []wireBlock `json:"content"`
	}
	wireBlock struct {
		Type      string          `json:"type"` // text, image, document, tool_use or tool_result
		Text      string          `json:"text,omitempty"`
		Source    *wireSource     `json:"source,omitempty"`
		Title     string          `json:"title,omitempty"` // of a document
		ID        string          `json:"id,omitempty"`
		Name      string          `json:"name,omitempty"`
		Input     json.RawMessage `json:"input,omitempty"`
		ToolUseID string          `json:"tool_use_id,omitempty"`
		Content   []wireBlock     `json:"content,omitempty"`
		Cache     *wireCache      `json:"cache_control,omitempty"`

		Thinking  *string `json:"thinking,omitempty"`
		Signature string  `json:"signature,omitempty"`
		Data      string  `json:"data,omitempty"`
	}
	wireSource struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      []byte `json:"data"` // base64 in JSON
	}
	wireTool struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Schema      json.RawMessage `json:"input_schema"`
		Cache       *wireCache      `json:"cache_control,omitempty"`
	}
	wireCache struct {
		Type string `json:"type"`
	}
)

func (a *api) Encode(r llm.Request, without uint32) ([]byte, error) {
	req := wireRequest{
		Model: a.cfg.Model, Stream: true,
		MaxTokens: a.bound(r),
		Messages:  a.chat(r.Messages, without),
		Tools:     tools(r.Tools),
	}
	if strings.TrimSpace(r.System) != "" {
		req.System = []wireBlock{{Type: "text", Text: r.System}}
	}
	if without&fieldUser == 0 && r.Agent != "" {
		req.Metadata = &wireMetadata{UserID: string(r.Agent)}
	}
	if len(req.Tools) == 0 {
		// Calls in the chat need tools that are described, which must not be
		// called any more.
		if req.Tools = described(r.Messages); len(req.Tools) > 0 {
			req.ToolChoice = &wireChoice{Type: "none"}
		}
	}
	if without&fieldUnreasoned != 0 {
		req.Thinking = &wireChoice{Type: "disabled"}
	}
	// The API takes schemas that name all that may be, as strict ones do: platform.claude.com/docs/en/build-with-claude/structured-outputs.
	// The prompt has all others.
	if f := r.Format; f != nil && f.Strict && len(f.Schema) > 0 && without&fieldFormat == 0 {
		req.Output = &wireOutput{wireFormat{"json_schema", f.Schema}}
	}
	if without&fieldCache == 0 {
		req.mark()
	}
	return json.Marshal(req)
}

func (a *api) bound(r llm.Request) int64 {
	limit := cmp.Or(max(r.MaxTokens, 0), max(a.cfg.MaxTokens, 0), DefaultMaxTokens)
	if most := llm.MaxOutput(a.cfg.Model); most > 0 {
		limit = min(limit, most)
	}
	return limit
}

// mark asks for the cache at the ends of what the next request will begin with:
// the tools, the system prompt, and the last two turns of the user, of which the
// older one is what the request before this one has written.
func (r *wireRequest) mark() {
	ephemeral := &wireCache{Type: "ephemeral"}
	if n := len(r.Tools); n > 0 {
		r.Tools[n-1].Cache = ephemeral
	}
	if n := len(r.System); n > 0 {
		r.System[n-1].Cache = ephemeral
	}
	for i, left := len(r.Messages)-1, 2; i >= 0 && left > 0; i-- {
		if m := r.Messages[i]; m.Role == llm.RoleUser {
			m.Content[len(m.Content)-1].Cache = ephemeral
			left--
		}
	}
}

// chat returns the messages in turns: what follows each other with one role is
// one message, results are the user's and stand before other content.
func (a *api) chat(messages []llm.Message, without uint32) []wireMessage {
	out := make([]wireMessage, 0, len(messages))
	for _, m := range messages {
		role, content := m.Role, a.blocks(&m, without)
		if role == llm.RoleTool {
			role = llm.RoleUser
		}
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content = append(out[n-1].Content, content...)
			continue
		}
		out = append(out, wireMessage{Role: role, Content: content})
	}
	return out
}

func (a *api) blocks(m *llm.Message, without uint32) []wireBlock {
	text, out := m.Content, files(m)
	blank := strings.TrimSpace(text) == ""
	switch {
	case m.Role == llm.RoleTool:
		if blank {
			text = noOutput
		}
		return []wireBlock{{Type: "tool_result", ToolUseID: callID(m.CallID), Content: append([]wireBlock{{Type: "text", Text: text}}, out...)}}
	case !blank:
		out = append(out, wireBlock{Type: "text", Text: text})
	case len(out)+len(m.Calls) == 0:
		out = append(out, wireBlock{Type: "text", Text: noText})
	}
	var calls []wireBlock
	for _, call := range m.Calls {
		calls = append(calls, wireBlock{Type: "tool_use", ID: callID(call.ID), Name: call.Name, Input: input(call)})
	}
	if without&fieldState == 0 && a.own(m) {
		return restored(m.State, out, calls)
	}
	return append(out, calls...)
}

// files are the documents and pictures of a message.
func files(m *llm.Message) (out []wireBlock) {
	for j := range m.Documents {
		d := &m.Documents[j]
		out = append(out, wireBlock{Type: "document", Title: d.FileName(), Source: &wireSource{Type: "base64", MediaType: "application/pdf", Data: d.Data}})
	}
	for _, i := range m.Images {
		out = append(out, wireBlock{Type: "image", Source: &wireSource{Type: "base64", MediaType: i.MIMEType, Data: i.Data}})
	}
	return out
}

// input is the arguments of a call as an object.
func input(call claybot.ToolCall) json.RawMessage {
	args := strings.TrimSpace(call.Args)
	switch {
	case args == "":
		return json.RawMessage("{}")
	case args[0] == '{' && json.Valid([]byte(args)):
		return json.RawMessage(args)
	}
	b, _ := json.Marshal(map[string]string{"invalid_arguments": args}) // strings always marshal
	return b
}

// callID is an id as this API accepts it: ids of other providers have other
// characters, too.
func callID(id string) string {
	for _, c := range []byte(id) {
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			h := fnv.New64a()
			_, _ = h.Write([]byte(id)) // a hash takes everything
			return fmt.Sprintf("call_%016x", h.Sum64())
		}
	}
	return id
}

func tools(in []llm.Tool) []wireTool {
	out := make([]wireTool, 0, len(in))
	for _, t := range in {
		schema := noParameters
		if len(t.Parameters) > 0 {
			schema = t.Parameters
		}
		out = append(out, wireTool{Name: t.Name, Description: t.Description, Schema: schema})
	}
	return out
}

func described(messages []llm.Message) []wireTool {
	var out []wireTool
	seen := map[string]bool{}
	for _, m := range messages {
		for _, call := range m.Calls {
			if !seen[call.Name] {
				seen[call.Name] = true
				out = append(out, wireTool{Name: call.Name, Schema: noParameters})
			}
		}
	}
	return out
}
