package slack

import (
	"context"
	"strings"
	"sync"
	"time"

	slackapi "github.com/slack-go/slack"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/platforms"
)

// sessions are what Slack shows of threads in which an app for agents works: a button that stops it, and
// in direct chats a title, the first words that the person wrote there. A session stays as it is until the
// app changes it, so each status of a run sets it, and clearing the status ends it.
//
// Shapes: docs.slack.dev/ai/agent-sessions, docs.slack.dev/reference/methods/agents.sessions.setStatus and
// docs.slack.dev/reference/events/agent_session_stopped, read 2026-11-30: the scope is chat:write, sessions
// belong to apps for agents, a title has up to 200 characters and counts for a new session, and the status
// stays when a person presses the button.
type sessions struct {
	mu      sync.Mutex
	titles  map[string]string // by channel/thread, of messages that no run has taken yet
	works   map[string]bool   // by channel/thread: what this process set last
	refused time.Time         // when Slack refused sessions; they are set again after sessionsAgain
}

// note keeps the title for the session of a thread.
func (s *sessions) note(thread, title string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.titles == nil || len(s.titles) >= maxSessions {
		s.titles = make(map[string]string)
	}
	s.titles[thread] = title
}

// begin returns the title to set with a status; ok is false if Slack shows it already, or no sessions.
func (s *sessions) begin(thread string, works bool) (title string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set, known := s.works[thread]
	if known && set == works || !s.refused.IsZero() && time.Since(s.refused) < sessionsAgain {
		return "", false
	}
	return s.titles[thread], true
}

// done notes what Slack shows.
func (s *sessions) done(thread string, works bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.works == nil || len(s.works) >= maxSessions {
		s.works = make(map[string]bool)
	}
	s.works[thread] = works
	delete(s.titles, thread)
}

func (s *sessions) refuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = time.Now()
}

// session says in a thread that the app works, or does not. What Slack refuses is no error.
func (c *Connector) session(ctx context.Context, channel, thread string, works bool) error {
	if !(App{Without: c.cfg.Without}).with(Panel) || c.penalties.left(methodSession, channel) > 0 {
		return nil
	}
	key := channel + "/" + thread
	title, ok := c.sessions.begin(key, works)
	if !ok {
		return nil
	}
	p := slackapi.AgentSessionSetStatusParameters{Status: slackapi.AgentSessionStatusActive, ChannelID: channel, ThreadTS: thread, Title: title}
	if works {
		p.Status = slackapi.AgentSessionStatusProcessing
	}
	_, err := c.api.SetAgentSessionStatusContext(ctx, p)
	if err == nil {
		c.sessions.done(key, works)
		return nil
	}
	if d := waitFor(err); d > 0 {
		c.penalties.add(methodSession, channel, d)
	}
	refused := c.refused(methodSession, c.cfg.BotTokenName, err)
	switch code, k := judge(err); {
	case code == "" || k == rate || k == server:
		return refused
	case k == other || k == account:
		c.log.Info("slack shows no sessions of this app", "err", refused, "again", sessionsAgain)
		c.sessions.refuse()
	}
	return nil
}

// titleOf returns a title for the conversation that a text begins; a text with a secret is none.
func titleOf(text string) string {
	if _, secrets := platforms.MaskSecrets(text); len(secrets) > 0 {
		return ""
	}
	return connectors.OneLine(text, maxTitleChars)
}

// entitle keeps the title for the session that a message of a direct chat begins, if its person has access.
func (r *receiver) entitle(in incoming) {
	m := in.message
	if m.Context.Group || m.Type != claybot.MessageUser || m.Command != "" || !m.FirstHand || r.greets == nil || !r.greets.Welcome(in.to, m.From.Outsider) {
		return
	}
	_, channel, _ := strings.Cut(in.to.ChannelID, "/")
	if title := titleOf(m.Text); title != "" {
		r.chat.sessions.note(channel+"/"+sessionOf(m.Context), title)
	}
}

// sessionOf is the thread whose session an answer belongs to; without a thread, the message is its first.
func sessionOf(c claybot.MessageContext) string {
	if c.ThreadID != "" {
		return c.ThreadID
	}
	return c.MessageID
}

// stopped reads that a person pressed the button of a session: what works in its thread stops, if that
// person may stop it.
func (e event) stopped(name string, self identity) (incoming, verdict) {
	v := e.Event
	to, outsider, ok := self.principal(name, v.Channel, v.User, e.Team)
	if !ok || v.ThreadTS == "" || v.EventTS == "" {
		return incoming{}, unknown
	}
	return incoming{to: to, reaction: connectors.Reaction{
		Connector: name, ChannelID: to.ChannelID, UserID: to.UserID, Outsider: outsider, Group: !strings.HasPrefix(v.Channel, "D"),
		Message: v.ThreadTS, Thread: v.ThreadTS, Stop: true, At: at(v.EventTS),
	}}, reacted
}
