package slacktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// ErrNoAnswer reports that an app did not acknowledge a submitted modal in time, or
// with something that Slack cannot show. The modal stays as it was.
var ErrNoAnswer = errors.New("we had some trouble connecting")

// CheckView returns why Slack would reject a modal, nil when it takes it. The error
// begins with Slack's code.
func CheckView(data []byte) error {
	if len(data) > maxViewBytes {
		return &blockError{"view_too_large", fmt.Sprintf("%d bytes", len(data))}
	}
	var v object
	if err := json.Unmarshal(data, &v); err != nil {
		return &blockError{"invalid_arguments", err.Error()}
	}
	c := &checker{view: true, limit: maxViewBlocks}
	if err := c.modal(v); err != nil {
		return &blockError{"invalid_arguments", err.Error()}
	}
	return nil
}

func (c *checker) modal(v object) error {
	if v["type"] != "modal" {
		return invalid("type: %v", v["type"])
	}
	for _, key := range []string{"title", "submit", "close"} {
		if err := c.text(v, key, maxViewTitle, key == "title", "plain_text"); err != nil {
			return err
		}
	}
	for key, limit := range map[string]int{"private_metadata": maxPrivate, "callback_id": maxID, "external_id": maxID} {
		if text, err := optional[string](v, key); err != nil || chars(text) > limit {
			return invalid("%s has %d characters", key, chars(text))
		}
	}
	all, ok := v["blocks"].([]any)
	if !ok {
		return invalid("blocks: %v", v["blocks"])
	}
	var blocks []object
	for _, x := range all {
		b, _ := x.(object)
		blocks = append(blocks, b)
	}
	if err := c.blocks(blocks); err != nil {
		return err
	}
	if c.inputs > 0 && v["submit"] == nil {
		return invalid("inputs without submit")
	}
	return nil
}

// A View is a modal as a person sees it.
type View struct {
	ID, User string
	Title    string
	Text     string  // of its blocks beside the inputs
	Inputs   []Input // none: there is nothing to send
}

// An Input is a field of a modal.
type Input struct {
	Block, Action string
	Type, Label   string
	Hint          string
	Placeholder   string
	Optional      bool
	Options       []string // labels
	Initial       any      // a string, seconds since 1970, or labels; nil for none
}

// A view is a modal of one person.
type view struct {
	id, user string
	seq      int
	modal    object
}

func (s *Server) openView(args url.Values) answer {
	t := s.triggers[args.Get("trigger_id")]
	switch {
	case t == nil:
		return refuse("invalid_trigger_id")
	case t.used:
		return refuse("exchanged_trigger_id")
	case time.Since(t.at) > s.cfg.Patience:
		return refuse("expired_trigger_id")
	}
	var refused *blockError
	if err := CheckView([]byte(args.Get("view"))); errors.As(err, &refused) {
		a := refuse(refused.code)
		a["response_metadata"] = object{"messages": []string{refused.text}}
		return a
	}
	t.used = true
	v := &view{id: s.next("V"), user: t.user, seq: s.lastID}
	_ = json.Unmarshal([]byte(args.Get("view")), &v.modal) // checked
	s.views[v.id] = v
	s.change()
	return answer{"ok": true, "view": v.rendered(s.cfg.Team)}
}

// rendered is the view as Slack tells it to the app.
func (v *view) rendered(team string) object {
	out := object{"id": v.id, "team_id": team, "app_id": "A1", "hash": "1.a"}
	for key, x := range v.modal {
		out[key] = x
	}
	return out
}

// shown is the view as a person sees it.
func (v *view) shown() View {
	title, _ := v.modal["title"].(object)
	out := View{ID: v.id, User: v.user}
	out.Title, _ = title["text"].(string)
	var texts []string
	for _, b := range v.blocks() {
		if b["type"] == "input" {
			out.Inputs = append(out.Inputs, input(b))
			continue
		}
		texts = append(texts, shown([]object{b})...)
	}
	out.Text = strings.Join(texts, "\n")
	return out
}

func (v *view) blocks() (all []object) {
	blocks, _ := v.modal["blocks"].([]any)
	for _, x := range blocks {
		if b, ok := x.(object); ok {
			all = append(all, b)
		}
	}
	return all
}

func input(b object) Input {
	text := func(key string, of object) string {
		t, _ := of[key].(object)
		s, _ := t["text"].(string)
		return s
	}
	e, _ := b["element"].(object)
	in := Input{Label: text("label", b), Hint: text("hint", b), Placeholder: text("placeholder", e), Options: options(e)}
	in.Block, _ = b["block_id"].(string)
	in.Action, _ = e["action_id"].(string)
	in.Type, _ = e["type"].(string)
	in.Optional, _ = b["optional"].(bool)
	for _, key := range []string{"initial_value", "initial_date", "initial_time"} {
		if x, ok := e[key].(string); ok {
			in.Initial = x
		}
	}
	if at, ok := e["initial_date_time"].(float64); ok {
		in.Initial = int64(at)
	}
	if o, ok := e["initial_option"].(object); ok {
		in.Initial = label(o)
	}
	if all, ok := e["initial_options"].([]any); ok {
		in.Initial = options(object{"options": all})
	}
	return in
}

// Modal returns the newest open modal of a user.
func (s *Server) Modal(user string) (View, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.newest(user)
	if v == nil {
		return View{}, false
	}
	return v.shown(), true
}

func (s *Server) newest(user string) (newest *view) {
	for _, v := range s.views {
		if v.user == user && (newest == nil || v.seq > newest.seq) {
			newest = v
		}
	}
	return newest
}

// WaitModal returns the newest open modal of a user, as soon as there is one.
func (s *Server) WaitModal(ctx context.Context, user string) (View, error) {
	var found View
	err := s.wait(ctx, "a modal of "+user, func() bool {
		v := s.newest(user)
		if v != nil {
			found = v.shown()
		}
		return v != nil
	})
	return found, err
}

// Dismiss closes a modal without sending it.
func (s *Server) Dismiss(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.views, id)
	s.change()
}
