package anthropictest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
)

// A Request is a call that the emulator accepted.
type Request struct {
	N         int // from 1, in the order of arrival
	Agent     string
	Model     string
	System    string
	Messages  []llm.Message // results as messages of their own, texts of one turn apart
	Tools     []llm.Tool
	Choice    string // of a tool
	Format    string // the schema of the answer
	MaxTokens int64
	Size      int // bytes of the body
	Marks     int // of the cache
	Header    http.Header
	marks     []string // what each mark ends
	turns     [][]wireBlock
	calm      bool // it shall not reason
}

// The wire form, written down apart from the client so that both are checked.
type wireRequest struct {
	Model     string          `json:"model"`
	MaxTokens *int64          `json:"max_tokens"`
	Stream    bool            `json:"stream"`
	System    json.RawMessage `json:"system"`
	Messages  []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Schema      json.RawMessage `json:"input_schema"`
		Cache       *wireCache      `json:"cache_control"`
	} `json:"tools"`
	Choice *struct {
		Type string `json:"type"`
	} `json:"tool_choice"`
	Thinking *struct {
		Type string `json:"type"`
	} `json:"thinking"`
	Metadata *struct {
		UserID string `json:"user_id"`
	} `json:"metadata"`
	Output *struct {
		Format struct {
			Type   string          `json:"type"`
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	} `json:"output_config"`
}

type wireCache struct {
	Type string `json:"type"`
}

type wireBlock struct {
	Type   string  `json:"type"`
	Text   *string `json:"text"`
	Source *struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	} `json:"source"`
	Title     string          `json:"title"` // of a document
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
	Cache     *wireCache      `json:"cache_control"`

	Thinking  *string `json:"thinking"`
	Signature string  `json:"signature"`
	Data      string  `json:"data"`
}

// maxRequest is what a body may have in bytes.
const maxRequest = 32 << 20

// strict reads JSON without unknown fields.
func strict(b []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(to)
}

// decode reads and checks a request.
func (s *Server) decode(w http.ResponseWriter, hr *http.Request) (Request, error) {
	key := hr.Header.Get("X-Api-Key")
	switch {
	case s.cfg.Key != "" && key != s.cfg.Key:
		return Request{}, &apiError{status: http.StatusUnauthorized, Type: "authentication_error", Message: "invalid x-api-key " + key}
	case hr.Header.Get("Anthropic-Version") != "2023-06-01":
		return Request{}, refuse("anthropic-version: header is required")
	case !strings.HasPrefix(hr.Header.Get("Content-Type"), "application/json"):
		return Request{}, refuse("content-type: must be application/json")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, hr.Body, maxRequest))
	if err != nil {
		return Request{}, &apiError{status: http.StatusRequestEntityTooLarge, Type: "request_too_large", Message: "Request exceeds the maximum size"}
	}
	var in wireRequest
	if err := strict(body, &in); err != nil {
		return Request{}, refuse("%v: Extra inputs are not permitted", err)
	}
	out := Request{Model: in.Model, Size: len(body), Header: hr.Header}
	if bad := s.head(&in, &out); bad != nil {
		return Request{}, bad
	}
	for _, step := range []func(*wireRequest) *apiError{out.addTools, out.addSystem, out.addMessages} {
		if bad := step(&in); bad != nil {
			return Request{}, bad
		}
	}
	if bad := s.checkThoughts(&out); bad != nil {
		return Request{}, bad
	}
	if out.Marks = len(out.marks); out.Marks > 4 {
		return Request{}, refuse("A maximum of 4 blocks with cache_control may be provided. Found %d.", out.Marks)
	}
	return out, nil
}

func (s *Server) head(in *wireRequest, out *Request) *apiError {
	switch {
	case in.Model == "":
		return refuse("model: Field required")
	case len(s.cfg.Models) > 0 && !slices.Contains(s.cfg.Models, in.Model):
		return &apiError{status: http.StatusNotFound, Type: "not_found_error", Message: "model: " + in.Model}
	case in.MaxTokens == nil:
		return refuse("max_tokens: Field required")
	case *in.MaxTokens < 1 || *in.MaxTokens > s.cfg.MaxTokens:
		return refuse("max_tokens: %d > %d, which is the maximum allowed number of output tokens for %s", *in.MaxTokens, s.cfg.MaxTokens, in.Model)
	case !in.Stream:
		return refuse("stream: this emulator streams only")
	case in.Choice != nil && !slices.Contains([]string{"auto", "any", "none"}, in.Choice.Type):
		return refuse("tool_choice: unknown type")
	case in.Choice != nil && len(in.Tools) == 0:
		return refuse("tool_choice: may only be specified while providing tools")
	}
	if in.Thinking != nil && in.Thinking.Type != "disabled" {
		return refuse("thinking.type: this emulator knows disabled only")
	}
	if in.Output != nil {
		var schema struct {
			Type string `json:"type"`
			More *bool  `json:"additionalProperties"`
		}
		if err := json.Unmarshal(in.Output.Format.Schema, &schema); err != nil || in.Output.Format.Type != "json_schema" || schema.Type == "object" && (schema.More == nil || *schema.More) {
			return refuse("output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false")
		}
		out.Format = string(in.Output.Format.Schema)
	}
	out.MaxTokens, out.calm = *in.MaxTokens, in.Thinking != nil
	if in.Metadata != nil {
		out.Agent = in.Metadata.UserID
	}
	if in.Choice != nil {
		out.Choice = in.Choice.Type
	}
	return nil
}

