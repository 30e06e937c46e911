package slacktest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// A Client is an app that workspaces install by OAuth. With a Rotation, its ids are those of that.
//
// Shapes: docs.slack.dev/authentication/installing-with-oauth and …/reference/methods/oauth.v2.access, as of
// 2026-11-30: a code lasts ten minutes and counts once, and its redirect_uri must be that of the page before.
type Client struct {
	ID, Secret string
	Redirect   string // the redirect_urls of the manifest: an address must begin with it
	// Organization makes an installation one for a whole organization.
	Organization bool
}

// codeLife is how long a code lasts.
const codeLife = 10 * time.Minute

// installing is the state of installations. The server's lock guards it.
type installing struct {
	codes    map[string]*code
	installs int
}

type code struct {
	redirect string
	at       time.Time
	used     bool
}

// Allow is a person who opens the page at an address of /oauth/v2/authorize and allows the app, or cancels. It returns
// where Slack leads the browser.
func (s *Server) Allow(page string, allow bool) (string, error) {
	u, err := url.Parse(page)
	if err != nil || u.Path != "/oauth/v2/authorize" {
		return "", fmt.Errorf("%q is not the page of Slack", page)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	args, c := u.Query(), s.cfg.Client
	redirect := args.Get("redirect_uri")
	switch {
	case c == nil || args.Get("client_id") != c.ID:
		return "", fmt.Errorf("invalid client_id parameter %q", args.Get("client_id"))
	case redirect == "" || !strings.HasPrefix(redirect, c.Redirect):
		return "", fmt.Errorf("redirect_uri %q did not match any configured URIs", redirect)
	}
	for _, scope := range strings.Split(args.Get("scope"), ",") {
		if !s.app.scopes[scope] {
			return "", fmt.Errorf("invalid scope %q", scope)
		}
	}
	back := url.Values{"state": {args.Get("state")}}
	if !allow {
		back.Set("error", "access_denied")
		return redirect + "?" + back.Encode(), nil
	}
	if s.codes == nil {
		s.codes = make(map[string]*code)
	}
	name := s.next("code-canary-" + s.cfg.Team + "-")
	s.codes[name] = &code{redirect: redirect, at: time.Now()}
	back.Set("code", name)
	return redirect + "?" + back.Encode(), nil
}

// install answers oauth.v2.access with a code. The lock is held.
func (s *Server) install(r *http.Request, args url.Values) answer {
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = args.Get("client_id"), args.Get("client_secret")
	}
	c := s.codes[args.Get("code")]
	switch {
	case id != s.cfg.Client.ID:
		return refuse("invalid_client_id")
	case secret != s.cfg.Client.Secret:
		return refuse("bad_client_secret")
	case c == nil || time.Since(c.at) >= codeLife:
		return refuse("invalid_code")
	case c.used:
		return refuse("code_already_used")
	case args.Get("redirect_uri") != c.redirect:
		return refuse("bad_redirect_uri")
	}
	c.used = true
	s.installs++
	if s.uninstalled { // the old tokens stay invalid
		s.uninstalled, s.active, s.refresh = false, nil, make(map[string]time.Time)
		s.cfg.BotToken = fmt.Sprintf("%s-%d", s.cfg.BotToken, s.installs)
	}
	var a answer
	if s.cfg.Rotation != nil {
		a = s.rotated()
	} else {
		a = s.grant(s.cfg.BotToken)
	}
	if s.cfg.Client.Organization {
		a["team"], a["enterprise"], a["is_enterprise_install"] = nil, answer{"id": "E1", "name": "Org"}, true
	}
	s.change()
	return a
}

// Installs is how many times the app was installed by OAuth.
func (s *Server) Installs() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.installs
}

// owns reports whether a token, refresh token or code is of this workspace.
func (s *Server) owns(secret string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, refresh := s.refresh[secret]
	return secret != "" && (strings.HasPrefix(secret, s.cfg.BotToken) || s.codes[secret] != nil || refresh || slices.Contains(s.expired, secret) ||
		slices.ContainsFunc(s.active, func(a lasting) bool { return a.token == secret }))
}

// Several are workspaces with one app at one address: tokens, codes and addresses for answers and uploads say which is
// meant. What none of them knows goes to the first.
type Several []*Server

// ServeHTTP implements http.Handler.
func (all Several) ServeHTTP(w http.ResponseWriter, r *http.Request) { all.pick(w, r).ServeHTTP(w, r) }

func (all Several) pick(w http.ResponseWriter, r *http.Request) *Server {
	parts := strings.Split(r.URL.Path, "/")
	secret := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if strings.HasSuffix(r.URL.Path, "/oauth.v2.access") {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
		r.Body = io.NopCloser(bytes.NewReader(body))
		if args, bad := url.ParseQuery(string(body)); err == nil && bad == nil {
			secret = args.Get("code") + args.Get("refresh_token")
		}
	}
	for _, s := range all {
		if s.owns(secret) || len(parts) > 2 && parts[2] == s.cfg.Team {
			return s
		}
	}
	return all[0]
}
