package discord

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
)

// DefaultURL is the base of Discord's REST API.
const DefaultURL = "https://discord.com/api/v10"

// Config configures a Connector. Only Token is required.
type Config struct {
	Name    string // default "discord"
	Token   string // of the bot: <id in base64>.<time>.<secret>
	BaseURL string // default DefaultURL

	HTTP http.RoundTripper                                                 // default: a transport of its own
	Dial func(ctx context.Context, network, addr string) (net.Conn, error) // for the gateway, default: the net package's
	Log  *slog.Logger                                                      // default: discards

	// Gate says while nothing may be sent to BaseURL.
	Gate connectors.Gate
	// TokenName is how the operator sets the token; default DISCORD_BOT_TOKEN.
	TokenName string
	// Bots has the bots of the other connectors; optional.
	Bots *connectors.Bots
	// Marks is optional. Without it a restart starts another session, and what came in between
	// is missing.
	Marks connectors.Marks
	// Nodes returns how many cluster members send as the bot; 0 while unknown. nil means one.
	Nodes func() int
}

// A Connector is one bot on Discord. Its methods may be called concurrently; Run runs once at a
// time.
type Connector struct {
	pool   *connectors.Pool
	cfg    Config
	log    *slog.Logger
	bot    string // the bot's user id: what stands first in the token, in base64
	api    *client
	dialer *websocket.Dialer
	pulse  connectors.Pulse
	calls  *connectors.Budget // of the whole bot; only unfinished texts give way for it
	pages  int                // of one channel, of what is after the beginning of a gap; gapPages but in tests

	channels channels
	own      receipts
	menu     registered
	app      atomic.Pointer[application]
	gap      atomic.Pointer[connectors.Gap] // the newest one with messages that may be missing
	ignored  atomic.Int64
}

var (
	_ connectors.Connector = (*Connector)(nil)
	_ connectors.Sender    = (*Connector)(nil)
	_ connectors.Typer     = (*Connector)(nil)
	_ connectors.Streamer  = (*Connector)(nil)
	_ connectors.Exclusive = (*Connector)(nil)
	_ connectors.Verifier  = (*Connector)(nil)
	_ connectors.Pooled    = (*Connector)(nil)
)

// New returns a connector for cfg. It does nothing before Run or Send.
func New(cfg Config) *Connector {
	cfg.Name, cfg.TokenName = cmp.Or(cfg.Name, "discord"), cmp.Or(cfg.TokenName, "DISCORD_BOT_TOKEN")
	cfg.BaseURL = strings.TrimRight(cmp.Or(cfg.BaseURL, DefaultURL), "/")
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.HTTP == nil {
		cfg.HTTP = connectors.Transport()
	}
	pool := connectors.NewPool(cfg.HTTP, cfg.Gate.Off)
	cfg.HTTP = pool
	c := &Connector{pool: pool, cfg: cfg, log: cfg.Log.With("connector", cfg.Name), bot: botOf(cfg.Token)}
	c.api = &client{http: cfg.HTTP, base: cfg.BaseURL, token: cfg.Token, rates: newRates(cfg.Nodes)}
	c.calls = connectors.NewBudget(perSecond, time.Second)
	c.pulse.Within, c.pages = connectors.LiveWithin, gapPages
	c.dialer = &websocket.Dialer{NetDialContext: cfg.Dial, HandshakeTimeout: dialTimeout, ReadBufferSize: 16 << 10, WriteBufferSize: 1 << 10}
	if cfg.Dial == nil {
		c.dialer.Proxy = http.ProxyFromEnvironment
	}
	return c
}

// botOf returns the id of the bot that a token begins with; empty if it has none.
func botOf(token string) string {
	first, rest, ok := strings.Cut(token, ".")
	id, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(first, "="))
	if !ok || rest == "" || err != nil || !isID(string(id)) {
		return ""
	}
	return string(id)
}

// Name is the configured name.
func (c *Connector) Name() string { return c.cfg.Name }

// Health is derived from the gateway: live while it acknowledges heartbeats. It also reports
// that the bot may not read contents and, for a day, a gap with possibly missing messages.
func (c *Connector) Health() connectors.Health {
	h := c.cfg.Gate.Health(c.pulse.Health())
	if h.State != connectors.StateLive {
		return h
	}
	var notes []string
	if app := c.app.Load(); app != nil && !app.content() {
		notes = append(notes, noContent)
	}
	if gap := c.gap.Load().Report("discord", "messages in new threads"); gap != "" {
		notes = append(notes, gap)
	}
	h.Err = strings.Join(notes, "; ")
	return h
}

// noContent is what is wrong without the Message Content intent.
const noContent = "discord: the Message Content intent is off, so in servers the bot reads only messages that mention it: switch it on at discord.com/developers/applications, Bot, and restart claybot"

// Exclusive names the bot: each connection to the gateway gets every event. Sending needs none.
func (c *Connector) Exclusive() string { return "discord/" + c.bot }

// Standby records that another cluster member has the gateway.
func (c *Connector) Standby(holder string) { c.pulse.Standby(holder) }

