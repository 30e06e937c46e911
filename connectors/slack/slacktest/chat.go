package slacktest

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"
)

// A Message is what stands in a channel now.
type Message struct {
	TS, Channel, Thread string
	User, BotID         string
	Text                string
	Subtype, UserTeam   string
	Files               []File
	Blocks              []map[string]any // shown in place of the text
	Edits               int
	Streaming           bool // chat.stopStream is to come
	Halted              bool // a person stopped the stream
	Unfurl              bool // links would unfold
	Metadata            *Metadata
	At                  time.Time
}

// Metadata is what an app hides in its post.
type Metadata struct {
	EventType    string         `json:"event_type"`
	EventPayload map[string]any `json:"event_payload"`
}

type channel struct {
	id       string
	messages []*Message
	bucket   bucket
	statuses map[string]status   // by thread
	prompts  map[string][]Prompt // suggested, by thread; "" is that of the whole chat
	sessions map[string]*Session // by thread
	titles   map[string][]string // of threads, the newest last
	gone     map[string]bool     // deleted messages that left no tombstone
}

// find looks up a message; they stand in the order of their stamps, which have
// one width.
func (c *channel) find(ts string) *Message {
	i := sort.Search(len(c.messages), func(i int) bool { return c.messages[i].TS >= ts })
	if i == len(c.messages) || c.messages[i].TS != ts {
		return nil
	}
	return c.messages[i]
}

// checkThread refuses a thread that cannot be replied to.
func (c *channel) checkThread(ts string) string {
	if ts == "" {
		return ""
	}
	parent := c.find(ts)
	switch {
	case parent == nil:
		return "thread_not_found"
	case parent.Thread != "" && parent.Thread != parent.TS:
		return "invalid_thread_ts" // thread_ts must be the parent's
	}
	return ""
}

// A bucket limits posts to one channel.
type bucket struct {
	spent float64
	at    time.Time
}

// take spends one post, or says how long to wait for it.
func (b *bucket) take(every time.Duration, burst int) time.Duration {
	if every <= 0 {
		return 0
	}
	now := time.Now()
	b.spent = max(0, b.spent-float64(now.Sub(b.at))/float64(every))
	b.at = now
	if b.spent+1 > float64(burst) {
		return time.Duration((b.spent + 1 - float64(burst)) * float64(every))
	}
	b.spent++
	return 0
}

// A Post is a message that a user writes. Channel and User are needed.
type Post struct {
	Team, Channel, User, Text string
	Thread                    string // ts of the thread's first message
	Subtype                   string
	BotID                     string
	UserTeam                  string // of a person from another workspace
	Files                     []File
	Mention                   bool // comes as app_mention as well
	MentionFirst              bool // and that before the message
}

// Say lets a user write; team may be empty. It returns the message's ts.
func (s *Server) Say(team, channel, user, text string) string {
	return s.Write(Post{Team: team, Channel: channel, User: user, Text: text})
}

// DM lets a user write to the bot directly. The channel is "D" and the user's
// id.
func (s *Server) DM(user, text string) (channel, ts string) {
	channel = "D" + user
	return channel, s.Write(Post{Channel: channel, User: user, Text: text})
}

// Mention lets a user write to the bot in a channel. Slack tells of it twice,
// as message and as app_mention, in either order.
func (s *Server) Mention(channel, user, text string, mentionFirst bool) string {
	return s.Write(Post{Channel: channel, User: user, Text: fmt.Sprintf("<@%s> %s", s.cfg.BotUser, text), Mention: true, MentionFirst: mentionFirst})
}

// Write lets a user write and returns the message's ts.
func (s *Server) Write(p Post) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.Team == "" {
		p.Team = s.cfg.Team
	}
	c := s.channel(p.Channel)
	m := &Message{TS: s.stamp(), Channel: p.Channel, Thread: p.Thread, User: p.User, BotID: p.BotID, Text: p.Text, Subtype: p.Subtype, UserTeam: p.UserTeam, Files: p.Files, At: time.Now()}
	c.messages = append(c.messages, m)
	e := answer{"type": "message", "channel": p.Channel, "user": p.User, "text": p.Text, "ts": m.TS, "event_ts": m.TS, "team": p.Team, "channel_type": s.kind(p.Channel)}
	for k, v := range map[string]string{"subtype": p.Subtype, "thread_ts": p.Thread, "bot_id": p.BotID, "user_team": p.UserTeam} {
		if v != "" {
			e[k] = v
		}
	}
	if len(p.Files) > 0 {
		e["files"] = p.Files
	}
	events := []answer{e}
	if p.Mention {
		mention := answer{}
		for k, v := range e {
			mention[k] = v
		}
		mention["type"] = "app_mention"
		delete(mention, "channel_type")
		events = append(events, mention)
		if p.MentionFirst {
			events[0], events[1] = mention, e
		}
	}
	for _, e := range events {
		s.event(p.Team, e)
	}
	s.change()
	return m.TS
}

