package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/provider"
)

// A state is what servers want back with an answer, in fields of their own: DeepSeek and Kimi
// reasoning_content, OpenRouter reasoning_details, Gemini the extra_content of calls, which has
// signatures.
//
// Sources, read in November 2026: api-docs.deepseek.com/guides/thinking_mode (reasoning_content has to be
// passed back with tool calls, else 400), platform.kimi.ai/docs/guide/use-kimi-k2-thinking-model,
// openrouter.ai/docs/guides/best-practices/reasoning-tokens (reasoning_details, unmodified),
// ai.google.dev/gemini-api/docs/thought-signatures (extra_content.google.thought_signature).
type state struct {
	Reasoning *string           `json:"reasoning_content,omitempty"`
	Details   []json.RawMessage `json:"reasoning_details,omitempty"`
	Extra     json.RawMessage   `json:"extra_content,omitempty"`
	// Calls are the extra_content of calls, by their ids.
	Calls map[string]json.RawMessage `json:"calls,omitempty"`
}

// unsigned is the signature that Gemini accepts with calls that it has not made itself.
var unsigned = json.RawMessage(`{"google":{"thought_signature":"skip_thought_signature_validator"}}`)

// form names what the JSON of a message depends on besides the message.
func (a *api) form(m *llm.Message, without uint32) string {
	form := "openai"
	if a.quirks.CallID > 0 {
		form = fmt.Sprint("openai ", a.quirks.CallID)
	}
	if m.Role != llm.RoleAssistant {
		return form
	}
	if without&fieldState == 0 && a.own(m) {
		form += " " + a.of
	}
	if without&fieldUnreasoned != 0 {
		form += " reasoned"
	}
	if without&fieldUnsigned != 0 {
		form += " signed"
	}
	return form
}

// own reports a message whose state is to be sent: it is of this model, and was not refused.
func (a *api) own(m *llm.Message) bool {
	return m.State != nil && m.State.Of == a.of && !a.refused.has(m.State)
}

// A refusals remembers states that the server refused, so that later requests of the same conversation are not refused for them
// anew. The zero value is ready, and may be used by any number of goroutines.
type refusals struct {
	mu   sync.Mutex
	seed maphash.Seed
	all  map[uint64]struct{}
}

// maxRefusals is how many states are remembered; then they are forgotten, which costs a refusal each.
const maxRefusals = 4096

func (r *refusals) has(s *claybot.ModelState) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) == 0 {
		return false
	}
	_, ok := r.all[maphash.Bytes(r.seed, s.Data)]
	return ok
}

// add notes the states of messages that a request is sent without.
func (r *refusals) add(messages []llm.Message, of string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range messages {
		s := messages[i].State
		if s == nil || s.Of != of {
			continue
		}
		if len(r.all) == 0 || len(r.all) >= maxRefusals {
			r.seed, r.all = maphash.MakeSeed(), make(map[uint64]struct{})
		}
		r.all[maphash.Bytes(r.seed, s.Data)] = struct{}{}
	}
}

// restore gives a message what the server wants back with it, or, where it has to have some, what
// stands for that.
func (a *api) restore(w *wireMessage, m *llm.Message, without uint32) {
	var s state
	if without&fieldState == 0 && a.own(m) && json.Unmarshal(m.State.Data, &s) != nil {
		s = state{} // another version may have written it
	}
	w.Reasoning, w.Details, w.Extra = s.Reasoning, s.Details, s.Extra
	if w.Reasoning == nil && without&fieldUnreasoned != 0 {
		w.Reasoning = new(string)
	}
	for i := range w.ToolCalls {
		c := &w.ToolCalls[i]
		c.Extra = s.Calls[m.Calls[i].ID]
		if i == 0 && c.Extra == nil && without&fieldUnsigned != 0 {
			c.Extra = unsigned // of calls at once, only the first is signed
		}
	}
}

