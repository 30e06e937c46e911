package slacktest

import (
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"time"
)

// The limits of a response_url: https://docs.slack.dev/interactivity/handling-user-interaction,
// as of 2026-11-28.
const (
	maxResponses = 5
	responseLife = 30 * time.Minute
)

// Respond is the name of requests to a response_url in the journal and in faults. The journal has
// their texts, never the address.
const Respond = "response_url"

// A response address takes a few messages of the app to where a person acted, also where
// the bot is no member.
type response struct {
	channel, user, message string // message: of the button, if any
	at                     time.Time
	used                   int
}

// A responding is the body of a request to a response_url.
type responding struct {
	Text     string          `json:"text"`
	Type     string          `json:"response_type"`
	Thread   string          `json:"thread_ts"`
	Blocks   json.RawMessage `json:"blocks"`
	Replaces bool            `json:"replace_original"`
	Deletes  bool            `json:"delete_original"`
}

// responseURL makes an address, which ends in a secret. kind is commands, actions or app. The lock is
// held.
func (s *Server) responseURL(kind, channel, user, message string) string {
	id := s.next("response-secret-")
	_, user = s.split(user)
	s.responses[id] = &response{channel: channel, user: user, message: message, at: time.Now()}
	return s.base + "/" + kind + "/" + s.cfg.Team + "/1/" + id
}

// serveResponse is a response_url. A success is the text ok, and no message id comes back, as from an
// incoming webhook (github.com/slackapi/python-slack-sdk, WebhookClient; docs.slack.dev/messaging/
// sending-messages-using-incoming-webhooks, read 2026-11-28). A refusal names its code in JSON.
func (s *Server) serveResponse(w http.ResponseWriter, r *http.Request) {
	var body responding
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	dec.DisallowUnknownFields()
	err := dec.Decode(&body)
	args := url.Values{"text": {body.Text}, "response_type": {body.Type}}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil && kind != "application/json" {
		s.remark("response_url: the content type is %q", kind)
	}
	if r.Header.Get("Authorization") != "" {
		s.remark("response_url: the request has a token")
	}
	f := s.fault(Respond, "")
	if s.isDown() {
		f = Fault{Status: http.StatusServiceUnavailable}
	}
	a := answer{"ok": true}
	if f == (Fault{}) || f.Done || f.Cut || f.Lost || f.Hang {
		a = s.respond(r.PathValue("id"), body, err)
	}
	switch code := a.word(); {
	case f != (Fault{}):
		s.fail(w, r, Respond, args, f, a)
	case code != "ok":
		s.note(Respond, args, http.StatusNotFound, code)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(a) // the client may be gone
	default:
		s.note(Respond, args, http.StatusOK, code)
		_, _ = w.Write([]byte("ok")) // the client may be gone
	}
}

// remark notes what Slack does not document.
func (s *Server) remark(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.complain(format, args...)
}

// respond does what a request to an address asks for. bad is what is wrong with its body.
func (s *Server) respond(id string, body responding, bad error) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.change()
	a := s.responses[id]
	if code := s.checkResponse(a, body, bad); code != "" {
		return refuse(code)
	}
	a.used++
	c := s.channel(a.channel)
	switch original := c.find(a.message); {
	case body.Deletes:
		c.remove(a.message)
	case body.Replaces && original != nil:
		original.Text, original.Blocks = body.Text, nil
		_ = json.Unmarshal(body.Blocks, &original.Blocks) // checked
		original.Edits++
		s.shown(original)
	case body.Type == "in_channel":
		m := &Message{TS: s.stamp(), Channel: a.channel, Thread: body.Thread, User: s.cfg.BotUser, BotID: s.cfg.BotID, Text: body.Text, At: time.Now()}
		_ = json.Unmarshal(body.Blocks, &m.Blocks) // checked
		c.messages = append(c.messages, m)
		s.echo(c, "", m)
		s.shown(m)
	default:
		s.whispers = append(s.whispers, Whisper{Channel: a.channel, User: a.user, Text: body.Text, Thread: body.Thread, At: time.Now(), Responds: true})
	}
	return answer{"ok": true}
}

// checkResponse returns why an address refuses a request; empty if it takes it. The lock is held.
func (s *Server) checkResponse(a *response, body responding, bad error) string {
	switch {
	case a == nil:
		return "no_such_url"
	case bad != nil:
		s.complain("response_url: %v", bad)
		return "invalid_payload"
	case time.Since(a.at) >= responseLife:
		return "expired_url"
	case a.used >= maxResponses:
		return "used_url"
	case body.Type != "" && body.Type != "ephemeral" && body.Type != "in_channel":
		return "invalid_payload"
	case (body.Replaces || body.Deletes) && a.message == "":
		return "no_original_message"
	case len(body.Blocks) > 0 && CheckBlocks(body.Blocks) != nil:
		return "invalid_blocks"
	case !body.Deletes && len(body.Blocks) == 0:
		return s.checkText(body.Text, maxPostChars)
	}
	return ""
}

// remove takes a message away.
func (c *channel) remove(ts string) {
	for i, m := range c.messages {
		if m.TS == ts {
			c.messages = append(c.messages[:i:i], c.messages[i+1:]...)
			return
		}
	}
}
