package slack

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// Folder is where the tokens that Slack rotates are stored, below a data directory or in a shared tree.
const Folder = "slack"

const (
	methodAccess = "oauth.v2.access"

	tokenSpare  = time.Minute      // a token is not used so shortly before its end
	tokenNew    = time.Minute      // one that is younger is not replaced because Slack refuses it
	refreshTime = 20 * time.Second // one request for tokens
	firstRefuse = 5 * time.Second  // between failed requests for tokens, doubling
	lastRefuse  = 5 * time.Minute
	storeTries  = 3 // of tokens that Slack has given
	maxSeeds    = 8 // refresh tokens of operators that are remembered
)

// A Rotation is what an app with token rotation has in place of a bot token that lasts. Its access
// tokens last 12 hours. A refresh token gives the next ones once: Slack revokes it "after a short grace
// period", and the access token before stays valid until it expires
// (docs.slack.dev/authentication/using-token-rotation, read 2026-11-28).
type Rotation struct {
	ClientID, ClientSecret string
	RefreshToken           string // xoxe-1-…, as the operator set it
	// ClientIDName and ClientSecretName are how the operator sets these.
	ClientIDName, ClientSecretName string
	// Secrets stores the present tokens under the name of the connector, for all members that share
	// the app.
	Secrets storage.Secrets
	// Stored is the name under which the tokens of a workspace are stored that installed the app itself. There
	// is no RefreshToken then. Empty: the name of the connector.
	Stored string
}

// A rotation holds the present tokens of an app, and renews them.
//
// Before it asks Slack, it writes to the store, so that it does not ask while the store fails. New
// tokens are stored before they are used. After a crash between Slack's answer and the store, the next
// start asks again with the refresh token before, which Slack accepts for a while.
type rotation struct {
	Rotation
	name, tokenName string
	access          func(url.Values) (grant, error)
	anew            func(fix string) string
	log             *slog.Logger

	now   atomic.Pointer[pair]   // nil: not known
	fault atomic.Pointer[string] // why there are no new tokens; nil for none

	kick chan struct{} // has room for one: keep has to look again
	turn chan struct{} // has room for one; guards the fields below
	// failed is the last failure, again when Slack is asked after it.
	failed error
	again  time.Time
	pause  time.Duration
	// unstored says that now is not stored, where the refresh token before is, if any.
	unstored bool
	before   string
}

// A pair is the present tokens, as they are stored.
type pair struct {
	Access  string    `json:"access"`
	Refresh string    `json:"refresh"`
	At      time.Time `json:"at"` // when Slack gave them
	Expires time.Time `json:"expires"`
	// Asked is when Slack was asked for the next ones; zero once they are stored.
	Asked time.Time `json:"asked,omitzero"`
	// Client is the id of the app that the tokens are of. Another id begins anew.
	Client string `json:"client"`
	// Seeds are sums of the refresh tokens that operators set, the newest last. One that is not among
	// them begins anew.
	Seeds []string `json:"seeds"`
}

// serves reports whether there is an access token that can be used, and is not the spent one.
func (p *pair) serves(spent string) bool {
	return p != nil && p.Access != "" && p.Access != spent && time.Until(p.Expires) > p.within(tokenSpare)
}

// within returns a time, or less where tokens last for minutes.
func (p *pair) within(d time.Duration) time.Duration { return min(d, p.Expires.Sub(p.At)/6) }

// renewal is when the next tokens are asked for: after 10 hours of 12.
func (p *pair) renewal() time.Time {
	life := p.Expires.Sub(p.At)
	return p.At.Add(life * 5 / 6)
}

func newRotation(c *Connector) *rotation {
	r := *c.cfg.Rotation
	return &rotation{
		Rotation: r, name: cmp.Or(r.Stored, c.cfg.Name), tokenName: c.cfg.BotTokenName, log: c.log,
		access: func(args url.Values) (grant, error) { return c.access(r.ClientID, r.ClientSecret, args) }, anew: c.anew,
		turn: make(chan struct{}, 1), kick: make(chan struct{}, 1),
	}
}

// token returns the bot token for one call.
func (c *Connector) token(ctx context.Context) (string, error) {
	switch r := c.rotation; {
	case r == nil:
		return c.cfg.BotToken, nil
	case r.now.Load().serves(""):
		return r.now.Load().Access, nil
	default:
		return r.renew(ctx, "")
	}
}

// revoked returns why the connector must stop after a token of the bot was revoked; nil if it has
// another one. With rotation, a revoked token leaves the app installed.
func (c *Connector) revoked(ctx context.Context) error {
	if c.rotation == nil {
		return c.removed()
	}
	ctx, cancel := context.WithTimeout(ctx, refreshTime)
	defer cancel()
	if _, err := c.identify(ctx); permanent(err) {
		return err
	}
	return nil
}

