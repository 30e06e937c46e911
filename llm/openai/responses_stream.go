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
