package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

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
		server: l.server, tokens: l.m.cfg.Tokens,
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
	tokens Tokens
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
	k.source = keeping(k.ctx, k.tokens, k.server.Name, g)
	return nil
}

func keeping(ctx context.Context, tokens Tokens, server string, g grant) oauth2.TokenSource {
	fresh := &freshTokens{ctx: ctx, source: g.config().TokenSource(ctx, g.Token), tokens: tokens, server: server, grant: g}
	return oauth2.ReuseTokenSource(g.Token, fresh) // which lets one at a time ask
}

type freshTokens struct {
	ctx    context.Context //nolint:containedctx // a token source has no other way in
	source oauth2.TokenSource
	tokens Tokens
	server string
	grant  grant
}

func (f *freshTokens) Token() (*oauth2.Token, error) {
	turner, shared := f.tokens.(Turner)
	if shared {
		ctx, cancel := context.WithTimeout(f.ctx, turnLost)
		defer cancel()
		done, err := turner.Turn(ctx, f.server)
		if err != nil {
			return nil, err
		}
		defer done()
		f.catchUp()
		if f.grant.Token.Valid() {
			return f.grant.Token, nil
		}
	}
	t, err := f.source.Token()
	if err != nil {
		if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.ErrorCode == "invalid_grant" {
			return nil, err // the library goes on without a token, and the server asks for a login
		}
		return nil, errors.New("no new token could be got from the login of the server") // its words may show the old one
	}
	if t.AccessToken == f.grant.Token.AccessToken {
		return t, nil
	}
	f.grant.Token = t
	return t, f.grant.keep(f.tokens, f.server)
}

// catchUp takes the token that another node has got meanwhile. What cannot be
// read changes nothing: the login is asked as before.
func (f *freshTokens) catchUp() {
	b, err := f.tokens.Get(f.server)
	var g grant
	if err != nil || json.Unmarshal(b, &g) != nil || g.Token == nil || g.URL != f.grant.URL || g.Token.AccessToken == f.grant.Token.AccessToken {
		return
	}
	f.grant, f.source = g, g.config().TokenSource(f.ctx, g.Token)
}

func (g grant) keep(tokens Tokens, server string) error {
	b, err := json.Marshal(g)
	if err != nil {
		return fmt.Errorf("keep the tokens: %w", err)
	}
	return tokens.Set(server, b)
}
