package slacktest

import (
	"cmp"
	"encoding/base64"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxHistoryItems is the most that a page of history may be asked to hold.
const maxHistoryItems = 999

// archive is what the workspace knows about conversations and calls. The server's lock
// guards it.
type archive struct {
	spent    map[string][]time.Time // calls of the last minute, by method
	strange  []string
	kinds    map[string]string // of opened conversations
	left     map[string]bool   // channels that the bot is no member of
	archived map[string]bool
	shared   map[string]bool // with another workspace
	names    map[string]string

	uninstalled bool
}

// history is a page of a channel, newest first, or of a thread, oldest first.
// The lock is held.
func (s *Server) history(args url.Values, thread bool) answer {
	c, ok := s.channels[args.Get("channel")]
	if !ok {
		return refuse("channel_not_found")
	}
	if a := s.lacking(family[s.kind(c.id)] + ":history"); a != nil {
		return a
	}
	if s.left[c.id] {
		return refuse("not_in_channel")
	}
	limit, code := s.checkPage(args)
	if code != "" {
		return refuse(code)
	}
	if thread && c.find(args.Get("ts")) == nil {
		return refuse("thread_not_found")
	}
	found := s.inHistory(c, args, thread)
	next := ""
	if len(found) > limit {
		next, found = found[limit].TS, found[:limit]
	}
	page := make([]any, len(found))
	for i, m := range found {
		page[i] = s.render(m, args.Get("include_all_metadata") == "1")
	}
	a := answer{"ok": true, "messages": page, "has_more": next != ""}
	if next != "" {
		a["response_metadata"] = answer{"next_cursor": base64.StdEncoding.EncodeToString([]byte(nextPrefix + next))}
	}
	return a
}

// listed are the types of the kinds of conversations in a list.
var listed = map[string]string{Public: "public_channel", Private: "private_channel", Group: "mpim", Direct: "im"}

// readScopes are those by which conversations are listed.
var readScopes = map[string]string{"public_channel": "channels:read", "private_channel": "groups:read", "mpim": "mpim:read", "im": "im:read"}

// list is a page of the conversations that the app may know of. Those that do not
// fit its types make it shorter, as with Slack. The lock is held.
func (s *Server) list(args url.Values) answer {
	types := strings.Split(cmp.Or(args.Get("types"), "public_channel"), ",")
	for _, t := range types {
		scope, ok := readScopes[t]
		if !ok {
			return refuse("invalid_types")
		}
		if a := s.lacking(scope); a != nil {
			return a
		}
	}
	limit := defaultListItems
	if text := args.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxHistoryItems {
			return refuse("invalid_limit")
		}
		limit = n
	}
	ids := slices.Sorted(maps.Keys(s.channels))
	if text := args.Get("cursor"); text != "" {
		b, err := base64.StdEncoding.DecodeString(text)
		from, ours := strings.CutPrefix(string(b), listPrefix)
		if err != nil || !ours {
			return refuse("invalid_cursor")
		}
		ids = slices.DeleteFunc(ids, func(id string) bool { return id < from })
	}
	next := ""
	if len(ids) > limit {
		next, ids = base64.StdEncoding.EncodeToString([]byte(listPrefix+ids[limit])), ids[:limit]
	}
	found := []any{}
	for _, id := range ids {
		switch c := s.channels[id]; {
		case !slices.Contains(types, listed[s.kind(id)]), s.left[id] && s.kind(id) != Public:
		case s.kind(id) == Direct:
			created := int64(0)
			if len(c.messages) > 0 {
				created = c.messages[0].At.Unix()
			}
			found = append(found, answer{"id": id, "created": created, "is_im": true, "user": strings.TrimPrefix(id, "D"), "is_user_deleted": false})
		default:
			found = append(found, s.conversation(id))
		}
	}
	return answer{"ok": true, "channels": found, "response_metadata": answer{"next_cursor": next}}
}