// secrets are what no error may show.
func (r *rotation) secrets() []string {
	if r == nil {
		return nil
	}
	all := []string{r.ClientSecret, r.RefreshToken}
	if p := r.now.Load(); p != nil {
		all = append(all, p.Access, p.Refresh)
	}
	return all
}

// keep renews the tokens before they expire until ctx is done. If Slack refuses for good, it calls end
// once the present token has expired.
func (r *rotation) keep(ctx context.Context, end context.CancelCauseFunc) {
	for {
		wait, failed, err := r.rest(ctx)
		if err != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-r.kick:
			continue
		case <-time.After(wait):
		}
		spent := ""
		if p := r.now.Load(); p != nil && (failed || time.Until(p.renewal()) <= 0) {
			spent = p.Access
		}
		_, err = r.renew(ctx, spent)
		if ctx.Err() == nil && permanent(err) && !r.now.Load().serves("") {
			end(err)
			return
		}
	}
}

// rest is how long keep has nothing to do, and whether Slack must be asked then because that failed.
func (r *rotation) rest(ctx context.Context) (wait time.Duration, failed bool, err error) {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return 0, false, context.Cause(ctx)
	}
	p := r.now.Load()
	switch {
	case r.failed != nil:
		return time.Until(r.again), !r.unstored, nil
	case p == nil:
		return 0, false, nil
	}
	life := p.Expires.Sub(p.At)
	return time.Until(p.renewal()) + rand.N(life/100+1), false, nil // members do not ask at once
}

