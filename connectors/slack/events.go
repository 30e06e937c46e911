package slack

import (
	"cmp"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
)

// slackbot is the user id of Slack's own messages.
const slackbot = "USLACKBOT"

// A verdict classifies a frame.
type verdict int

const (
	unknown  verdict = iota // not understood
	nothing                 // understood, and not for claybot
	message                 // a message
	reacted                 // an emoji reaction of a person
	moved                   // a change of a channel, or of the bot in it
	farewell                // the app was removed from the workspace
	revoked                 // a token of the bot was revoked
	visited                 // a person opened the app
)

// An event is the part of an Events API payload that claybot reads.
type event struct {
	Team  string `json:"team_id"`
	Event said   `json:"event"`
	Time  int64  `json:"event_time"` // in seconds
	// For is who gets the event; Slack lists at most one.
	For []struct {
		User string `json:"user_id"`
	} `json:"authorizations"`
}

// A said is the part of an event, or of a message in a history, that claybot
// reads.
type said struct {
	Type        string `json:"type"`
	Subtype     string `json:"subtype"`
	Channel     string `json:"channel"`
	ChannelType string `json:"channel_type"`
	User        string `json:"user"`
	UserTeam    string `json:"user_team"`
	SourceTeam  string `json:"source_team"`
	Team        string `json:"team"`
	BotID       string `json:"bot_id"`
	Username    string `json:"username"` // of a program
	BotProfile  struct {
		Name string `json:"name"`
	} `json:"bot_profile"`
	Text        string `json:"text"`
	TS          string `json:"ts"`
	ThreadTS    string `json:"thread_ts"`
	LatestReply string `json:"latest_reply"` // of the first message of a thread, in a history
	Files       []file `json:"files"`
	Metadata    struct {
		Type    string          `json:"event_type"`
		Payload json.RawMessage `json:"event_payload"`
	} `json:"metadata"` // of a program's post, in a history
	Attachments []struct {
		Share  bool `json:"is_share"`
		Unfurl bool `json:"is_msg_unfurl"`
	} `json:"attachments"` // of forwarded messages
	Edited struct {
		User string `json:"user"`
		TS   string `json:"ts"`
	} `json:"edited"`
	EventTS    string `json:"event_ts"`       // when it happened
	OldChannel string `json:"old_channel_id"` // of channel_id_changed
	NewChannel string `json:"new_channel_id"`
	DeletedTS  string `json:"deleted_ts"` // of message_deleted
	Reaction   string `json:"reaction"`   // of reaction_added and reaction_removed
	Tab        string `json:"tab"`        // of app_home_opened
	View       struct {
		ID string `json:"id"`
	} `json:"view"` // of app_home_opened
	Assistant struct {
		User    string `json:"user_id"`
		Channel string `json:"channel_id"`
		Thread  string `json:"thread_ts"`
	} `json:"assistant_thread"` // of assistant_thread_started
	ItemUser string `json:"item_user"`
	Item     struct {
		Type    string `json:"type"`
		Channel string `json:"channel"`
		TS      string `json:"ts"`
	} `json:"item"`
	Message  *said `json:"message"`          // of message_changed: the message as it is now
	Previous *said `json:"previous_message"` // of both: as it was
	Tokens   struct {
		Bot []string `json:"bot"`
	} `json:"tokens"` // of tokens_revoked
}

// A slash is the payload of a slash command.
type slash struct {
	Command   string `json:"command"`
	Text      string `json:"text"`
	Team      string `json:"team_id"`
	Channel   string `json:"channel_id"`
	User      string `json:"user_id"`
	UserName  string `json:"user_name"`
	TriggerID string `json:"trigger_id"`
	Respond   string `json:"response_url"` // a secret, see respond.go
}

// slashMark stands in the ids of messages that are slash commands, where others have a channel.
const slashMark = "cmd"

// read extracts the message of a frame. It is a pure function and never fails.
func read(name string, self identity, f frame) (incoming, verdict) {
	switch f.Type {
	case "events_api":
		var e event
		if connectors.Decode(f.Payload, &e) != nil {
			return incoming{}, unknown
		}
		return e.read(name, self)
	case "slash_commands":
		var c slash
		if connectors.Decode(f.Payload, &c) != nil {
			return incoming{}, unknown
		}
		return c.read(name, self, f.EnvelopeID)
	}
	return incoming{}, unknown
}

func (e event) read(name string, self identity) (incoming, verdict) {
	switch e.Event.Type {
	case "message", "app_mention":
	case "reaction_added", "reaction_removed":
		return e.reaction(name, self)
	case "agent_session_stopped":
		return e.stopped(name, self)
	case "agent_session_title_changed":
		return incoming{}, nothing // people may call their conversations what they like
	case "app_home_opened", "assistant_thread_started":
		return e.visit(name, self)
	case "assistant_thread_context_changed", "app_context_changed":
		return incoming{}, nothing // where else a person reads is not claybot's business; see docs/slack.md
	case "app_uninstalled":
		if e.elsewhere(self) {
			return incoming{}, nothing
		}
		return incoming{}, farewell
	case "tokens_revoked":
		if len(e.Event.Tokens.Bot) > 0 && !e.elsewhere(self) {
			return incoming{}, revoked
		}
		return incoming{}, nothing
	default:
		return e.membership(name, self)
	}
	return e.message(name, self)
}

