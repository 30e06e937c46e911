package openaitest

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
)

// A Dialect is what a server that speaks this API wants back with its own answers. It gives something with
// each answer, and refuses an answer that comes back without it or with something that it did not give,
// in the words of the real server.
type Dialect string

// The dialects. Pages and reports of the errors, read in November 2026:
// api-docs.deepseek.com/guides/thinking_mode, github.com/bytedance/deer-flow/issues/3043 (Kimi),
// github.com/openai/openai-python/issues/2763 (shape of Gemini's calls), docs of apiyi on "Corrupted
// thought signature", openrouter.ai/docs/guides/best-practices/reasoning-tokens.
const (
	DeepSeek   Dialect = "deepseek"   // reasoning_content, with every answer
	Kimi       Dialect = "kimi"       // reasoning_content, with answers that have calls
	Gemini     Dialect = "gemini"     // a signature at the first call
	OpenRouter Dialect = "openrouter" // reasoning_details, which may be left out
	Plain      Dialect = "plain"      // reasoning_content that it refuses to take back, as older servers

	// These want nothing back, and are strict in other ways, see profile.go.
	Mistral  Dialect = "mistral"
	Azure    Dialect = "azure"
	Ollama   Dialect = "ollama"
	VLLM     Dialect = "vllm"
	LlamaCPP Dialect = "llama.cpp"
)

// given is what a server gave with its answers.
type given struct {
	mu      sync.Mutex
	all     map[string]bool
	swapped bool
}

// wants reports whether a call has to come back with the reasoning before it.
func (g *given) wants(call string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.all[call] && !g.swapped
}

func (g *given) add(v string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all == nil {
		g.all = make(map[string]bool)
	}
	g.all[v] = true
}

func (g *given) has(v string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.all[v]
}

// anySignature is what Gemini takes in the place of a signature.
const anySignature = "skip_thought_signature_validator"

// check refuses answers that lack what the server gave with them.
func (d Dialect) check(g *given, in []wireMessage) *apiError {
	for i := range in {
		if m := &in[i]; m.Role == "assistant" {
			if bad := d.checkAnswer(g, m, i); bad != nil {
				return bad
			}
			continue
		}
		if in[i].fields() != "" {
			return refuse(in[i].fields(), "Unrecognized request argument supplied: %s", in[i].fields())
		}
	}
	return nil
}

// fields names a field of a dialect that a message has.
func (m *wireMessage) fields() string {
	switch {
	case m.Reasoning != nil:
		return "reasoning_content"
	case m.Details != nil:
		return "reasoning_details"
	case m.Extra != nil, slices.ContainsFunc(m.ToolCalls, func(c wireCall) bool { return c.Extra != nil }):
		return "extra_content"
	}
	return ""
}

func (d Dialect) checkAnswer(g *given, m *wireMessage, i int) *apiError {
	own := map[Dialect]string{DeepSeek: "reasoning_content", LlamaCPP: "reasoning_content", Kimi: "reasoning_content", Gemini: "extra_content", OpenRouter: "reasoning_details"}[d]
	if f := m.fields(); f != "" && f != own {
		return refuse(f, "Unrecognized request argument supplied: %s", f)
	}
	switch d {
	case DeepSeek:
		if m.Reasoning == nil {
			return refuse("", "The `reasoning_content` in the thinking mode must be passed back to the API.")
		}
	case Kimi:
		if m.Reasoning == nil && len(m.ToolCalls) > 0 {
			return refuse("", "thinking is enabled but reasoning_content is missing in assistant tool call message at index %d", i)
		}
	case Gemini:
		return d.signed(g, m, i)
	case OpenRouter:
		if m.Details != nil && !g.has(canonical(m.Details)) {
			return refuse("", "messages.%d.content.0: Invalid `signature` in `thinking` block (reasoning_details)", i)
		}
	}
	if m.Reasoning != nil && *m.Reasoning != "" && !g.has(*m.Reasoning) {
		return refuse("", "Invalid reasoning_content in the assistant message at message index %d", i)
	}
	return nil
}

func (d Dialect) signed(g *given, m *wireMessage, i int) *apiError {
	for j, c := range m.ToolCalls {
		if c.Extra == nil {
			if j == 0 {
				return refuse("", "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing "+
					"thought_signature may lead to degraded model performance. Additional data, function call `default_api:%s` , position %d.", c.Function.Name, i)
			}
			continue
		}
		var extra struct {
			Google struct {
				Signature string `json:"thought_signature"`
			} `json:"google"`
		}
		if json.Unmarshal(c.Extra, &extra) != nil || extra.Google.Signature != anySignature && !g.has(c.Function.Name+extra.Google.Signature) {
			return refuse("", "Corrupted thought signature.")
		}
	}
	return nil
}

// chunks are what comes before an answer in a stream.
func (d Dialect) chunks(g *given, req Request) (deltas []string) {
	text := fmt.Sprintf("I think of request %d: \"what\" <is> it?", req.N)
	switch d {
	case Mistral:
		deltas = append(deltas, `{"content":[{"type":"thinking","thinking":[{"type":"text","text":`+quote(text)+`}],"closed":true}]}`)
	case Ollama, VLLM:
		for _, piece := range pieces(text, 7) {
			deltas = append(deltas, `{"content":"","reasoning":`+quote(piece)+`}`)
		}
	case DeepSeek, Kimi, Plain, LlamaCPP:
		g.add(text)
		for _, piece := range pieces(text, 7) {
			deltas = append(deltas, `{"reasoning_content":`+quote(piece)+`}`)
		}
	case OpenRouter:
		for i, piece := range pieces(text, 7) {
			deltas = append(deltas, fmt.Sprintf(`{"reasoning":%s,"reasoning_details":[{"type":"reasoning.text","text":%s,"format":"anthropic-claude-v1","index":0,"signature":null}]}`, quote(piece), quote(piece)))
			if i == 0 {
				deltas = append(deltas, `{"content":""}`)
			}
		}
		signature := quote("c2lnbmVk" + fmt.Sprint(req.N))
		deltas = append(deltas, `{"reasoning_details":[{"type":"reasoning.text","format":"anthropic-claude-v1","index":0,"signature":`+signature+`}]}`)
		g.add(canonical(fmt.Appendf(nil, `[{"type":"reasoning.text","text":%s,"format":"anthropic-claude-v1","index":0,"signature":%s}]`, quote(text), signature)))
	}
	return deltas
}

// canonical is JSON in one form, whatever escapes it has.
func canonical(b []byte) string {
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return string(b)
	}
	out, _ := json.Marshal(v) // what was read can be written
	return string(out)
}

// extra is the further field of a call in a stream, with a comma behind it.
func (d Dialect) extra(g *given, req Request, call int, name string) string {
	if d != Gemini || call > 0 {
		return ""
	}
	signature := fmt.Sprintf("c2lnbmVk+%d/==", req.N)
	g.add(name + signature)
	return `"extra_content":{"google":{"thought_signature":` + quote(signature) + `}},`
}
