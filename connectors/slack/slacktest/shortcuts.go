package slacktest

import (
	"fmt"
	"net/url"
	"strings"
)

// Shortcut lets a user choose the shortcut of a callback id: with a message that of this message, in
// any channel, else a global one. A user of another workspace is team/user.
//
// Shapes: docs.slack.dev/interactivity/implementing-shortcuts, as of 2026-11-28.
func (s *Server) Shortcut(user, callback, channel, ts string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind, name := "global", "shortcut"
	if ts != "" {
		kind, name = "message", "message_action"
	}
	if s.app.shortcuts[callback] != kind || !s.app.interactive || !s.granted("commands") {
		return "", fmt.Errorf("the app has no %s shortcut %s", kind, callback)
	}
	p := s.payload(name, user)
	p["callback_id"], p["action_ts"] = callback, s.stamp()
	if ts == "" {
		return s.send("interactive", p), nil
	}
	m := s.channel(channel).find(ts)
	if m == nil {
		return "", fmt.Errorf("no message %s in %s", ts, channel)
	}
	p["channel"], p["message_ts"] = object{"id": channel, "name": strings.ToLower(channel)}, ts
	p["response_url"] = s.responseURL("app", channel, user, ts)
	p["message"] = escaped(object(s.render(m, false)))
	return s.send("interactive", p), nil
}

// openDirect finds or makes the direct chat with a user. The lock is held.
func (s *Server) openDirect(args url.Values) answer {
	user := args.Get("users")
	if user == "" || strings.ContainsAny(user, ",/") {
		return refuse("user_not_found")
	}
	return answer{"ok": true, "channel": answer{"id": s.channel("D" + user).id}}
}
