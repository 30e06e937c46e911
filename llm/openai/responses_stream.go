package openai

import (
	"bytes"
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
	Type      string          `json:"type"`
	Index     int             `json:"output_index"`
	Item      *outputItem     `json:"item"`
	Delta     string          `json:"delta"`
	Arguments *string         `json:"arguments"`
	Response  *responsesWhole `json:"response"`
	Error     json.RawMessage `json:"error"`
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
			Cached  int64 `json:"cached_tokens"`
			Written int64 `json:"cache_write_tokens"`
		} `json:"input_tokens_details"`
		OutputDetails struct {
			Reasoning int64 `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	} `json:"usage"`
}

// An outputItem is an item of an answer, as it came.
type outputItem struct {
	raw       json.RawMessage
	Type      string  `json:"type"`
	Status    string  `json:"status"`
	Phase     string  `json:"phase"`
	CallID    string  `json:"call_id"`
	Name      string  `json:"name"`
	Arguments *string `json:"arguments"`
	Encrypted string  `json:"encrypted_content"`
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
	kind          string
	call          int // its position among the calls
	said, refused strings.Builder
	args          bool // the arguments of the call were given, even as nothing
	half, done    bool
}

type responsesStream struct {
	provider.Answer
	api   *api
	items map[int]*growing
	order []*growing
	usage claybot.Usage
	kept  int // bytes of reasoning
}

// complete reports that the end of the answer was seen, and that of each of its items.
func (s *responsesStream) complete() bool {
	open := func(g *growing) bool { return !g.done }
	return s.Stop != "" && (s.Stop != "completed" || !slices.ContainsFunc(s.order, open))
}

// Stopped implements provider.Stream.
func (s *responsesStream) Stopped() (why llm.Stop, whole bool) {
	switch s.Stop {
	case "completed":
		return llm.StopEnd, s.complete()
	case "content_filter":
		return llm.StopFilter, s.complete()
	}
	return llm.StopLength, s.complete()
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
		return errUnreadable()
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
	case "response.function_call_arguments.done":
		g := s.items[e.Index]
		if g == nil || g.call < 0 {
			return errUnreadable()
		}
		return s.arguments(g, e.Arguments)
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
		return errUnreadable()
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
		return errUnreadable()
	}
	s.Grown = provider.Grows(e.Delta)
	switch {
	case g.call >= 0:
		g.args = true
		s.Args[g.call] = append(s.Args[g.call], e.Delta...)
	case e.Type == "response.refusal.delta":
		s.refuse(g, e.Delta)
	default:
		s.say(g, e.Delta)
	}
	return nil
}

func (s *responsesStream) say(g *growing, text string) {
	g.Bytes += len(text)
	g.said.WriteString(text)
	s.Say(text)
}

func (s *responsesStream) refuse(g *growing, text string) {
	g.refused.WriteString(text)
	s.Refusal.WriteString(text)
}

func errUnreadable() *provider.Failure {
	return provider.Failed(llm.Transient, "a part of the answer cannot be read")
}

func errDiffers() *provider.Failure {
	return provider.Failed(llm.Transient, "the answer has at its end not what came before")
}

// arguments takes the whole arguments of a call: those that came before have to be the same JSON.
func (s *responsesStream) arguments(g *growing, whole *string) *provider.Failure {
	if whole == nil {
		return nil
	}
	g.args = true
	came := s.Args[g.call]
	switch {
	case *whole == "":
	case len(came) == 0 || sameJSON(came, []byte(*whole)):
		s.Args[g.call] = []byte(*whole)
	default:
		return errDiffers()
	}
	return nil
}

// sameJSON reports whether two texts differ in the blanks of JSON at most.
func sameJSON(a, b []byte) bool {
	var x, y bytes.Buffer
	return bytes.Equal(a, b) || json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// rest takes the whole text of an item, and the whole of its refusal: more than what came is added, nothing in its place is no
// change, and anything else is not the same answer.
func (s *responsesStream) rest(g *growing, item *outputItem) *provider.Failure {
	var said, refused strings.Builder
	for _, c := range item.Content {
		said.WriteString(c.Text)
		refused.WriteString(c.Refusal)
	}
	text, more := strings.CutPrefix(said.String(), g.said.String())
	why, also := strings.CutPrefix(refused.String(), g.refused.String())
	last := g == s.order[len(s.order)-1] // else the rest would stand behind the text of another item
	switch {
	case said.Len() > 0 && !more, refused.Len() > 0 && !also, !last && more && text != "":
		return errDiffers()
	case more:
		s.say(g, text)
	}
	if also {
		s.refuse(g, why)
	}
	return nil
}

// end completes an item with what it has at its end.
func (s *responsesStream) end(e *responsesEvent) *provider.Failure {
	g, item := s.items[e.Index], e.Item
	if item == nil || g.done {
		return errUnreadable()
	}
	g.done, g.half, g.Phase = true, item.Status == "incomplete", item.Phase
	switch {
	case g.call >= 0:
		s.Calls[g.call].ID, s.Calls[g.call].Name = cmp.Or(item.CallID, s.Calls[g.call].ID), cmp.Or(item.Name, s.Calls[g.call].Name)
		return s.arguments(g, item.Arguments)
	case g.kind == "reasoning":
		if item.Encrypted != "" {
			g.Reasoning = withoutStatus(item.raw)
			s.kept += len(g.Reasoning)
			s.Hidden = max(s.Hidden, len(item.Encrypted)/2)
		}
		return nil
	}
	return s.rest(g, item)
}

// withoutStatus returns an item without its status, which some servers do not take back.
func withoutStatus(item json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(item, &fields) != nil || fields["status"] == nil {
		return item
	}
	delete(fields, "status")
	b, err := encoded(fields)
	if err != nil {
		return item
	}
	return b
}

// finish takes the end of the answer.
func (s *responsesStream) finish(w *responsesWhole) *provider.Failure {
	if w == nil {
		return errUnreadable()
	}
	s.Model = cmp.Or(w.Model, s.Model)
	if u := w.Usage; u != nil {
		s.usage = claybot.Usage{Input: max(u.Input, 0), Output: max(u.Output, 0)}
		s.usage.CachedInput = min(max(u.InputDetails.Cached, 0), s.usage.Input)
		s.usage.CacheWrite = min(max(u.InputDetails.Written, 0), s.usage.Input-s.usage.CachedInput)
		s.usage.Reasoning = min(max(u.OutputDetails.Reasoning, 0), s.usage.Output)
	}
	switch {
	case set(w.Error):
		p := s.api.Problem(0, []byte(`{"error":`+string(w.Error)+`}`))
		p.Paid = s.usage.Input+s.usage.Output > 0
		return provider.Said(p)
	case w.Status == "completed", w.Status == "incomplete" && w.Details != nil:
	default:
		return provider.Failed(llm.Transient, "the provider ended the answer with %q", strings.ToValidUTF8(w.Status[:min(len(w.Status), 40)], ""))
	}
	if fail := s.settle(w); fail != nil {
		return fail
	}
	s.Stop, s.Done = w.Status, true
	if w.Status == "incomplete" {
		s.Stop = cmp.Or(w.Details.Reason, w.Status)
	}
	return nil
}

// settle takes the items that the end of the answer has, where none came before, and checks that those that came are all, and
// whole. The end may have none.
func (s *responsesStream) settle(w *responsesWhole) *provider.Failure {
	came := len(s.order)
	if came > 0 && len(w.Output) > came {
		return errDiffers()
	}
	for i := 0; came == 0 && i < len(w.Output); i++ {
		e := &responsesEvent{Index: i, Item: &w.Output[i]}
		fail := s.begin(e)
		if fail == nil {
			fail = s.end(e)
		}
		if fail != nil {
			return fail
		}
	}
	for _, g := range s.order {
		switch {
		case w.Status != "completed" || !g.done: // see Stopped and Complete
		case g.half:
			return provider.Failed(llm.Transient, "the provider ended a part of the answer in its middle")
		case g.call >= 0 && !g.args:
			return provider.Failed(llm.Transient, "a call came without its arguments")
		}
	}
	return nil
}

// Whole implements provider.Stream: the answer of a server that sends no stream.
func (s *responsesStream) Whole(body []byte) (fail *provider.Failure, ok bool) {
	var w responsesWhole
	if json.Unmarshal(body, &w) != nil || w.Object != "response" {
		return nil, false
	}
	s.Events = 1
	return s.finish(&w), true
}
