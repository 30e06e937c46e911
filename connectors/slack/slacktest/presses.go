package slacktest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// desk is the part of a Server whose buttons people press. The server's lock guards it.
type desk struct {
	triggers map[string]*trigger
	views    map[string]*view
	replies  map[string]*reply // to submitted modals, by envelope
	whispers []Whisper
	users    map[string]User     // whom SetUser named
	homes    map[string][]object // the Home tabs, by user
	// published counts the Home tabs that were published, by user.
	published map[string]int

	base      string               // of the addresses that apps get
	responses map[string]*response // addresses
}

// A trigger lets an app open a modal for the user who pressed, once and soon.
type trigger struct {
	user string
	at   time.Time
	used bool
}

// trigger makes one. The lock is held.
func (s *Server) trigger(user string) string {
	id := s.next("1.2.")
	s.triggers[id] = &trigger{user: user, at: time.Now()}
	return id
}

// A Whisper is an ephemeral message of the app.
type Whisper struct {
	Channel, User, Text, Thread string
	At                          time.Time
	Responds                    bool // it came by a response_url
}

func (s *Server) whisper(args url.Values) answer {
	c, code := s.writable(args.Get("channel"))
	switch {
	case code != "":
		return refuse(code)
	case args.Get("user") == "" || strings.Contains(args.Get("user"), "/"):
		return refuse("user_not_found")
	}
	if code := s.checkText(args.Get("text"), maxPostChars); code != "" {
		return refuse(code)
	}
	s.whispers = append(s.whispers, Whisper{Channel: c.id, User: args.Get("user"), Text: args.Get("text"), Thread: args.Get("thread_ts"), At: time.Now()})
	s.change()
	return answer{"ok": true, "message_ts": s.stamp()}
}

// Whispers returns the ephemeral messages of the app to a user.
func (s *Server) Whispers(user string) []Whisper {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.whispered(user)
}

func (s *Server) whispered(user string) (all []Whisper) {
	for _, w := range s.whispers {
		if w.User == user {
			all = append(all, w)
		}
	}
	return all
}

// WaitWhisper returns the first thing that the app said to one person alone and
// that matches, as soon as there is one.
func (s *Server) WaitWhisper(ctx context.Context, user string, match func(Whisper) bool) (Whisper, error) {
	var found Whisper
	err := s.wait(ctx, "a word to "+user, func() bool {
		for _, w := range s.whispered(user) {
			if match(w) {
				found = w
				return true
			}
		}
		return false
	})
	return found, err
}

// Shown is what a person reads: the texts of the blocks, or the text where there
// are none.
func (m Message) Shown() string {
	if len(m.Blocks) == 0 {
		return m.Text
	}
	return strings.Join(shown(m.Blocks), "\n")
}