// message decides by the text whether the bot is addressed, never by the type
// of the event: Slack delivers a mention both as message and as app_mention, in
// any order, and both get the same id.
func (e event) message(name string, self identity) (incoming, verdict) {
	v := e.Event
	switch v.Subtype {
	case "", "file_share", "thread_broadcast", "me_message", "bot_message":
	case "message_changed", "message_deleted":
		return e.change(name, self)
	default: // joins, posts of integrations and so on
		return incoming{}, nothing
	}
	who := cmp.Or(v.BotID, v.User) // an app can post in the name of a person
	if who == "" || v.User == self.User || v.User == slackbot || who == self.Bot {
		return incoming{}, nothing
	}
	to, outsider, ok := self.principal(name, v.Channel, who, v.UserTeam, v.SourceTeam, v.Team, e.Team)
	if !ok || e.Team == "" || v.TS == "" {
		return incoming{}, unknown
	}
	text, mentioned := strip(v.Text, self)
	direct := v.ChannelType == "im" || v.ChannelType == "" && strings.HasPrefix(v.Channel, "D")
	thread := v.ThreadTS
	if thread == "" && !direct {
		thread = v.TS
	}
	m := claybot.AgentMessage{
		ID:      claybot.MessageID(name + "/" + to.ChannelID + "/" + v.TS),
		Type:    claybot.MessageUser,
		Text:    plain(text, self),
		From:    claybot.Sender{UserID: to.UserID, Outsider: outsider},
		Context: claybot.MessageContext{MessageID: v.TS, ThreadID: thread, Group: !direct, Unaddressed: !direct && !mentioned},
		At:      at(v.TS),
		Tainted: len(v.Files) > 0, FirstHand: true,
	}
	for _, a := range v.Attachments {
		m.Tainted = m.Tainted || a.Share || a.Unfurl
		m.FirstHand = m.FirstHand && !a.Share
	}
	m.Spoken = m.FirstHand && m.Text == "" && len(v.Files) == 1 && kindOf(v.Files[0]) == claybot.FileVoice && v.Files[0].User == v.User
	m.FirstHand = m.FirstHand && !m.Spoken
	if v.BotID != "" {
		m.From = claybot.NewBot(to.UserID, connectors.PersonName(cmp.Or(v.Username, v.BotProfile.Name)))
		m.Tainted, m.FirstHand, m.Spoken = true, false, false
	}
	m, ours := connectors.Interpret(m, "!/", self.Name)
	if !ours {
		return incoming{}, nothing
	}
	if m.Type == claybot.MessageUser {
		files, lines := pending(self, v.Files)
		m.Files = files
		for _, line := range lines {
			if m.Text != "" {
				m.Text += "\n"
			}
			m.Text += line
		}
	}
	return incoming{to: to, message: m}, message
}

// read converts "/claybot reset" and "/reset" to the same message. "/claybot" with a word that
// can be a command of a skill is that command, see connectors.Unknown, and "/claybot"
// with any other text asks for help. The text after a custom command, such as
// "/ask what now", goes to the agent.
func (c slash) read(name string, self identity, envelope string) (incoming, verdict) {
	to, outsider, ok := self.principal(name, c.Channel, c.User, c.Team)
	if !ok || !strings.HasPrefix(c.Command, "/") {
		return incoming{}, unknown
	}
	key := c.TriggerID
	if key == "" {
		key = envelope
	}
	said := strings.TrimSpace(c.Text)
	typed := c.Command + " " + said
	menu := strings.EqualFold(c.Command, "/claybot")
	if menu {
		typed = "/" + strings.TrimLeft(said, "/!")
	}
	m := claybot.AgentMessage{
		ID:   claybot.MessageID(name + "/" + self.Team + "/" + slashMark + "/" + key),
		Type: claybot.MessageUser,
		Text: plain(typed, self), FirstHand: true,
		From:    claybot.Sender{UserID: to.UserID, Name: connectors.PersonName(c.UserName), Outsider: outsider},
		Context: claybot.MessageContext{Group: !strings.HasPrefix(c.Channel, "D")},
		At:      claybot.Now(),
	}
	m, ours := connectors.Interpret(m, "/", self.Name)
	if !ours {
		return incoming{}, nothing
	}
	switch {
	case m.Type != claybot.MessageUser || m.Engine != "", menu && m.Command == connectors.Unknown:
	case menu:
		m.Type, m.Command, m.Text = claybot.MessageCommand, "help", ""
	default:
		m.Command, m.Text = "", plain(said, self)
	}
	return incoming{to: to, message: m, respond: c.Respond}, message
}

// at returns the time of a ts, or now if ts is invalid.
func at(ts string) claybot.Time {
	seconds, fraction, _ := strings.Cut(ts, ".")
	s, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || s <= 0 || s > 1<<40 {
		return claybot.Now()
	}
	us, err := strconv.ParseInt(fraction, 10, 64)
	if err != nil || us < 0 || us > 999_999 {
		us = 0
	}
	return claybot.At(time.Unix(s, us*1000))
}

// errUninstalled is the cause of an end after Slack said that the app was removed from the workspace.
var errUninstalled = errors.New("the app was removed from the workspace or its token was revoked")

// removed returns the error of a connector whose app was removed from the
// workspace.
func (c *Connector) removed() error {
	return &connectors.PermanentError{
		Says: texts.StoppedRemoved,
		Err:  errUninstalled,
		Fix:  c.anew("install it again at api.slack.com/apps and " + again(c.cfg.BotTokenName, "xoxb-")),
	}
}

// anew returns the next step where a workspace needs another token: fix, unless it installs the app itself.
func (c *Connector) anew(fix string) string {
	if x := c.cfg.Installed; x != nil {
		return "to install the app again, open the link that this prints: " + x.Again
	}
	return fix
}
