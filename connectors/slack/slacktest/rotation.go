package slacktest

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// A Rotation is an app whose bot tokens Slack rotates: they expire, and a refresh token gives the next
// ones once. The numbers and codes are those of
// docs.slack.dev/authentication/using-token-rotation and …/reference/methods/oauth.v2.access, as of
// 2026-11-28. Slack does not say how long the grace period of a used refresh token is.
type Rotation struct {
	ClientID, ClientSecret string
	RefreshToken           string        // the first one, as the page of the app shows it
	Life                   time.Duration // of an access token; default 12 h
	Grace                  time.Duration // of a used refresh token; default 1 min
}

// maxActive is how many access tokens are valid at once: the oldest goes.
const maxActive = 2

// rotating is the state of the tokens of an app.
type rotating struct {
	active  []lasting
	expired []string
	refresh map[string]time.Time // when each was used; zero: it was not
	given   int
}

// A lasting token is valid until end.
type lasting struct {
	token string
	end   time.Time
}

// oauth answers oauth.v2.access with grant_type refresh_token. The lock is held.
func (s *Server) oauth(r *http.Request, args url.Values) answer {
	if args.Get("grant_type") != "refresh_token" && s.cfg.Client != nil {
		return s.install(r, args)
	}
	c := s.cfg.Rotation
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = args.Get("client_id"), args.Get("client_secret")
	}
	switch {
	case c == nil || id != c.ClientID:
		return refuse("invalid_client_id")
	case secret != c.ClientSecret:
		return refuse("bad_client_secret")
	case args.Get("grant_type") != "refresh_token":
		return refuse("invalid_grant_type")
	}
	token := args.Get("refresh_token")
	used, known := s.refresh[token]
	if !known || s.uninstalled || !used.IsZero() && time.Since(used) > c.Grace {
		return refuse("invalid_refresh_token")
	}
	if used.IsZero() {
		s.refresh[token] = time.Now()
	}
	return s.rotated()
}

// rotated is an answer with new tokens. The lock is held.
func (s *Server) rotated() answer {
	c := s.cfg.Rotation
	s.given++
	next := lasting{fmt.Sprintf("xoxe.xoxb-1-%s-test-canary-%d", s.cfg.Team, s.given), time.Now().Add(c.Life)}
	if s.active = append(s.active, next); len(s.active) > maxActive {
		s.active = s.active[1:]
	}
	refresh := fmt.Sprintf("xoxe-1-%s-test-canary-%d", s.cfg.Team, s.given)
	s.refresh[refresh] = time.Time{}
	s.change()
	a := s.grant(next.token)
	a["expires_in"], a["refresh_token"] = int(c.Life/time.Second), refresh
	return a
}

// grant is an answer with a token. The lock is held.
func (s *Server) grant(token string) answer {
	return answer{
		"ok": true, "access_token": token, "token_type": "bot",
		"scope": strings.Join(s.provided(), ","), "bot_user_id": s.cfg.BotUser, "app_id": "A1", "team": answer{"id": s.cfg.Team, "name": "Test " + s.cfg.Team},
		"enterprise": nil, "is_enterprise_install": false,
	}
}

// botToken returns why a token is not that of the bot, empty if it is. The lock is held.
func (s *Server) botToken(token string) string {
	if s.cfg.Rotation == nil {
		if token != s.cfg.BotToken {
			return "invalid_auth"
		}
		return ""
	}
	for _, a := range s.active {
		if a.token == token && time.Now().Before(a.end) {
			return ""
		}
		if a.token == token {
			return "token_expired"
		}
	}
	if slices.Contains(s.expired, token) {
		return "token_expired"
	}
	return "invalid_auth"
}

// Expire lets all access tokens expire.
func (s *Server) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.active {
		s.expired = append(s.expired, a.token)
	}
	s.active = nil
}

// Revoke makes all refresh tokens invalid, and gives the app a new one.
func (s *Server) Revoke(next string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refresh = map[string]time.Time{next: {}}
}

// Refreshed is how many times the app got new tokens.
func (s *Server) Refreshed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.given
}

// TokensRevoked tells the app that a token of its bot was revoked.
func (s *Server) TokensRevoked() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.event(s.cfg.Team, answer{"type": "tokens_revoked", "tokens": answer{"oauth": []string{}, "bot": []string{s.cfg.BotUser}}})
}
