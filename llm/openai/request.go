package openai

import (
	"bytes"
	"cmp"
	"encoding/base64"
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
	fieldUser                      // user
	fieldImages                    // images among the content
)

var noParameters = json.RawMessage(`{"type":"object","properties":{}}`)

// The wire form of a request. The SDK's own types marshal each message twice,
// which is a fifth of all the work of a busy daemon.
type (
	wireRequest struct {
		Model               string             `json:"model"`
		Messages            []wireMessage      `json:"messages"`
		Stream              bool               `json:"stream"`
		StreamOptions       *sdk.StreamOptions `json:"stream_options,omitempty"`
		User                string             `json:"user,omitempty"`
		MaxTokens           int64              `json:"max_tokens,omitempty"`
		MaxCompletionTokens int64              `json:"max_completion_tokens,omitempty"`
	}
	wireMessage struct {
		Role       llm.Role   `json:"role"`
		Content    any        `json:"content,omitempty"` // a string, or []wirePart
		ToolCalls  []wireCall `json:"tool_calls,omitempty"`
		ToolCallID string     `json:"tool_call_id,omitempty"`
	}
	wireCall struct {
		ID       string           `json:"id"`
		Type     sdk.ToolType     `json:"type"`
		Function sdk.FunctionCall `json:"function"`
	}
)

func (a *api) Encode(r llm.Request, without uint32) ([]byte, error) {
	req := wireRequest{
		Model:    a.cfg.Model,
		Stream:   true,
		Messages: make([]wireMessage, 0, len(r.Messages)+2),
	}
	if without&fieldUsage == 0 {
		req.StreamOptions = &sdk.StreamOptions{IncludeUsage: true}
	}
	if without&fieldUser == 0 {
		req.User = string(r.Agent)
	}
	if limit := cmp.Or(max(r.MaxTokens, 0), a.cfg.MaxTokens); limit > 0 {
		// OpenAI's newer models refuse the old name, most other servers do
		// not know the new one.
		if a.ours {
			req.MaxCompletionTokens = limit
		} else {
			req.MaxTokens = limit
		}
	}
	if r.System != "" {
		req.Messages = append(req.Messages, wireMessage{Role: llm.RoleSystem, Content: r.System})
	}
	req.Messages = appendChat(req.Messages, withFallback(r, a.fallback), without&fieldImages == 0)
	body, err := json.Marshal(req)
	if err != nil || len(r.Tools) == 0 {
		return body, err
	}
	tools, err := a.tools.encode(r.Tools)
	if err != nil {
		return nil, err
	}
	body = append(body[:len(body)-1], `,"tools":`...)
	body = append(body, tools...)
	return append(body, '}'), nil
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

func (t *toolsCache) encode(tools []llm.Tool) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.lists {
		if slices.EqualFunc(l.tools, tools, sameTool) {
			return l.json, nil
		}
	}
	wire := make([]sdk.Tool, len(tools))
	for i, x := range tools {
		f := &sdk.FunctionDefinition{Name: x.Name, Description: x.Description, Parameters: noParameters}
		if len(x.Parameters) > 0 {
			f.Parameters = x.Parameters
		}
		wire[i] = sdk.Tool{Type: sdk.ToolTypeFunction, Function: f}
	}
	b, err := json.Marshal(wire)
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

// withFallback returns the messages of r with the system prompt as the first of
// them, or without it. The fallback occurs once at most, also when the messages
// come with one from elsewhere.
func withFallback(r llm.Request, wanted bool) []llm.Message {
	out := make([]llm.Message, 0, len(r.Messages)+1)
	if wanted && r.System != "" {
		out = append(out, llm.Message{ID: SystemPromptFallback, Role: llm.RoleUser, Content: fallbackPrefix + r.System})
	}
	for _, m := range r.Messages {
		if m.ID != SystemPromptFallback {
			out = append(out, m)
		}
	}
	return out
}

// A wirePart is a part of the content of a message that has pictures.
type wirePart struct {
	Type     string     `json:"type"` // text or image_url
	Text     string     `json:"text,omitempty"`
	ImageURL *wireImage `json:"image_url,omitempty"`
}

type wireImage struct {
	URL string `json:"url"`
}

// resultPictures stands before the pictures of results, which are messages of
// the user, as results have no pictures in this API.
const resultPictures = "(pictures of the results above)"

func appendChat(out []wireMessage, chat []llm.Message, pictures bool) []wireMessage {
	var waiting []wirePart // pictures of results
	for i, m := range chat {
		text := m.Content
		if !pictures {
			text = llm.WithoutImages(m)
		}
		w := wireMessage{Role: m.Role, ToolCallID: m.CallID}
		if text != "" {
			w.Content = text
		}
		for _, call := range m.Calls {
			w.ToolCalls = append(w.ToolCalls, wireCall{
				ID:       call.ID,
				Type:     sdk.ToolTypeFunction,
				Function: sdk.FunctionCall{Name: call.Name, Arguments: call.Args},
			})
		}
		if pictures && len(m.Images) > 0 {
			if m.Role == llm.RoleTool {
				waiting = append(waiting, parts("", m.Images)...)
			} else {
				w.Content = parts(text, m.Images)
			}
		}
		out = append(out, w)
		if len(waiting) > 0 && (i+1 == len(chat) || chat[i+1].Role != llm.RoleTool) {
			content := append([]wirePart{{Type: "text", Text: resultPictures}}, waiting...)
			out = append(out, wireMessage{Role: llm.RoleUser, Content: content})
			waiting = nil
		}
	}
	return out
}

func parts(text string, images []llm.Image) []wirePart {
	out := make([]wirePart, 0, len(images)+1)
	if text != "" {
		out = append(out, wirePart{Type: "text", Text: text})
	}
	for _, i := range images {
		url := "data:" + i.MIMEType + ";base64," + base64.StdEncoding.EncodeToString(i.Data)
		out = append(out, wirePart{Type: "image_url", ImageURL: &wireImage{URL: url}})
	}
	return out
}
