// Package telegram connects claybot to Telegram's Bot API by long polling, or by a webhook.
//
// Receiving by polls: one loop polls for updates and posts those of different users
// concurrently, and those of one user in order. The offset moves, which
// acknowledges the updates, only after every update of a batch is durable or
// known to be irrelevant. A crash at any point loses nothing; at worst Telegram
// redelivers an update, which gets the same message id. A broken update is
// counted and skipped.
//
// Callbacks of buttons are received like messages: in order with the messages
// of the same user, and acknowledged once the Handler has accepted them. The
// callback answer that Telegram shows to the user is sent at most once.
//
// Sending: Markdown becomes Telegram's HTML; if Telegram refuses it, the text
// is sent again as plain text. Every attempt ends as sent, not sent or
// ambiguous, as package connectors requires; only a failure after the first
// byte of the request was sent is ambiguous. Unfinished texts give way to all others within
// the rates of their chat and of the bot. Other sends are not paced until Telegram
// returns a 429; then that chat pauses for exactly the requested time and is
// paced for a while, and unfinished texts get less.
//
// The token is part of every address that is called. No error, log line or
// status of this package contains an address or the token.
//
// Only cmd and tests import this package.
package telegram

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
)

// Ways to deliver an answer.
const (
	DeliveryStream      = "stream"      // the first text, then edits
	DeliveryDraft       = "draft"       // in private chats by drafts, which are no messages; elsewhere as DeliveryStream
	DeliveryPlaceholder = "placeholder" // a placeholder at once, then edits
	DeliveryDirect      = "direct"      // complete answers only
)

// What to do about a send with an unknown outcome.
const (
	AmbiguousAuto   = "auto"   // resend, but notice for what is Outgoing.Once
	AmbiguousResend = "resend" // send again, visibly marked
	AmbiguousNotice = "notice" // never send again; report that a message may be missing
)

// Config configures a Connector. Only Token is required.
type Config struct {
	Name    string // default "telegram"
	Token   string // from @BotFather: <bot id>:<secret>
	BaseURL string // default https://api.telegram.org; calls go to <BaseURL>/bot<Token>/<method>
	// LocalFiles is the directory of a Bot API server at BaseURL that runs with --local; empty for
	// any other server.
	LocalFiles string
	HTTP       http.RoundTripper // default: a transport for polls and one for the rest
	Log        *slog.Logger      // default: discards
	// Gate says while nothing may be sent to BaseURL.
	Gate connectors.Gate
	// TokenName is how the operator sets the token; default TELEGRAM_BOT_TOKEN.
	TokenName string
	Marks     connectors.Marks // optional; without it gaps across restarts go unnoticed
	// OnAmbiguous is AmbiguousAuto (default), AmbiguousResend or AmbiguousNotice.
	OnAmbiguous string
	// Delivery is DeliveryStream (default), DeliveryDraft, DeliveryPlaceholder or
	// DeliveryDirect.
	Delivery string
	// Hook is the address, as Telegram reaches it, at which ServeHTTP takes updates. Empty: claybot
	// polls.
	Hook string
	// Rate is what Telegram allows; zero fields are its documented limits.
	Rate Rate
	// Nodes counts the cluster members that share the bot; nil for one.
	Nodes func() int
	// Operators are the ids of the users who are operators, at the start; nil for none. Their
	// menus have the commands for operators as well.
	Operators func() []string
	// Poll is how long one poll waits for updates; the default and maximum is
	// 20 s, so that a poll that hangs shows within connectors.LiveWithin.
	Poll time.Duration
}

// A Connector is one bot on Telegram.
type Connector struct {
	cfg   Config
	log   *slog.Logger
	bot   string // the bot's id: what stands before the colon in the token
	botID int64
	poll  *client
	send  *client
	pulse connectors.Pulse
	pace  pace

	hooked hooked
	rates  rates

	noDrafts atomic.Bool // the server does not know them

	self    identity
	handler atomic.Pointer[connectors.Handler] // of the present Run; Send reports moved chats to it
	figures figures
	gap     atomic.Pointer[gap] // the last one, if any
}

var (
	_ connectors.Connector = (*Connector)(nil)
	_ connectors.Sender    = (*Connector)(nil)
	_ connectors.Typer     = (*Connector)(nil)
	_ connectors.Streamer  = (*Connector)(nil)
	_ connectors.Drafter   = (*Connector)(nil)
	_ connectors.Resender  = (*Connector)(nil)
	_ connectors.Exclusive = (*Connector)(nil)
	_ connectors.Hooked    = (*Connector)(nil)
	_ connectors.Addressed = (*Connector)(nil)
	_ connectors.Inviter   = (*Connector)(nil)
	_ connectors.Verifier  = (*Connector)(nil)
	_ connectors.Pooled    = (*Connector)(nil)
)

// officialURL is Telegram's own server. Tokens of self-hosted servers may have
// any form.
const officialURL = "https://api.telegram.org"

