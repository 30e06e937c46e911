package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	slackapi "github.com/slack-go/slack"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// Config is what a Connector needs. Zero fields mean the default.
type Config struct {
	Name     string // default "slack"
	BotToken string // xoxb-…, for the Web API
	// AppToken is xapp-…, and opens sockets. It is not needed with Hook, where it shows whether Slack
	// sends requests.
	AppToken string
	// Hook is the address, as Slack reaches it, at which ServeHTTP takes requests, which Slack signs
	// with SigningSecret. Empty: claybot opens sockets.
	Hook, SigningSecret string
	APIURL              string // base of the Web API, default https://slack.com/api/

	HTTP http.RoundTripper                                                 // default: a transport of its own
	Dial func(ctx context.Context, network, addr string) (net.Conn, error) // for sockets, default: the net package's
	Log  *slog.Logger                                                      // default: none

	// Gate says while nothing may be sent to APIURL.
	Gate connectors.Gate
	// Rotation gets bot tokens, for an app whose tokens Slack rotates. BotToken is not used then, and
	// BotTokenName is that of the refresh token. nil: BotToken lasts.
	Rotation *Rotation
	// Installed is of a workspace that has installed the app itself; nil: the operator has, and set the
	// tokens.
	Installed *Installed
	// BotTokenName, AppTokenName and SigningSecretName are how the operator sets these; default
	// SLACK_BOT_TOKEN, SLACK_APP_TOKEN and SLACK_SIGNING_SECRET.
	BotTokenName, AppTokenName, SigningSecretName string
	// Bots has the bots of the other connectors; optional.
	Bots *connectors.Bots

	// Settle is the minimum time between an attempt and the search for its
	// post, because the history lags behind. Default 5 s.
	Settle time.Duration
	// Marks is optional. Without it, an ambiguous file cannot be looked up after
	// a restart, a gap across restarts goes unnoticed, and slash commands are answered by direct messages.
	Marks storage.CheckpointSet
	// NoBackfill disables the backfill: after a gap, chats get a notice that
	// messages may be missing.
	NoBackfill bool
	// Nodes returns how many cluster members share the app, each with its own sockets;
	// 0 while unknown. nil means one. Slack delivers each message to one of the
	// sockets, and allows 10.
	Nodes func() int
	// Feedback reports whether feedback of a person is taken: final replies to them have buttons for
	// it. nil means no.
	Feedback func(claybot.Descriptor) bool
	// Mixed reports whether members of different versions share the app: then no stream
	// begins, because older versions cannot complete one, and no shortcut opens a form. nil means
	// no.
	Mixed func() bool
	// Without are the features that are switched off. Health names no scope that they alone
	// need.
	Without []Feature
}

// A Connector is one Slack app in one workspace. Its methods may be called
// concurrently; Run runs once at a time.
type Connector struct {
	pool      *connectors.Pool
	cfg       Config
	log       *slog.Logger
	api       *slackapi.Client
	calls     *caller   // of methods that the library does not read as it should
	rotation  *rotation // nil: the bot token lasts
	dialer    *websocket.Dialer
	pulse     connectors.Pulse
	files     *http.Client // for bytes: without a time limit of its own, and without redirects
	uploads   sync.Map     // of the newest file for each channel, see remember
	penalties penalties
	edits     *connectors.Budget // calls of chat.update, which Slack counts for the workspace
	streams   *streams
	sessions  sessions
	halts     chan connectors.Reaction // by readers of streams, for Run
	members   members
	channels  channels
	self      atomic.Pointer[identity]
	ignored   atomic.Int64
	gap       atomic.Pointer[connectors.Gap] // the newest one with messages that may be missing
	crowd     atomic.Pointer[string]         // what is wrong with the number of sockets; nil or empty for nothing
	short     shortage                       // of scopes
	unknown   noted
	hooked    hooked
	kept      chan struct{} // receives when an address for answers to a command was stored
}

var (
	_ connectors.Connector = (*Connector)(nil)
	_ connectors.Sender    = (*Connector)(nil)
	_ connectors.Finder    = (*Connector)(nil)
	_ connectors.Resender  = (*Connector)(nil)
	_ connectors.Streamer  = (*Connector)(nil)
	_ connectors.Whisperer = (*Connector)(nil)
	_ connectors.Hooked    = (*Connector)(nil)
	_ connectors.Addressed = (*Connector)(nil)
	_ connectors.Verifier  = (*Connector)(nil)
	_ connectors.Pooled    = (*Connector)(nil)
)