// mark notes that the cache shall hold everything up to the end of text.
func (r *Request) mark(c *wireCache, text string) *apiError {
	if c == nil {
		return nil
	}
	if c.Type != "ephemeral" {
		return refuse("cache_control.type: Input should be 'ephemeral'")
	}
	r.marks = append(r.marks, text)
	return nil
}

func (r *Request) addTools(in *wireRequest) *apiError {
	whole := ""
	for _, t := range in.Tools {
		var schema struct {
			Type any `json:"type"`
		}
		if err := json.Unmarshal(t.Schema, &schema); err != nil || schema.Type != "object" {
			return refuse("tools.%s.input_schema.type: Field required", t.Name)
		}
		r.Tools = append(r.Tools, llm.Tool{Name: t.Name, Description: t.Description, Parameters: t.Schema})
		whole += t.Name + t.Description + string(t.Schema)
		if bad := r.mark(t.Cache, whole); bad != nil {
			return bad
		}
	}
	if err := llm.CheckTools(r.Tools); err != nil {
		return refuse("tools: %v", err)
	}
	return nil
}

func (r *Request) begin() string {
	var b strings.Builder
	for _, t := range r.Tools {
		b.WriteString(t.Name + t.Description + string(t.Parameters))
	}
	return b.String()
}

func (r *Request) addSystem(in *wireRequest) *apiError {
	if len(in.System) == 0 {
		return nil
	}
	blocks, bad := contentOf(in.System, "system")
	if bad != nil {
		return bad
	}
	for _, b := range blocks {
		if b.Type != "text" {
			return refuse("system: Input tag %q is not expected", b.Type)
		}
		r.System += *b.Text
		if bad := r.mark(b.Cache, r.begin()+r.System); bad != nil {
			return bad
		}
	}
	return nil
}

// contentOf reads a content: a text, or blocks.
func contentOf(raw json.RawMessage, where string) ([]wireBlock, *apiError) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []wireBlock{{Type: "text", Text: &text}}, checkText(text, where)
	}
	var blocks []wireBlock
	if err := strict(raw, &blocks); err != nil {
		return nil, refuse("%s: %v: Extra inputs are not permitted", where, err)
	}
	if len(blocks) == 0 {
		return nil, refuse("%s: content must be non-empty", where)
	}
	for _, b := range blocks {
		if bad := b.check(where); bad != nil {
			return nil, bad
		}
	}
	return blocks, nil
}

func checkText(s, where string) *apiError {
	if strings.TrimSpace(s) == "" {
		return refuse("%s: text content blocks must contain non-whitespace text", where)
	}
	return nil
}

var idPattern = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

func (b *wireBlock) check(where string) *apiError {
	if b.Title != "" && b.Type != "document" {
		return refuse("%s.%s.title: Extra inputs are not permitted", where, b.Type)
	}
	switch b.Type {
	case "text":
		if b.Text == nil {
			return refuse("%s.text: Field required", where)
		}
		return checkText(*b.Text, where)
	case "image":
		if b.Source == nil || b.Source.Type != "base64" {
			return refuse("%s.image.source: Field required", where)
		}
		data, err := base64.StdEncoding.DecodeString(b.Source.Data)
		if err != nil || len(data) > 5<<20 {
			return refuse("%s.image.source.base64: image exceeds 5 MB maximum, or is not base64", where)
		}
		if kind := http.DetectContentType(data); kind != b.Source.MediaType {
			return refuse("%s.image.source.base64: the image was specified using %s, but appears to be %s", where, b.Source.MediaType, kind)
		}
	case "document":
		if b.Source == nil || b.Source.Type != "base64" || b.Source.MediaType != "application/pdf" {
			return refuse("%s.document.source: only base64 of application/pdf is taken", where)
		}
		data, err := base64.StdEncoding.DecodeString(b.Source.Data)
		if err != nil || !bytes.HasPrefix(data, []byte("%PDF-")) {
			return refuse("%s.document.source.base64.data: The PDF specified was not valid.", where)
		}
	case "tool_use":
		var input map[string]json.RawMessage
		if !idPattern.MatchString(b.ID) {
			return refuse("%s.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", where)
		}
		if json.Unmarshal(b.Input, &input) != nil || input == nil {
			return refuse("%s.tool_use.input: Input should be a valid dictionary", where)
		}
	case "tool_result":
		if b.ToolUseID == "" {
			return refuse("%s.tool_result.tool_use_id: Field required", where)
		}
	case "thinking":
		if b.Thinking == nil || b.Signature == "" {
			return refuse("%s.thinking.signature: Field required", where)
		}
	case "redacted_thinking":
		if b.Data == "" {
			return refuse("%s.redacted_thinking.data: Field required", where)
		}
	default:
		return refuse("%s: Input tag %q found using 'type' does not match any of the expected tags", where, b.Type)
	}
	return nil
}

