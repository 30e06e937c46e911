package api

import (
	"strconv"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/web"
)

// The responses of the responses API.
type (
	response struct {
		ID           string            `json:"id"`
		Object       string            `json:"object"` // response
		Created      int64             `json:"created_at"`
		Status       string            `json:"status" doc:"queued, in_progress, completed, failed or cancelled."`
		Background   bool              `json:"background"`
		Error        *responseError    `json:"error"`
		Incomplete   *struct{}         `json:"incomplete_details"`
		Instructions *string           `json:"instructions"`
		MaxOutput    *int64            `json:"max_output_tokens"`
		Model        string            `json:"model"`
		Output       []any             `json:"output" doc:"Items of the types message and mcp_call, in order."`
		Parallel     bool              `json:"parallel_tool_calls"`
		Previous     string            `json:"previous_response_id,omitempty"`
		Conversation *conversationView `json:"conversation,omitempty"`
		Reasoning    *struct{}         `json:"reasoning"`
		Store        bool              `json:"store"`
		Temperature  *float64          `json:"temperature"`
		Text         responseText      `json:"text"`
		ToolChoice   string            `json:"tool_choice"`
		Tools        []any             `json:"tools"`
		TopP         *float64          `json:"top_p"`
		Truncation   string            `json:"truncation"`
		Usage        *responseTokens   `json:"usage"`
		User         string            `json:"user,omitempty"`
		Metadata     map[string]string `json:"metadata"`
	}
	responseError struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	responseText struct {
		Format struct {
			Type string `json:"type"`
			answerSchema
		} `json:"format"`
	}
	conversationView struct {
		ID string `json:"id"`
	}
	responseTokens struct {
		Input        int64          `json:"input_tokens"`
		InputDetails promptTokens   `json:"input_tokens_details"`
		Output       int64          `json:"output_tokens"`
		Details      reasonedTokens `json:"output_tokens_details"`
		Total        int64          `json:"total_tokens"`
	}
	reasonedTokens struct {
		Reasoning int64 `json:"reasoning_tokens"`
	}
	// A spokenItem is an item of type message.
	spokenItem struct {
		ID      string       `json:"id"`
		Type    string       `json:"type"`
		Status  string       `json:"status"`
		Role    string       `json:"role"`
		Content []outputPart `json:"content"`
	}
	outputPart struct {
		Type        string `json:"type"` // output_text
		Text        string `json:"text"`
		Annotations []any  `json:"annotations"`
		Logprobs    []any  `json:"logprobs"`
	}
	// A usedItem is an item of type mcp_call: the type for calls that the server makes itself.
	usedItem struct {
		ID        string  `json:"id"`
		Type      string  `json:"type"`
		Status    string  `json:"status"`
		Server    string  `json:"server_label"`
		Name      string  `json:"name"`
		Arguments string  `json:"arguments"`
		Output    *string `json:"output"`
		Error     *string `json:"error"`
	}
	// A responseEvent is an event of a stream; each type has some of the fields.
	responseEvent struct {
		Type      string      `json:"type"`
		Seq       int         `json:"sequence_number"`
		Response  *response   `json:"response,omitempty"`
		ItemID    string      `json:"item_id,omitempty"`
		Index     *int        `json:"output_index,omitempty"`
		Content   *int        `json:"content_index,omitempty"`
		Item      any         `json:"item,omitempty"`
		Part      *outputPart `json:"part,omitempty"`
		Delta     *string     `json:"delta,omitempty"`
		Text      *string     `json:"text,omitempty"`
		Logprobs  *[]any      `json:"logprobs,omitempty"`
		Arguments *string     `json:"arguments,omitempty"`
		Code      *string     `json:"code,omitempty"`
		Message   *string     `json:"message,omitempty"`
	}
)

func responseUsage(u claybot.Usage) *responseTokens {
	return &responseTokens{
		Input: u.Input, InputDetails: promptTokens{u.CachedInput}, Output: u.Output, Details: reasonedTokens{u.Reasoning}, Total: u.Input + u.Output,
	}
}

// A responseDialect is that of the responses API. It gathers the items of a response, and
// sends each change of them where it is a stream.
type responseDialect struct {
	response
	seq   int
	open  *spokenItem          // the last item of the output, if its text may grow; else nil
	used  map[string]*usedItem // by the id of the call
	where map[string]int       // the index of an item by its id
	put   func(event string, v any) error
}

// send sends an event of a stream.
func (d *responseDialect) send(e responseEvent) error {
	if d.put == nil {
		return nil
	}
	e.Seq = d.seq
	d.seq++
	return d.put(e.Type, e)
}

// state sends an event with the response as it is.
func (d *responseDialect) state(kind string) error {
	now := d.response
	return d.send(responseEvent{Type: kind, Response: &now})
}

// item sends an event of an item.
func (d *responseDialect) item(kind, id string, e responseEvent) error {
	at := d.where[id]
	e.Type, e.Index = kind, &at
	if e.Item == nil {
		e.ItemID = id
	}
	return d.send(e)
}

