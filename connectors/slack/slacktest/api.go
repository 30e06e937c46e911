package slacktest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The limits of texts, in characters.
const (
	maxPostChars   = 40_000
	maxUpdateChars = 4_000
	maxBodyBytes   = 1 << 20
)

// An answer is the JSON object that a method returns.
type answer map[string]any

func refuse(code string) answer { return answer{"ok": false, "error": code} }

func (a answer) word() string {
	if code, ok := a["error"].(string); ok {
		return code
	}
	return "ok"
}

func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	method := r.PathValue("method")
	r.Body = http.MaxBytesReader(w, r.Body, maxBodyBytes)
	args, err := form(r)
	if err != nil {
		s.note(method, url.Values{}, http.StatusOK, "invalid_arguments")
		write(w, refuse("invalid_arguments"))
		return
	}
	if s.isDown() {
		s.fail(w, r, method, args, Fault{Status: http.StatusServiceUnavailable}, nil)
		return
	}
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if token == "" {
		token = args.Get("token")
	}
	f := s.fault(method, args.Get("channel"))
	if f.RetryAfter > 0 && !f.Done {
		s.limit(w, method, args, f.RetryAfter)
		return
	}
	s.scoped(w, method, token)
	var a answer
	if done := f.Done || f.Cut || f.Lost || f.Hang || f == (Fault{}); done {
		a = s.call(method, token, args, r)
	}
	if wait, ok := a["retry"].(time.Duration); ok {
		s.limit(w, method, args, wait)
		return
	}
	if f == (Fault{}) {
		s.note(method, args, http.StatusOK, a.word())
		write(w, a)
		return
	}
	s.fail(w, r, method, args, f, a)
}

// fail answers as the fault says.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, method string, args url.Values, f Fault, a answer) {
	switch {
	case f.RetryAfter > 0:
		s.limit(w, method, args, f.RetryAfter)
	case f.Hang:
		s.note(method, args, 0, "hang")
		select {
		case <-r.Context().Done():
		case <-s.hangs:
		}
		panic(http.ErrAbortHandler)
	case f.Lost:
		s.note(method, args, 0, "lost")
		panic(http.ErrAbortHandler)
	case f.Cut:
		s.note(method, args, http.StatusOK, "cut")
		b, _ := json.Marshal(a) // strings and numbers always marshal
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(b)))
		_, _ = w.Write(b[:len(b)/2]) // the client is to see a broken answer
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case f.Status != 0:
		s.note(method, args, f.Status, http.StatusText(f.Status))
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(f.Status)
		_, _ = w.Write([]byte("<html>upstream error</html>")) // the client may be gone
	default:
		s.note(method, args, http.StatusOK, f.Error)
		a := refuse(f.Error)
		if f.Needed != "" {
			a["needed"] = f.Needed
		}
		write(w, a)
	}
}

func (s *Server) limit(w http.ResponseWriter, method string, args url.Values, d time.Duration) {
	s.note(method, args, http.StatusTooManyRequests, "ratelimited")
	w.Header().Set("Retry-After", strconv.Itoa(int((d+time.Second-1)/time.Second)))
	w.WriteHeader(http.StatusTooManyRequests)
	_, _ = w.Write([]byte(`{"ok":false,"error":"ratelimited"}`)) // the client may be gone
}

func write(w http.ResponseWriter, a answer) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(a) // the client may be gone
}

// call does the work of a method.
func (s *Server) call(method, token string, args url.Values, r *http.Request) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.check(method, token, args); a != nil {
		return a
	}
	s.base = "http://" + r.Host
	if r.TLS != nil {
		s.base = "https://" + r.Host
	}
	switch method {
	case "files.info":
		return s.fileInfo(args, r.Host)
	case "files.getUploadURLExternal":
		return s.uploadURL(args, r.Host)
	case "files.completeUploadExternal":
		return s.complete(args)
	case "reactions.add":
		return s.react(args)
	case "reactions.remove":
		return s.unreact(args)
	case "auth.test":
		return answer{"ok": true, "team_id": s.cfg.Team, "team": "test", "user_id": s.cfg.BotUser, "bot_id": s.cfg.BotID, "user": s.cfg.BotName}
	case "oauth.v2.access":
		return s.oauth(r, args)
	case "apps.manifest.create":
		return s.create(args)
	case "apps.connections.open":
		if s.push != nil { // docs.slack.dev/reference/methods/apps.connections.open, read 2026-11-30
			return refuse("socket_mode_not_enabled")
		}
		ticket := s.next("ticket-")
		s.tickets[ticket] = true
		scheme := "ws"
		if r.TLS != nil {
			scheme = "wss"
		}
		return answer{"ok": true, "url": fmt.Sprintf("%s://%s/socket?ticket=%s", scheme, r.Host, ticket)}
	case "assistant.threads.setStatus":
		return s.setStatus(args)
	case "assistant.threads.setSuggestedPrompts":
		return s.setPrompts(args)
	case "chat.postMessage":
		return s.post(args)
	case "chat.update":
		return s.update(args)
	case "chat.startStream":
		return s.startStream(args)
	case "chat.appendStream":
		return s.appendStream(args)
	case "chat.stopStream":
		return s.stopStream(args)
	case "chat.postEphemeral":
		return s.whisper(args)
	case "views.publish":
		return s.publishHome(args)
	case "views.open":
		return s.openView(args)
	case "users.info":
		return s.userInfo(args.Get("user"), args.Get("include_locale") == "true")
	}
	return s.conversations(method, args)
}

