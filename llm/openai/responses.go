package openai

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/claybot/claybot/llm"
)

// The Responses API: platform.openai.com/docs/api-reference/responses and docs/guides/reasoning (encrypted reasoning items with
// store: false). The provider stores no conversation: each request has all of it.

const responsesPath = "/responses"

// The wire form of a request to /responses, and of the items of its input.
type (
	responsesRequest struct {
		Model        string         `json:"model"`
		Stream       bool           `json:"stream"`
		Store        bool           `json:"store"`
		Include      []string       `json:"include,omitempty"`
		CacheKey     string         `json:"prompt_cache_key,omitempty"`
		MaxTokens    int64          `json:"max_output_tokens,omitempty"`
		Instructions string         `json:"instructions,omitempty"`
		Text         *responsesText `json:"text,omitempty"`
	}
	responsesText struct {
		Format responsesFormat `json:"format"`
	}
	responsesFormat struct {
		Type   string          `json:"type"` // json_object or json_schema
		Name   string          `json:"name,omitempty"`
		Schema json.RawMessage `json:"schema,omitempty"`
		Strict bool            `json:"strict,omitempty"`
	}
	inputItem struct {
		Type      string   `json:"type,omitempty"` // empty: a message
		Role      llm.Role `json:"role,omitempty"`
		Content   any      `json:"content,omitempty"` // a string, or []inputPart
		Phase     string   `json:"phase,omitempty"`
		CallID    string   `json:"call_id,omitempty"`
		Name      string   `json:"name,omitempty"`
		Arguments *string  `json:"arguments,omitempty"`
		Output    any      `json:"output,omitempty"` // a string, or []inputPart
	}
	inputPart struct {
		Type     string `json:"type"` // input_text, input_image or input_file
		Text     string `json:"text,omitempty"`
		ImageURL string `json:"image_url,omitempty"`
		FileName string `json:"filename,omitempty"`
		FileData string `json:"file_data,omitempty"` // a data: URL
	}
	flatTool struct {
		Type        string          `json:"type"`
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
		Strict      bool            `json:"strict"`
	}
)

// encodeResponses returns the body of a request to /responses.
func (a *api) encodeResponses(r llm.Request, without uint32) ([]byte, error) {
	req := responsesRequest{Model: a.cfg.Model, Stream: true, Instructions: r.System, MaxTokens: cmp.Or(max(r.MaxTokens, 0), a.cfg.MaxTokens)}
	if without&fieldInclude == 0 {
		req.Include = []string{"reasoning.encrypted_content"}
	}
	if without&fieldUser == 0 {
		req.CacheKey = string(r.Agent)
	}
	if f := r.Format; f != nil && without&fieldFormat == 0 {
		req.Text = &responsesText{responsesFormat{Type: "json_object"}}
		if len(f.Schema) > 0 {
			req.Text.Format = responsesFormat{"json_schema", cmp.Or(f.Name, "answer"), f.Schema, f.Strict}
		}
	}
	body, err := encoded(req)
	if err != nil {
		return nil, err
	}
	body = append(slices.Grow(body, roughly(r))[:len(body)-1], `,"input":[`...)
	first := len(body)
	for i := range r.Messages {
		m := &r.Messages[i]
		if m.ID == SystemPromptFallback {
			continue
		}
		items, err := m.Encoded("responses "+a.form(m, without), func() ([]byte, error) { return a.items(m, without) })
		if err != nil {
			return nil, err
		}
		if len(body) > first && len(items) > 0 {
			body = append(body, ',')
		}
		body = append(body, items...)
	}
	body = append(body, ']')
	if len(r.Tools) > 0 {
		tools, err := a.tools.encode(r.Tools, true)
		if err != nil {
			return nil, err
		}
		body = append(append(body, `,"tools":`...), tools...)
	}
	return append(body, '}'), nil
}

// items are what a message is in this API, with commas between them.
func (a *api) items(m *llm.Message, without uint32) ([]byte, error) {
	text, files := m.Content, parts(m)
	var all []any
	switch m.Role {
	case llm.RoleTool:
		all = append(all, inputItem{Type: "function_call_output", CallID: m.CallID, Output: inputContent(text, files)})
	case llm.RoleAssistant:
		var said, calls []any
		if text != "" || len(m.Calls) == 0 {
			said = append(said, inputItem{Role: m.Role, Content: text})
		}
		for _, c := range m.Calls {
			calls = append(calls, inputItem{Type: "function_call", CallID: c.ID, Name: c.Name, Arguments: &c.Args})
		}
		all = append(said, calls...)
		if without&fieldState == 0 && a.own(m) {
			all = replayed(m, said, calls)
		}
	default:
		all = append(all, inputItem{Role: m.Role, Content: inputContent(text, files)})
	}
	var out []byte
	for i, item := range all {
		b, err := encoded(item)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, b...)
	}
	return out, nil
}

func inputContent(text string, files []wirePart) any {
	if len(files) == 0 {
		return text
	}
	var all []inputPart
	if text != "" {
		all = append(all, inputPart{Type: "input_text", Text: text})
	}
	for _, p := range files {
		if p.File != nil {
			all = append(all, inputPart{Type: "input_file", FileName: p.File.Name, FileData: p.File.Data})
		} else {
			all = append(all, inputPart{Type: "input_image", ImageURL: p.ImageURL.URL})
		}
	}
	return all
}

// An outPiece is an item of an answer in the order in which it came: reasoning is kept as it is; of the others, only their
// place is, and the phase of a text.
type outPiece struct {
	Reasoning json.RawMessage `json:"reasoning,omitempty"`
	Bytes     int             `json:"bytes,omitempty"` // of a text
	Phase     string          `json:"phase,omitempty"`
	Call      bool            `json:"call,omitempty"`
}

// replayed returns the items of an answer with its reasoning in its place, given those of its text and of its calls. Where
// they are not those that came, nothing is known of its place, and it is left out: the API refuses reasoning without the
// item that it belongs to.
func replayed(m *llm.Message, said, calls []any) []any {
	var pieces []outPiece
	plain := append(said, calls...)
	if json.Unmarshal(m.State.Data, &pieces) != nil {
		return plain // another version may have written it
	}
	rest, out := m.Content, []any(nil)
	for _, p := range pieces {
		switch {
		case len(p.Reasoning) > 0:
			out = append(out, p.Reasoning)
		case p.Call:
			if len(calls) == 0 {
				return plain
			}
			out, calls = append(out, calls[0]), calls[1:]
		case p.Bytes < 0 || p.Bytes > len(rest):
			return plain
		case p.Bytes > 0:
			out = append(out, inputItem{Role: m.Role, Content: rest[:p.Bytes], Phase: p.Phase})
			rest = rest[p.Bytes:]
		}
	}
	if rest != "" || len(calls) > 0 {
		return plain
	}
	return out
}
