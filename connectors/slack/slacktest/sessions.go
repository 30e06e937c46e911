package slacktest

import (
	"fmt"
	"net/url"
	"slices"
	"time"
)

const maxSessionTitle = 200 // characters

// A Session is what a thread shows of an app for agents.
type Session struct {
	Status string // active, processing, suspended or closed
	Title  string
}

// setSession sets the status of the session of a thread, which begins with the first one
// (docs.slack.dev/reference/methods/agents.sessions.setStatus, read 2026-11-30). The lock is held.
func (s *Server) setSession(args url.Values) answer {
	c, code := s.writable(args.Get("channel_id"))
	thread, status, title := args.Get("thread_ts"), args.Get("status"), args.Get("title")
	switch {
	case code != "":
		return refuse(code)
	case s.app.view == "":
		return refuse("not_agent_app")
	case !slices.Contains([]string{"active", "processing", "suspended", "closed"}, status) || chars(title) > maxSessionTitle:
		return refuse("invalid_arguments")
	case c.find(thread) == nil:
		return refuse("invalid_thread_ts")
	}
	if c.sessions == nil {
		c.sessions = make(map[string]*Session)
	}
	if c.sessions[thread] == nil {
		c.sessions[thread] = &Session{Title: title}
	}
	x := c.sessions[thread]
	x.Status = status
	s.change()
	a := answer{"ok": true, "status": status, "agent_status": status, "title": x.Title}
	if !s.app.events["agent_session_stopped"] {
		a["warning"] = "missing_agent_session_stopped_event_subscription"
	}
	return a
}

// Session returns the session of a thread.
func (s *Server) Session(channel, thread string) (x Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channels[channel]; c != nil && c.sessions[thread] != nil {
		x = *c.sessions[thread]
	}
	return x
}

// StopSession lets a user press the button that Slack shows while the session of a thread is processing.
// Slack stops what streams there, and leaves the status
// (docs.slack.dev/reference/events/agent_session_stopped, read 2026-11-30).
func (s *Server) StopSession(user, channel, thread string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[channel]
	if c == nil || c.sessions[thread] == nil || c.sessions[thread].Status != "processing" || !s.app.events["agent_session_stopped"] {
		return fmt.Errorf("%s shows no button at %s", channel, thread)
	}
	streams := []string{}
	for _, m := range c.messages {
		if m.Streaming && m.Thread == thread && time.Since(m.At) < streamLife {
			m.Streaming, m.Halted = false, true
			streams = append(streams, m.TS)
		}
	}
	team, user := s.split(user)
	s.event(team, answer{
		"type": "agent_session_stopped", "user": user, "channel": channel, "thread_ts": thread, "streaming_message_ts": streams, "event_ts": s.stamp(),
	})
	return nil
}
