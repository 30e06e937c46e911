package telegramtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg" // pictures that are sent are looked at
	_ "image/png"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// The limits of files, in bytes and UTF-16 units.
const (
	maxDownload = 20 << 20
	maxUpload   = 50 << 20
	// With --local (https://core.telegram.org/bots/api#using-a-local-bot-api-server, as of
	// 2026-11-28).
	maxLocalUpload = 2000 << 20
	maxPhoto       = 10_000_000
	maxCaption     = 1024
	maxThumb       = 1 << 20 // what an upload may have beside the file
	linkAge        = time.Hour
)

// A File is a file that was sent.
type File struct {
	Method   string // by which the bot sent it, in lower case
	Name     string
	MIMEType string // as the bot said
	Data     []byte
	Source   string // the caption as the bot sent it
}

// A held is a file on the server.
type held struct {
	id, unique, name string
	data             []byte
	size             int64 // what Telegram says; that of data unless the test says otherwise
	gone             bool
	until            time.Time // its address works until then
	path             string
}

// AddFile puts a file on the server and returns what names it in a message:
// {"file_id", "file_unique_id", "file_size"}, to which a test adds the rest.
func (s *Server) AddFile(name string, data []byte) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addFile(name, data)
}

func (s *Server) addFile(name string, data []byte) map[string]any {
	n := len(s.files) + 1
	f := &held{id: fmt.Sprintf("AgACFake%04d", n), unique: fmt.Sprintf("AQADfake%04d", n), name: name, data: data, size: int64(len(data))}
	f.path = fmt.Sprintf("documents/file_%d%s", n, path.Ext(name))
	if s.files == nil {
		s.files = make(map[string]*held)
	}
	s.files[f.id] = f
	return map[string]any{"file_id": f.id, "file_unique_id": f.unique, "file_size": f.size}
}

// LoseFile makes a file disappear, whether or not its address was given out.
func (s *Server) LoseFile(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.files[id]; f != nil {
		f.gone = true
	}
}

// getFile gives out the path of a file.
func (s *Server) getFile(c *call) ([]byte, *apiError) {
	var p struct {
		FileID string `json:"file_id"`
	}
	if err := json.Unmarshal(c.params, &p); err != nil {
		return nil, badParams(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files[p.FileID]
	switch {
	case f == nil:
		return nil, badRequest("invalid file_id")
	case s.cfg.Local != "":
		return s.localFile(f)
	case f.size > maxDownload:
		return nil, badRequest("file is too big")
	}
	f.until = time.Now().Add(linkAge)
	return mustJSON(map[string]any{"file_id": f.id, "file_unique_id": f.unique, "file_size": f.size, "file_path": f.path}), nil
}

// localFile writes a file into the directory of the server. The lock is held.
func (s *Server) localFile(f *held) ([]byte, *apiError) {
	at := filepath.Join(s.cfg.Local, filepath.FromSlash(f.path))
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		return nil, &apiError{Code: 500, Description: err.Error()}
	}
	if err := os.WriteFile(at, f.data, 0o600); err != nil {
		return nil, &apiError{Code: 500, Description: err.Error()}
	}
	return mustJSON(map[string]any{"file_id": f.id, "file_unique_id": f.unique, "file_size": f.size, "file_path": at}), nil
}

// maxUpload is the largest file that the server takes.
func (s *Server) maxUpload() int {
	if s.cfg.Local != "" {
		return maxLocalUpload
	}
	return maxUpload
}

// serveFile answers GET /file/bot<token>/<path>. In faults and in the journal it
// is the method "file".
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request, rest string) {
	token, at, _ := strings.Cut(rest, "/")
	c := call{method: "file", ctx: r.Context(), params: mustJSON(map[string]any{"path": at})}
	f := s.begin(&c)
	if f != nil && f.before(s, w, r, &c) {
		return
	}
	var data []byte
	status := http.StatusNotFound
	s.mu.Lock()
	for _, h := range s.files {
		if token == s.token && r.Method == http.MethodGet && h.path == at && !h.gone && time.Now().Before(h.until) {
			data, status = h.data, http.StatusOK
		}
	}
	s.mu.Unlock()
	if status != http.StatusOK {
		status, data = encode(nil, &apiError{Code: 404, Description: "Not Found"})
	}
	if f != nil {
		f.after(s, w, &c, data)
	}
	s.end(&c, status, nil)
	write(w, status, "application/octet-stream", data)
}

// An upload is the file in a request.
type upload struct {
	field, name, mimeType string
	data                  []byte
}

// form reads a request of the type multipart/form-data.
func form(r *http.Request, most int64) (params []byte, file *upload, err error) {
	parts, err := r.MultipartReader()
	if err != nil {
		return nil, nil, err
	}
	values := url.Values{}
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return formJSON(values), file, nil
		}
		if err != nil {
			return nil, nil, err
		}
		data, err := io.ReadAll(io.LimitReader(part, most+maxThumb))
		if err != nil {
			return nil, nil, err
		}
		if part.FileName() == "" {
			values.Add(part.FormName(), string(data))
			continue
		}
		file = &upload{part.FormName(), part.FileName(), part.Header.Get("Content-Type"), data}
	}
}

