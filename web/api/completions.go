package api

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

const (
	// anyModel is the model for the default profile; agentModel is the prefix of models that
	// are a single agent.
	anyModel   = "claybot"
	agentModel = "agent:"
	// homeThread is the default thread.
	homeThread = "main"
	// chatLimit is the maximum size of a request of an OpenAI client in bytes; it contains the
	// whole conversation each time.
	chatLimit = filesLimit
	// modelAgents limits the agents in the list of models.
	modelAgents = 50
)

// A completionRequest has the supported fields of an OpenAI request. Others are ignored:
// the agent has its own prompt, tools and limits.
type completionRequest struct {
	Model    string        `json:"model" doc:"claybot, the name of a profile, or agent: and the id of an agent."`
	Messages []chatMessage `json:"messages" doc:"claybot posts only the user's messages after the assistant's last one; the agent remembers the rest."`
	Stream   bool          `json:"stream,omitempty"`
	Options  *struct {
		Usage bool `json:"include_usage,omitempty"`
	} `json:"stream_options,omitempty"`
	User string `json:"user,omitempty" doc:"The thread: each has an agent of its own. main when left out."`
	N    int    `json:"n,omitempty" doc:"Only 1."`
	// Format is as OpenAI documents it.
	Format *chatFormat `json:"response_format,omitempty" doc:"text, json_object or json_schema. An answer that does not match is asked for once more, then the run fails."`
}

type chatMessage struct {
	Role    string  `json:"role"`
	Content content `json:"content,omitzero" doc:"A string, or a list of parts of the types text, image_url (data: URLs) and file (file_data)."`
}

// newest returns what the user said since the last assistant message.
func newest(all []chatMessage) (text string, files []web.FileGiven, err error) {
	var texts []string
	for _, m := range slices.Backward(all) {
		if m.Role == "assistant" {
			break
		}
		if m.Role == "user" {
			texts = append(texts, m.Content.text)
			files, err = slices.Concat(m.Content.files, files), cmp.Or(m.Content.err, err)
		}
	}
	slices.Reverse(texts)
	return strings.Join(slices.DeleteFunc(texts, func(t string) bool { return t == "" }), "\n\n"), files, err
}

// spoken returns the last assistant message.
func spoken(all []chatMessage) string {
	for _, m := range slices.Backward(all) {
		if m.Role == "assistant" {
			return m.Content.text
		}
	}
	return ""
}

// An openAIFailure is an error in OpenAI's format.
type openAIFailure struct {
	Error openAIError `json:"error"`
}

type openAIError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    string  `json:"code"`
}

func likeOpenAI(p *web.Problem) openAIFailure {
	kind := p.Kind
	switch {
	case kind != "":
	case p.Status >= http.StatusInternalServerError:
		kind = "server_error"
	default:
		kind = "invalid_request_error"
	}
	message := p.Message
	if p.Fix != "" {
		message += " " + p.Fix
	}
	out := openAIError{Message: message, Type: kind, Code: p.Code}
	for name := range p.Fields {
		out.Param = &name
	}
	return openAIFailure{out}
}

