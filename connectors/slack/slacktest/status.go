package slacktest

import (
	"encoding/json"
	"net/url"
	"time"
)

const (
	statusLife         = 2 * time.Minute // then Slack removes a status
	maxLoadingMessages = 10
)

// A status is what a thread shows of the app beside messages.
type status struct {
	text  string
	until time.Time
}

// setStatus shows a status in a thread, or below any message as if it were one, until the
// app posts there, clears it, or lets it expire
// (docs.slack.dev/reference/methods/assistant.threads.setStatus, read 2026-11-28). The lock
// is held.
func (s *Server) setStatus(args url.Values) answer {
	c, code := s.writable(args.Get("channel_id"))
	if code != "" {
		return refuse(code)
	}
	ts := args.Get("thread_ts")
	if c.find(ts) == nil {
		return refuse("invalid_thread_ts")
	}
	var loading []string
	given := args.Get("loading_messages")
	if !args.Has("status") || given != "" && (json.Unmarshal([]byte(given), &loading) != nil || len(loading) > maxLoadingMessages) {
		return refuse("invalid_arguments")
	}
	if c.statuses == nil {
		c.statuses = make(map[string]status)
	}
	if c.statuses[ts] = (status{args.Get("status"), time.Now().Add(statusLife)}); args.Get("status") == "" {
		delete(c.statuses, ts)
	}
	s.change()
	return answer{"ok": true}
}

// Status returns the status that people see at a message, the first of a thread or any
// other; empty for none.
func (s *Server) Status(channel, ts string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[channel]
	if c == nil || time.Now().After(c.statuses[ts].until) {
		return ""
	}
	return c.statuses[ts].text
}