// renew returns an access token other than a spent one: the present one, one that another member has
// got, or a new one. The error is a RetryError where a later try can help.
func (r *rotation) renew(ctx context.Context, spent string) (string, error) {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if r.unstored && time.Until(r.again) <= 0 {
		r.storeLate(ctx)
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
	}
	if p := r.now.Load(); p.serves(spent) {
		return p.Access, nil
	}
	if wait := time.Until(r.again); wait > 0 && r.failed != nil {
		return "", r.later(wait)
	}
	err := r.exchange(ctx, spent)
	if err == nil {
		return r.now.Load().Access, nil
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	r.fail(err)
	r.log.Warn("failed to renew the slack token", "err", err, "again", r.pause)
	if p := r.now.Load(); p.serves(spent) {
		return p.Access, nil
	}
	return "", r.later(r.pause)
}

// fail notes a failure. The turn is held.
func (r *rotation) fail(err error) {
	r.pause = min(max(firstRefuse, 2*r.pause), lastRefuse)
	r.failed, r.again = err, time.Now().Add(r.pause)
	text := err.Error()
	r.fault.Store(&text)
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

// worked forgets failures. The turn is held.
func (r *rotation) worked() {
	r.failed, r.pause, r.again = nil, 0, time.Time{}
	r.fault.Store(nil)
}

// later returns the last failure for a caller that may try again.
func (r *rotation) later(wait time.Duration) error {
	if permanent(r.failed) {
		return r.failed
	}
	return &connectors.RetryError{After: wait, Err: r.failed}
}

// alone waits until no other member renews the tokens.
func (r *rotation) alone(ctx context.Context) (done func(), err error) {
	turns, ok := r.Secrets.(storage.SecretTurns)
	if !ok {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*storage.SecretTurnLost)
	defer cancel()
	done, err = turns.Turn(ctx, r.name)
	if err != nil {
		return nil, fmt.Errorf("wait for the members that share the app: %w", err)
	}
	return done, nil
}

// exchange takes newer tokens from the store, or asks Slack for them. The turn is held.
func (r *rotation) exchange(ctx context.Context, spent string) error {
	done, err := r.alone(ctx)
	if err != nil {
		return err
	}
	defer done()
	raw, err := r.Secrets.Get(r.name)
	if err != nil {
		return err
	}
	stored := pairOf(raw)
	before := stored.Refresh
	p, begun := r.read(stored)
	if p.serves("") {
		r.now.Store(p) // it lasts, even if there are no new ones
	}
	if p.Asked.IsZero() && (p.serves(spent) || p.serves("") && time.Since(p.At) < p.within(tokenNew)) {
		r.worked()
		return nil
	}
	if begun {
		p.Asked = time.Now()
		raw, _ = json.Marshal(p)
	}
	if len(raw) == 0 {
		raw = []byte("{}") // a store may take nothing for no change, and would not show that it fails
	}
	if err := r.Secrets.Set(r.name, raw); err != nil {
		return fmt.Errorf("slack is not asked for new tokens while they cannot be stored: %w", err)
	}
	next, err := r.ask(p.Refresh)
	if err != nil {
		return err
	}
	next.Client, next.Seeds, r.before = p.Client, p.Seeds, before
	r.now.Store(next)
	r.store(next)
	return nil
}

// store stores tokens that Slack has just given. The turn is held.
func (r *rotation) store(p *pair) {
	raw, _ := json.Marshal(p) // strings and times always marshal
	var err error
	for i := range storeTries {
		if i > 0 {
			time.Sleep(firstRetry << i)
		}
		if err = r.Secrets.Set(r.name, raw); err == nil {
			r.unstored = false
			r.worked()
			r.log.Info("slack token renewed", "expires", p.Expires)
			return
		}
	}
	r.unstored = true
	r.fail(fmt.Errorf("new tokens of Slack cannot be stored: %w", err))
	r.log.Error("new slack tokens cannot be stored", "err", err, "again", r.pause)
}

// storeLate stores the present tokens, unless another member has stored newer ones meanwhile, with another
// refresh token. The turn is held.
func (r *rotation) storeLate(ctx context.Context) {
	var raw []byte
	done, err := r.alone(ctx)
	if err == nil {
		defer done()
		raw, err = r.Secrets.Get(r.name)
	}
	if err != nil {
		if ctx.Err() == nil {
			r.fail(err)
		}
		return
	}
	if stored := pairOf(raw).Refresh; stored == "" || stored == r.before {
		r.store(r.now.Load())
		return
	}
	r.unstored = false // the next use reads the store
	r.now.Store(nil)
	r.worked()
}

// pairOf returns what is stored, an empty pair for nothing.
func pairOf(raw []byte) *pair {
	p := new(pair)
	if json.Unmarshal(raw, p) != nil {
		return new(pair) // damaged: the token of the operator may help
	}
	return p
}

// read returns the tokens to go on with. begun is false where the refresh token of the operator is newer
// than the stored ones, or of another app: nothing of it is stored before Slack accepts it.
func (r *rotation) read(stored *pair) (p *pair, begun bool) {
	if r.Stored != "" {
		return stored, true
	}
	sum := sha256.Sum256([]byte(r.RefreshToken))
	seed := hex.EncodeToString(sum[:8])
	known := slices.Index(stored.Seeds, seed)
	if stored.Refresh != "" && stored.Client == r.ClientID && known >= 0 {
		return stored, true
	}
	seeds := slices.Clone(stored.Seeds)
	if known >= 0 {
		seeds = slices.Delete(seeds, known, known+1)
	}
	seeds = append(seeds, seed)
	return &pair{Refresh: r.RefreshToken, Client: r.ClientID, Seeds: seeds[max(0, len(seeds)-maxSeeds):]}, false
}

// ask exchanges a refresh token for new tokens.
func (r *rotation) ask(refresh string) (*pair, error) {
	asked := time.Now()
	a, err := r.access(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}})
	switch {
	case err != nil:
		return nil, err
	case !a.OK:
		return nil, r.refused(word(a.Error))
	case a.Access == "" || a.Refresh == "" || a.Expires <= 0:
		return nil, errors.New(methodAccess + ": the answer has no tokens that expire")
	case a.Type != "bot":
		return nil, r.stopped("is not that of a bot", "copy the refresh token of the bot from api.slack.com/apps, OAuth & Permissions, and "+again(r.tokenName, "xoxe-"))
	}
	return a.pair(asked), nil
}

// refused describes the error codes of docs.slack.dev/reference/methods/oauth.v2.access, read 2026-11-28.
func (r *rotation) refused(code string) error {
	switch code {
	case "invalid_client_id":
		return r.stoppedFor(r.ClientIDName, code, "copy the Client ID from api.slack.com/apps, Basic Information, and "+again(r.ClientIDName, ""))
	case "bad_client_secret":
		return r.stoppedFor(r.ClientSecretName, code, "copy the Client Secret from api.slack.com/apps, Basic Information, and "+again(r.ClientSecretName, ""))
	case "invalid_refresh_token", "token_revoked", "token_expired", "invalid_auth", "account_inactive", "token_rotation_not_enabled":
		return r.stoppedFor(r.tokenName, code, r.anew("copy a new refresh token from api.slack.com/apps, OAuth & Permissions, and "+again(r.tokenName, "xoxe-")))
	}
	return fmt.Errorf("%s: slack says %s", methodAccess, code)
}

func (r *rotation) stoppedFor(field, code, fix string) error {
	return &connectors.PermanentError{Says: texts.StoppedToken, Err: fmt.Errorf("%s: slack refuses %s: %s", methodAccess, field, code), Fix: fix}
}

func (r *rotation) stopped(what, fix string) error {
	return &connectors.PermanentError{Says: texts.StoppedToken, Err: fmt.Errorf("%s %s", r.tokenName, what), Fix: fix}
}
