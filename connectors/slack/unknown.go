package slack

import (
	"context"
	"strings"
	"sync"

	slackapi "github.com/slack-go/slack"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
)

// A strange interaction is one that claybot does not know: of a button, a form or a shortcut that another
// version made, or that an operator added to the app. It is acknowledged, and where Slack offers a way, a
// person with access reads one sentence that only they see; others read nothing. It has no effect.
//
// Shapes: docs.slack.dev/reference/interaction-payloads and …/block_suggestion-payload, read 2026-11-30:
// an action on a message and a message_action have a response_url; an action on a Home tab and a
// shortcut have only a trigger; a view_submission is answered in its acknowledgement; a view_closed is
// news alone; and a block_suggestion asks for the options of a menu.
type strange struct {
	press
	name string // for the log
	way  way
}

// A way is how Slack lets an app answer an interaction.
type way int

const (
	silently    way = iota // it is acknowledged alone
	whispered              // a message that only the person sees
	inForm                 // a form with a sentence
	replaced               // a sentence in place of the form
	withOptions            // no options
)

// noted are the unknown interactions that were logged, each once. The zero value has none.
type noted struct {
	mu    sync.Mutex
	known map[string]bool
}

// news reports whether an interaction is to be logged.
func (s *noted) news(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[name] || len(s.known) == maxStrange {
		return false
	}
	if s.known == nil {
		s.known = make(map[string]bool)
	}
	s.known[name] = true
	return true
}

// readStrange decodes an interaction that readPress does not understand. It is a pure function and never
// fails. An interaction that does not say who acts is answered silently.
func readStrange(name string, self identity, payload []byte) strange {
	var p interactive
	if connectors.Decode(payload, &p) != nil {
		return strange{}
	}
	x := strange{press: press{user: p.User.ID, channel: p.Channel.ID, thread: p.thread(), respond: p.Respond, trigger: p.Trigger}}
	names := []string{p.Type, p.Callback, p.View.Callback}
	for _, a := range p.Actions {
		names = append(names, a.ID)
	}
	x.name = strings.Trim(word(strings.Join(names, ":")), ":")
	if p.Type == "block_suggestion" {
		x.way = withOptions
	}
	place := p.Channel.ID
	if place == "" {
		place = p.User.ID
	}
	by, outsider, ok := p.principal(name, self, place)
	if !ok {
		return x
	}
	x.press.press = connectors.Press{Connector: name, UserID: by.UserID, ChannelID: by.ChannelID, Outsider: outsider}
	inView := p.Container.View != "" && p.View.Type != "home"
	switch p.Type {
	case "view_submission":
		x.way = replaced
	case "block_actions", "message_action", "shortcut", "interactive_message":
		switch {
		case p.Type == "block_actions" && len(p.Actions) == 0:
		case p.Respond != "" || p.Channel.ID != "":
			x.way = whispered
		case p.Trigger != "" && !inView: // a form cannot be opened over another one
			x.way = inForm
		}
	}
	return x
}

// strange acknowledges an interaction that claybot does not know, counts it, logs it once, and says so to
// a person with access.
func (r *receiver) strange(ctx context.Context, s replier, f frame) {
	x := readStrange(r.name, r.self, f.Payload)
	r.ignored.Add(1)
	if r.chat.unknown.news(x.name) {
		r.log.Info("unknown slack interaction", "interaction", x.name)
	}
	by := claybot.User(r.name, x.press.press.ChannelID, x.press.press.UserID)
	if x.way != withOptions && (r.greets == nil || !r.greets.Welcome(by, x.press.press.Outsider)) {
		x.way = silently
	}
	voice := texts.To(ctx, by)
	said := voice.In(texts.SlackUnknown)
	var answer any
	switch {
	case x.way == replaced && f.Accepts:
		answer = slackapi.NewUpdateViewSubmissionResponse(notice(voice, said))
	case x.way == withOptions && f.Accepts:
		answer = map[string]any{"options": []any{}} // the library leaves an empty list out
	}
	r.ack(s, f.EnvelopeID, answer)
	switch x.way {
	case whispered:
		r.chat.whisper(ctx, x.press, said)
	case inForm:
		ctx, cancel := context.WithTimeout(ctx, openTime)
		defer cancel()
		_, err := r.chat.api.OpenViewContext(ctx, x.trigger, *notice(voice, said))
		if code, _ := judge(err); err != nil && code != "exchanged_trigger_id" {
			r.log.Info("failed to explain an unknown interaction to the user", "user", x.user, "err", r.chat.refused(methodView, r.chat.cfg.BotTokenName, err))
		}
	}
}
