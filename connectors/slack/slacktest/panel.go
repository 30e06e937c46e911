package slacktest

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"
)

// The tabs of an app.
const (
	TabHome     = "home"
	TabMessages = "messages"
)

// A Prompt is a suggestion to a person.
type Prompt struct {
	Title   string `json:"title"`
	Message string `json:"message"`
}

const maxPrompts = 4

// OpenTab lets a user open a tab of the app. The messages tab is also the panel of an app with an
// agent_view (docs.slack.dev/reference/events/app_home_opened, read 2026-11-28). A user of another
// workspace is team/user.
func (s *Server) OpenTab(user, tab string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	team, user := s.split(user)
	s.channel("D" + user)
	e := answer{"type": "app_home_opened", "user": user, "channel": "D" + user, "tab": tab, "event_ts": s.stamp()}
	if page := s.homes[user]; tab == TabHome && page != nil {
		e["view"] = answer{"id": "V" + user, "type": "home", "blocks": page}
	}
	s.event(team, e)
}

// publishHome replaces the Home tab of a user
// (docs.slack.dev/reference/methods/views.publish, read 2026-11-28). The lock is held.
func (s *Server) publishHome(args url.Values) answer {
	var v struct {
		Type   string   `json:"type"`
		Blocks []object `json:"blocks"`
	}
	text := args.Get("view")
	c := &checker{view: true, limit: maxViewBlocks}
	switch {
	case !s.app.home:
		return refuse("not_enabled")
	case args.Get("user_id") == "" || strings.Contains(args.Get("user_id"), "/"):
		return refuse("invalid_arguments")
	case len(text) > maxViewBytes:
		return refuse("view_too_large")
	case json.Unmarshal([]byte(text), &v) != nil || v.Type != "home" || c.blocks(v.Blocks) != nil || c.inputs > 0:
		return refuse("invalid_arguments")
	}
	s.homes[args.Get("user_id")] = v.Blocks
	s.published[args.Get("user_id")]++
	s.change()
	return answer{"ok": true}
}

// Home returns what a user reads on the Home tab of the app.
func (s *Server) Home(user string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return shown(s.homes[user])
}

// Published is how many Home tabs of a user the app has published.
func (s *Server) Published(user string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.published[user]
}

// LeaveHome gives a user a Home tab, as if the app had published it long ago.
func (s *Server) LeaveHome(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.homes[user] = []object{{"type": "section", "text": object{"type": "plain_text", "text": "what the app once published"}}}
}

// OpenAssistant lets a user begin a conversation with an app that has an assistant_view. It
// returns the thread, which the user sees as the conversation
// (docs.slack.dev/reference/events/assistant_thread_started, read 2026-11-28).
func (s *Server) OpenAssistant(user string) (channel, thread string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	channel, thread = "D"+user, s.stamp()
	c := s.channel(channel)
	c.messages = append(c.messages, &Message{TS: thread, Channel: channel, User: "USLACKBOT", Text: "New Assistant Thread", Subtype: "assistant_app_thread", At: time.Now()})
	if s.app.view == "assistant" {
		s.event(s.cfg.Team, answer{
			"type": "assistant_thread_started", "event_ts": s.stamp(),
			"assistant_thread": answer{"user_id": user, "channel_id": channel, "thread_ts": thread, "context": answer{}},
		})
	}
	return channel, thread
}

// setPrompts suggests prompts in a chat. An app with an agent_view that names a thread gets no
// error and no effect (docs.slack.dev/reference/methods/assistant.threads.setSuggestedPrompts,
// read 2026-11-28). The lock is held.
func (s *Server) setPrompts(args url.Values) answer {
	c, code := s.writable(args.Get("channel_id"))
	if code != "" {
		return refuse(code)
	}
	var prompts []Prompt
	if json.Unmarshal([]byte(args.Get("prompts")), &prompts) != nil || len(prompts) == 0 || len(prompts) > maxPrompts {
		return refuse("invalid_arguments")
	}
	for _, p := range prompts {
		if p.Title == "" || p.Message == "" {
			return refuse("invalid_arguments")
		}
	}
	thread := args.Get("thread_ts")
	if thread != "" && s.app.view == "agent" {
		return answer{"ok": true}
	}
	if thread != "" && c.find(thread) == nil {
		return refuse("invalid_thread_ts")
	}
	if c.prompts == nil {
		c.prompts = make(map[string][]Prompt)
	}
	c.prompts[thread] = prompts
	s.change()
	return answer{"ok": true}
}

// setTitle gives a title to a thread that a person began with an app that has an assistant_view
// (docs.slack.dev/reference/methods/assistant.threads.setTitle, read 2026-11-30). The lock is held.
func (s *Server) setTitle(args url.Values) answer {
	c, code := s.writable(args.Get("channel_id"))
	if code != "" {
		return refuse(code)
	}
	thread, title := args.Get("thread_ts"), args.Get("title")
	if m := c.find(thread); m == nil || m.Subtype != "assistant_app_thread" {
		return refuse("invalid_thread_ts")
	}
	if strings.TrimSpace(title) == "" {
		return refuse("invalid_arguments")
	}
	if c.titles == nil {
		c.titles = make(map[string][]string)
	}
	c.titles[thread] = append(c.titles[thread], title)
	s.change()
	return answer{"ok": true}
}

// Titles returns the titles that a thread of a chat was given, the newest last.
func (s *Server) Titles(channel, thread string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channels[channel]; c != nil {
		return slices.Clone(c.titles[thread])
	}
	return nil
}

// Prompts returns what a chat, or a thread of it, suggests to its user.
func (s *Server) Prompts(channel, thread string) []Prompt {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channels[channel]; c != nil {
		return c.prompts[thread]
	}
	return nil
}