// add appends an item.
func (d *responseDialect) add(prefix string, with func(id string) any) (id string, err error) {
	if d.where == nil {
		d.where, d.used = make(map[string]int), make(map[string]*usedItem)
	}
	at := len(d.Output)
	id = prefix + d.ID[len(responseID):] + "_" + strconv.Itoa(at)
	d.Output, d.where[id] = append(d.Output, with(id)), at
	return id, d.item("response.output_item.added", id, responseEvent{Item: snapshot(d.Output[at])})
}

// snapshot is an item as it is.
func snapshot(item any) any {
	switch x := item.(type) {
	case *spokenItem:
		now := *x
		return now
	case *usedItem:
		now := *x
		return now
	}
	return item
}

func (d *responseDialect) begin(run claybot.RunID, put func(event string, v any) error) error {
	d.put = put
	d.ID = responseID + string(run)
	if err := d.state("response.created"); err != nil {
		return err
	}
	return d.state("response.in_progress")
}

func (d *responseDialect) say(text string) error {
	if d.open == nil {
		item := &spokenItem{Type: "message", Status: "in_progress", Role: "assistant", Content: []outputPart{}}
		id, err := d.add(messageItem, func(id string) any { item.ID = id; return item })
		if err != nil {
			return err
		}
		item.Content = append(item.Content, outputPart{Type: "output_text", Annotations: []any{}, Logprobs: []any{}})
		part := item.Content[0]
		d.open = item
		if err := d.item("response.content_part.added", id, responseEvent{Content: new(0), Part: &part}); err != nil {
			return err
		}
	}
	d.open.Content[0].Text += text
	return d.item("response.output_text.delta", d.open.ID, responseEvent{Content: new(0), Delta: &text, Logprobs: &[]any{}})
}

// settled ends the open message.
func (d *responseDialect) settled(status string) error {
	item := d.open
	if item == nil {
		return nil
	}
	d.open, item.Status = nil, status
	part := item.Content[0]
	if err := d.item("response.output_text.done", item.ID, responseEvent{Content: new(0), Text: &part.Text, Logprobs: &[]any{}}); err != nil {
		return err
	}
	if err := d.item("response.content_part.done", item.ID, responseEvent{Content: new(0), Part: &part}); err != nil {
		return err
	}
	return d.item("response.output_item.done", item.ID, responseEvent{Item: snapshot(item)})
}

func (d *responseDialect) use(u toolUse) error {
	if err := d.settled("completed"); err != nil {
		return err
	}
	item := d.used[u.id]
	if item == nil || !u.ended && item.Status != "in_progress" {
		item = &usedItem{Type: "mcp_call", Status: "in_progress", Server: "claybot", Name: u.tool, Arguments: u.args}
		id, err := d.add(callItem, func(id string) any { item.ID = id; return item })
		if err != nil {
			return err
		}
		d.used[u.id] = item
		if err := d.item("response.mcp_call.in_progress", id, responseEvent{}); err != nil {
			return err
		}
		if err := d.item("response.mcp_call_arguments.done", id, responseEvent{Arguments: &item.Arguments}); err != nil {
			return err
		}
	}
	if !u.ended || item.Status != "in_progress" {
		return nil
	}
	kind := "response.mcp_call.completed"
	item.Status, item.Output = "completed", &u.result
	if u.fault != "" {
		kind, item.Status, item.Output, item.Error = "response.mcp_call.failed", "failed", nil, &u.fault
	}
	if err := d.item(kind, item.ID, responseEvent{}); err != nil {
		return err
	}
	return d.item("response.output_item.done", item.ID, responseEvent{Item: snapshot(item)})
}

// finish sets the end of a response; what has no end of its own stays incomplete.
func (d *responseDialect) finish(status string) {
	d.Status = status
	part := "incomplete"
	if status == "completed" {
		part = "completed"
	}
	_ = d.settled(part)
	for _, x := range d.Output {
		if u, ok := x.(*usedItem); ok && u.Status == "in_progress" {
			u.Status = "incomplete"
		}
	}
}

// failed sets the error of a response.
func (d *responseDialect) failed(p *web.Problem) {
	d.finish("failed")
	d.Error = &responseError{Code: p.Code, Message: likeOpenAI(p).Error.Message}
}

func (d *responseDialect) end(e ending) error {
	if err := d.settled("completed"); err != nil {
		return err
	}
	d.finish("completed")
	d.Usage = responseUsage(e.usage)
	return d.state("response.completed")
}

// fail sends an error in place of the response where the run goes on.
func (d *responseDialect) fail(p *web.Problem) error {
	if !p.Ended {
		e := likeOpenAI(p).Error
		return d.send(responseEvent{Type: "error", Code: &e.Code, Message: &e.Message})
	}
	if err := d.settled("incomplete"); err != nil {
		return err
	}
	d.failed(p)
	return d.state("response.failed")
}

func (d *responseDialect) whole(e ending, p *web.Problem) any {
	if p != nil {
		d.failed(p)
		return d.response
	}
	d.finish("completed")
	d.Usage = responseUsage(e.usage)
	return d.response
}
