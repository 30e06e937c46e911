package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/workspace"
)

// errLogin says that an operator must log in.
var errLogin = errors.New("it wants a login")

// A grant is what is kept of a login: enough to get new tokens without a person.
type grant struct {
	URL      string        `json:"url"` // of the server it is for
	Token    *oauth2.Token `json:"token"`
	ClientID string        `json:"clientId"`
	Secret   string        `json:"clientSecret,omitempty"`
	TokenURL string        `json:"tokenUrl"`
	Style    int           `json:"authStyle"`
	// Resource is what the token is for, as the authorization server heard it; empty: it heard of none.
	Resource string `json:"resource,omitempty"`
}

func (g grant) config() *oauth2.Config {
	return &oauth2.Config{
		ClientID: g.ClientID, ClientSecret: g.Secret,
		Endpoint: oauth2.Endpoint{TokenURL: g.TokenURL, AuthStyle: oauth2.AuthStyle(g.Style)},
	}
}

// authorization is the handler of a server's tokens; nil for a server without
// OAuth. client is used to get them, as long as life goes on.
func (l *link) authorization(life context.Context, client *http.Client) (auth.OAuthHandler, error) {
	o := l.server.OAuth
	switch {
	case o == nil:
		return nil, nil
	case o.Grant == GrantClient:
		h, err := extauth.NewClientCredentialsHandler(&extauth.ClientCredentialsHandlerConfig{
			Credentials: o.credentials(), HTTPClient: client,
		})
		if err != nil {
			return nil, fmt.Errorf("oauth: %w", err)
		}
		return newTurnstile(h), nil
	}
	return &keptLogin{
		server: l.server, tokens: l.m.cfg.Tokens, unkept: l.unkept,
		ctx: context.WithValue(life, oauth2.HTTPClient, client),
	}, nil
}

func (o *OAuth) credentials() *oauthex.ClientCredentials {
	if o.ClientID == "" {
		return nil
	}
	c := &oauthex.ClientCredentials{ClientID: o.ClientID}
	if o.ClientSecret != "" {
		c.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: o.ClientSecret}
	}
	return c
}

func (o *OAuth) scopes(discovered []string) []string {
	if len(o.Scopes) > 0 {
		return slices.Clone(o.Scopes)
	}
	return discovered
}

// A turnstile lets one at a time use a handler, which the library's own do not
// see to.
type turnstile struct {
	turn workspace.Turn
	h    auth.OAuthHandler
}

func newTurnstile(h auth.OAuthHandler) *turnstile {
	return &turnstile{turn: workspace.NewTurn(), h: h}
}

func (t *turnstile) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	if err := t.turn.Take(ctx); err != nil {
		return nil, err
	}
	defer t.turn.Give()
	return t.h.TokenSource(ctx)
}

func (t *turnstile) Authorize(ctx context.Context, r *http.Request, resp *http.Response) error {
	if err := t.turn.Take(ctx); err != nil {
		return errors.Join(err, resp.Body.Close())
	}
	defer t.turn.Give()
	return t.h.Authorize(ctx, r, resp)
}

// A keptLogin uses what Login has kept, and never asks a person.
type keptLogin struct {
	server Server
	tokens storage.Secrets
	unkept *unkept
	ctx    context.Context //nolint:containedctx // a token source has no other way in
	source oauth2.TokenSource
}

func (k *keptLogin) TokenSource(context.Context) (oauth2.TokenSource, error) { return k.source, nil }

func (k *keptLogin) Authorize(_ context.Context, _ *http.Request, resp *http.Response) error {
	return errors.Join(errLogin, resp.Body.Close())
}

// load reads what is kept. Without anything there is no token, and the server
// says whether it wants one.
func (k *keptLogin) load() error {
	if k.tokens == nil {
		return nil
	}
	b, err := k.tokens.Get(k.server.Name)
	if err != nil || b == nil {
		return err
	}
	var g grant
	if json.Unmarshal(b, &g) != nil || g.Token == nil {
		return errLogin // damaged: a new login replaces it
	}
	if g.URL != k.server.URL { // a token is never shown to another server
		return errLogin
	}
	if g, err = k.unkept.catchUp(k.tokens, k.server.Name, g); err != nil {
		return err
	}
	k.source = keeping(k.ctx, k.tokens, k.server.Name, g, k.unkept)
	return nil
}