func shown(blocks []object) (texts []string) {
	for _, b := range blocks {
		if text := label(b); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// Buttons are the labels of the buttons, in their order.
func (m Message) Buttons() (labels []string) {
	for _, e := range m.elements("button") {
		labels = append(labels, label(e.element))
	}
	return labels
}

// Options are the labels in the menus, in their order.
func (m Message) Options() (labels []string) {
	for _, e := range m.elements("static_select") {
		labels = append(labels, options(e.element)...)
	}
	return labels
}

// placed is an element with its block.
type placed struct {
	block   string
	element object
}

func (m Message) elements(kind string) (all []placed) {
	for _, b := range m.Blocks {
		id, _ := b["block_id"].(string)
		elements, _ := b["elements"].([]any)
		for _, x := range append(elements[:len(elements):len(elements)], b["accessory"]) {
			if e, _ := x.(object); e["type"] == kind {
				all = append(all, placed{id, e})
			}
		}
	}
	return all
}

// label is the text of a block, an element or an option.
func label(o object) string {
	switch o["type"] {
	case "markdown":
		text, _ := o["text"].(string)
		return text
	case "table":
		return grid(o)
	}
	t, _ := o["text"].(object)
	text, _ := t["text"].(string)
	return text
}

func options(e object) (labels []string) {
	all, _ := e["options"].([]any)
	for _, x := range all {
		o, _ := x.(object)
		labels = append(labels, label(o))
	}
	return labels
}

// pick finds an option by its label or value.
func pick(e object, name string) object {
	all, _ := e["options"].([]any)
	for _, x := range all {
		if o, _ := x.(object); label(o) == name || o["value"] == name {
			return o
		}
	}
	return nil
}

// Click lets a user press a button of a message, named by its label or its
// action id, and returns the id of the envelope that tells of it. A user of
// another workspace is team/user.
func (s *Server) Click(user, channel, ts, button string) (string, error) {
	return s.press(user, channel, ts, "button", func(e object) object {
		if label(e) != button && e["action_id"] != button {
			return nil
		}
		return object{"text": e["text"], "value": e["value"]}
	})
}

// Rate lets a user press a feedback button of a message, named by its label or its value.
func (s *Server) Rate(user, channel, ts, button string) (string, error) {
	return s.press(user, channel, ts, "feedback_buttons", func(e object) object {
		for _, side := range []string{"positive_button", "negative_button"} {
			if o, _ := e[side].(object); label(o) == button || o["value"] == button {
				return object{"text": o["text"], "value": o["value"]}
			}
		}
		return nil
	})
}

// Select lets a user choose an option of a menu in a message, named by its
// label or its value, and returns the id of the envelope.
func (s *Server) Select(user, channel, ts, option string) (string, error) {
	return s.press(user, channel, ts, "static_select", func(e object) object {
		o := pick(e, option)
		if o == nil {
			return nil
		}
		return object{"selected_option": o}
	})
}

// press sends the envelope about the first element of a kind for which act says
// what was done.
func (s *Server) press(user, channel, ts, kind string, act func(element object) object) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[channel]
	if !s.app.interactive {
		return "", errors.New("the app has no interactivity")
	}
	if c == nil || c.find(ts) == nil {
		return "", fmt.Errorf("no message %s in %s", ts, channel)
	}
	m := c.find(ts)
	for _, e := range m.elements(kind) {
		action := act(e.element)
		if action == nil {
			continue
		}
		action["type"], action["action_id"], action["block_id"], action["action_ts"] = kind, e.element["action_id"], e.block, s.stamp()
		container := object{"type": "message", "message_ts": m.TS, "channel_id": c.id, "is_ephemeral": false}
		if m.Thread != "" {
			container["thread_ts"] = m.Thread
		}
		p := s.payload("block_actions", user)
		p["response_url"] = s.responseURL("actions", c.id, user, m.TS)
		p["container"], p["channel"] = container, object{"id": c.id, "name": strings.ToLower(c.id)}
		p["message"], p["actions"], p["state"] = escaped(object(s.render(m, false))), escaped([]any{action}), object{"values": object{}}
		return s.send("interactive", p), nil
	}
	return "", fmt.Errorf("no such %s in %s: there are the buttons %q and the options %q", kind, ts, m.Buttons(), m.Options())
}

// split returns the workspace of a user and the id without it.
func (s *Server) split(user string) (team, id string) {
	if team, id, foreign := strings.Cut(user, "/"); foreign {
		return team, id
	}
	return s.cfg.Team, user
}

// payload begins the payload of a button press. The lock is held.
func (s *Server) payload(kind, user string) answer {
	team, id := s.split(user)
	return answer{
		"type": kind, "api_app_id": "A1", "trigger_id": s.trigger(user),
		"team": object{"id": team, "domain": "test"},
		"user": object{"id": id, "username": strings.ToLower(id), "name": strings.ToLower(id), "team_id": team},
	}
}

// escaped is how Slack quotes what an app sent: with entities in its texts and
// values.
func escaped(x any) any {
	switch x := x.(type) {
	case string:
		return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(x)
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = escaped(x[i])
		}
		return out
	case []object:
		out := make([]any, len(x))
		for i := range x {
			out[i] = escaped(x[i])
		}
		return out
	case object:
		out := make(object)
		for k, v := range x {
			out[k] = escaped(v)
			if k == "text" && x["type"] != "plain_text" {
				if _, ok := v.(string); !ok {
					continue
				}
				out[k] = v // mrkdwn has its entities already
			}
		}
		return out
	}
	return x
}