// The responses of the OpenAI endpoint.
type (
	completion struct {
		ID      string       `json:"id"`
		Object  string       `json:"object"` // chat.completion
		Created int64        `json:"created"`
		Model   string       `json:"model"`
		Choices []choice     `json:"choices"`
		Usage   *tokenCounts `json:"usage,omitempty"`
	}
	choice struct {
		Index   int        `json:"index"`
		Message *chatReply `json:"message,omitempty"`
		Delta   *chatReply `json:"delta,omitempty"`
		Finish  *string    `json:"finish_reason"`
	}
	chatReply struct {
		Role    string `json:"role,omitempty"`
		Content string `json:"content"`
	}
	tokenCounts struct {
		Prompt     int64           `json:"prompt_tokens"`
		Completion int64           `json:"completion_tokens"`
		Total      int64           `json:"total_tokens"`
		Details    *promptTokens   `json:"prompt_tokens_details,omitempty"`
		Reasoned   *reasonedTokens `json:"completion_tokens_details,omitempty"`
	}
	promptTokens struct {
		Cached int64 `json:"cached_tokens"`
	}
	modelList struct {
		Object string      `json:"object"` // list
		Data   []modelView `json:"data"`
	}
	modelView struct {
		ID      string `json:"id"`
		Object  string `json:"object"` // model
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`
	}
)

func counts(u claybot.Usage) *tokenCounts {
	return &tokenCounts{Prompt: u.Input, Completion: u.Output, Total: u.Input + u.Output, Details: &promptTokens{u.CachedInput}, Reasoned: &reasonedTokens{u.Reasoning}}
}

var noModel = hint{"No such model.", "GET /v1/models lists all models. For an agent, use agent: and its id."}

// completions serves OpenAI clients.
type completions struct {
	agents    web.Agents
	runs      web.Runs
	control   web.RunControl
	questions web.Questions
	starter   starter
	named     func() []string // the profiles offered as models; nil: none
	notes     *notes
	keepAlive time.Duration
	log       *slog.Logger
}

// repeatParams are the headers by which retries are known.
var repeatParams = []param{
	{name: keyHeader, about: "A retry with the same key gets the answer of the same run. Without a key, the same request is a retry while its run is " +
		"active, and for 10 minutes after it as long as no client received the whole answer.", header: true},
	{name: retryCount, about: "Above 0: the client retries a request, and gets the answer of the same run even if a client received it.", header: true},
}

func (a *completions) operations() []operation {
	return operation{tag: "openai", missing: noModel}.like(
		op("createCompletion", web.Operate, "POST /v1/chat/completions", "Message an agent with the OpenAI protocol.").forChat().forOpenAI().upTo(chatLimit).reading(completionRequest{}).
			failing(http.StatusNotFound, http.StatusConflict, http.StatusServiceUnavailable).
			explained("model names the agent, user the thread. claybot posts only the newest messages of the user and ignores tools, prompts and limits of the "+
				"request: the agent has its own. A client that disconnects does not cancel the run. If the agent asks a question, the question "+
				"is the answer, and the next message of the thread answers it. No message answers an approval or a question with approvers: operators "+
				"do, at POST /questions/{question}/answer. While streaming, texts that come before tool calls are included.").
			query(repeatParams...).
			served(a.complete, answer{status: http.StatusOK, value: completion{}, or: openAIFailure{}, about: "Whitespace may precede the JSON, every 15 s, while the run is active; a run that fails after " +
				"that returns an error in place of the answer. With stream, the same as Server-Sent Events of chat.completion.chunk, ended by data: [DONE]."}),
		op("createResponse", web.Operate, "POST /v1/responses", "Message an agent with the protocol of OpenAI's responses.").forChat().forOpenAI().upTo(chatLimit).reading(responseRequest{}).
			failing(http.StatusNotFound, http.StatusConflict, http.StatusServiceUnavailable).
			explained("model names the agent. previous_response_id, or an earlier item of the response in input, continues a conversation; conversation and user name the thread, as user in chat "+
				"completions. Without any of them, claybot begins a new conversation. Calls of tools are items of the type mcp_call. All else is as in POST /v1/chat/completions.").
			query(repeatParams...).
			served(a.respond, answer{status: http.StatusOK, value: response{}, or: openAIFailure{}, about: "Whitespace may precede the JSON, every 15 s, while the run is active; a run that fails after " +
				"that returns a response with the status failed. With stream, Server-Sent Events from response.created to response.completed or response.failed."}),
		returns(http.StatusOK, op("getResponse", web.Operate, "GET /v1/responses/{response}", "Get a response as it is now.").
			forChat().forOpenAI().failing(http.StatusNotFound), a.getResponse),
		returns(http.StatusOK, op("cancelResponse", web.Operate, "POST /v1/responses/{response}/cancel", "Cancel the run of a response. Repeating it, or calling it after the end, is harmless.").
			explained("With the scope chat, a run that answers messages of others, too, is not canceled.").forChat().forOpenAI().failing(http.StatusNotFound, http.StatusConflict), a.cancelResponse),
		returns(http.StatusOK, op("listModels", web.Read, "GET /v1/models", "List models: claybot, the profiles, and the most recently messaged agents.").
			explained("Only models that your token may message: with the scope read, there are none.").
			forChat().forOpenAI(), a.models),
		returns(http.StatusOK, op("getModel", web.Read, "GET /v1/models/{model}", "Get a model.").forChat().forOpenAI().failing(http.StatusNotFound), a.model),
	)
}

// addressOf returns the agent that a model and a thread address.
func (a *completions) addressOf(ctx context.Context, caller web.Caller, model, thread string) (agentsystem.Address, error) {
	if caller.Bound() {
		var err error
		if model, err = bound(caller, model); err != nil {
			return agentsystem.Address{}, err
		}
	}
	if id, ok := strings.CutPrefix(model, agentModel); ok {
		e, err := a.agents.Agent(ctx, claybot.AgentID(id))
		if caller.Scope == web.Chat && caller.Agent == "" && (errors.Is(err, storage.ErrNotFound) || err == nil && !ownedBy(caller, e.Descriptor)) {
			return agentsystem.Address{}, forbidden("Your token does not reach this agent.", web.ChatReaches)
		}
		return agentsystem.Address{Agent: claybot.AgentID(id)}, err
	}
	if thread == "" {
		thread = homeThread
	}
	if !plain(thread) {
		return agentsystem.Address{}, bad("user must be at most 200 characters without control characters.", "")
	}
	d := claybot.User(claybot.ConnectorAPI, thread, caller.Name)
	switch {
	case model == anyModel:
	case slices.Contains(a.profiles(), model):
		d.ChannelID, d.Profile = model+"/"+thread, model
	default:
		return agentsystem.Address{}, unknownModel(model)
	}
	return agentsystem.Address{Descriptor: &d}, nil
}

func unknownModel(name string) error {
	return &web.Problem{Status: http.StatusNotFound, Code: "model_not_found", Message: fmt.Sprintf("No model %.80q.", name), Fix: noModel.fix}
}

// bound returns the model that a bound caller means by model: the agent or the profile that
// it is bound to, or a conversation that it may have with that profile.
func bound(caller web.Caller, model string) (string, error) {
	to := caller.Profile
	if caller.Agent != "" {
		to = agentModel + string(caller.Agent)
	}
	switch {
	case model == anyModel || model == to:
		return to, nil
	case caller.Profile != "" && strings.HasPrefix(model, agentModel):
		return model, nil
	}
	return "", forbidden("Your token is bound to the model "+to+".", "Use "+to+" or "+anyModel+" as the model.")
}

// ownedBy reports whether an agent is a conversation of the caller.
func ownedBy(caller web.Caller, d claybot.Descriptor) bool {
	if caller.Profile != "" && d.Profile != caller.Profile {
		return false
	}
	return d.Type == claybot.AgentUser && d.Connector == claybot.ConnectorAPI && d.UserID == caller.Name
}

func (a *completions) profiles() []string {
	if a.named == nil {
		return nil
	}
	return slices.Sorted(slices.Values(a.named()))
}

// complete serves POST /v1/chat/completions.
func (a *completions) complete(w http.ResponseWriter, r *http.Request) error {
	body, err := web.ReadBody(r)
	if err != nil {
		return err
	}
	var in completionRequest
	if err := web.ParseJSON(body, &in, false); err != nil {
		return err
	}
	if in.N > 1 {
		return bad("n must be 1.", "")
	}
	asks := asking{stream: in.Stream, before: spoken(in.Messages)}
	if in.Format != nil {
		nested := in.Format.Schema
		if asks.format, err = formatOf("response_format", in.Format.Type, nested); err != nil {
			return err
		}
	}
	if asks.text, asks.files, err = newest(in.Messages); err != nil {
		return err
	}
	if strings.TrimSpace(asks.text) == "" && len(asks.files) == 0 {
		return bad("The last message must have the role user and a text.", "")
	}
	to, err := a.addressOf(r.Context(), web.CallerOf(r), in.Model, in.User)
	if err != nil {
		return err
	}
	asks.to = func(string) agentsystem.Address { return to }
	asks.out = &chatDialect{model: in.Model, usage: in.Options != nil && in.Options.Usage, created: time.Now().Unix()}
	return a.serve(w, r, body, asks)
}

// An asking is what a request of either protocol asks for.
type asking struct {
	text   string
	files  []web.FileGiven
	before string // the assistant's last text
	// to is the agent that a message with a key goes to.
	to     func(key string) agentsystem.Address
	out    dialect
	begins bool // the message begins a conversation, whose agent its key decides
	stream bool
	format *claybot.AnswerFormat // of the answer; nil: a text
	// queue, if set, asks for the response as it is at once: the run goes on by itself.
	queue *responseDialect
}

// serve passes what a request asks for to its agent, and answers with what comes of it.
func (a *completions) serve(w http.ResponseWriter, r *http.Request, body []byte, asks asking) error {
	again, err := a.notes.repeatOf(r, body)
	if err != nil {
		return err
	}
	if again != nil {
		again.begins = asks.begins
		defer again.release()
	}
	c, err := a.begin(r, asks, again)
	if err != nil {
		return err
	}
	web.Written(w)
	if asks.queue != nil && c.instead == "" {
		return c.queued(w, r, asks.queue)
	}
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Time{}) // the server's deadline is for short requests; a writer may not support deadlines
	_ = rc.SetWriteDeadline(time.Time{})
	if asks.stream {
		return c.stream(w, r)
	}
	return c.whole(w, r)
}

// begin passes the user's message to the agent, as an answer to its pending question or as
// a message. If the request is a retry, by its key or by again, begin follows the earlier
// message instead: a retry must not answer the question that resulted from it. A request
// with a key needs no again.
func (a *completions) begin(r *http.Request, asks asking, again *repeat) (*completer, error) {
	c := &completer{completions: a, out: asks.out, terse: web.CallerOf(r).Bound(), strict: asks.format != nil}
	said := saying{text: asks.text, files: asks.files, format: asks.format, key: keyOf(r, "")}
	caller := web.CallerOf(r).Name
	m := claybot.AgentMessage{Type: claybot.MessageUser, Text: asks.text, Format: asks.format, At: claybot.Now(), From: claybot.Sender{UserID: caller, Name: caller}, Tainted: len(asks.files) > 0}
	var err error
	if m.Files, err = named(asks.files); err != nil {
		return c, err
	}
	known := func(key string) (agentsystem.Accepted, bool, error) {
		m.ID = messageOf(caller, key)
		return a.starter.starter.Known(r.Context(), asks.to(key), m)
	}
	var got agentsystem.Accepted
	var found bool
	switch {
	case said.key != "":
		got, found, err = known(said.key)
	case again != nil:
		c.repeat = again
		got, found, err = again.find(r, known)
		said.implied = again.key()
		m.ID = messageOf(caller, said.implied)
	default:
		said.implied = rand.Text()
	}
	if err != nil {
		return c, err
	}
	if found {
		return c, c.again(r.Context(), got)
	}
	to := asks.to(cmp.Or(said.key, said.implied))
	if answered, err := c.answer(r, to, m, asks.before); answered || err != nil {
		return c, err
	}
	if err := a.formats(r, to, asks.format); err != nil {
		return c, err
	}
	c.got, err = a.starter.post(r, to, said)
	if err == nil && len(c.got.Answers) > 0 { // a concurrent retry was faster
		err = c.again(r.Context(), c.got)
	}
	return c, err
}

// messageOf is the id of the message of a caller with a key.
func messageOf(caller, key string) claybot.MessageID {
	return claybot.MessageID(claybot.ConnectorAPI + "/" + caller + "/" + key)
}

func (a *completions) models(r *http.Request) (modelList, error) {
	out := modelList{Object: "list", Data: []modelView{}}
	caller := web.CallerOf(r)
	if caller.Scope == web.Read { // which sends messages to no agent
		return out, nil
	}
	out.Data = append(out.Data, viewModel(anyModel, 0))
	if caller.Agent != "" {
		out.Data = append(out.Data, viewModel(agentModel+string(caller.Agent), 0))
		return out, nil
	}
	for _, p := range a.profiles() {
		if caller.Profile == "" || p == caller.Profile {
			out.Data = append(out.Data, viewModel(p, 0))
		}
	}
	q := storage.AgentQuery{Limit: modelAgents}
	if caller.Scope == web.Chat {
		q.Type, q.Owner = claybot.AgentUser, claybot.User(claybot.ConnectorAPI, homeThread, caller.Name).OwnerID()
	}
	agents, err := a.agents.AgentPage(r.Context(), q)
	for _, e := range agents {
		if caller.Profile == "" || ownedBy(caller, e.Descriptor) {
			out.Data = append(out.Data, viewModel(agentModel+string(e.ID), e.CreatedAt))
		}
	}
	return out, err
}

func viewModel(id string, at claybot.Time) modelView {
	return modelView{ID: id, Object: "model", Created: int64(at) / 1000, OwnedBy: "claybot"}
}

func (a *completions) model(r *http.Request) (modelView, error) {
	model := r.PathValue("model")
	if web.CallerOf(r).Scope == web.Read {
		return modelView{}, unknownModel(model)
	}
	to, err := a.addressOf(r.Context(), web.CallerOf(r), model, "")
	if err != nil || to.Agent == "" {
		return viewModel(model, 0), err
	}
	e, err := a.agents.Agent(r.Context(), to.Agent)
	return viewModel(model, e.CreatedAt), err
}
