package slack

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	slackapi "github.com/slack-go/slack"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// members knows the users of the workspace, from users.info. The zero value is ready.
type members struct {
	mu    sync.Mutex
	known map[string]member
	fault atomic.Pointer[string] // why nobody can be looked up; nil for nothing
}

type member struct {
	outsider bool   // no full member
	team     string // home, of a user of another workspace; empty for one's own
	bot      bool   // the user of an app
	name     string // for display; empty if unknown
	locale   string // as de-DE; empty if unknown
	zone     string // as Europe/Berlin; empty if unknown
	until    time.Time
}

func (s *members) get(user string) (m member, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok = s.known[user]
	return m, ok && time.Now().Before(m.until)
}

func (s *members) put(user string, m member, valid time.Duration) member {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= maxMembers {
		s.known = make(map[string]member)
	}
	m.until = time.Now().Add(valid)
	s.known[user] = m
	return m
}

// outsider reports whether a user of the bot's own workspace is no full member: a guest, a
// deactivated user, or one of whom Slack says nothing. An error means that Slack could not
// be asked now.
func (c *Connector) outsider(ctx context.Context, id string) (bool, error) {
	user, _ := c.local(id)
	m, err := c.member(ctx, user, lookupTime)
	return m.outsider, err
}

// profile returns how a user is called, and their language and zone, or nothing for a user of
// another workspace and where Slack does not say so quickly.
func (c *Connector) profile(ctx context.Context, id string) member {
	user, own := c.local(id)
	if !own {
		return member{}
	}
	m, err := c.member(ctx, user, nameTime)
	if err != nil {
		c.log.Debug("the name of a user is unknown", "user", user, "err", err)
	}
	return m
}

// member looks a user up, within a time. With an error the user counts as an outsider.
func (c *Connector) member(ctx context.Context, user string, within time.Duration) (member, error) {
	unknown := member{outsider: true}
	if m, ok := c.members.get(user); ok {
		return m, nil
	}
	if wait := c.penalties.left(methodUserInfo, ""); wait > 0 {
		return unknown, &connectors.RetryError{After: wait, Err: fmt.Errorf("%s: too many calls", methodUserInfo)}
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	u, err := c.api.GetUserInfoContext(ctx, user)
	if err == nil {
		self, err := c.whoami(ctx)
		if err != nil {
			return unknown, err
		}
		c.members.fault.Store(nil)
		name := connectors.PersonName(cmp.Or(u.Profile.DisplayName, u.Profile.RealName, u.RealName, u.Name))
		team := ""
		if u.TeamID != self.Team && !slices.Contains(u.Enterprise.Teams, self.Team) {
			team = u.TeamID
		}
		return c.members.put(user, member{outsider: u.ID != user || !self.has(u), team: team, bot: u.IsBot, name: name, locale: u.Locale, zone: u.TZ}, memberTime), nil
	}
	if wait := waitFor(err); wait > 0 {
		c.penalties.add(methodUserInfo, "", wait)
	}
	refused := c.refused(methodUserInfo, c.cfg.BotTokenName, err)
	switch code, k := judge(err); {
	case k == account:
		text := refused.Error() + "; users in channels need access of their own"
		if c.members.fault.Swap(&text) == nil {
			c.log.Warn("users in channels cannot be told from guests", "err", refused)
		}
		c.members.put(user, unknown, memberAgain)
	case code != "" && k != rate && k != server:
		c.members.put(user, unknown, memberTime)
	default:
		return unknown, refused
	}
	return unknown, nil
}

// has reports whether a user is a full member of the workspace, in an organization with
// several also one whose home is another of them.
func (i identity) has(u *slackapi.User) bool {
	return !u.IsRestricted && !u.IsUltraRestricted && !u.IsStranger && !u.Deleted &&
		(u.TeamID == i.Team || slices.Contains(u.Enterprise.Teams, i.Team))
}

// A door marks what outsiders do in channels, and names who writes. In direct chats access is
// personal, so that only the name is looked up there.
type door struct {
	gapHandler
	chat *Connector
}

// Post marks the sender of m.
func (d door) Post(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) error {
	if m.Amends != "" { // who wrote the message was looked up then
		return d.gapHandler.Post(ctx, to, m)
	}
	if m.Context.Unaddressed {
		if heard, err := d.gapHandler.Hears(ctx, to, m); err != nil || !heard {
			return err
		}
	}
	if m.From.Bot {
		return d.gapHandler.Post(ctx, to, m)
	}
	if m.Context.Group && !m.From.Outsider {
		var err error
		if m.From.Outsider, err = d.chat.outsider(ctx, to.UserID); err != nil {
			return err
		}
	}
	known := d.chat.profile(ctx, to.UserID)
	m.From.Name = cmp.Or(m.From.Name, known.name)
	m.Context.Locale, m.Context.Timezone = known.locale, known.zone
	if _, channel, ok := strings.Cut(to.ChannelID, "/"); ok && m.Context.Group {
		m.Context.Channel = d.chat.channelName(ctx, channel)
	}
	return d.gapHandler.Post(ctx, to, m)
}

// Answer marks who pressed.
func (d door) Answer(ctx context.Context, p connectors.Press) (connectors.PressResult, error) {
	if _, channel, _ := strings.Cut(p.ChannelID, "/"); !p.Outsider && !strings.HasPrefix(channel, "D") {
		var err error
		if p.Outsider, err = d.chat.outsider(ctx, p.UserID); err != nil {
			return connectors.PressResult{}, err
		}
	}
	return d.gapHandler.Answer(ctx, p)
}
