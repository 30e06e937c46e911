package openai

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"

	sdk "github.com/sashabaranov/go-openai"

	"github.com/claybot/claybot/llm"
)

// A wirePart is a part of the content of a message that has pictures or documents.
type wirePart struct {
	Type     string     `json:"type"` // text, image_url or file
	Text     string     `json:"text,omitempty"`
	ImageURL *wireImage `json:"image_url,omitempty"`
	File     *wireFile  `json:"file,omitempty"`
	Cache    *wireCache `json:"cache_control,omitempty"`
}

type wireCache struct {
	Type string `json:"type"`
}

type wireImage struct {
	URL string `json:"url"`
}

type wireFile struct {
	Name string `json:"filename"`
	Data string `json:"file_data"` // a data: URL
}

// What stands before the pictures and documents of results, which are messages of the
// user, as results have none in this API.
const (
	resultPictures = "(pictures of the results above)"
	resultFiles    = "(files of the results above)"
)

// betweenTurns stands between results and a message of the user where the API wants an answer there.
var betweenTurns = wireMessage{Role: llm.RoleAssistant, Content: "(continue)"}

// A chatBody is the JSON of the messages of a request, with commas between them.
type chatBody struct {
	api     *api
	without uint32
	text    []byte
	first   int
	last    llm.Role
	err     error
}

func (b *chatBody) add(role llm.Role, text []byte, err error) {
	if b.api.quirks.Between && b.last == llm.RoleTool && role == llm.RoleUser {
		b.last = llm.RoleAssistant
		b.addWire(betweenTurns)
	}
	if len(b.text) > b.first {
		b.text = append(b.text, ',')
	}
	b.text, b.last = append(b.text, text...), role
	if b.err == nil {
		b.err = err
	}
}

func (b *chatBody) addWire(w wireMessage) {
	text, err := encoded(w)
	b.add(w.Role, text, err)
}

// appendChat adds the JSON of the system prompt and the messages of a request, with
// commas between them. The prompt is repeated as the first message where that is set;
// this fallback occurs once at most, also when the messages come with one from elsewhere.
func (a *api) appendChat(body []byte, r llm.Request, without uint32) ([]byte, error) {
	b := &chatBody{api: a, without: without, text: body, first: len(body)}
	marked := a.marked(r.Messages, without)
	if r.System != "" {
		w := wireMessage{Role: llm.RoleSystem, Content: r.System}
		if marked != nil {
			w.mark()
		}
		b.addWire(w)
		if a.fallback {
			b.addWire(wireMessage{Role: llm.RoleUser, Content: fallbackPrefix + r.System})
		}
	}
	var waiting []wirePart // pictures and documents of results
	for i := range r.Messages {
		m := &r.Messages[i]
		if m.ID == SystemPromptFallback {
			continue
		}
		if slices.Contains(marked, i) {
			w := a.wireOf(m, without)
			w.mark()
			b.addWire(w)
		} else {
			text, err := m.Encoded(a.form(m, without), func() ([]byte, error) { return encoded(a.wireOf(m, without)) })
			b.add(m.Role, text, err)
		}
		if m.Role == llm.RoleTool {
			waiting = append(waiting, parts(m)...)
		}
		if len(waiting) > 0 && (i+1 == len(r.Messages) || r.Messages[i+1].Role != llm.RoleTool) {
			title := resultPictures
			if slices.ContainsFunc(waiting, func(p wirePart) bool { return p.File != nil }) {
				title = resultFiles
			}
			b.addWire(wireMessage{Role: llm.RoleUser, Content: append([]wirePart{{Type: "text", Text: title}}, waiting...)})
			waiting = nil
		}
	}
	return b.text, b.err
}

// marked returns which messages end what the provider is to keep in its cache: the last two of users and tools, of which
// the older one is what the request before this one has written. nil: the provider caches by itself, or not at all.
func (a *api) marked(messages []llm.Message, without uint32) []int {
	if a.quirks.Marks == "" || !strings.HasPrefix(strings.ToLower(a.cfg.Model), a.quirks.Marks) || without&fieldMarks != 0 {
		return nil
	}
	all := make([]int, 0, 2)
	for i := len(messages) - 1; i >= 0 && len(all) < 2; i-- {
		if messages[i].Role != llm.RoleAssistant && messages[i].Content != "" {
			all = append(all, i)
		}
	}
	return all
}

// mark asks for the cache at the end of a message.
func (w *wireMessage) mark() {
	content, ok := w.Content.([]wirePart)
	if text, plain := w.Content.(string); plain {
		content, ok = []wirePart{{Type: "text", Text: text}}, true
	}
	if ok && len(content) > 0 {
		content[len(content)-1].Cache = &wireCache{"ephemeral"}
		w.Content = content
	}
}

// callID is an id of a call as the API takes it: those of other providers may have another length.
func (a *api) callID(id string) string {
	n := a.quirks.CallID
	odd := func(r rune) bool { return !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') }
	if n == 0 || id == "" || len(id) == n && !strings.ContainsFunc(id, odd) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])[:n]
}

// wireOf is a message with its pictures and documents. Those of a result follow it.
func (a *api) wireOf(m *llm.Message, without uint32) wireMessage {
	text := m.Content
	w := wireMessage{Role: m.Role, ToolCallID: a.callID(m.CallID)}
	if text != "" {
		w.Content = text
	}
	for _, call := range m.Calls {
		w.ToolCalls = append(w.ToolCalls, wireCall{
			ID:       a.callID(call.ID),
			Type:     sdk.ToolTypeFunction,
			Function: sdk.FunctionCall{Name: call.Name, Arguments: call.Args},
		})
	}
	if m.Role == llm.RoleAssistant {
		a.restore(&w, m, without)
	}
	if files := parts(m); len(files) > 0 && m.Role != llm.RoleTool {
		if text != "" {
			files = slices.Insert(files, 0, wirePart{Type: "text", Text: text})
		}
		w.Content = files
	}
	return w
}

// parts are the pictures and documents of a message.
func parts(m *llm.Message) []wirePart {
	var out []wirePart
	for _, i := range m.Images {
		out = append(out, wirePart{Type: "image_url", ImageURL: &wireImage{URL: dataURL(i.MIMEType, i.Data)}})
	}
	for j := range m.Documents {
		d := &m.Documents[j]
		out = append(out, wirePart{Type: "file", File: &wireFile{d.FileName(), dataURL("application/pdf", d.Data)}})
	}
	return out
}

func dataURL(kind string, data []byte) string {
	return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(data)
}