func (r *Request) addMessages(in *wireRequest) *apiError {
	whole := r.begin() + r.System
	for i, m := range in.Messages {
		if want := [...]string{"user", "assistant"}[i%2]; m.Role != want {
			return refuse("messages.%d: roles must alternate, found %q", i, m.Role)
		}
		blocks, bad := contentOf(m.Content, "messages")
		if bad != nil {
			return bad
		}
		for j, b := range blocks {
			whole += string(b.Input) + string(b.Content) + b.ID + b.ToolUseID
			if b.Text != nil {
				whole += *b.Text
			}
			if bad := r.mark(b.Cache, whole); bad != nil {
				return bad
			}
			if b.Type == "tool_result" && j > 0 && blocks[j-1].Type != "tool_result" {
				return refuse("messages.%d: tool_result blocks must come first", i)
			}
		}
		if bad := r.addTurn(llm.Role(m.Role), blocks); bad != nil {
			return bad
		}
		r.turns = append(r.turns, blocks)
	}
	for _, m := range r.Messages {
		if len(m.Calls) > 0 && len(r.Tools) == 0 {
			return refuse("tools: must be provided when messages have tool_use blocks")
		}
	}
	if err := llm.Check(r.Messages); err != nil {
		return refuse("messages: `tool_use` ids were found without `tool_result` blocks, or the like: %v", err)
	}
	return nil
}

// addTurn adds the messages that one turn stands for.
func (r *Request) addTurn(role llm.Role, blocks []wireBlock) *apiError {
	var images []llm.Image
	var documents []llm.Document
	turn := llm.Message{Role: role}
	for _, b := range blocks {
		switch {
		case b.Type == "document" && role == llm.RoleUser:
			documents = append(documents, document(b))
		case b.Type == "image" && role == llm.RoleUser:
			images = append(images, image(b))
		case b.Type == "text" && role == llm.RoleUser:
			r.Messages = append(r.Messages, llm.Message{Role: role, Content: *b.Text, Images: images, Documents: documents})
			images, documents = nil, nil
		case b.Type == "text":
			turn.Content += *b.Text
		case b.reasoning() && role == llm.RoleAssistant: // see checkThoughts
		case b.Type == "tool_use" && role == llm.RoleAssistant:
			turn.Calls = append(turn.Calls, claybot.ToolCall{ID: b.ID, Name: b.Name, Args: string(b.Input)})
		case b.Type == "tool_result" && role == llm.RoleUser:
			m := llm.Message{Role: llm.RoleTool, CallID: b.ToolUseID}
			content, bad := contentOf(b.Content, "tool_result")
			if bad != nil {
				return bad
			}
			for _, c := range content {
				switch c.Type {
				case "text":
					m.Content += *c.Text
				case "image":
					m.Images = append(m.Images, image(c))
				case "document":
					m.Documents = append(m.Documents, document(c))
				default:
					return refuse("tool_result: %q is not allowed in it", c.Type)
				}
			}
			r.Messages = append(r.Messages, m)
		default:
			return refuse("messages: %q blocks are not allowed in the turn of %q", b.Type, role)
		}
	}
	if role == llm.RoleAssistant {
		r.Messages = append(r.Messages, turn)
	}
	if len(images)+len(documents) > 0 {
		r.Messages = append(r.Messages, llm.Message{Role: role, Content: "(pictures)", Images: images, Documents: documents})
	}
	return nil
}

func image(b wireBlock) llm.Image {
	data, _ := base64.StdEncoding.DecodeString(b.Source.Data) // was checked
	return llm.Image{MIMEType: b.Source.MediaType, Data: data}
}

func document(b wireBlock) llm.Document {
	data, _ := base64.StdEncoding.DecodeString(b.Source.Data) // was checked
	return llm.Document{Name: b.Title, Data: data}
}