// A keeper gathers the state of an answer.
type keeper struct {
	size      int // about
	reasoned  bool
	reasoning strings.Builder
	details   []*detail
	extra     json.RawMessage
	calls     map[int]json.RawMessage // by the position of the call
}

// A detail is an entry of reasoning_details, whose texts grow.
type detail struct {
	fields map[string]json.RawMessage
	texts  map[string]*strings.Builder
}

// take adds a piece, and reports whether it is content.
func (k *keeper) take(d *delta) bool {
	if d.ReasoningContent.set {
		k.reasoned = true
		if k.grow(len(d.ReasoningContent.text)) {
			k.reasoning.WriteString(d.ReasoningContent.text)
		}
	}
	var details []json.RawMessage
	if set(d.Details) && json.Unmarshal(d.Details, &details) != nil {
		details = nil // it is no list
	}
	for _, raw := range details {
		if k.grow(len(raw)) {
			k.detail(raw)
		}
	}
	if set(d.Extra) {
		k.extra = d.Extra
	}
	return len(details) > 0 || provider.Grows(d.ReasoningContent.text, d.Reasoning.text)
}

// grow reports whether there is room for more.
func (k *keeper) grow(by int) bool {
	k.size += by
	return k.size <= provider.MaxState
}

func set(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// detail adds a piece of reasoning_details. Pieces of one type and index that follow each other are one
// entry.
func (k *keeper) detail(raw json.RawMessage) {
	var piece map[string]json.RawMessage
	if json.Unmarshal(raw, &piece) != nil {
		return
	}
	if n := len(k.details); n == 0 || !k.details[n-1].goesOn(piece) {
		k.details = append(k.details, &detail{make(map[string]json.RawMessage), make(map[string]*strings.Builder)})
	}
	last := k.details[len(k.details)-1]
	for name, v := range piece {
		var text string
		switch {
		case slices.Contains([]string{"text", "summary", "data"}, name) && set(v) && json.Unmarshal(v, &text) == nil:
			if last.texts[name] == nil {
				last.texts[name] = new(strings.Builder)
			}
			last.texts[name].WriteString(text)
		case set(v) || last.fields[name] == nil:
			last.fields[name] = v
		}
	}
}

// goesOn reports whether a piece is more of the entry.
func (d *detail) goesOn(piece map[string]json.RawMessage) bool {
	same := func(name string) bool {
		a, b := d.fields[name], piece[name]
		return bytes.Equal(a, b) || !set(a) || !set(b)
	}
	return bytes.Equal(d.fields["type"], piece["type"]) && same("index") && same("id")
}

func (d *detail) json() (json.RawMessage, error) {
	for name, text := range d.texts {
		v, err := encoded(text.String())
		if err != nil {
			return nil, err
		}
		d.fields[name] = v
	}
	return encoded(d.fields)
}

// call notes the extra_content of a call.
func (k *keeper) call(at int, extra json.RawMessage) {
	if !set(extra) || !k.grow(len(extra)) {
		return
	}
	if k.calls == nil {
		k.calls = make(map[int]json.RawMessage)
	}
	k.calls[at] = extra
}

// State implements provider.Stream.
func (k *keeper) State(calls []claybot.ToolCall) (json.RawMessage, error) {
	if !k.reasoned && len(k.details) == 0 && k.extra == nil && len(k.calls) == 0 {
		return nil, nil
	}
	if k.size > provider.MaxState {
		return nil, provider.ErrState
	}
	s := state{Extra: k.extra}
	if k.reasoned {
		text := k.reasoning.String()
		s.Reasoning = &text
	}
	for _, d := range k.details {
		raw, err := d.json()
		if err != nil {
			return nil, err
		}
		s.Details = append(s.Details, raw)
	}
	for _, at := range slices.Sorted(maps.Keys(k.calls)) {
		if at < len(calls) {
			if s.Calls == nil {
				s.Calls = make(map[string]json.RawMessage)
			}
			s.Calls[calls[at].ID] = k.calls[at]
		}
	}
	return encoded(s)
}
