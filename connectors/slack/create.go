package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/lazyregexp"
)

const methodCreate = "apps.manifest.create"

// ErrMaybeCreated says that an app may have been created although Slack's answer was lost.
var ErrMaybeCreated = errors.New("the app may have been created; look at https://api.slack.com/apps before you try again")

// A Created is an app that Slack has created.
type Created struct {
	ID   string
	Team string // domain or id of its workspace; empty where Slack does not say it
}

var appID = lazyregexp.New(`^A[A-Z0-9]{1,30}$`)

// CreateApp creates a Slack app from its manifest with an app configuration token, and asks Slack once: sent
// twice, a manifest is two apps. The token is kept nowhere, and no error has it. The secrets of the new app
// that Slack returns are dropped.
//
// Shapes: docs.slack.dev/reference/methods/apps.manifest.create, read 2026-11-30: the manifest is a
// JSON text; invalid_manifest comes with errors that have a message and a pointer; the token is
// one of the person who owns the app, begins with xoxe.xoxp- and lasts for 12 hours.
func (c *Connector) CreateApp(ctx context.Context, token string, a App) (Created, error) {
	if err := a.Check(); err != nil {
		return Created{}, err
	}
	if !strings.HasPrefix(token, "xoxe.xoxp-") {
		return Created{}, errors.New("that is no app configuration token, which begins with xoxe.xoxp-; generate one at https://api.slack.com/apps, Your App Configuration Tokens")
	}
	ctx, left := traced(ctx)
	form := url.Values{"manifest": {a.JSON()}}.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.cfg.APIURL+methodCreate, strings.NewReader(form))
	if err != nil {
		return Created{}, fmt.Errorf("%s: %w", methodCreate, err)
	}
	req.GetBody = nil // a repeat would be another app
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := c.calls.do(req)
	if err != nil {
		err = fmt.Errorf("%s: %w", methodCreate, c.clean(err, token))
		if left() {
			return Created{}, fmt.Errorf("%w: %w", ErrMaybeCreated, err)
		}
		return Created{}, err
	}
	defer resp.Body.Close() // it was only read
	body, err := io.ReadAll(resp.Body)
	var said creation
	if err == nil {
		err = json.Unmarshal(body, &said)
	}
	switch {
	case resp.StatusCode == http.StatusTooManyRequests:
		return Created{}, fmt.Errorf("%s: too many calls; try again in %s seconds", methodCreate, resp.Header.Get("Retry-After"))
	case resp.StatusCode != http.StatusOK:
		return Created{}, fmt.Errorf("%w: %s: HTTP status %d", ErrMaybeCreated, methodCreate, resp.StatusCode)
	case err != nil || said.OK && !appID.MatchString(said.ID):
		return Created{}, fmt.Errorf("%w: %s: the answer is incomplete", ErrMaybeCreated, methodCreate)
	case !said.OK:
		return Created{}, said.refusal()
	}
	team := said.Domain
	if team == "" {
		team = said.Team
	}
	return Created{ID: said.ID, Team: connectors.OneLine(team, maxLabelChars)}, nil
}

// creation is the answer of Slack.
type creation struct {
	OK     bool   `json:"ok"`
	Error  string `json:"error"`
	ID     string `json:"app_id"`
	Team   string `json:"team_id"`
	Domain string `json:"team_domain"`
	Errors []struct {
		Message string `json:"message"`
		Pointer string `json:"pointer"`
	} `json:"errors"`
}

// maxFaults is how many faults of a manifest an error names.
const maxFaults = 10

// refusal is why Slack created no app.
func (a creation) refusal() error {
	code := word(a.Error)
	switch k := classOf(code); {
	case code == "invalid_manifest":
		var faults []string
		for _, f := range a.Errors[:min(len(a.Errors), maxFaults)] {
			faults = append(faults, connectors.OneLine(strings.TrimSpace(f.Pointer+": "+f.Message), maxErrorChars))
		}
		return fmt.Errorf("%s: slack refuses the manifest: %s", methodCreate, strings.Join(faults, "; "))
	case k == server:
		return fmt.Errorf("%w: %s: slack says %s", ErrMaybeCreated, methodCreate, code)
	case k == account:
		return fmt.Errorf("%s: slack refuses the app configuration token: %s; it lasts for 12 hours: generate another one at https://api.slack.com/apps, Your App Configuration Tokens", methodCreate, code)
	}
	return fmt.Errorf("%s: slack says %s", methodCreate, code)
}
