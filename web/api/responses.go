package api

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

const (
	// responseID, messageItem and callItem are the prefixes of the ids of responses and of
	// their items; the id of the run follows.
	responseID  = "resp_"
	messageItem = "msg_"
	callItem    = "mcp_"
)

var noResponse = hint{"No response with that id.", "A response belongs to the token that requested it, for as long as claybot keeps its run."}

// A responseRequest has the fields of a request for a response. Any other is refused.
type responseRequest struct {
	Model        string            `json:"model" doc:"claybot, the name of a profile, or agent: and the id of an agent."`
	Input        responseInput     `json:"input" doc:"A string, or a list of items. claybot posts only the user's messages after the last item of an answer; the agent remembers the rest."`
	Stream       bool              `json:"stream,omitempty"`
	Background   bool              `json:"background,omitempty" doc:"Respond at once; GET /v1/responses/{response} has the answer."`
	Previous     string            `json:"previous_response_id,omitempty" doc:"Continue the conversation of this response."`
	Conversation conversationName  `json:"conversation,omitzero" doc:"The thread, as user in chat completions: a string, or an object with an id."`
	User         string            `json:"user,omitempty" doc:"The thread, without conversation and previous_response_id."`
	Metadata     map[string]string `json:"metadata,omitempty" doc:"Part of this answer; claybot does not store it."`
	Store        *bool             `json:"store,omitempty" doc:"Only true."`
	Tools        []any             `json:"tools,omitempty" doc:"Only empty: the agent has its own."`
	TopLogprobs  int               `json:"top_logprobs,omitempty" doc:"Only 0."`
	Text         textFormat        `json:"text,omitzero"`
	ignored
}

// ignored are fields that clients send by default. The agent has its own prompt, tools and
// limits.
type ignored struct {
	Instructions     any `json:"instructions,omitempty" doc:"Ignored, as are the fields below: the agent has its own prompt, tools and limits."`
	Include          any `json:"include,omitempty"`
	MaxOutputTokens  any `json:"max_output_tokens,omitempty"`
	MaxToolCalls     any `json:"max_tool_calls,omitempty"`
	Parallel         any `json:"parallel_tool_calls,omitempty"`
	CacheKey         any `json:"prompt_cache_key,omitempty"`
	CacheRetention   any `json:"prompt_cache_retention,omitempty"`
	Reasoning        any `json:"reasoning,omitempty"`
	SafetyIdentifier any `json:"safety_identifier,omitempty"`
	ServiceTier      any `json:"service_tier,omitempty"`
	StreamOptions    any `json:"stream_options,omitempty"`
	Temperature      any `json:"temperature,omitempty"`
	ToolChoice       any `json:"tool_choice,omitempty"`
	TopP             any `json:"top_p,omitempty"`
	Truncation       any `json:"truncation,omitempty"`
}

// check rejects what claybot does not do.
func (in responseRequest) check() error {
	switch {
	case in.Store != nil && !*in.Store:
		return badParam("store", "store must be true: claybot keeps each conversation.", "Omit store; operators delete agents, and retention removes runs.")
	case len(in.Tools) > 0:
		return badParam("tools", "tools must be empty: the agent has its own tools.", "Configure tools in the profile of the agent.")
	case in.TopLogprobs != 0:
		return badParam("top_logprobs", "top_logprobs must be 0.", "")
	case in.Previous != "" && in.Conversation != "":
		return badParam("previous_response_id", "previous_response_id and conversation exclude each other.", "Send one of them.")
	}
	return nil
}

// badParam is an error of one field of a request.
func badParam(name, message, fix string) error {
	return &web.Problem{Status: http.StatusBadRequest, Code: "bad_request", Message: message, Fix: fix, Fields: map[string]string{name: message}}
}

// A conversationName is the id of a conversation, or an object with it.
type conversationName string

// UnmarshalJSON implements json.Unmarshaler.
func (c *conversationName) UnmarshalJSON(b []byte) error {
	if b[0] != '{' {
		return json.Unmarshal(b, (*string)(c))
	}
	var named struct {
		ID string `json:"id"`
	}
	err := json.Unmarshal(b, &named)
	*c = conversationName(named.ID)
	return err
}

