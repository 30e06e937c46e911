package openaitest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
)

// A Request is a call that the emulator accepted.
type Request struct {
	N         int // from 1, in the order of arrival
	At        time.Time
	Agent     string // the "user" of the request
	Model     string
	System    string
	Fallback  int           // how often the system prompt was repeated as a user message
	Messages  []llm.Message // without system prompt and fallback
	Tools     []llm.Tool
	Stream    bool
	Usage     bool // the stream shall end with usage
	MaxTokens int
	Format    string // the JSON of response_format
	Marks     int    // of the cache
	Size      int    // bytes of the body
	Header    http.Header

	filesOfResults bool // pictures and documents are in the results themselves
}

// The wire form, written down apart from the client so that both are checked.
type wireRequest struct {
	Model               string        `json:"model"`
	Messages            []wireMessage `json:"messages"`
	Tools               []wireTool    `json:"tools"`
	Stream              bool          `json:"stream"`
	User                string        `json:"user"`
	CacheKey            string        `json:"prompt_cache_key"`
	MaxTokens           int           `json:"max_tokens"`
	MaxCompletionTokens int           `json:"max_completion_tokens"`
	ResponseFormat      *wireFormat   `json:"response_format"`
	Plugins             []wirePlugin  `json:"plugins"`
	StreamOptions       *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// A wirePlugin is one of OpenRouter.
type wirePlugin struct {
	ID  string `json:"id"`
	PDF struct {
		Engine string `json:"engine"`
	} `json:"pdf"`
}

type wireFormat struct {
	Type   string `json:"type"`
	Schema *struct {
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"schema"`
		Strict bool            `json:"strict"`
	} `json:"json_schema"`
}

// check refuses a format that the service refuses.
func (f *wireFormat) check() *apiError {
	switch {
	case f == nil || f.Type == "json_object" && f.Schema == nil:
	case f.Type != "json_schema" || f.Schema == nil || f.Schema.Name == "" || len(f.Schema.Schema) == 0:
		return refuse("response_format", "Invalid value for 'response_format'")
	}
	return nil
}

type wireMessage struct {
	Role       string     `json:"role"`
	Content    *content   `json:"content"`
	ToolCalls  []wireCall `json:"tool_calls"`
	ToolCallID string     `json:"tool_call_id"`

	Reasoning *string         `json:"reasoning_content"`
	Details   json.RawMessage `json:"reasoning_details"`
	Extra     json.RawMessage `json:"extra_content"`
}

type wireCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string  `json:"name"`
		Arguments *string `json:"arguments"`
	} `json:"function"`
	Extra json.RawMessage `json:"extra_content"`
}

type wireTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// content is a text or a list of parts with text, pictures and documents.
type content struct {
	text      string
	images    []llm.Image
	documents []llm.Document
	marks     int // of the cache
}

func (c *content) cached() int {
	if c == nil {
		return 0
	}
	return c.marks
}

func (c *content) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &c.text) == nil {
		return nil
	}
	var parts []struct {
		Type  string `json:"type"`
		Text  string `json:"text"`
		Image struct {
			URL string `json:"url"`
		} `json:"image_url"`
		File struct {
			Name string `json:"filename"`
			Data string `json:"file_data"`
		} `json:"file"`
		Cache json.RawMessage `json:"cache_control"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		if len(p.Cache) > 0 {
			c.marks++
		}
		switch p.Type {
		case "text":
			c.text += p.Text
		case "image_url":
			picture, err := pictureOf(p.Image.URL)
			if err != nil {
				return err
			}
			c.images = append(c.images, picture)
		case "file":
			document, err := documentOf(p.File.Name, p.File.Data)
			if err != nil {
				return err
			}
			c.documents = append(c.documents, document)
		default:
			return fmt.Errorf("content part of type %q", p.Type)
		}
	}
	return nil
}

// pictureOf reads a picture from its data URL.
func pictureOf(url string) (llm.Image, error) {
	head, data, ok := strings.Cut(url, ";base64,")
	kind := strings.TrimPrefix(head, "data:")
	picture, err := base64.StdEncoding.DecodeString(data)
	if !ok || err != nil || http.DetectContentType(picture) != kind {
		return llm.Image{}, errors.New("invalid image data")
	}
	return llm.Image{MIMEType: kind, Data: picture}, nil
}

// documentOf reads a PDF from its data URL.
func documentOf(name, url string) (llm.Document, error) {
	data, ok := strings.CutPrefix(url, "data:application/pdf;base64,")
	document, err := base64.StdEncoding.DecodeString(data)
	if !ok || err != nil || !bytes.HasPrefix(document, []byte("%PDF-")) || !strings.HasSuffix(name, ".pdf") {
		return llm.Document{}, errors.New("invalid file data: want a name that ends in .pdf, and a PDF as a data URL")
	}
	return llm.Document{Name: name, Data: document}, nil
}

// maxRequest is what a body may have in bytes.
const maxRequest = 64 << 20

// decode reads and checks a request as strictly as the strictest known server.
func (s *Server) decode(w http.ResponseWriter, hr *http.Request) (Request, error) {
	if bad := s.authorize(hr); bad != nil {
		return Request{}, bad
	}
	if ct := hr.Header.Get("Content-Type"); !strings.HasPrefix(ct, "application/json") {
		return Request{}, refuse("", "content type %q, want application/json", ct)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, hr.Body, maxRequest))
	if err != nil {
		return Request{}, err
	}
	var in wireRequest
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		if _, field, ok := strings.Cut(err.Error(), "unknown field "); ok {
			return Request{}, refuse(strings.Trim(field, `"`), "Unrecognized request argument supplied: %s", field)
		}
		return Request{}, refuse("", "We could not parse the JSON body of your request: %v", err)
	}
	if bad := s.checkModel(in.Model); bad != nil {
		return Request{}, bad
	}
	if in.StreamOptions != nil && !in.Stream {
		return Request{}, refuse("stream_options", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
	out := Request{
		Agent: in.User, Model: in.Model, Stream: in.Stream, Size: len(body), Header: hr.Header,
		Usage: in.StreamOptions != nil && in.StreamOptions.IncludeUsage, MaxTokens: max(in.MaxTokens, in.MaxCompletionTokens),
	}
	if in.ResponseFormat != nil {
		b, _ := json.Marshal(in.ResponseFormat) // it was JSON
		out.Format = string(b)
	}
	if bad := in.ResponseFormat.check(); bad != nil {
		return Request{}, bad
	}
	if bad := s.cfg.Dialect.strict(&in); bad != nil {
		return Request{}, bad
	}
	for _, m := range in.Messages {
		out.Marks += m.Content.cached()
	}
	if bad := s.cfg.Dialect.check(&s.given, in.Messages); bad != nil {
		return Request{}, bad
	}
	if bad := out.addMessages(in.Messages); bad != nil {
		return Request{}, bad
	}
	if bad := out.addTools(in.Tools); bad != nil {
		return Request{}, bad
	}
	return out, nil
}

func (s *Server) checkModel(name string) *apiError {
	if name == "" {
		return refuse("model", "you must provide a model parameter")
	}
	if len(s.cfg.Models) > 0 && !slices.Contains(s.cfg.Models, name) {
		return &apiError{
			status: http.StatusNotFound, Type: "invalid_request_error", Code: "model_not_found",
			Message: fmt.Sprintf("The model '%s' does not exist or you do not have access to it.", name),
		}
	}
	return nil
}

// fallbackPrefix begins the message that repeats the system prompt.
const fallbackPrefix = "[System instructions]\n"

func (r *Request) addMessages(in []wireMessage) *apiError {
	chat := make([]llm.Message, 0, len(in))
	for i, m := range in {
		param := fmt.Sprintf("messages.[%d]", i)
		if m.Content == nil && (m.Role != "assistant" || len(m.ToolCalls) == 0) {
			return refuse(param+".content", "Invalid value for 'content': expected a string, got null.")
		}
		text := ""
		var images []llm.Image
		var documents []llm.Document
		if m.Content != nil {
			text, images, documents = m.Content.text, m.Content.images, m.Content.documents
		}
		if len(images)+len(documents) > 0 && m.Role != "user" && !(r.filesOfResults && m.Role == "tool") {
			return refuse(param+".content", "Invalid value: 'image_url' or 'file'. Pictures and files are allowed in messages of the user only.")
		}
		if m.Role == "system" {
			if i != 0 {
				return refuse(param+".role", "a system message must be the first and the only one")
			}
			r.System = text
			continue
		}
		calls, bad := callsOf(m.ToolCalls, param)
		if bad != nil {
			return bad
		}
		chat = append(chat, llm.Message{Role: llm.Role(m.Role), Content: text, Calls: calls, CallID: m.ToolCallID, Images: images, Documents: documents})
	}
	if err := llm.Check(chat); err != nil {
		return refuse("messages", "Invalid 'messages': %v", err)
	}
	for _, m := range chat {
		if m.Role == llm.RoleUser && r.System != "" && m.Content == fallbackPrefix+r.System {
			r.Fallback++
			continue
		}
		r.Messages = append(r.Messages, m)
	}
	return nil
}

func callsOf(in []wireCall, param string) ([]claybot.ToolCall, *apiError) {
	var calls []claybot.ToolCall
	for _, c := range in {
		if c.Type != "function" || c.Function.Arguments == nil {
			return nil, refuse(param+".tool_calls", "Missing required parameter in a tool call: type or function.arguments")
		}
		calls = append(calls, claybot.ToolCall{ID: c.ID, Name: c.Function.Name, Args: *c.Function.Arguments})
	}
	return calls, nil
}

func (r *Request) addTools(in []wireTool) *apiError {
	for i, t := range in {
		param := fmt.Sprintf("tools[%d].function.parameters", i)
		if t.Type != "function" {
			return refuse(fmt.Sprintf("tools[%d].type", i), "Invalid value: '%s'. Supported value is 'function'.", t.Type)
		}
		var schema struct {
			Type any `json:"type"`
		}
		if err := json.Unmarshal(t.Function.Parameters, &schema); err != nil || schema.Type != "object" {
			return refuse(param, "Invalid schema for function '%s': schema must be a JSON Schema of 'type: \"object\"'.", t.Function.Name)
		}
		r.Tools = append(r.Tools, llm.Tool{Name: t.Function.Name, Description: t.Function.Description, Parameters: t.Function.Parameters})
	}
	if err := llm.CheckTools(r.Tools); err != nil {
		return refuse("tools", "Invalid 'tools': %v", err)
	}
	return nil
}

// An apiError is an error in the shape that OpenAI gives it.
type apiError struct {
	status  int
	header  map[string]string
	reset   time.Duration
	Message string `json:"message"`
	Type    string `json:"type"`
	Param   any    `json:"param"`
	Code    any    `json:"code"`
}

func (e *apiError) Error() string { return e.Message }

func refuse(param, format string, args ...any) *apiError {
	e := &apiError{status: http.StatusBadRequest, Type: "invalid_request_error", Message: fmt.Sprintf(format, args...)}
	if param != "" {
		e.Param = param
	}
	return e
}

func (e *apiError) write(w http.ResponseWriter) {
	for k, v := range e.header {
		w.Header().Set(k, v)
	}
	writeJSON(w, e.status, map[string]*apiError{"error": e})
}

// pictures and documents are how many of them a request has.
func (r Request) pictures() (n int) {
	for _, m := range r.Messages {
		n += len(m.Images)
	}
	return n
}

func (r Request) documents() (n int) {
	for _, m := range r.Messages {
		n += len(m.Documents)
	}
	return n
}