// New returns a connector for cfg. It does nothing before Run or Send.
func New(cfg Config) *Connector {
	if cfg.Name == "" {
		cfg.Name = "telegram"
	}
	cfg.TokenName = cmp.Or(cfg.TokenName, "TELEGRAM_BOT_TOKEN")
	if cfg.BaseURL == "" {
		cfg.BaseURL = officialURL
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Poll <= 0 || cfg.Poll > maxPoll {
		cfg.Poll = maxPoll
	}
	bot, _, _ := strings.Cut(cfg.Token, ":")
	id, err := strconv.ParseInt(bot, 10, 64)
	if err != nil { // refused by check, unless the server is self-hosted
		sum := sha256.Sum256([]byte(cfg.Token))
		bot = fmt.Sprintf("%x", sum[:4])
	}
	c := &Connector{cfg: cfg, log: cfg.Log.With("connector", cfg.Name), bot: bot, botID: id, rates: newRates(cfg.Rate, cfg.Nodes)}
	c.pulse.Within = connectors.LiveWithin
	c.poll, c.send = newClient(cfg, 2), newClient(cfg, 128)
	c.self.known = make(chan struct{})
	return c
}

// Name is the configured name.
func (c *Connector) Name() string { return c.cfg.Name }

// Health reports the state of polling: live as long as polls complete. It
// mentions a gap with possibly missing messages for a day.
func (c *Connector) Health() connectors.Health {
	h := c.cfg.Gate.Health(c.pulse.Health())
	if g := c.gap.Load(); g != nil && h.State == connectors.StateLive && time.Since(g.to) < gapShown {
		h.Err = g.String()
	}
	return h
}

// Exclusive names the bot: Telegram allows one poll at a time. Sending needs no
// poll. All members can take the updates of a webhook.
func (c *Connector) Exclusive() string {
	if c.cfg.Hook != "" {
		return ""
	}
	return "telegram/" + c.bot
}

// Standby records that another cluster member polls.
func (c *Connector) Standby(holder string) { c.pulse.Standby(holder) }

// Figures counts updates since the start: posted messages and answers; ignored
// ones (by bots, not addressed to the bot, service messages, expired buttons);
// and broken ones, which could not be read.
func (c *Connector) Figures() (posted, ignored, broken int64) {
	return c.figures.posted.Load(), c.figures.ignored.Load(), c.figures.broken.Load()
}

type figures struct{ posted, ignored, broken atomic.Int64 }

// identity is the result of getMe.
type identity struct {
	once     sync.Once
	known    chan struct{} // closed when username is set
	username string
}

func (i *identity) set(username string) {
	i.once.Do(func() {
		i.username = username
		close(i.known)
	})
}

// name returns the bot's name, empty while it is unknown.
func (i *identity) name() string {
	select {
	case <-i.known:
		return i.username
	default:
		return ""
	}
}

// Run takes updates until ctx is done, or until Telegram refuses the token.
func (c *Connector) Run(ctx context.Context, h connectors.Handler) error {
	return c.cfg.Gate.Run(ctx, func(ctx context.Context) error { return c.run(ctx, h) })
}

func (c *Connector) run(ctx context.Context, h connectors.Handler) error {
	if err := c.check(); err != nil {
		c.pulse.Stop(err)
		return err
	}
	c.pulse.Start()
	c.handler.Store(&h)
	run, stop := context.WithCancel(ctx)
	var background sync.WaitGroup
	background.Go(func() { c.introduce(run) })
	l := loop{Connector: c, handler: h, polled: connectors.Watermark{Marks: c.cfg.Marks, Key: "telegram/" + c.bot + "/last_poll", Reach: retention}}
	work := l.run
	if c.cfg.Hook != "" {
		work = l.listen
	}
	err := work(ctx)
	stop()
	background.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Wake implements connectors.Pooled.
func (c *Connector) Wake() {
	c.poll.http.Wake()
	c.send.http.Wake()
}

// CloseIdleConnections implements connectors.Pooled.
func (c *Connector) CloseIdleConnections() {
	c.poll.http.Rest()
	c.send.http.Rest()
}

// check refuses a configuration with which no call could succeed.
func (c *Connector) check() error {
	fix := "set " + c.cfg.TokenName + " to the token that @BotFather shows for /mybots"
	_, secret, _ := strings.Cut(c.cfg.Token, ":")
	genuine := c.botID != 0 && secret != "" || c.cfg.BaseURL != officialURL
	switch {
	case c.cfg.Token == "":
		return &connectors.PermanentError{Says: texts.StoppedNoToken, Fix: fix, Err: errors.New("telegram: there is no bot token")}
	case !genuine || strings.ContainsAny(c.cfg.Token, "/?# \t\r\n"):
		return &connectors.PermanentError{Says: texts.StoppedNoToken, Fix: fix, Err: errors.New("telegram: the bot token is malformed: want <digits>:<secret>")}
	case c.send.err != nil:
		return &connectors.PermanentError{Fix: "set TELEGRAM_API_URL to an http or https address, or leave it out", Err: c.send.err}
	}
	return nil
}

// Verify implements connectors.Verifier.
func (c *Connector) Verify(ctx context.Context) error {
	_, err := c.Examine(ctx)
	return err
}

// introduce requests the bot's name, which group messages need, and registers
// the command menu, which may fail.
func (c *Connector) introduce(ctx context.Context) {
	var back connectors.Backoff
	for {
		var me struct {
			Username string `json:"username"`
		}
		err := c.send.call(ctx, "getMe", nil, &me)
		if err == nil {
			c.self.set(me.Username)
			break
		}
		if refusesToken(err) { // the poll loop reports it
			return
		}
		if ctx.Err() != nil { // the connector ends, and nothing failed
			return
		}
		c.log.Warn("getMe failed", "err", err)
		if !connectors.Sleep(ctx, back.Next(retryAfter(err))) {
			return
		}
	}
	c.setMenus(ctx)
}

// messageID derives the message id from the id of an update.
func (c *Connector) messageID(update int64) claybot.MessageID {
	return claybot.MessageID(fmt.Sprintf("telegram/%s/%d", c.bot, update))
}
