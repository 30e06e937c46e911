package slack

import (
	"encoding/json"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// A pressKind is the type of an interaction.
type pressKind int

const (
	answered   pressKind = iota // a button or a menu that answers
	asks                        // requests a form
	submitted                   // a form
	commanded                   // a command by an offer
	rated                       // feedback
	shortcut                    // requests the form of a shortcut
	questioned                  // the form of a shortcut
)

// A press is a button press: an interaction with a button, a menu or a form.
type press struct {
	kind   pressKind
	press  connectors.Press // of answered and submitted
	more   []claybot.Answer // of submitted: those behind the first one
	form   form             // of asks and submitted
	in     incoming         // of commanded, rated and questioned
	asking asking           // of shortcut and questioned

	trigger string // opens a form
	asked   string // the text of the message, in mrkdwn

	user, channel, thread string // recipient of ephemeral messages, without workspace
	respond               string // the response_url of the action, a secret
}

// interactive is the part of an interaction payload that claybot reads.
type interactive struct {
	Type     string `json:"type"`
	Callback string `json:"callback_id"` // of a shortcut
	Team     struct {
		ID string `json:"id"`
	} `json:"team"`
	User struct {
		ID       string `json:"id"`
		Team     string `json:"team_id"`
		Username string `json:"username"`
		Name     string `json:"name"`
	} `json:"user"`
	Channel struct {
		ID string `json:"id"`
	} `json:"channel"`
	Container struct {
		Thread string `json:"thread_ts"`
		View   string `json:"view_id"` // of an action that is in no message
	} `json:"container"`
	Message struct {
		TS     string `json:"ts"`
		Thread string `json:"thread_ts"`
		Text   string `json:"text"`
		User   string `json:"user"`
		BotID  string `json:"bot_id"`
	} `json:"message"`
	Trigger string   `json:"trigger_id"`
	Respond string   `json:"response_url"`
	Actions []action `json:"actions"`
	View    struct {
		ID       string `json:"id"`
		Type     string `json:"type"` // modal or home
		Callback string `json:"callback_id"`
		Metadata string `json:"private_metadata"`
		State    struct {
			Values map[string]map[string]field `json:"values"`
		} `json:"state"`
	} `json:"view"`
}

type action struct {
	ID     string `json:"action_id"`
	Block  string `json:"block_id"`
	Value  string `json:"value"`
	At     string `json:"action_ts"`
	Chosen chosen `json:"selected_option"`
}

// readPress decodes an interaction. It is a pure function and never fails; ok is
// false for interactions that are not claybot's.
func readPress(name string, self identity, payload []byte) (t press, ok bool) {
	var p interactive
	if connectors.Decode(payload, &p) != nil || p.User.ID == "" {
		return press{}, false
	}
	switch p.Type {
	case "block_actions":
		for _, a := range p.Actions {
			if t, ok := p.action(name, self, a); ok {
				return t, true
			}
		}
	case "view_submission":
		if p.View.Callback == callbackAsk {
			return p.question(name, self)
		}
		return p.submission(name, self)
	case "shortcut", "message_action":
		return p.shortcut(name, self)
	}
	return press{}, false
}

// action decodes one action on a message.
func (p interactive) action(name string, self identity, a action) (press, bool) {
	by, outsider, ok := p.principal(name, self, p.Channel.ID)
	if !ok {
		return press{}, false
	}
	t := press{user: p.User.ID, channel: p.Channel.ID, thread: p.thread(), respond: p.Respond, trigger: p.Trigger, asked: p.Message.Text}
	t.press = connectors.Press{Connector: name, UserID: by.UserID, ChannelID: by.ChannelID, Outsider: outsider}
	kind, _, _ := strings.Cut(a.ID, "/")
	switch kind {
	case actionAnswer:
		var c choice
		if json.Unmarshal([]byte(a.Value), &c) != nil {
			return press{}, false
		}
		t.press.Answer = claybot.Answer{Question: c.Question, Text: c.Value, Scope: c.Scope}
	case actionMenu:
		id, ok := strings.CutPrefix(a.Block, blockQuestion)
		if !ok || json.Unmarshal([]byte(a.Chosen.Value), &t.press.Answer.Text) != nil {
			return press{}, false
		}
		t.press.Answer.Question = id
	case actionForm:
		t.kind = asks
		if json.Unmarshal([]byte(a.Value), &t.form) != nil || t.form.Question == "" || p.Trigger == "" {
			return press{}, false
		}
		t.form.Channel = by.ChannelID
		return t, true
	case actionOffer:
		return t, t.command(p, self, a)
	case actionRate:
		return t, t.rate(p, a)
	default:
		return press{}, false
	}
	return t, t.press.Answer.Question != ""
}

// command creates the message of an offer. Its id is derived from the action,
// so a redelivery has the same id.
func (t *press) command(p interactive, self identity, a action) bool {
	var text string
	if json.Unmarshal([]byte(a.Value), &text) != nil || strings.TrimSpace(text) == "" || a.At == "" {
		return false
	}
	t.kind = commanded
	thread, group := t.thread, !strings.HasPrefix(p.Channel.ID, "D")
	if group && thread == "" {
		thread = p.Message.TS
	}
	name := p.User.Username
	if name == "" {
		name = p.User.Name
	}
	m := claybot.AgentMessage{
		ID:   claybot.MessageID(t.press.Connector + "/" + self.Team + "/tap/" + strings.Join([]string{p.Channel.ID, p.Message.TS, p.User.ID, a.At}, "/")),
		Type: claybot.MessageUser,
		Text: strings.ToValidUTF8(text, "\uFFFD"), FirstHand: true,
		From:    claybot.Sender{UserID: t.press.UserID, Name: connectors.PersonName(name), Outsider: t.press.Outsider},
		Context: claybot.MessageContext{ThreadID: thread, Group: group},
		At:      claybot.Now(),
	}
	m, ours := connectors.Interpret(m, "/", self.Name)
	t.in = incoming{to: claybot.User(t.press.Connector, t.press.ChannelID, t.press.UserID), message: m}
	return ours
}

// submission decodes a submitted form.
func (p interactive) submission(name string, self identity) (press, bool) {
	t := press{kind: submitted, user: p.User.ID}
	if p.View.Callback != callbackForm || json.Unmarshal([]byte(p.View.Metadata), &t.form) != nil || t.form.Question == "" {
		return press{}, false
	}
	_, channel, _ := strings.Cut(t.form.Channel, "/")
	by, outsider, ok := p.principal(name, self, channel)
	if !ok {
		return press{}, false
	}
	for _, f := range t.form.all() {
		a, ok := f.answer(p.View.State.Values[blockQuestion+f.Question][actionAnswer])
		if !ok {
			return press{}, false
		}
		t.more = append(t.more, a)
	}
	t.press = connectors.Press{Connector: name, UserID: by.UserID, ChannelID: by.ChannelID, Outsider: outsider, Answer: t.more[0]}
	t.more = t.more[1:]
	return t, true
}

// answer returns the answer in a field; false: the form does not have it.
func (f form) answer(in field) (claybot.Answer, bool) {
	value, ok := f.read(in)
	a := claybot.Answer{Question: f.Question, Text: value}
	switch {
	case f.Edit:
		a.Text, a.Args = "approve", strings.TrimSpace(value)
		ok = ok && a.Args != "" // otherwise the action would run unchanged
	case f.Type == claybot.QuestionConfirm:
		a.Text, a.Reason = "deny", cut(strings.TrimSpace(value), maxReasonChars)
	}
	return a, ok
}

// principal returns who acts in a channel. A user's workspace counts, not that of the
// payload, which has none if the app is installed for a whole organization.
func (p interactive) principal(name string, self identity, channel string) (d claybot.Descriptor, outsider, ok bool) {
	return self.principal(name, channel, p.User.ID, p.User.Team, p.Team.ID)
}

// thread returns the thread of the message with the action; empty for a
// top-level message, even if it has replies.
func (p interactive) thread() string {
	thread := p.Message.Thread
	if thread == "" {
		thread = p.Container.Thread
	}
	if thread == p.Message.TS {
		return ""
	}
	return thread
}
