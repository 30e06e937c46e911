package slacktest

import (
	"encoding/json"
	"net/url"
	"time"
)

// The limits of streams.
const (
	maxStreamChars  = 12_000 // of one call
	maxStreamBlocks = 50
	streamLife      = 5 * time.Minute // then Slack ends a stream by itself
)

// A chunk is one piece of a stream; those that carry no text are only checked for a type.
type chunk struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// streamed is the text that a call adds to a stream.
func streamed(args url.Values) (text, code string) {
	text = args.Get("markdown_text")
	if given := args.Get("chunks"); given != "" {
		var chunks []chunk
		if json.Unmarshal([]byte(given), &chunks) != nil {
			return "", "invalid_chunks"
		}
		for _, c := range chunks {
			switch c.Type {
			case "markdown_text":
				text += c.Text
			case "task_update", "plan_update", "blocks":
			default:
				return "", "invalid_chunks"
			}
		}
	}
	if chars(text) > maxStreamChars {
		return "", "msg_too_long"
	}
	return text, ""
}

// startStream posts a message that grows. The lock is held.
func (s *Server) startStream(args url.Values) answer {
	c, code := s.writable(args.Get("channel"))
	if code == "" {
		code = c.checkThread(args.Get("thread_ts"))
	}
	text := ""
	if code == "" {
		text, code = streamed(args)
	}
	direct := c != nil && s.kind(c.id) == Direct
	switch {
	case code != "":
		return refuse(code)
	case direct && args.Get("thread_ts") == "": // only channels take streams outside of threads
		return refuse("invalid_arguments")
	case !direct && args.Get("recipient_user_id") == "":
		return refuse("missing_recipient_user_id")
	case !direct && args.Get("recipient_team_id") == "":
		return refuse("missing_recipient_team_id")
	}
	m := &Message{
		TS: s.stamp(), Channel: c.id, Thread: args.Get("thread_ts"), User: s.cfg.BotUser, BotID: s.cfg.BotID, Text: text, At: time.Now(), Streaming: true,
	}
	c.messages = append(c.messages, m)
	s.echo(c, "", m)
	s.shown(m)
	return answer{"ok": true, "channel": c.id, "ts": m.TS}
}

// streaming finds the open stream of a call. The lock is held.
func (s *Server) streaming(args url.Values) (*channel, *Message, string) {
	c, code := s.writable(args.Get("channel"))
	if code != "" {
		return nil, nil, code
	}
	m := c.find(args.Get("ts"))
	switch {
	case m == nil:
		return nil, nil, "message_not_found"
	case m.BotID != s.cfg.BotID:
		return nil, nil, "message_not_owned_by_app"
	case m.Streaming && time.Since(m.At) >= streamLife:
		m.Streaming = false
	}
	switch {
	case m.Halted:
		return nil, nil, "stopped_by_user"
	case !m.Streaming:
		return nil, nil, "message_not_in_streaming_state"
	}
	return c, m, ""
}

// appendStream adds to a message that grows. The lock is held.
func (s *Server) appendStream(args url.Values) answer {
	c, m, code := s.streaming(args)
	text := ""
	if code == "" {
		text, code = streamed(args)
	}
	if code == "" && text == "" && args.Get("chunks") == "" {
		code = "no_text"
	}
	if code != "" {
		return refuse(code)
	}
	m.Text += text
	m.Edits++
	s.shown(m)
	return answer{"ok": true, "channel": c.id, "ts": m.TS}
}

// stopStream completes a message that grew. The lock is held.
func (s *Server) stopStream(args url.Values) answer {
	c, m, code := s.streaming(args)
	if code == "stopped_by_user" {
		code = "message_not_in_streaming_state"
	}
	if code != "" {
		return refuse(code)
	}
	text, code := streamed(args)
	var metadata *Metadata
	if code == "" {
		metadata, code = readMetadata(args.Get("metadata"))
	}
	var blocks []map[string]any
	if code == "" {
		blocks, code = s.readBlocks(args)
	}
	if code == "" && len(blocks) > maxStreamBlocks {
		code = "msg_blocks_too_many"
	}
	if code != "" {
		return refuse(code)
	}
	m.Text += text
	m.Blocks, m.Metadata, m.Streaming = blocks, metadata, false
	m.Edits++
	s.echo(c, "message_changed", m)
	s.shown(m)
	return answer{"ok": true, "channel": c.id, "ts": m.TS, "message": s.render(m, false)}
}

// Halt lets a person stop a stream.
func (s *Server) Halt(channel, ts string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channels[channel]; c != nil {
		if m := c.find(ts); m != nil && m.Streaming {
			m.Streaming, m.Halted = false, true
			s.shown(m)
		}
	}
}
