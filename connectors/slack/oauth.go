package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// A grant is what oauth.v2.access answers. The tokens of an app without rotation do not expire and have no
// refresh token; an installation for an organization has no team.
//
// Shapes: docs.slack.dev/reference/methods/oauth.v2.access and docs.slack.dev/enterprise/developing-for-enterprise-orgs,
// read 2026-11-30.
type grant struct {
	OK      bool   `json:"ok"`
	Error   string `json:"error"`
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Expires int64  `json:"expires_in"` // seconds
	Type    string `json:"token_type"`
	Team    struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"team"`
	Organization bool `json:"is_enterprise_install"`
}

// pair is how the tokens of a grant are stored.
func (g grant) pair(asked time.Time) *pair {
	p := &pair{Access: g.Access, Refresh: g.Refresh, At: asked}
	if g.Expires > 0 {
		p.Expires = asked.Add(time.Duration(g.Expires) * time.Second)
	}
	return p
}

// access calls oauth.v2.access. What Slack answers is not lost with a caller that waits
// no longer, and the trace of the call that waits for a token does not see the request.
func (c *Connector) access(id, secret string, args url.Values) (g grant, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), refreshTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.cfg.APIURL+methodAccess, strings.NewReader(args.Encode()))
	if err != nil {
		return g, fmt.Errorf("%s: %w", methodAccess, c.clean(err, secret))
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth(id, secret)
	resp, err := c.calls.do(req)
	if err != nil {
		return g, fmt.Errorf("%s: %w", methodAccess, c.clean(err, secret))
	}
	defer resp.Body.Close() // it was only read
	if resp.StatusCode != http.StatusOK {
		return g, fmt.Errorf("%s: HTTP status %d", methodAccess, resp.StatusCode)
	}
	if body, err := io.ReadAll(resp.Body); err != nil || json.Unmarshal(body, &g) != nil {
		return g, errors.New(methodAccess + ": the answer cannot be read")
	}
	g.Error = cmp.Or(word(g.Error), "no reason")
	return g, nil
}