// A responseInput is what a request contains of a conversation.
type responseInput struct {
	text  string
	files []web.FileGiven
	err   error // of an item that is not supported
	// before is the text of the last answer, and known the newest id of an item of it.
	before, known string
	answered      bool // there is an earlier answer
}

// An inputItem is one item of a conversation.
type inputItem struct {
	Type    string          `json:"type"`
	ID      string          `json:"id"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (in *responseInput) UnmarshalJSON(b []byte) error {
	if b = bytes.TrimSpace(b); b[0] == '"' {
		return json.Unmarshal(b, &in.text)
	}
	var items []inputItem
	if err := json.Unmarshal(b, &items); err != nil {
		return badParam("input", "input must be a string or a list of items.", "")
	}
	var texts []string
	for _, item := range items {
		switch kind := cmp.Or(item.Type, "message"); {
		case kind == "message" && item.Role == "user":
			var c content
			if err := c.read(item.Content); err != nil {
				return err
			}
			if c.text != "" {
				texts = append(texts, c.text)
			}
			in.files, in.err = append(in.files, c.files...), cmp.Or(in.err, c.err)
		case kind == "message" && item.Role != "assistant": // the agent has its own prompt
		case strings.HasSuffix(kind, "_output") || kind == "mcp_approval_response":
			in.err = cmp.Or(in.err, badParam("input", fmt.Sprintf("Unsupported item of type %.40q: the agent calls its own tools.", kind), "Send only messages."))
		default: // of an answer: what the user said before is known
			var c content
			_ = c.read(item.Content) // only compared
			texts, in.files, in.err, in.answered, in.before = nil, nil, nil, true, cmp.Or(c.text, in.before)
			if itemRun(item.ID) != "" {
				in.known = item.ID
			}
		}
	}
	in.text = strings.Join(texts, "\n\n")
	return nil
}

// read reads the content of an item; none is empty.
func (c *content) read(raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	return c.UnmarshalJSON(bytes.TrimSpace(raw))
}

// itemRun returns the run of a response by its id or that of an item; empty if it is none.
func itemRun(id string) claybot.RunID {
	for _, prefix := range []string{messageItem, callItem} {
		if rest, ok := strings.CutPrefix(id, prefix); ok {
			run, _, _ := strings.Cut(rest, "_")
			return claybot.RunID(run)
		}
	}
	run, ok := strings.CutPrefix(id, responseID)
	if !ok {
		return ""
	}
	return claybot.RunID(run)
}

// respond serves POST /v1/responses.
func (a *completions) respond(w http.ResponseWriter, r *http.Request) error {
	body, err := web.ReadBody(r)
	if err != nil {
		return err
	}
	var in responseRequest
	if err := web.ParseJSON(body, &in, true); err != nil {
		return err
	}
	if err := cmp.Or(in.check(), in.Input.err); err != nil {
		return err
	}
	if strings.TrimSpace(in.Input.text) == "" && len(in.Input.files) == 0 {
		return badParam("input", "input must end with a message of the user.", "")
	}
	to, begins, err := a.continued(r, in)
	if err != nil {
		return err
	}
	out := &responseDialect{response: responseOf(in.Model)}
	out.Previous, out.User, out.Metadata, out.Background = in.Previous, in.User, in.Metadata, in.Background
	if in.Conversation != "" {
		out.Conversation = &conversationView{string(in.Conversation)}
	}
	if out.Metadata == nil {
		out.Metadata = make(map[string]string)
	}
	var format *claybot.AnswerFormat
	if f := in.Text.Format; f != nil {
		if format, err = formatOf("text.format", f.Type, f.answerSchema); err != nil {
			return err
		}
		out.Text.Format.Type, out.Text.Format.answerSchema = cmp.Or(f.Type, "text"), f.answerSchema
	}
	asks := asking{begins: begins, format: format, text: in.Input.text, files: in.Input.files, before: in.Input.before, to: to, out: out, stream: in.Stream}
	if in.Background && !in.Stream {
		asks.queue = out
	}
	return a.serve(w, r, body, asks)
}

// continued returns the agent of the conversation that a request continues. Without one it
// begins a new one, the same for every retry with the same key.
func (a *completions) continued(r *http.Request, in responseRequest) (to func(key string) agentsystem.Address, begins bool, err error) {
	caller := web.CallerOf(r)
	fixed := func(at agentsystem.Address, err error) (func(string) agentsystem.Address, bool, error) {
		return func(string) agentsystem.Address { return at }, false, err
	}
	thread := cmp.Or(string(in.Conversation), in.User)
	earlier := in.Previous
	if earlier == "" && thread == "" {
		earlier = in.Input.known
	}
	switch {
	case earlier != "":
		return fixed(a.sameAgent(r, in.Model, earlier))
	case thread != "":
		return fixed(a.addressOf(r.Context(), caller, in.Model, thread))
	}
	at, err := a.addressOf(r.Context(), caller, in.Model, "")
	if err != nil || at.Agent != "" {
		return fixed(at, err)
	}
	if in.Input.answered {
		return nil, false, badParam("input", "input has an earlier answer of another conversation; the agent remembers only its own.",
			"Name the conversation with previous_response_id or conversation, or send only the new message.")
	}
	return func(key string) agentsystem.Address {
		sum := sha256.Sum256([]byte(key))
		d := *at.Descriptor
		d.ChannelID = strings.TrimSuffix(d.ChannelID, homeThread) + "response-" + hex.EncodeToString(sum[:12])
		return agentsystem.Address{Descriptor: &d}
	}, true, nil
}

// sameAgent returns the agent of an earlier response, which must be one of the caller and
// of the model.
func (a *completions) sameAgent(r *http.Request, model, earlier string) (none agentsystem.Address, err error) {
	run, err := a.responded(r, itemRun(earlier))
	if err != nil {
		return none, foundNone(err)
	}
	if id := agentModel + string(run.Agent); model != anyModel && model != id && model != run.profile {
		return none, badParam("model", fmt.Sprintf("The earlier response is not of the model %.80q.", model), "Use "+cmp.Or(run.profile, anyModel)+" or "+id+".")
	}
	return agentsystem.Address{Agent: run.Agent}, nil
}

// A responseRun is the run of a response of the caller.
type responseRun struct {
	claybot.Run
	profile string            // of its agent
	message claybot.MessageID // the first one of the caller; empty: the run answers none
	shared  bool              // it has messages of others
}

// of fills in whose the messages of the run are.
func (r responseRun) of(caller web.Caller) responseRun {
	own := string(messageOf(caller.Name, ""))
	for _, m := range r.Messages {
		switch {
		case !strings.HasPrefix(string(m), own):
			r.shared = true
		case r.message == "":
			r.message = m
		}
	}
	return r
}

// responded returns the run of a response of the caller: one with a message of the caller, or
// one of a conversation of the caller, which may have begun by itself. Any other is
// storage.ErrNotFound, as is that of a deleted agent.
func (a *completions) responded(r *http.Request, id claybot.RunID) (none responseRun, err error) {
	run, err := a.runs.Run(r.Context(), id)
	if err != nil {
		return none, err
	}
	e, err := a.agents.Agent(r.Context(), run.Agent)
	if err != nil {
		return none, err
	}
	caller := web.CallerOf(r)
	out := responseRun{Run: run, profile: e.Descriptor.Profile}.of(caller)
	if out.message == "" && !ownedBy(caller, e.Descriptor) {
		return none, storage.ErrNotFound
	}
	if caller.Scope == web.Chat { // it may be bound to something else since
		if _, err := a.addressOf(r.Context(), caller, agentModel+string(run.Agent), ""); err != nil {
			if p, ok := errors.AsType[*web.Problem](err); ok && p.Status == http.StatusForbidden {
				return none, storage.ErrNotFound
			}
			return none, err
		}
	}
	return out, nil
}

// foundNone explains that there is no such response.
func foundNone(err error) error {
	if errors.Is(err, storage.ErrNotFound) {
		return &web.Problem{Status: http.StatusNotFound, Code: "not_found", Message: noResponse.message, Fix: noResponse.fix}
	}
	return err
}

// queued answers with a response that has not ended.
func (c *completer) queued(w http.ResponseWriter, r *http.Request, d *responseDialect) error {
	run, err := c.completions.runs.Run(r.Context(), c.got.Run)
	if err != nil {
		return err
	}
	v, err := c.completions.responseNow(r, d, responseRun{Run: run}.of(web.CallerOf(r)))
	if err != nil {
		return err
	}
	c.deliver(&longAnswer{sink: sink{w, http.NewResponseController(w)}, r: r}, http.StatusOK, v, true)
	return nil
}

// getResponse serves GET /v1/responses/{response}.
func (a *completions) getResponse(r *http.Request) (response, error) {
	return a.shown(r, false)
}

// cancelResponse serves POST /v1/responses/{response}/cancel.
func (a *completions) cancelResponse(r *http.Request) (response, error) {
	return a.shown(r, true)
}

func (a *completions) shown(r *http.Request, cancel bool) (none response, err error) {
	run, err := a.responded(r, itemRun(r.PathValue("response")))
	if err != nil {
		return none, foundNone(err)
	}
	if cancel {
		if run.shared && web.CallerOf(r).Scope == web.Chat && !run.State.Ended() {
			return none, conflict("The run answers messages of others, too.", "Operators cancel it, at DELETE /agents/runs/"+string(run.ID)+".")
		}
		if _, err := a.control.CancelRun(r.Context(), run.ID, web.User(r)); err != nil {
			return none, foundNone(err)
		}
		if run.Run, err = a.runs.Run(r.Context(), run.ID); err != nil {
			return none, foundNone(err)
		}
	}
	d := &responseDialect{response: responseOf(cmp.Or(run.profile, anyModel))}
	d.Metadata = make(map[string]string)
	return a.responseNow(r, d, run)
}

// formatted sets the format that the caller's message asked for.
func (a *completions) formatted(r *http.Request, c *completer, d *responseDialect) error {
	if c.got.Message == "" {
		return nil
	}
	receipt, err := a.runs.Receipt(r.Context(), c.got.Message)
	if errors.Is(err, storage.ErrNotFound) {
		return nil // removed by retention
	}
	f := receipt.Message.Format
	if err != nil || f == nil {
		return err
	}
	c.strict, d.Text.Format.Type = true, "json_object"
	if len(f.Schema) > 0 {
		d.Text.Format.Type = "json_schema"
		if d.Text.Format.Schema == nil {
			d.Text.Format.answerSchema = answerSchema{Name: f.Name, Schema: f.Schema, Strict: f.Strict}
		}
	}
	return nil
}

// responseNow returns what a run has come to so far: what was said for the caller's message,
// and in a conversation of the caller, all.
func (a *completions) responseNow(r *http.Request, d *responseDialect, run responseRun) (none response, err error) {
	ctx := r.Context()
	c := &completer{
		completions: a, out: d, terse: web.CallerOf(r).Bound(), mine: !run.shared || run.message == "",
		got: agentsystem.Accepted{Run: run.ID, Agent: run.Agent, Message: run.message},
	}
	if err := a.formatted(r, c, d); err != nil {
		return none, err
	}
	if err := d.begin(run.ID, nil); err != nil {
		return none, err
	}
	var end ending
	for e, err := range a.runs.Events(ctx, run.ID, 0) {
		if err != nil {
			return none, err
		}
		now, _, err := c.event(ctx, e)
		if p, ok := errors.AsType[*web.Problem](err); ok && p.Ended {
			continue // told by the state
		}
		if err != nil {
			return none, err
		}
		end = now
	}
	if run.State == claybot.RunSucceeded && !c.said {
		if end, err = c.finish(ctx, run.ID, run.Output, run.Usage); err != nil {
			return none, err
		}
	}
	if run.Started != 0 {
		d.Created = int64(run.Started) / 1000
	}
	switch run.State {
	case claybot.RunPending:
		d.Status = "queued"
	case claybot.RunRunning:
		d.Status = "in_progress"
	case claybot.RunFailed:
		d.failed(failed(run.Error.Code, run.Error.Text))
	case claybot.RunCanceled:
		d.finish("cancelled")
	default:
		d.finish("completed")
		d.Usage = responseUsage(cmp.Or(end.usage, run.Usage))
	}
	return d.response, nil
}

// responseOf returns a response without output.
func responseOf(model string) response {
	v := response{Object: "response", Created: time.Now().Unix(), Status: "in_progress", Model: model, Output: []any{}, Parallel: true, ToolChoice: "auto", Tools: []any{}, Truncation: "disabled", Store: true}
	v.Text.Format.Type = "text"
	return v
}
