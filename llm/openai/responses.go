package openai

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/provider"
)

// The Responses API: platform.openai.com/docs/api-reference/responses and docs/guides/reasoning (encrypted reasoning items with
// store: false). claybot has nothing stored there: it sends the whole conversation each time.

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
		Type     string `json:"type"` // input_text or input_image
		Text     string `json:"text,omitempty"`
		ImageURL string `json:"image_url,omitempty"`
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
	text, images := m.Content, m.Images
	if without&fieldImages != 0 {
		text, images = llm.WithoutImages(*m), nil
	}
	var all []any
	switch m.Role {
	case llm.RoleTool:
		all = append(all, inputItem{Type: "function_call_output", CallID: m.CallID, Output: inputContent(text, images)})
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
		all = append(all, inputItem{Role: m.Role, Content: inputContent(text, images)})
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

func inputContent(text string, images []llm.Image) any {
	if len(images) == 0 {
		return text
	}
	var all []inputPart
	for _, p := range parts(text, images) {
		if p.ImageURL != nil {
			all = append(all, inputPart{Type: "input_image", ImageURL: p.ImageURL.URL})
		} else {
			all = append(all, inputPart{Type: "input_text", Text: p.Text})
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

// A responsesEvent is one event of a stream. Which fields are set depends on Type.
type responsesEvent struct {
	Type     string          `json:"type"`
	Index    int             `json:"output_index"`
	Item     *outputItem     `json:"item"`
	Delta    string          `json:"delta"`
	Response *responsesWhole `json:"response"`
	Error    json.RawMessage `json:"error"`
}

// A responsesWhole is an answer at its end, or one that is no stream.
type responsesWhole struct {
	Object  string       `json:"object"`
	Model   string       `json:"model"`
	Status  string       `json:"status"`
	Output  []outputItem `json:"output"`
	Details *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Error json.RawMessage `json:"error"`
	Usage *struct {
		Input        int64 `json:"input_tokens"`
		Output       int64 `json:"output_tokens"`
		InputDetails struct {
			Cached int64 `json:"cached_tokens"`
		} `json:"input_tokens_details"`
		OutputDetails struct {
			Reasoning int64 `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	} `json:"usage"`
}

// An outputItem is an item of an answer, as it came.
type outputItem struct {
	raw       json.RawMessage
	Type      string `json:"type"`
	Phase     string `json:"phase"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Encrypted string `json:"encrypted_content"`
	Content   []struct {
		Type    string `json:"type"` // output_text or refusal
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	} `json:"content"`
}

func (o *outputItem) UnmarshalJSON(b []byte) error {
	type plain outputItem
	if err := json.Unmarshal(b, (*plain)(o)); err != nil {
		return err
	}
	o.raw = slices.Clone(b)
	return nil
}

// A growing item is one that is being gathered.
type growing struct {
	outPiece
	kind    string
	call    int // its position among the calls
	refused int // bytes of a refusal
	done    bool
}

type responsesStream struct {
	provider.Answer
	api   *api
	items map[int]*growing
	order []*growing
	usage claybot.Usage
	kept  int // bytes of reasoning
}

func (s *responsesStream) Gathered() *provider.Answer { return &s.Answer }

// Complete reports that the end of the answer was seen, and that of each of its items.
func (s *responsesStream) Complete() bool {
	open := func(g *growing) bool { return !g.done }
	return s.Stop != "" && (s.Stop != "completed" || !slices.ContainsFunc(s.order, open))
}

// Stopped implements provider.Stream.
func (s *responsesStream) Stopped() llm.Stop {
	switch s.Stop {
	case "completed":
		return llm.StopEnd
	case "content_filter":
		return llm.StopFilter
	}
	return llm.StopLength
}

func (s *responsesStream) Usage() claybot.Usage {
	u := s.usage
	u.LLMCalls = 1
	return u
}

func (s *responsesStream) Taken(guess claybot.Usage) claybot.Usage {
	if s.usage.Input > 0 {
		return s.Usage()
	}
	return guess
}

// State implements provider.Stream.
func (s *responsesStream) State([]claybot.ToolCall) (json.RawMessage, error) {
	if s.kept == 0 || s.Stop != "completed" {
		return nil, nil
	}
	if s.kept > provider.MaxState {
		return nil, provider.ErrState
	}
	pieces := make([]outPiece, len(s.order))
	for i, g := range s.order {
		pieces[i] = g.outPiece
	}
	return encoded(pieces)
}

func (s *responsesStream) Take(data []byte) *provider.Failure {
	if string(data) == "[DONE]" {
		return nil // some servers with this API end so
	}
	var e responsesEvent
	if json.Unmarshal(data, &e) != nil {
		return provider.Failed(llm.Transient, "a part of the answer cannot be read")
	}
	if e.Type == "error" || set(e.Error) {
		return provider.Said(s.api.Problem(0, data))
	}
	s.Events++
	switch e.Type {
	case "response.output_item.added":
		return s.begin(&e)
	case "response.output_text.delta", "response.refusal.delta", "response.function_call_arguments.delta":
		return s.grow(&e)
	case "response.output_item.done":
		if s.items[e.Index] == nil {
			if fail := s.begin(&e); fail != nil {
				return fail
			}
		}
		return s.end(&e)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		s.Hidden += len(e.Delta)
		s.Grown = provider.Grows(e.Delta)
	case "response.completed", "response.incomplete", "response.failed":
		return s.finish(e.Response)
	}
	return nil // other events may come at any time
}

func (s *responsesStream) begin(e *responsesEvent) *provider.Failure {
	if e.Item == nil || s.items[e.Index] != nil {
		return provider.Failed(llm.Transient, "a part of the answer cannot be read")
	}
	if len(s.order) == maxCalls {
		return provider.Failed(llm.Permanent, "%s", errTooManyCalls.Error())
	}
	g := &growing{kind: e.Item.Type, call: -1}
	if g.kind == "function_call" {
		g.Call, g.call = true, len(s.Calls)
		s.Calls = append(s.Calls, claybot.ToolCall{ID: e.Item.CallID, Name: e.Item.Name})
		s.Args = append(s.Args, nil)
	}
	s.items[e.Index], s.order, s.Grown = g, append(s.order, g), true
	return nil
}

func (s *responsesStream) grow(e *responsesEvent) *provider.Failure {
	g := s.items[e.Index]
	if g == nil || g.done {
		return provider.Failed(llm.Transient, "a part of the answer cannot be read")
	}
	s.Grown = provider.Grows(e.Delta)
	switch {
	case g.call >= 0:
		s.Args[g.call] = append(s.Args[g.call], e.Delta...)
	case e.Type == "response.refusal.delta":
		g.refused += len(e.Delta)
		s.Refusal.WriteString(e.Delta)
	default:
		g.Bytes += len(e.Delta)
		s.Say(e.Delta)
	}
	return nil
}

// end completes an item with what it has at its end.
func (s *responsesStream) end(e *responsesEvent) *provider.Failure {
	g, item := s.items[e.Index], e.Item
	if item == nil || g.done {
		return provider.Failed(llm.Transient, "a part of the answer cannot be read")
	}
	g.done, g.Phase = true, item.Phase
	switch {
	case g.call >= 0:
		s.Args[g.call] = []byte(item.Arguments)
		s.Calls[g.call].ID, s.Calls[g.call].Name = cmp.Or(item.CallID, s.Calls[g.call].ID), cmp.Or(item.Name, s.Calls[g.call].Name)
	case g.kind == "reasoning":
		if item.Encrypted != "" {
			g.Reasoning, s.kept = item.raw, s.kept+len(item.raw)
			s.Hidden = max(s.Hidden, len(item.Encrypted)/2)
		}
	case g.Bytes+g.refused == 0: // nothing of it came before
		for _, c := range item.Content {
			g.Bytes += len(c.Text)
			s.Say(c.Text)
			s.Refusal.WriteString(c.Refusal)
		}
	}
	return nil
}

// finish takes the end of the answer.
func (s *responsesStream) finish(w *responsesWhole) *provider.Failure {
	if w == nil {
		return provider.Failed(llm.Transient, "a part of the answer cannot be read")
	}
	s.Model = cmp.Or(w.Model, s.Model)
	if u := w.Usage; u != nil {
		s.usage = claybot.Usage{Input: max(u.Input, 0), Output: max(u.Output, 0)}
		s.usage.CachedInput = min(max(u.InputDetails.Cached, 0), s.usage.Input)
		s.usage.Reasoning = min(max(u.OutputDetails.Reasoning, 0), s.usage.Output)
	}
	switch {
	case set(w.Error):
		return provider.Said(s.api.Problem(0, []byte(`{"error":`+string(w.Error)+`}`)))
	case w.Status == "completed":
		s.Stop = w.Status
	case w.Status == "incomplete" && w.Details != nil:
		s.Stop = cmp.Or(w.Details.Reason, w.Status)
	default:
		return provider.Failed(llm.Transient, "the provider ended the answer with %q", strings.ToValidUTF8(w.Status[:min(len(w.Status), 40)], ""))
	}
	s.Done = true
	return nil
}

// Whole implements provider.Stream: the answer of a server that sends no stream.
func (s *responsesStream) Whole(body []byte) (fail *provider.Failure, ok bool) {
	var w responsesWhole
	if json.Unmarshal(body, &w) != nil || w.Object != "response" {
		return nil, false
	}
	s.Events = 1
	for i := range w.Output {
		e := &responsesEvent{Index: i, Item: &w.Output[i]}
		if fail = s.begin(e); fail == nil {
			fail = s.end(e)
		}
		if fail != nil {
			return fail, true
		}
	}
	return s.finish(&w), true
}
