package discordtest

import (
	"fmt"
	"time"
)

// An asked is an interaction that waits for its response.
type asked struct {
	id, token, user, channel string
	message                  string
	at                       time.Time
	done                     bool
	of                       int // the type of the interaction
	kind                     int
	data                     answer
}

// interact sends an interaction. The lock is held.
func (s *Server) interact(channel, user string, kind int, data answer, m *Message) *asked {
	c := s.channels[channel]
	a := &asked{id: s.id(), token: s.next("interaction-canary-"), user: user, channel: channel, at: time.Now(), of: kind}
	e := answer{
		"id": a.id, "application_id": s.cfg.Bot, "type": kind, "token": a.token, "version": 1, "channel_id": channel, "channel": c.object(), "data": data, "locale": "en-US",
	}
	if c.guild != "" {
		e["guild_id"], e["member"] = c.guild, answer{"user": s.person(user), "nick": nil}
	} else {
		e["user"] = s.person(user)
	}
	if m != nil {
		a.message = m.ID
		e["message"] = s.object(c, m)
	}
	s.asks[a.token] = a
	s.emit(0, "INTERACTION_CREATE", e)
	return a
}

// component finds a component below a message by its label, or a menu if the label is empty.
func (m *Message) component(label string) answer {
	for _, c := range m.components() {
		if c["label"] == label || label == "" && c["type"] == 3.0 {
			return c
		}
	}
	return nil
}

func (m *Message) components() (found []answer) {
	for _, r := range m.Components {
		line, _ := r.(answer)
		all, _ := line["components"].([]any)
		for _, x := range all {
			if c, ok := x.(answer); ok {
				found = append(found, c)
			}
		}
	}
	return found
}

// Buttons are the labels of the buttons, in their order.
func (m Message) Buttons() (labels []string) {
	for _, c := range m.components() {
		if label, ok := c["label"].(string); ok {
			labels = append(labels, label)
		}
	}
	return labels
}

// Options are the labels in the menus, in their order.
func (m Message) Options() (labels []string) {
	for _, c := range m.components() {
		options, _ := c["options"].([]any)
		for _, x := range options {
			o, _ := x.(answer)
			label, _ := o["label"].(string)
			labels = append(labels, label)
		}
	}
	return labels
}

// Press lets a person press a button.
func (s *Server) Press(channel, user, id, label string) error {
	return s.choose(channel, user, id, label, nil)
}

// Choose lets a person choose in the menu of a message.
func (s *Server) Choose(channel, user, id string, values ...string) error {
	return s.choose(channel, user, id, "", values)
}

func (s *Server) choose(channel, user, id, label string, values []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.channels[channel].find(id)
	if m == nil {
		return fmt.Errorf("there is no message %s", id)
	}
	c := m.component(label)
	if c == nil {
		return fmt.Errorf("message %s has no %q", id, label)
	}
	data := answer{"custom_id": c["custom_id"], "component_type": c["type"]}
	if label == "" {
		data["values"] = values
	}
	s.interact(channel, user, 3, data, m)
	return nil
}

// Slash lets a person choose a command, with a text behind it.
func (s *Server) Slash(channel, user, name, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data := answer{"id": "1", "name": name, "type": 1}
	if text != "" {
		data["options"] = []answer{{"name": "text", "type": 3, "value": text}}
	}
	s.interact(channel, user, 2, data, nil)
}

// Whispers returns the texts that only a user saw.
func (s *Server) Whispers(user string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.whispers[user]...)
}

// Unanswered counts the interactions without a response.
func (s *Server) Unanswered() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.asks {
		if !a.done {
			n++
		}
	}
	return n
}

// respond takes the response to an interaction. The lock is held.
func (s *Server) respond(id, token string, body answer) (status, code int) {
	a := s.asks[token]
	switch {
	case a == nil || a.id != id || !a.done && time.Since(a.at) > 3*time.Second:
		return 404, 10062
	case a.done:
		return 400, 40060
	}
	kind, _ := body["type"].(float64)
	a.kind = int(kind)
	a.data, _ = body["data"].(answer)
	if a.kind == 6 && a.of != 3 && a.of != 5 || a.kind == 9 && a.of == 5 {
		return 400, 50035 // there is no message to update, or a form already
	}
	switch a.kind {
	case 4:
		if text, _ := a.data["content"].(string); a.data["flags"] == 64.0 {
			s.whispers[a.user] = append(s.whispers[a.user], text)
		} else {
			return 400, 50035 // claybot answers by messages
		}
	case 5, 6:
	case 9:
		if !formFits(a.data) {
			return 400, 50035
		}
		s.modals[a.user] = a
	default:
		return 400, 50035
	}
	a.done = true // what is refused above acknowledges nothing
	if a.of == 5 {
		delete(s.modals, a.user) // the form that was submitted closes
	}
	s.change()
	return 204, 0
}

// Has reports whether a message has a button with a label, or a menu if the label is empty.
func (m Message) Has(label string) bool { return m.component(label) != nil }