// withResource is a context whose client names the resource of the grant in requests for tokens, as the protocol demands
// (RFC 8707); the library does so for the first token alone.
func withResource(ctx context.Context, g grant) context.Context {
	client, ok := ctx.Value(oauth2.HTTPClient).(*http.Client)
	if !ok {
		client = http.DefaultClient
	}
	if g.Resource == "" {
		return ctx
	}
	c := *client
	c.Transport = &naming{base: client.Transport, grant: g}
	return context.WithValue(ctx, oauth2.HTTPClient, &c)
}

// A naming transport adds the resource to requests for tokens.
type naming struct {
	base  http.RoundTripper
	grant grant
}

func (n *naming) RoundTrip(r *http.Request) (*http.Response, error) {
	base := n.base
	if base == nil {
		base = http.DefaultTransport
	}
	if r.Method != http.MethodPost || r.URL.String() != n.grant.TokenURL {
		return base.RoundTrip(r)
	}
	b, err := io.ReadAll(r.Body)
	if err := errors.Join(err, r.Body.Close()); err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(b))
	if err != nil {
		return nil, errors.New("the request for a token has no form") // its words would show the tokens
	}
	form.Set("resource", n.grant.Resource)
	body := form.Encode()
	r = r.Clone(r.Context())
	r.Body, r.ContentLength, r.GetBody = io.NopCloser(strings.NewReader(body)), int64(len(body)), nil
	return base.RoundTrip(r)
}

func (g grant) keep(tokens storage.Secrets, server string) error {
	b, err := json.Marshal(g)
	if err != nil {
		return fmt.Errorf("keep the tokens: %w", err)
	}
	return tokens.Set(server, b)
}

// A Visit is one login of an operator at a server.
type Visit struct {
	Server Server
	HTTP   *http.Client
	Tokens storage.Secrets
	// Show gives the operator the link to open in a browser.
	Show func(link string)
	// Pasted brings the address that the browser was sent to, where the browser
	// runs on another machine and cannot reach this one; nil: it can.
	Pasted  <-chan string
	Version string
}

// Login lets an operator log in at a server by OAuth, with an authorization code
// and PKCE, and keeps what comes of it in v.Tokens; the daemon takes it with its
// next try to connect. It waits for the operator until ctx ends. A server that
// lets everybody in is an error: there is nothing to log in to.
func Login(ctx context.Context, v Visit) error {
	s := v.Server
	switch {
	case s.OAuth == nil || s.OAuth.Grant == GrantClient:
		return fmt.Errorf("the MCP server %s is not one to log in to; its configuration has no oauth by %s", s.Name, GrantCode)
	case v.Tokens == nil || v.HTTP == nil:
		return errors.New("there is nowhere to keep the tokens")
	}
	ear, redirect, err := listen(ctx, s.OAuth.Redirect)
	if err != nil {
		return err
	}
	back, over := make(chan url.Values, 8), make(chan struct{})
	web := &http.Server{Handler: landing(redirect, back, over), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = web.Serve(ear) // ends with Close
	}()
	defer func() {
		close(over)
		_ = web.Close() // the callback is no longer needed
		<-served
	}()

	m := New(Config{HTTP: func(string) *http.Client { return v.HTTP }, Tokens: v.Tokens})
	l := newLink(m, s)
	client, err := l.client(ctx, new(atomic.Pointer[error]))
	if err != nil {
		return err
	}
	kept, resource := false, ""
	config := &auth.AuthorizationCodeHandlerConfig{
		PreregisteredClient: s.OAuth.credentials(),
		RedirectURL:         redirect.String(),
		RequestRefreshToken: true, AcceptUnadvertisedIss: true,
		ScopeFilter: s.OAuth.scopes, Client: client,
		AuthorizationCodeFetcher: v.fetch(back, &resource),
		NewTokenSource: func(ctx context.Context, c *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
			g := grant{URL: s.URL, Token: t, ClientID: c.ClientID, Secret: c.ClientSecret, TokenURL: c.Endpoint.TokenURL, Style: int(c.Endpoint.AuthStyle), Resource: resource}
			kept = true
			// A token that is renewed right here is kept, too: the one before may be
			// worth nothing then.
			return keeping(ctx, v.Tokens, s.Name, g, new(unkept)), g.keep(v.Tokens, s.Name)
		},
	}
	if config.PreregisteredClient == nil {
		config.DynamicClientRegistrationConfig = registration(redirect)
	}
	h, err := auth.NewAuthorizationCodeHandler(config)
	if err != nil {
		return fmt.Errorf("log in: %w", err)
	}
	// The server says itself where its login is, when it refuses a request without a token.
	session, err := sdk.NewClient(l.me(v.Version), l.options()).Connect(ctx, &sdk.StreamableClientTransport{
		Endpoint: s.URL, HTTPClient: client, OAuthHandler: newTurnstile(h), MaxEventSize: MaxMessage, DisableStandaloneSSE: true, MaxRetries: -1,
	}, nil)
	if err == nil {
		_ = session.Close() // the login is what counts
	}
	switch {
	case kept: // whatever the server said to it afterwards
		return nil
	case err != nil:
		return fmt.Errorf("log in at the MCP server %s: %s", s.Name, l.red.line(reason(ctx, err)))
	}
	return fmt.Errorf("the MCP server %s let claybot in without a login; take oauth out of its configuration", s.Name)
}