// conversations handles the methods about conversations, their sessions and titles. The lock is held.
func (s *Server) conversations(method string, args url.Values) answer {
	switch method {
	case "agents.sessions.setStatus":
		return s.setSession(args)
	case "assistant.threads.setTitle":
		return s.setTitle(args)
	case "conversations.open":
		return s.openDirect(args)
	case "conversations.history":
		return s.history(args, false)
	case "conversations.replies":
		return s.history(args, true)
	case "conversations.info":
		return s.info(args)
	case "conversations.list":
		return s.list(args)
	}
	return refuse("unknown_method")
}

// post posts a message of the app. A reply to a deleted message becomes a message of the
// channel, and the answer lacks message.thread_ts: Slack refuses nothing then
// (github.com/slack-go/slack/issues/1571, read 2026-11-28). The lock is held.
func (s *Server) post(args url.Values) answer {
	c, code := s.writable(args.Get("channel"))
	if code != "" {
		return refuse(code)
	}
	text := args.Get("text")
	blocks, code := s.readBlocks(args)
	if code == "" && (len(blocks) == 0 || text != "") {
		code = s.checkText(text, maxPostChars)
	}
	if code != "" {
		return refuse(code)
	}
	thread := args.Get("thread_ts")
	if c.gone[thread] {
		thread = ""
	}
	if code := c.checkThread(thread); code != "" {
		return refuse(code)
	}
	metadata, code := readMetadata(args.Get("metadata"))
	if code != "" {
		return refuse(code)
	}
	if wait := c.bucket.take(s.cfg.PostEvery, s.cfg.Burst); wait > 0 {
		return answer{"retry": wait}
	}
	m := &Message{
		TS: s.stamp(), Channel: c.id, Thread: thread, User: s.cfg.BotUser, BotID: s.cfg.BotID, Text: text, Blocks: blocks,
		Metadata: metadata, At: time.Now(), Unfurl: args.Get("unfurl_links") != "false" || args.Get("unfurl_media") != "false",
	}
	c.messages = append(c.messages, m)
	delete(c.statuses, m.Thread)
	s.echo(c, "", m)
	s.shown(m)
	return answer{"ok": true, "channel": c.id, "ts": m.TS, "message": s.render(m, false)}
}

// shown ends a change of m.
func (s *Server) shown(m *Message) {
	s.change()
	if s.cfg.OnMessage != nil {
		s.cfg.OnMessage(*m)
	}
}

func (s *Server) update(args url.Values) answer {
	c, code := s.writable(args.Get("channel"))
	if code != "" {
		return refuse(code)
	}
	m := c.find(args.Get("ts"))
	if m == nil {
		return refuse("message_not_found")
	}
	switch {
	case m.BotID != s.cfg.BotID:
		return refuse("cant_update_message")
	case m.Streaming && time.Since(m.At) < streamLife:
		return refuse("streaming_state_conflict")
	}
	m.Streaming = false
	if code := s.checkText(args.Get("text"), maxUpdateChars); code != "" {
		return refuse(code)
	}
	metadata, code := readMetadata(args.Get("metadata"))
	if code != "" {
		return refuse(code)
	}
	blocks, code := s.readBlocks(args)
	if code != "" {
		return refuse(code)
	}
	if args.Has("blocks") { // a text alone leaves them as they are
		m.Blocks = blocks
	}
	if metadata != nil {
		m.Metadata = metadata
	}
	m.Text = args.Get("text")
	m.Edits++
	s.echo(c, "message_changed", m)
	s.shown(m)
	return answer{"ok": true, "channel": c.id, "ts": m.TS, "text": m.Text}
}

func (s *Server) checkText(text string, limit int) string {
	switch {
	case strings.TrimSpace(text) == "":
		return "no_text"
	case utf8.RuneCountInString(text) > limit:
		return "msg_too_long"
	}
	return ""
}

// readBlocks checks the blocks of a message, and names those that have no name.
// The lock is held.
func (s *Server) readBlocks(args url.Values) ([]map[string]any, string) {
	text := args.Get("blocks")
	if text == "" {
		return nil, ""
	}
	var refused *blockError
	if err := CheckBlocks([]byte(text)); errors.As(err, &refused) {
		return nil, refused.code
	}
	blocks, _ := readBlocks([]byte(text)) // checked
	for _, b := range blocks {
		if b["block_id"] == nil {
			b["block_id"] = s.next("b")
		}
	}
	return blocks, ""
}

func readMetadata(text string) (*Metadata, string) {
	if text == "" {
		return nil, ""
	}
	var m Metadata
	if json.Unmarshal([]byte(text), &m) != nil || m.EventType == "" || m.EventPayload == nil {
		return nil, "invalid_metadata_format"
	}
	return &m, ""
}
