package slacktest

import (
	"encoding/json"
	"net/http"
	"time"
)

// The limits of a response_url: https://docs.slack.dev/interactivity/handling-user-interaction,
// as of 2026-11-28.
const (
	maxResponses = 5
	responseLife = 30 * time.Minute
)

// A response address takes a few messages of the app to where a person acted, also where
// the bot is no member.
type response struct {
	channel, user, message string // message: of the button, if any
	at                     time.Time
	used                   int
}

// responseURL makes an address. The lock is held.
func (s *Server) responseURL(channel, user, message string) string {
	id := s.next("response-")
	s.responses[id] = &response{channel: channel, user: user, message: message, at: time.Now()}
	return s.base + "/actions/" + s.cfg.Team + "/" + id
}

func (s *Server) serveResponse(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Text     string          `json:"text"`
		Type     string          `json:"response_type"`
		Thread   string          `json:"thread_ts"`
		Blocks   json.RawMessage `json:"blocks"`
		Replaces bool            `json:"replace_original"`
		Deletes  bool            `json:"delete_original"`
	}
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	dec.DisallowUnknownFields()
	err := dec.Decode(&body)
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.change()
	a := s.responses[r.PathValue("id")]
	code := ""
	switch {
	case a == nil:
		code = "no_such_url"
	case err != nil:
		s.complain("response_url: %v", err)
		code = "invalid_payload"
	case time.Since(a.at) >= responseLife:
		code = "expired_url"
	case a.used >= maxResponses:
		code = "used_url"
	case body.Type != "" && body.Type != "ephemeral" && body.Type != "in_channel":
		code = "invalid_payload"
	case (body.Replaces || body.Deletes) && a.message == "":
		code = "no_original_message"
	case !body.Deletes && len(body.Blocks) == 0:
		code = s.checkText(body.Text, maxPostChars)
	}
	if code == "" && len(body.Blocks) > 0 && CheckBlocks(body.Blocks) != nil {
		code = "invalid_blocks"
	}
	if code != "" {
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(refuse(code)) // the client may be gone
		return
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
		s.whispers = append(s.whispers, Whisper{Channel: a.channel, User: a.user, Text: body.Text, Thread: body.Thread, At: time.Now()})
	}
	_, _ = w.Write([]byte("ok")) // the client may be gone
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
