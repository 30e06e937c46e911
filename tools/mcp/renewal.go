package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"golang.org/x/oauth2"

	"github.com/claybot/claybot/storage"
)

// unkept is a grant whose refresh token is new and could not be stored: the one that is
// stored may be worth nothing. It outlives connections.
type unkept struct {
	mu     sync.Mutex
	grant  *grant // nil: all is stored
	before string // the access token of the grant that it replaces
}

// keep stores g in place of the grant with the access token before, or remembers it.
func (u *unkept) keep(tokens storage.Secrets, server, before string, g grant) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.grant != nil {
		before = u.before
	}
	err := g.keep(tokens, server)
	if u.grant, u.before = nil, ""; err != nil {
		u.grant, u.before = &g, before
	}
	return err
}

func (u *unkept) empty() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.grant == nil
}

// catchUp returns what is to be used in place of the stored grant, after it is stored.
func (u *unkept) catchUp(tokens storage.Secrets, server string, stored grant) (grant, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.grant == nil || u.before != stored.Token.AccessToken { // all is stored, or an operator has logged in again
		u.grant = nil
		return stored, nil
	}
	g := *u.grant
	if err := g.keep(tokens, server); err != nil {
		return g, err
	}
	u.grant = nil
	return g, nil
}

func keeping(ctx context.Context, tokens storage.Secrets, server string, g grant, u *unkept) oauth2.TokenSource {
	ctx = withResource(ctx, g)
	fresh := &freshTokens{ctx: ctx, source: g.config().TokenSource(ctx, g.Token), tokens: tokens, server: server, grant: g, unkept: u}
	return oauth2.ReuseTokenSource(g.Token, fresh) // which lets one at a time ask
}

type freshTokens struct {
	ctx    context.Context //nolint:containedctx // a token source has no other way in
	source oauth2.TokenSource
	tokens storage.Secrets
	server string
	grant  grant
	unkept *unkept
}

func (f *freshTokens) Token() (*oauth2.Token, error) {
	turner, shared := f.tokens.(storage.SecretTurns)
	if shared {
		ctx, cancel := context.WithTimeout(f.ctx, 2*storage.SecretTurnLost) // else the turn of a process that is gone stays
		defer cancel()
		done, err := turner.Turn(ctx, f.server)
		if err != nil {
			return nil, err
		}
		defer done()
		if err := f.catchUp(); err != nil {
			return nil, err
		}
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
	before := f.grant.Token.AccessToken
	if t.AccessToken == before && f.unkept.empty() {
		return t, nil
	}
	f.grant.Token = t
	// No request is made with a token that is not stored: the next one tries to store it again.
	if err := f.unkept.keep(f.tokens, f.server, before, f.grant); err != nil {
		return nil, err
	}
	return t, nil
}

// catchUp stores the token that could not be stored before, or takes the one that another
// node has got meanwhile. What cannot be read changes nothing: the login is asked as before,
// unless a token is still to be stored.
func (f *freshTokens) catchUp() error {
	b, err := f.tokens.Get(f.server)
	var g grant
	if err != nil || json.Unmarshal(b, &g) != nil || g.Token == nil || g.URL != f.grant.URL {
		if !f.unkept.empty() {
			return errors.New("a new token could not be stored")
		}
		return nil
	}
	if g, err = f.unkept.catchUp(f.tokens, f.server, g); err != nil {
		return err
	}
	if g.Token.AccessToken != f.grant.Token.AccessToken {
		f.grant, f.source = g, g.config().TokenSource(f.ctx, g.Token)
	}
	return nil
}