// Delete deletes a message, as its author or an administrator does. One with replies stays as
// a tombstone, which Slack tells of as a change. One without is gone: what the app then posts in
// its thread stands in the channel, see post.
func (s *Server) Delete(channel, ts string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[channel]
	if c == nil || c.find(ts) == nil {
		return
	}
	e := answer{"type": "message", "subtype": "message_deleted", "channel": channel, "channel_type": s.kind(channel), "hidden": true, "deleted_ts": ts}
	e["previous_message"] = s.render(c.find(ts), false)
	if slices.ContainsFunc(c.messages, func(m *Message) bool { return m.Thread == ts && m.TS != ts }) {
		e["subtype"] = "message_changed"
		delete(e, "deleted_ts")
		m := c.find(ts)
		m.Subtype, m.User, m.Text = "tombstone", "USLACKBOT", "This message was deleted."
		e["message"] = answer{"type": "message", "subtype": m.Subtype, "text": m.Text, "user": m.User, "hidden": true, "ts": ts, "thread_ts": ts}
	} else {
		c.remove(ts)
		delete(c.statuses, ts)
		c.gone[ts] = true
	}
	e["ts"] = s.stamp()
	e["event_ts"] = e["ts"]
	s.event(s.cfg.Team, e)
	s.change()
}

// Slash lets a user use a slash command, which works if the app has it, also where the bot
// is no member. A user of another workspace is team/user.
func (s *Server) Slash(channel, user, command, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.channel(channel)
	team, user := s.split(user)
	if !s.app.commands[command] || !s.granted("commands") {
		return // "is not a valid command", says Slack to the user
	}
	s.send("slash_commands", answer{
		"command": command, "text": text, "team_id": team, "channel_id": channel, "user_id": user,
		"user_name": strings.ToLower(user), "trigger_id": s.trigger(user),
		"response_url": s.responseURL("commands", channel, user, ""),
	})
}

// Envelope sends any payload and returns the envelope's id.
func (s *Server) Envelope(kind string, payload any) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.send(kind, payload)
}

// echo tells the app of its own post or edit. The lock is held.
func (s *Server) echo(c *channel, subtype string, m *Message) {
	if s.cfg.NoEcho {
		return
	}
	e := answer{"type": "message", "channel": c.id, "channel_type": s.kind(c.id), "event_ts": m.TS}
	if subtype == "" {
		for k, v := range s.render(m, true) {
			e[k] = v
		}
	} else {
		e["subtype"], e["ts"], e["message"] = subtype, s.stamp(), s.render(m, true)
	}
	s.event(s.cfg.Team, e)
}

// render is a message as the Web API shows it.
func (s *Server) render(m *Message, metadata bool) answer {
	a := answer{"type": "message", "ts": m.TS, "user": m.User, "text": m.Text, "team": s.cfg.Team}
	for k, v := range s.thread(m) {
		a[k] = v
	}
	for k, v := range map[string]string{"thread_ts": m.Thread, "subtype": m.Subtype, "user_team": m.UserTeam} {
		if v != "" {
			a[k] = v
		}
	}
	if len(m.Files) > 0 {
		a["files"] = m.Files
	}
	if m.BotID != "" {
		a["bot_id"] = m.BotID
	}
	if len(m.Blocks) > 0 {
		a["blocks"] = m.Blocks
	}
	if metadata && m.Metadata != nil {
		a["metadata"] = *m.Metadata
	}
	return a
}

// Posted returns what the bot wrote in a channel, with its present texts.
func (s *Server) Posted(channel string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.posted(channel)
}

func (s *Server) posted(id string) []Message {
	var out []Message
	if c := s.channels[id]; c != nil {
		for _, m := range c.messages {
			if m.BotID == s.cfg.BotID {
				out = append(out, *m)
			}
		}
	}
	return out
}

// WaitPosted returns the first message of the bot in a channel that matches,
// as soon as there is one.
func (s *Server) WaitPosted(ctx context.Context, channel string, match func(Message) bool) (Message, error) {
	var found Message
	err := s.wait(ctx, "a post in "+channel, func() bool {
		for _, m := range s.posted(channel) {
			if match(m) {
				found = m
				return true
			}
		}
		return false
	})
	return found, err
}

// WaitAcked returns when every envelope so far is acknowledged.
func (s *Server) WaitAcked(ctx context.Context) error {
	return s.wait(ctx, "acknowledgements", func() bool { return len(s.open) == 0 })
}

// WaitSockets returns when n sockets are open.
func (s *Server) WaitSockets(ctx context.Context, n int) error {
	return s.wait(ctx, "sockets", func() bool { return len(s.sockets) == n })
}

// wait returns when done says so, which it asks under the lock.
func (s *Server) wait(ctx context.Context, what string, done func() bool) error {
	for {
		s.mu.Lock()
		ok, changed := done(), s.changed
		s.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
		}
	}
}

// Duplicates counts posts that carry the metadata of an earlier one.
func (s *Server) Duplicates() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, seen := 0, make(map[string]bool)
	for id := range s.channels {
		for _, m := range s.posted(id) {
			if m.Metadata == nil {
				continue
			}
			key := fmt.Sprint(m.Metadata.EventPayload["id"], " ", m.Metadata.EventPayload["part"])
			if seen[key] {
				n++
			}
			seen[key] = true
		}
	}
	return n
}
