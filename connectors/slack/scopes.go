package slack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// lacking returns the scopes of the app that an answer of Slack does not list in its header
// x-oauth-scopes. Without the header it returns none, because they are unknown.
func (a App) lacking(answer http.Header) (missing []string) {
	granted := answer.Values("X-Oauth-Scopes")
	if len(granted) == 0 {
		return nil
	}
	has := strings.FieldsFunc(strings.Join(granted, ","), func(r rune) bool { return r == ',' || r == ' ' })
	return slices.DeleteFunc(a.scopes(), func(scope string) bool { return slices.Contains(has, scope) })
}

// A shortage is the scopes that the app is known to lack. The zero value is none.
type shortage struct {
	mu     sync.Mutex
	scopes []string
}

// learn adds scopes that are new, and logs them. The lock is held.
func (s *shortage) learn(log *slog.Logger, scopes ...string) {
	for _, scope := range scopes {
		if !slices.Contains(s.scopes, scope) {
			s.scopes = append(s.scopes, scope)
			log.Warn("the slack app lacks a scope", "scope", scope)
		}
	}
	slices.Sort(s.scopes)
}

// has reports whether the app is known to lack a scope.
func (s *shortage) has(scope string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.scopes, scope)
}

// String is what Health says; empty for none.
func (s *shortage) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.scopes) == 0 {
		return ""
	}
	return fmt.Sprintf("the Slack app lacks the scopes %s; add them at api.slack.com/apps, OAuth & Permissions, reinstall the app and restart claybot",
		strings.Join(s.scopes, ", "))
}

// granted notes, from an answer of Slack, which scopes the app lacks.
func (c *Connector) granted(answer http.Header) {
	c.short.mu.Lock()
	defer c.short.mu.Unlock()
	missing := App{Without: c.cfg.Without}.lacking(answer)
	c.short.scopes = slices.DeleteFunc(c.short.scopes, func(old string) bool { return !slices.Contains(missing, old) })
	c.short.learn(c.log, missing...)
}

// missing notes a scope without which Slack refused a call.
func (c *Connector) missing(scope string) {
	c.short.mu.Lock()
	defer c.short.mu.Unlock()
	c.short.learn(c.log, scope)
}

// Examined is what Slack says of a bot.
type Examined struct {
	Team, Name string
	Lacks      []string // scopes of the app; none where Slack does not list them
}

// ExamineBot asks Slack whether it accepts the bot token, and what the bot may do.
func (c *Connector) ExamineBot(ctx context.Context) (Examined, error) {
	r, err := c.api.AuthTestContext(ctx)
	if err != nil {
		return Examined{}, c.refused("auth.test", c.cfg.BotTokenName, err)
	}
	return Examined{Team: r.Team, Name: r.User, Lacks: App{Without: c.cfg.Without}.lacking(r.Header)}, nil
}

// ExamineApp asks Slack whether it accepts the app token and has Socket Mode. It opens no socket.
func (c *Connector) ExamineApp(ctx context.Context) error {
	_, err := c.socketAddress(ctx)
	return err
}

// An ExaminedWorkspace is what is known of a workspace that has installed the app itself.
type ExaminedWorkspace struct {
	Name  string // with its id
	Gone  bool   // it has removed the app
	Lacks []string
	Err   error // of the question to Slack
}

// Examine asks Slack about each workspace that has installed the app, with the token that is stored: a token
// that has expired stays, because its refresh token counts once.
func (w *Workspaces) Examine(ctx context.Context) (found []ExaminedWorkspace, err error) {
	all, err := w.ledger.read()
	if err != nil {
		return nil, err
	}
	for _, i := range all.All {
		x := ExaminedWorkspace{Name: i.String(), Gone: !i.Gone.IsZero()}
		if x.Gone {
			found = append(found, x)
			continue
		}
		p, err := w.ledger.tokens(i.Team)
		if err != nil {
			return nil, err
		}
		c := w.join(i, all.Home, &pair{Access: p.Access})
		var bot Examined
		switch {
		case p.Refresh != "" && !p.serves(""):
			x.Err = errors.New("its token has expired; a daemon that runs renews it")
		default:
			bot, x.Err = c.ExamineBot(ctx)
		}
		x.Lacks = bot.Lacks
		found = append(found, x)
	}
	return found, nil
}
