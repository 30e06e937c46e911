package openaitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/claybot/claybot/llm"
)

// The wire form of a request to /responses, written down apart from the client so that both are checked.
type wireResponses struct {
	Model        string      `json:"model"`
	Stream       bool        `json:"stream"`
	Store        *bool       `json:"store"`
	Include      []string    `json:"include"`
	CacheKey     string      `json:"prompt_cache_key"`
	MaxTokens    int         `json:"max_output_tokens"`
	Instructions string      `json:"instructions"`
	Input        []inputItem `json:"input"`
	Text         *struct {
		Format struct {
			Type   string          `json:"type"`
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"schema"`
			Strict bool            `json:"strict"`
		} `json:"format"`
	} `json:"text"`
	Tools []struct {
		Type        string          `json:"type"`
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
		Strict      bool            `json:"strict"`
	} `json:"tools"`
}

type inputItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Phase     string          `json:"phase"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments *string         `json:"arguments"`
	Output    json.RawMessage `json:"output"`
	Summary   json.RawMessage `json:"summary"`
	Encrypted string          `json:"encrypted_content"`
	Status    string          `json:"status"`
}

// responses answers /responses. It stores nothing, so it refuses requests that want it to; with each answer it gives an item
// of encrypted reasoning, and refuses one that comes back altered, alone, or not at all before the calls that it made. The
// real service takes calls without reasoning.
func (s *Server) responses(w http.ResponseWriter, hr *http.Request) {
	req, bad := s.decodeResponses(w, hr)
	if bad != nil {
		s.journal.refuse(bad.Message)
		bad.write(w)
		return
	}
	req.At = time.Now()
	call := s.journal.begin(hr.Context(), &req)
	defer call.end()
	reply := s.reply(req)
	if !reply.free(hr.Context()) || !pause(hr.Context(), s.cfg.Latency+reply.Delay) {
		return
	}
	if e := reply.Fault.status(req, reply); e != nil {
		call.end()
		e.write(w)
		return
	}
	usage := reply.usage(req)
	s.journal.count(usage.Prompt, usage.Completion)
	w.Header().Set("Content-Type", "text/event-stream")
	body := s.responsesStream(req, reply, usage)
	switch reply.Fault {
	case FaultNoFinish:
		body = body[:bytes.LastIndex(body, []byte("event: response.completed"))]
	case FaultCut:
		call.end()
		_, _ = w.Write(body[:min(reply.CutAt, len(body))]) // the client may have left
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	(&output{w: w, ctx: hr.Context(), call: call}).stream(reply, body)
}

func (s *Server) decodeResponses(w http.ResponseWriter, hr *http.Request) (out Request, bad *apiError) {
	if bad := s.authorize(hr); bad != nil {
		return out, bad
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, hr.Body, maxRequest))
	if err != nil {
		return out, refuse("", "the body cannot be read: %v", err)
	}
	var in wireResponses
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return out, refuse("", "Unknown parameter: %v", err)
	}
	if bad := s.checkModel(in.Model); bad != nil {
		return out, bad
	}
	switch {
	case in.Store == nil || *in.Store:
		return out, refuse("store", "this emulator stores nothing")
	case !slices.Equal(in.Include, []string{"reasoning.encrypted_content"}):
		return out, refuse("include", "this emulator gives its reasoning back only encrypted")
	}
	out = Request{Agent: in.CacheKey, Model: in.Model, System: in.Instructions, Stream: in.Stream, Usage: true, MaxTokens: in.MaxTokens, Size: len(body), Header: hr.Header}
	if in.Text != nil {
		b, _ := json.Marshal(in.Text.Format) // it was JSON
		out.Format = string(b)
	}
	chat, bad := s.chatOf(in.Input)
	out.filesOfResults = true
	if bad == nil {
		bad = out.addMessages(chat)
	}
	if bad != nil {
		return out, bad
	}
	tools := make([]wireTool, len(in.Tools))
	for i, t := range in.Tools {
		tools[i].Type, tools[i].Function.Name, tools[i].Function.Description, tools[i].Function.Parameters = t.Type, t.Name, t.Description, t.Parameters
	}
	return out, out.addTools(tools)
}

// chatOf turns items into messages, and checks the reasoning among them.
func (s *Server) chatOf(items []inputItem) (chat []wireMessage, bad *apiError) {
	reasoned := false
	for i, it := range items {
		last := len(chat) - 1
		switch it.Type {
		case "reasoning":
			if !s.given.has(it.ID + it.Encrypted) {
				e := refuse("", "The encrypted content for item %s could not be verified. Reason: Encrypted content could not be decrypted or parsed.", it.ID)
				e.Code = "invalid_encrypted_content"
				return nil, e
			}
			if i+1 == len(items) || items[i+1].Type != "function_call" && items[i+1].Role != "assistant" {
				return nil, refuse("input", "Item '%s' of type 'reasoning' was provided without its required following item.", it.ID)
			}
			reasoned = true
			continue
		case "function_call":
			if s.given.wants("call "+it.CallID) && !reasoned {
				return nil, refuse("input", "Item of type 'function_call' was provided without its required item of type 'reasoning'")
			}
			var c wireCall
			c.ID, c.Type, c.Function.Name, c.Function.Arguments = it.CallID, "function", it.Name, it.Arguments
			if last < 0 || chat[last].Role != "assistant" {
				chat, last = append(chat, wireMessage{Role: "assistant"}), last+1
			}
			chat[last].ToolCalls = append(chat[last].ToolCalls, c)
			continue
		}
		m, bad := it.message(i)
		if bad != nil {
			return nil, bad
		}
		reasoned = reasoned && m.Role == "assistant"
		chat = append(chat, m)
	}
	return chat, nil
}

// message is an item that is no call and no reasoning.
func (it *inputItem) message(i int) (m wireMessage, bad *apiError) {
	raw := it.Content
	switch m.Role = it.Role; it.Type {
	case "", "message":
	case "function_call_output":
		raw, m.Role, m.ToolCallID = it.Output, "tool", it.CallID
	default:
		return m, refuse(fmt.Sprintf("input[%d].type", i), "Invalid value: '%s'.", it.Type)
	}
	m.Content = new(content)
	if json.Unmarshal(raw, &m.Content.text) == nil {
		return m, nil
	}
	var parts []struct {
		Type  string `json:"type"`
		Text  string `json:"text"`
		Image string `json:"image_url"`
		Name  string `json:"filename"`
		Data  string `json:"file_data"`
	}
	err := json.Unmarshal(raw, &parts)
	for _, p := range parts {
		switch p.Type {
		case "input_text":
			m.Content.text += p.Text
		case "input_image":
			var picture llm.Image
			if picture, err = pictureOf(p.Image); err == nil {
				m.Content.images = append(m.Content.images, picture)
			}
		case "input_file":
			var document llm.Document
			if document, err = documentOf(p.Name, p.Data); err == nil {
				m.Content.documents = append(m.Content.documents, document)
			}
		default:
			err = fmt.Errorf("content part of type %q", p.Type)
		}
	}
	if err != nil {
		return m, refuse(fmt.Sprintf("input[%d].content", i), "Invalid value: %v", err)
	}
	return m, nil
}

// responsesStream returns the bytes of a good stream.
func (s *Server) responsesStream(req Request, reply Reply, u Usage) []byte {
	var b bytes.Buffer
	event := func(name, rest string) {
		_, _ = fmt.Fprintf(&b, "event: %s\ndata: {\"type\":%q%s}\n\n", name, name, rest) // a buffer takes everything
	}
	index := 0
	item := func(begun, deltas, whole string, pieces []string) {
		event("response.output_item.added", fmt.Sprintf(`,"output_index":%d,"item":%s`, index, begun))
		for _, p := range pieces {
			event(deltas, fmt.Sprintf(`,"output_index":%d,"delta":%s`, index, quote(p)))
		}
		event("response.output_item.done", fmt.Sprintf(`,"output_index":%d,"item":%s`, index, whole))
		index++
	}
	event("response.created", `,"response":{"status":"in_progress"}`)
	id, encrypted := fmt.Sprintf("rs_%d", req.N), fmt.Sprintf("gAAAA_%d==", req.N)
	s.given.add(id + encrypted)
	item(`{"type":"reasoning","id":"`+id+`","summary":[]}`, "response.reasoning_summary_text.delta", fmt.Sprintf(`{"type":"reasoning","id":%q,"summary":[],"encrypted_content":%q}`, id, encrypted), nil)
	if reply.Text != "" {
		item(`{"type":"message","role":"assistant","content":[]}`, "response.output_text.delta", `{"type":"message","role":"assistant","content":[{"type":"output_text","text":`+quote(reply.Text)+`}]}`, pieces(reply.Text, reply.Piece))
	}
	if reply.Refusal != "" {
		item(`{"type":"message","role":"assistant","content":[]}`, "response.refusal.delta", `{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":`+quote(reply.Refusal)+`}]}`, []string{reply.Refusal})
	}
	for _, c := range reply.Calls {
		s.given.add("call " + c.ID)
		head := `{"type":"function_call","call_id":` + quote(c.ID) + `,"name":` + quote(c.Name) + `,"arguments":`
		item(head+`""}`, "response.function_call_arguments.delta", head+quote(c.Args)+`}`, pieces(c.Args, reply.Piece))
	}
	usage := fmt.Sprintf(`"usage":{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":%d}}`, u.Prompt, u.Cached, u.Completion, u.Reasoning)
	if reply.Stop == "length" {
		event("response.incomplete", `,"response":{"model":`+quote(req.Model)+`,"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},`+usage+`}`)
	} else {
		event("response.completed", `,"response":{"model":`+quote(req.Model)+`,"status":"completed","error":null,"incomplete_details":null,`+usage+`}`)
	}
	return b.Bytes()
}