// An identity is the bot's own identity, from auth.test.
type identity struct {
	Team, User, Bot, Name string
	Home                  string // see home; empty: Team
}

// New returns a connector. It makes no calls before Run or Send.
func New(cfg Config) *Connector {
	if cfg.Name == "" {
		cfg.Name = "slack"
	}
	cfg.BotTokenName, cfg.AppTokenName = cmp.Or(cfg.BotTokenName, "SLACK_BOT_TOKEN"), cmp.Or(cfg.AppTokenName, "SLACK_APP_TOKEN")
	cfg.SigningSecretName = cmp.Or(cfg.SigningSecretName, "SLACK_SIGNING_SECRET")
	if cfg.Rotation != nil {
		r := *cfg.Rotation
		r.ClientIDName, r.ClientSecretName = cmp.Or(r.ClientIDName, "SLACK_CLIENT_ID"), cmp.Or(r.ClientSecretName, "SLACK_CLIENT_SECRET")
		cfg.Rotation = &r
	}
	if cfg.APIURL == "" {
		cfg.APIURL = "https://slack.com/api/"
	}
	if !strings.HasSuffix(cfg.APIURL, "/") {
		cfg.APIURL += "/"
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Settle == 0 {
		cfg.Settle = settleTime
	}
	if cfg.HTTP == nil {
		cfg.HTTP = connectors.Transport()
	}
	pool := connectors.NewPool(cfg.HTTP, cfg.Gate.Off)
	cfg.HTTP = pool
	c := &Connector{pool: pool, streams: newStreams(), halts: make(chan connectors.Reaction, maxPending), kept: make(chan struct{}, 1), edits: connectors.NewBudget(editsPerMinute, time.Minute), cfg: cfg, log: cfg.Log.With("connector", cfg.Name)}
	c.pulse.Within = connectors.LiveWithin
	c.files = &http.Client{Transport: cfg.HTTP, CheckRedirect: noRedirect}
	c.calls = &caller{Client: http.Client{Transport: cfg.HTTP, Timeout: callTimeout, CheckRedirect: noRedirect}, api: cfg.APIURL, token: c.token}
	if cfg.Rotation != nil {
		c.rotation = newRotation(c)
		c.calls.renew = c.rotation.renew
	}
	c.api = slackapi.New(anyToken,
		slackapi.OptionAppLevelToken(cfg.AppToken),
		slackapi.OptionAPIURL(cfg.APIURL),
		slackapi.OptionHTTPClient(c.calls),
		slackapi.OptionLog(log.New(io.Discard, "", 0)), // it may print message contents
	)
	c.dialer = &websocket.Dialer{
		NetDialContext:   cfg.Dial,
		HandshakeTimeout: dialTimeout,
		ReadBufferSize:   16 << 10,
		WriteBufferSize:  1 << 10,
	}
	if cfg.Dial == nil {
		c.dialer.Proxy = http.ProxyFromEnvironment
	}
	return c
}

// Name is the configured name.
func (c *Connector) Name() string { return c.cfg.Name }

// Health is derived from completed hellos and from frames and pings read. It
// also reports foreign sockets of the app, missing scopes and, for a day, a gap with
// possibly missing messages.
func (c *Connector) Health() connectors.Health {
	h := c.cfg.Gate.Health(c.pulse.Health())
	if h.State == connectors.StateStopped || h.Err != "" {
		return h
	}
	var notes []string
	all := []*atomic.Pointer[string]{&c.crowd, &c.members.fault, &c.hooked.fault}
	if c.rotation != nil {
		all = append(all, &c.rotation.fault)
	}
	for _, note := range all {
		if text := note.Load(); text != nil && *text != "" && (h.State == connectors.StateLive || note == &c.crowd) {
			notes = append(notes, *text)
		}
	}
	if short := c.short.String(); short != "" && h.State == connectors.StateLive {
		notes = append(notes, short)
	}
	if gap := c.gap.Load().Report("slack", "direct messages from people who are new or were silent for 30 days"); gap != "" && h.State == connectors.StateLive {
		notes = append(notes, gap)
	}
	h.Err = strings.Join(notes, "; ")
	return h
}

// Ignored counts frames that were acknowledged but not processed: unknown
// envelopes and events that cannot be decoded.
func (c *Connector) Ignored() int64 { return c.ignored.Load() }

// Run receives until ctx is done. Wrong tokens, a removed app and a disabled
// Socket Mode end it with a PermanentError. It returns when all its sockets are
// closed and all its goroutines have ended.
func (c *Connector) Run(ctx context.Context, h connectors.Handler) error {
	return c.cfg.Gate.Run(ctx, func(ctx context.Context) error {
		return c.pulse.Ended(ctx, fmt.Errorf("%s: %w", c.cfg.Name, c.run(ctx, h)))
	})
}

// Wake implements connectors.Pooled.
func (c *Connector) Wake() { c.pool.Wake() }

// CloseIdleConnections implements connectors.Pooled.
func (c *Connector) CloseIdleConnections() { c.pool.Rest() }

func (c *Connector) run(ctx context.Context, h connectors.Handler) error {
	if err := c.checkTokens(); err != nil {
		return err
	}
	self, err := c.identify(ctx)
	if err == nil {
		err = c.cfg.Bots.Take("slack/"+self.Team+"/"+self.User, c.cfg.Name)
	}
	if err != nil {
		return err
	}
	defer c.cfg.Bots.Leave("slack/"+self.Team+"/"+self.User, c.cfg.Name)
	known, ok := h.(gapHandler)
	if !ok {
		known = noChats{h}
	}
	guarded := door{known, c}
	routes, _ := h.(connectors.RouteHandler)
	reacts, _ := h.(connectors.ReactionHandler)
	greets, _ := h.(connectors.VisitHandler)
	work, back := connectors.NewLanes(maxPending), newBackfill(c, self, guarded)
	r := &receiver{name: c.cfg.Name, self: self, chat: c, handler: guarded, lane: laneOf(h), routes: routes, reacts: reacts, greets: greets, work: work, back: back, log: c.log, ignored: &c.ignored}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	filling, stop := context.WithCancel(ctx)
	var side sync.WaitGroup
	if c.rotation != nil {
		side.Go(func() { c.rotation.keep(filling, end) })
	}
	if c.cfg.Hook != "" && c.cfg.AppToken != "" {
		side.Go(func() { c.watchSockets(filling) })
	}
	side.Go(func() { back.run(filling) })
	side.Go(func() { c.tidyStreams(filling) })
	side.Go(func() { c.passHalts(filling, r) })
	side.Go(func() { c.tidyAddresses(filling) })
	defer side.Wait()
	defer stop()
	if c.cfg.Hook != "" {
		return c.listen(ctx, r)
	}
	l := newLink(c.open, func(ctx context.Context, s *socket, f frame) error { return r.take(ctx, s, f) }, c.log, &c.pulse)
	l.opening = back.opened
	l.crowd.nodes, l.crowd.told = c.cfg.Nodes, &c.crowd
	return l.run(ctx, work.Close)
}

// A credential is a token or a secret: its name, value, prefix and where it is found.
type credential struct{ field, value, prefix, page string }

// checkTokens checks the prefixes of the tokens, so that a swapped pair gets a
// clear error.
func (c *Connector) checkTokens() error {
	if c.cfg.Installed != nil {
		return nil // Slack gave them
	}
	bot, app := c.cfg.BotToken, c.cfg.AppToken
	if c.cfg.Hook == "" && strings.HasPrefix(bot, "xapp-") && strings.HasPrefix(app, "xoxb-") {
		return &connectors.PermanentError{
			Says: texts.StoppedNoToken,
			Err:  fmt.Errorf("%s and %s are swapped", c.cfg.BotTokenName, c.cfg.AppTokenName),
			Fix:  "exchange their values and " + swapped(c.cfg.BotTokenName),
		}
	}
	second := credential{c.cfg.AppTokenName, app, "xapp-", "Basic Information, App-Level Tokens (scope connections:write)"}
	if c.cfg.Hook != "" {
		second = credential{c.cfg.SigningSecretName, c.cfg.SigningSecret, "", "Basic Information, Signing Secret"}
	}
	first := []credential{{c.cfg.BotTokenName, bot, "xoxb-", "OAuth & Permissions"}}
	if r := c.cfg.Rotation; r != nil {
		first = []credential{
			{c.cfg.BotTokenName, r.RefreshToken, "xoxe-", "OAuth & Permissions"},
			{r.ClientIDName, r.ClientID, "", "Basic Information, Client ID"},
			{r.ClientSecretName, r.ClientSecret, "", "Basic Information, Client Secret"},
		}
	}
	if strings.HasPrefix(bot, "xoxe.") && c.cfg.Rotation == nil {
		return &connectors.PermanentError{
			Says: texts.StoppedToken,
			Err:  fmt.Errorf("%s is a token that Slack rotates: it expires after 12 hours", c.cfg.BotTokenName),
			Fix:  "set the refresh token, the client ID and the client secret; see docs/slack.md, Token rotation",
		}
	}
	for _, t := range append(first, second) {
		if t.value == "" {
			return &connectors.PermanentError{
				Says: texts.StoppedNoToken,
				Err:  fmt.Errorf("%s is missing", t.field),
				Fix:  fmt.Sprintf("copy it from api.slack.com/apps, %s, and %s", t.page, again(t.field, t.prefix)),
			}
		}
		if !strings.HasPrefix(t.value, t.prefix) {
			return &connectors.PermanentError{
				Says: texts.StoppedNoToken,
				Err:  fmt.Errorf("%s does not begin with %s", t.field, t.prefix),
				Fix:  fmt.Sprintf("copy the right token from api.slack.com/apps, %s, and %s", t.page, again(t.field, t.prefix)),
			}
		}
	}
	return nil
}

// Verify implements connectors.Verifier. Where Slack rotates tokens it asks nothing, so that whether
// they are good stays unknown: a refresh token counts once.
func (c *Connector) Verify(ctx context.Context) error {
	err := c.checkTokens()
	switch {
	case err != nil:
		return err
	case c.rotation != nil:
		return errors.New("slack: the tokens of this app are rotated, and each counts once, so it was not asked; claybot status shows whether it works")
	}
	if _, err = c.ExamineBot(ctx); err == nil && c.cfg.Hook == "" {
		err = c.ExamineApp(ctx)
	}
	return err
}

// swapped says how to start again with exchanged tokens, of which one is called field.
func swapped(field string) string {
	if strings.Contains(field, ".") {
		return "save the file; claybot reads it again by itself"
	}
	return "start again: claybot serve"
}

// again says how to start again with another token: by its variable, or by its key in
// the configuration.
func again(field, prefix string) string {
	if strings.Contains(field, ".") {
		return connectors.Again(field)
	}
	return "start again: " + field + "=" + prefix + "… claybot serve"
}

// identify calls auth.test, and stores the identity and the missing scopes.
func (c *Connector) identify(ctx context.Context) (identity, error) {
	r, err := c.api.AuthTestContext(ctx)
	if err == nil && (r.TeamID == "" || r.UserID == "") {
		err = errors.New("the answer names no workspace or no user")
	}
	if err != nil {
		return identity{}, c.refused("auth.test", c.cfg.BotTokenName, err)
	}
	self := identity{Team: r.TeamID, User: r.UserID, Bot: r.BotID, Name: r.User}
	if x := c.cfg.Installed; x != nil {
		if self.Home = x.Home; self.Team != x.Team {
			return identity{}, fmt.Errorf("the token of the workspace %s is of another one", x.Team)
		}
	}
	c.self.Store(&self)
	c.granted(r.Header)
	return self, nil
}

// whoami returns the stored identity, or calls identify.
func (c *Connector) whoami(ctx context.Context) (identity, error) {
	if self := c.self.Load(); self != nil {
		return *self, nil
	}
	return c.identify(ctx)
}

// Streaming returns the rate of edits of one message. Where many messages grow, Send lets
// them wait for each other.
func (c *Connector) Streaming(claybot.Route) connectors.Streaming {
	return connectors.Streaming{First: 64, Wait: 1500 * time.Millisecond, Every: time.Second, Limit: 3500}
}

func permanent(err error) bool {
	var p *connectors.PermanentError
	return errors.As(err, &p)
}