// info is what the app may know of a conversation. The lock is held.
func (s *Server) info(args url.Values) answer {
	id := args.Get("channel")
	if a := s.lacking(readScopes[listed[s.kind(id)]]); a != nil {
		return a
	}
	if s.channels[id] == nil || s.left[id] && s.kind(id) != Public {
		return refuse("channel_not_found")
	}
	return answer{"ok": true, "channel": s.conversation(id)}
}

// conversation is a channel or a group. The lock is held.
func (s *Server) conversation(id string) answer {
	return answer{
		"id": id, "name": cmp.Or(s.names[id], strings.ToLower(id)), "is_channel": s.kind(id) == Public, "is_group": s.kind(id) == Private,
		"is_mpim": s.kind(id) == Group, "is_private": s.kind(id) != Public, "is_archived": s.archived[id], "is_member": !s.left[id],
		"is_shared": s.shared[id], "is_ext_shared": s.shared[id],
	}
}

// Call names a channel; others are called as their ids in lower case.
func (s *Server) Call(channel, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names == nil {
		s.names = make(map[string]string)
	}
	s.names[channel] = name
}

// defaultListItems is the length of a page of conversations where none is asked for.
const defaultListItems = 100

// listPrefix begins a cursor among conversations.
const listPrefix = "next_id:"

// nextPrefix begins what a cursor says, which apps are not to know.
const nextPrefix = "next_ts:"

// checkPage checks which page is asked for, and how long it may be.
func (s *Server) checkPage(args url.Values) (limit int, code string) {
	limit = s.cfg.HistoryItems
	if text := args.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxHistoryItems {
			return 0, "invalid_limit"
		}
		limit = min(limit, n)
	}
	for _, name := range []string{"oldest", "latest"} {
		if text := args.Get(name); text != "" {
			if t, err := strconv.ParseFloat(text, 64); err != nil || t < 0 {
				return 0, "invalid_ts_" + name
			}
		}
	}
	if text := args.Get("cursor"); text != "" {
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil || !strings.HasPrefix(string(b), nextPrefix) {
			return 0, "invalid_cursor"
		}
	}
	return limit, ""
}

// inHistory are the messages that a page begins with and those behind it. The
// lock is held.
func (s *Server) inHistory(c *channel, args url.Values, thread bool) []*Message {
	b, _ := base64.StdEncoding.DecodeString(args.Get("cursor")) // checked
	from := strings.TrimPrefix(string(b), nextPrefix)
	var found []*Message
	for _, m := range c.messages {
		shown := m.Thread == "" || m.Thread == m.TS || m.Subtype == "thread_broadcast"
		behind := from == "" || compare(m.TS, from) <= 0
		if thread {
			shown = m.TS == args.Get("ts") || m.Thread == args.Get("ts")
			behind = from == "" || compare(m.TS, from) >= 0
		}
		if shown && behind && within(m, args) && time.Since(m.At) >= s.cfg.HistoryDelay {
			found = append(found, m)
		}
	}
	if !thread {
		for i, j := 0, len(found)-1; i < j; i, j = i+1, j-1 {
			found[i], found[j] = found[j], found[i]
		}
	}
	return found
}

// within applies oldest, latest and inclusive.
func within(m *Message, args url.Values) bool {
	inclusive := args.Get("inclusive") == "1"
	if o := args.Get("oldest"); o != "" && (compare(m.TS, o) < 0 || compare(m.TS, o) == 0 && !inclusive) {
		return false
	}
	l := args.Get("latest")
	return l == "" || compare(m.TS, l) < 0 || compare(m.TS, l) == 0 && inclusive
}

func compare(a, b string) int {
	x, _ := strconv.ParseFloat(a, 64) // what is no number is the beginning of time
	y, _ := strconv.ParseFloat(b, 64)
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// thread tells of the replies to a message, as the first message of a thread
// does. The lock is held.
func (s *Server) thread(m *Message) answer {
	c := s.channels[m.Channel]
	if c == nil {
		return nil
	}
	n, latest := 0, ""
	for _, r := range c.messages {
		if r.Thread == m.TS && r.TS != m.TS {
			n, latest = n+1, r.TS
		}
	}
	if n == 0 {
		return nil
	}
	return answer{"thread_ts": m.TS, "reply_count": n, "latest_reply": latest}
}