// sendFile is sendDocument, sendPhoto, sendVoice, sendAudio and sendVideo.
func (s *Server) sendFile(c *call) ([]byte, *apiError) {
	var p struct {
		sendParams
		Caption string `json:"caption"`
	}
	if err := json.Unmarshal(c.params, &p); err != nil {
		return nil, badParams(err)
	}
	caption, entities, bad := p.caption(p.Caption)
	if bad == nil {
		bad = c.checkFile(s.maxUpload())
	}
	s.mu.Lock()
	ch, e := s.open(int64(p.ChatID))
	if e == nil {
		e = bad
	}
	if e == nil {
		e = p.checkPlace(ch)
	}
	if e == nil {
		e = s.allow(ch)
	}
	if e != nil {
		s.mu.Unlock()
		return nil, e
	}
	id := s.nextMessage(ch)
	m := &stored{from: s.bot, Message: Message{
		ID: id, ChatID: ch.id, ThreadID: int64(p.ThreadID), Text: caption, Source: p.Caption, Entities: entities, At: time.Now(),
		File: &File{c.method, c.file.name, c.file.mimeType, c.file.data, p.Caption},
	}}
	if p.Reply != nil && ch.messages[int64(p.Reply.MessageID)] != nil {
		m.ReplyTo = int64(p.Reply.MessageID)
	}
	ch.messages[id] = m
	ch.sent = append(ch.sent, m)
	delete(ch.drafts, m.ThreadID)
	return s.show(ch, m)
}

// caption checks a caption as a text is checked, but it may be empty.
func (p *sendParams) caption(text string) (string, []Entity, *apiError) {
	if text == "" {
		return "", nil, nil
	}
	p.Text = text
	seen, entities, e := p.text()
	if e == nil && utf16Len(seen) > maxCaption {
		return "", nil, badRequest("message caption is too long")
	}
	return seen, entities, e
}

// checkFile refuses files that Telegram refuses.
func (c *call) checkFile(most int) *apiError {
	field := strings.TrimPrefix(c.method, "send")
	switch {
	case c.file == nil || c.file.field != field:
		return badRequest("there is no %s in the request", field)
	case len(c.file.data) == 0:
		return badRequest("file must be non-empty")
	case len(c.file.data) > most:
		return &apiError{Code: 413, Description: "Request Entity Too Large"}
	}
	switch field {
	case "photo":
		if len(c.file.data) > maxPhoto {
			return badRequest("file is too big")
		}
		p, _, err := image.DecodeConfig(bytes.NewReader(c.file.data))
		switch {
		case err != nil:
			return badRequest("IMAGE_PROCESS_FAILED")
		case p.Width+p.Height > 10_000 || p.Width > 20*p.Height || p.Height > 20*p.Width:
			return badRequest("PHOTO_INVALID_DIMENSIONS")
		}
	case "voice":
		if !bytes.HasPrefix(c.file.data, []byte("OggS")) && !bytes.HasPrefix(c.file.data, []byte("ID3")) {
			return badRequest("wrong file type") // the platform shows it as a document instead
		}
	}
	return nil
}

// setReaction is setMessageReaction: one emoji from the list, or none.
func (s *Server) setReaction(c *call) ([]byte, *apiError) {
	var p struct {
		ChatID    integer `json:"chat_id"`
		MessageID integer `json:"message_id"`
		Reaction  []struct {
			Type  string `json:"type"`
			Emoji string `json:"emoji"`
		} `json:"reaction"`
	}
	if err := json.Unmarshal(c.params, &p); err != nil {
		return nil, badParams(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ch, e := s.open(int64(p.ChatID))
	if e != nil {
		return nil, e
	}
	m := ch.messages[int64(p.MessageID)]
	if m == nil || m.deleted {
		return nil, badRequest("message to react not found")
	}
	emoji := ""
	if len(p.Reaction) > 1 {
		return nil, badRequest("REACTIONS_TOO_MANY")
	}
	for _, r := range p.Reaction {
		if r.Type != "emoji" || !s.reactions[r.Emoji] {
			return nil, badRequest("REACTION_INVALID")
		}
		emoji = r.Emoji
	}
	if e := s.allow(ch); e != nil {
		return nil, e
	}
	m.Reaction = emoji
	s.touch()
	return []byte("true"), nil
}

// Reaction is the emoji that the bot put on a message; empty for none.
func (s *Server) Reaction(chat, message int64) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.chats[chat]; c != nil && c.messages[message] != nil {
		return c.messages[message].Reaction
	}
	return ""
}

// knownReactions are some of the emoji of Telegram's list.
func knownReactions() map[string]bool {
	known := make(map[string]bool)
	for _, emoji := range []string{"👍", "👎", "❤", "🔥", "🎉", "👀", "🙏", "👌", "🤔", "💯", "👨‍💻", "🤷‍♂", "✍", "⚡", "🤝"} {
		known[emoji] = true
	}
	return known
}
