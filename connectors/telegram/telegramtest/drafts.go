package telegramtest

import (
	"encoding/json"
	"time"
)

// draftLasts is how long a draft is shown: "a temporary 30-second preview"
// (core.telegram.org/bots/api#sendmessagedraft, as of 2026-11-28).
const draftLasts = 30 * time.Second

// A Draft is unfinished text that a private chat shows until the bot sends a message there.
type Draft struct {
	ID, ThreadID int64
	Text         string // empty for "Thinking…"
	Source       string // as the bot sent it
	At           time.Time
}

// sendDraft shows a draft. It counts as a message for the limits; Telegram documents nothing
// about that.
func (s *Server) sendDraft(c *call) ([]byte, *apiError) {
	var p struct {
		sendParams
		DraftID integer `json:"draft_id"`
	}
	if err := json.Unmarshal(c.params, &p); err != nil {
		return nil, badParams(err)
	}
	var text string
	var bad *apiError
	if p.Text != "" {
		text, _, bad = p.text()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ch, e := s.open(int64(p.ChatID))
	switch {
	case s.cfg.NoDrafts:
		return nil, &apiError{Code: 404, Description: "Not Found"}
	case e != nil:
		return nil, e
	case ch.id < 0:
		return nil, badRequest("TEXTDRAFT_PEER_INVALID")
	case p.DraftID == 0:
		return nil, badRequest("draft_id must be non-zero")
	case bad != nil:
		return nil, bad
	}
	if e := p.checkPlace(ch); e != nil {
		return nil, e
	}
	if e := s.allow(ch); e != nil {
		return nil, e
	}
	d := Draft{ID: int64(p.DraftID), ThreadID: int64(p.ThreadID), Text: text, Source: p.Text, At: time.Now()}
	if ch.drafts == nil {
		ch.drafts = make(map[int64]Draft)
	}
	ch.drafts[d.ThreadID] = d
	s.touch()
	return []byte("true"), nil
}

// Draft returns the draft that a chat shows, outside of topics; ok is false for none.
func (s *Server) Draft(chatID int64) (d Draft, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch := s.chats[chatID]; ch != nil {
		d, ok = ch.drafts[0]
	}
	return d, ok && time.Since(d.At) < draftLasts
}