// reason prefers why a wait ended to what the library makes of it.
func reason(ctx context.Context, err error) string {
	if cause := context.Cause(ctx); cause != nil {
		return cause.Error()
	}
	return err.Error()
}

func registration(redirect *url.URL) *auth.DynamicClientRegistrationConfig {
	return &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
		ClientName: "claybot", RedirectURIs: []string{redirect.String()},
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		TokenEndpointAuthMethod: "none",
	}}
}

// listen opens the address that the browser is sent back to, which must be one
// of this machine.
func listen(ctx context.Context, redirect string) (net.Listener, *url.URL, error) {
	if redirect == "" {
		redirect = "http://127.0.0.1:0/callback"
	}
	u, err := url.Parse(redirect)
	if err != nil || u.Scheme != "http" || net.ParseIP(u.Hostname()) == nil || !net.ParseIP(u.Hostname()).IsLoopback() || u.Port() == "" {
		return nil, nil, errors.New("oauth.redirect is not an address of this machine such as http://127.0.0.1:8421/callback")
	}
	var lc net.ListenConfig
	ear, err := lc.Listen(ctx, "tcp", u.Host)
	if err != nil {
		return nil, nil, fmt.Errorf("listen for the end of the login: %w", err)
	}
	u.Host = ear.Addr().String()
	return ear, u, nil
}

// landing is the page that the browser is sent back to. The browser has all of it
// before the login goes on, which may be over, and its connections with it, before
// this has another turn.
func landing(redirect *url.URL, back chan<- url.Values, over <-chan struct{}) http.Handler {
	const page = "claybot has the answer. You can close this page and go back to the terminal.\n"
	mux := http.NewServeMux()
	path := redirect.Path
	if path == "" {
		path = "/"
	}
	mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if q.Get("code") == "" && q.Get("error") == "" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(page)))
		_, _ = io.WriteString(w, page) // the browser may be gone
		_ = http.NewResponseController(w).Flush()
		select {
		case back <- q:
		case <-over:
		}
	})
	return mux
}

// fetch waits for the code that the browser brings. It notes what the code is for.
func (v Visit) fetch(back <-chan url.Values, resource *string) auth.AuthorizationCodeFetcher {
	return func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
		link, err := url.Parse(args.URL)
		if err != nil {
			return nil, errors.New("the server's link to its login cannot be read")
		}
		state := link.Query().Get("state")
		*resource = link.Query().Get("resource")
		v.Show(args.URL)
		for {
			var q url.Values
			select {
			case q = <-back:
			case line, ok := <-v.Pasted:
				if !ok {
					v.Pasted = nil // the other way stays open
					continue
				}
				u, err := url.Parse(strings.TrimSpace(line))
				if err != nil {
					continue
				}
				q = u.Query()
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
			if q.Get("state") != state || q.Get("code") == "" && q.Get("error") == "" {
				continue // not the answer to this link
			}
			if code := q.Get("error"); code != "" {
				return nil, fmt.Errorf("the login was refused: %s %s", plain(code, 100), plain(q.Get("error_description"), 300))
			}
			return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
		}
	}
}