// Ignored counts events that were not processed: unknown ones and those that cannot be decoded.
func (c *Connector) Ignored() int64 { return c.ignored.Load() }

// Run receives until ctx is done. A refused token and refused intents end it with a
// PermanentError. It returns when all its goroutines have ended.
func (c *Connector) Run(ctx context.Context, h connectors.Handler) error {
	return c.cfg.Gate.Run(ctx, func(ctx context.Context) error {
		c.pulse.Start()
		return c.pulse.Ended(ctx, c.run(ctx, h))
	})
}

// Wake implements connectors.Pooled.
func (c *Connector) Wake() { c.pool.Wake() }

// CloseIdleConnections implements connectors.Pooled.
func (c *Connector) CloseIdleConnections() { c.pool.Rest() }

func (c *Connector) run(ctx context.Context, h connectors.Handler) error {
	if err := c.check(); err != nil {
		return err
	}
	if err := c.cfg.Bots.Take("discord/"+c.bot, c.cfg.Name); err != nil {
		return err
	}
	defer c.cfg.Bots.Leave("discord/"+c.bot, c.cfg.Name)
	app, err := c.application(ctx)
	if err != nil {
		return err
	}
	keep := &keeper{marks: c.cfg.Marks, key: "discord/" + c.bot + "/session", wake: make(chan struct{}, 1)}
	side, stop := context.WithCancel(ctx)
	var writing, registering sync.WaitGroup
	writing.Go(func() { keep.run(side, c.log) })
	registering.Go(func() { c.register(side, app) })
	r := newReceiver(c, app, h)
	g := &gateway{
		Connector: c, recv: r, keep: keep, asked: app.intents(),
		good: connectors.Watermark{Marks: c.cfg.Marks, Key: "discord/" + c.bot + "/last_good", Reach: backfillReach},
	}
	err = g.run(ctx)
	r.work.Close()
	r.aside.Wait()
	stop()
	writing.Wait()
	registering.Wait()
	return err
}

// check refuses a configuration with which no call could succeed.
func (c *Connector) check() error {
	fix := "set " + c.cfg.TokenName + " to the token from discord.com/developers/applications, Bot"
	switch {
	case c.cfg.Token == "":
		return &connectors.PermanentError{Says: texts.StoppedNoToken, Fix: fix, Err: errors.New("discord: there is no bot token")}
	case c.bot == "" || strings.ContainsAny(c.cfg.Token, " \t\r\n/"):
		return &connectors.PermanentError{Says: texts.StoppedNoToken, Fix: fix, Err: errors.New("discord: the bot token is malformed: want three parts with dots between them")}
	}
	return nil
}

// tokenRefused is the error of a connector whose token is not valid.
func (c *Connector) tokenRefused() error {
	return &connectors.PermanentError{
		Says: texts.StoppedToken,
		Err:  errors.New("discord: the bot token is refused"),
		Fix:  "reset it at discord.com/developers/applications, Bot, and " + connectors.Again(c.cfg.TokenName),
	}
}

// judge returns the error of a call that Run makes.
func (c *Connector) judge(err error) error {
	if refusedWith(err, http.StatusUnauthorized) {
		return c.tokenRefused()
	}
	return err
}

// An application is what Discord says of the bot's application.
//
// Shape and flags: docs.discord.com/developers/resources/application, read 2026-11-28.
type application struct {
	ID    string `json:"id"`
	Flags int64  `json:"flags"`
	Bot   struct {
		ID       string `json:"id"`
		Username string `json:"username"`
	} `json:"bot"`
}

// content reports whether the bot may read the contents of all messages.
func (a *application) content() bool { return a.Flags&(flagContent|flagContentLimited) != 0 }

// intents are what the bot asks the gateway for.
func (a *application) intents() int {
	if a.content() {
		return intents | intentContent
	}
	return intents
}

// application asks Discord for the bot's application.
func (c *Connector) application(ctx context.Context) (*application, error) {
	var app application
	if err := c.api.do(ctx, call{method: http.MethodGet, what: "get application", path: "/applications/@me"}, &app); err != nil {
		return nil, c.judge(err)
	}
	if app.ID == "" {
		return nil, errors.New("discord: get application: the answer names no application")
	}
	c.app.Store(&app)
	return &app, nil
}

// Examined is what Discord says of a bot.
type Examined struct {
	App     string // the id of its application
	Name    string
	Content bool // it may read the contents of all messages
}

// Examine asks Discord what it says of the bot.
func (c *Connector) Examine(ctx context.Context) (Examined, error) {
	if err := c.check(); err != nil {
		return Examined{}, err
	}
	app, err := c.application(ctx)
	if err != nil {
		return Examined{}, err
	}
	return Examined{App: app.ID, Name: app.Bot.Username, Content: app.content()}, nil
}

// Verify implements connectors.Verifier.
func (c *Connector) Verify(ctx context.Context) error {
	_, err := c.Examine(ctx)
	return err
}

// Streaming returns the rate of edits.
func (c *Connector) Streaming(claybot.Route) connectors.Streaming {
	return connectors.Streaming{First: 64, Wait: 1500 * time.Millisecond, Every: time.Second, Limit: 1800}
}
