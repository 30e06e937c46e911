// Package webhook connects claybot to programs that send events over HTTP: each instance
// takes signed requests at one path, and posts what the agent answers to a callback.
//
// It guarantees: a request whose signature is missing, wrong or outside the tolerance
// leaves no trace but a counter, its time and its cause; a request is acknowledged (202) only after the Handler
// made its message durable; a repeat, known by its delivery id, is acknowledged and runs
// nothing. An instance without a secret takes no request. What a request says is data of an
// untrusted author: its message is tainted, is no command and approves nothing.
//
// Sending: a callback gets each message once for each webhook-id, signed as Standard
// Webhooks with a secret of its own, so that none can be sent back as an event. Neither its
// address nor a secret is in an error, a log line or a status.
//
// Only cmd and tests import this package.
package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/storage"
)

// DefaultLimit is the largest body by default, in bytes.
const DefaultLimit = 1 << 20

// A Delivery is one verified request.
type Delivery struct {
	ID      string // of the sender, or derived from the body
	Event   string // its kind, where GitHub says it
	Payload any    // the JSON value with json.Number, or the text
	At      time.Time
}

// Config configures a Connector. Name, Scheme, Secret and Fill are required.
type Config struct {
	Name   string
	Scheme string // one of the constants
	Secret string
	// Header and Prefix are where HMAC has its signature. IDHeader has the id of a delivery
	// in the schemes without one of their own; optional.
	Header, Prefix, IDHeader string
	// SecretName is how the operator sets the secret.
	SecretName string
	Limit      int64 // bytes of a body; default DefaultLimit
	// Fill returns the text for the agent, and the channel, one agent for each; an empty
	// channel means Name. An error that wraps ErrTooMuch is the sender's, others are the operator's.
	Fill func(Delivery) (channel, text string, err error)
	// Route is where answers go, instead of the callback; nil: to the callback.
	Route *claybot.Route
	// Callback is the http or https address that gets what the agent says. Without it and
	// without a Route, answers stay in the history.
	Callback string
	// CallbackSecret signs requests to the Callback, which needs it. It is a secret of
	// Standard Webhooks, and CallbackSecretName how the operator sets it.
	CallbackSecret, CallbackSecretName string
	Within                             time.Duration     // for one request to the callback; default 20 s
	HTTP                               http.RoundTripper // default: a transport without a proxy
	Gate                               connectors.Gate
	// Address returns where requests arrive, as their sender calls it; optional.
	Address func() string
	// Door returns the health of the server that serves Handler; optional.
	Door func() connectors.Health
	Now  func() time.Time // default time.Now
	Log  *slog.Logger     // default: discards
}

// A Connector is one webhook. Its methods are safe for concurrent use.
type Connector struct {
	pool   *connectors.Pool
	cfg    Config
	log    *slog.Logger
	scheme scheme
	signer scheme // of callbacks
	fault  error  // why it takes nothing
	fix    string // of the fault: the secret to set
	client *http.Client
	pulse  connectors.Pulse
	intake connectors.Intake // by channel
	bodies connectors.Bodies

	mu      sync.Mutex
	refused connectors.Refusals
}

var (
	_ connectors.Connector = (*Connector)(nil)
	_ connectors.Sender    = (*Connector)(nil)
	_ connectors.Resender  = (*Connector)(nil)
	_ connectors.Addressed = (*Connector)(nil)
	_ connectors.Hooked    = (*Connector)(nil)
	_ connectors.Refusing  = (*Connector)(nil)
	_ connectors.Verifier  = (*Connector)(nil)
	_ connectors.Pooled    = (*Connector)(nil)
)

// New returns a connector for cfg. It does nothing before Run.
func New(cfg Config) *Connector {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Limit <= 0 {
		cfg.Limit = DefaultLimit
	}
	if cfg.Within <= 0 {
		cfg.Within = 20 * time.Second
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.HTTP == nil {
		cfg.HTTP = &http.Transport{
			ForceAttemptHTTP2: true, MaxIdleConns: 2, IdleConnTimeout: 90 * time.Second,
			TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		}
	}
	c := &Connector{pool: connectors.NewPool(cfg.HTTP, cfg.Gate.Off), cfg: cfg, log: cfg.Log.With("connector", cfg.Name)}
	c.client = &http.Client{
		Transport:     c.pool,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	c.fix = cfg.SecretName
	if c.scheme, c.fault = newScheme(cfg); c.fault == nil && cfg.Callback != "" {
		if c.signer, c.fault = newScheme(Config{Scheme: Standard, Secret: cfg.CallbackSecret}); c.fault != nil {
			c.fault, c.fix = fmt.Errorf("callback: %w", c.fault), cfg.CallbackSecretName
		}
	}
	return c
}

// Name is the configured name.
func (c *Connector) Name() string { return c.cfg.Name }

// Health is live while Run works and requests can arrive.
func (c *Connector) Health() connectors.Health {
	h := c.cfg.Gate.Health(c.pulse.Health())
	if c.cfg.Door == nil || h.State != connectors.StateLive {
		return h
	}
	if door := c.cfg.Door(); door.State != connectors.StateLive {
		return door
	}
	return h
}

// Address implements connectors.Addressed: it is empty while the connector takes nothing.
func (c *Connector) Address() string {
	if c.fault != nil || c.cfg.Address == nil {
		return ""
	}
	return c.cfg.Address()
}

// Limit implements connectors.Hooked.
func (c *Connector) Limit() int64 {
	if c.fault != nil {
		return 0
	}
	return c.cfg.Limit
}

// Refused implements connectors.Refusing: of requests whose signature was missing, wrong or
// outside the Tolerance.
func (c *Connector) Refused() connectors.Refusals {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}

// Verify implements connectors.Verifier.
func (c *Connector) Verify(context.Context) error {
	if c.fault != nil {
		return c.unusable()
	}
	return nil
}

// unusable is the error of a webhook with a secret that cannot be used.
func (c *Connector) unusable() *connectors.PermanentError {
	return &connectors.PermanentError{Err: fmt.Errorf("%s: %w, so it takes no request", c.cfg.Name, c.fault), Fix: connectors.Again(c.fix)}
}

// Run takes requests until ctx is done. Without a usable secret it returns a
// PermanentError.
func (c *Connector) Run(ctx context.Context, h connectors.Handler) error {
	if c.fault != nil {
		stop := c.unusable()
		c.pulse.Stop(stop)
		return stop
	}
	return c.cfg.Gate.Run(ctx, func(ctx context.Context) error {
		c.intake.Open(h)
		c.pulse.OK()
		<-ctx.Done()
		c.intake.Close()
		return context.Cause(ctx)
	})
}

// Wake implements connectors.Pooled.
func (c *Connector) Wake() { c.pool.Wake() }

// CloseIdleConnections implements connectors.Pooled.
func (c *Connector) CloseIdleConnections() { c.pool.Rest() }

// ErrTooMuch is of an event that no template can take: it is too large, or nested too deeply.
var ErrTooMuch = errors.New("the event is too much for the template")

// receive verifies, reads and posts one request. It returns the status of the answer and
// what is said with it. Of a sender whose header is wrong it reads no body.
func (c *Connector) receive(w http.ResponseWriter, r *http.Request) (status int, words string) {
	now := c.cfg.Now()
	if err := c.scheme.precheck(r.Header, now); err != nil {
		return c.refuse(err, now)
	}
	body, release, err := c.bodies.Read(w, r, c.cfg.Limit, c.scheme.name == Bearer)
	defer release()
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big):
		return http.StatusRequestEntityTooLarge, fmt.Sprintf("The body is larger than the limit of %d bytes.", min(big.Limit, c.cfg.Limit))
	case errors.Is(err, connectors.ErrBodies):
		return http.StatusServiceUnavailable, connectors.Capital(err.Error()) + "."
	case err != nil:
		return http.StatusBadRequest, "The body could not be read completely."
	}
	if err := c.scheme.verify(r.Header, body, now); err != nil {
		return c.refuse(err, now)
	}
	value, err := payload(r.Header.Get("Content-Type"), body)
	if err != nil {
		return http.StatusBadRequest, connectors.Capital(err.Error()) + "."
	}
	id, more := c.scheme.identify(r.Header, body)
	d := Delivery{ID: id, Payload: value, At: now}
	if c.scheme.name == GitHub {
		d.Event = connectors.OneLine(alone(r.Header, githubEvent), 64)
	}
	channel, text, err := c.cfg.Fill(d)
	switch {
	case errors.Is(err, ErrTooMuch):
		c.log.Warn("webhook event refused", "delivery", id, "why", err)
		return http.StatusUnprocessableEntity, "The event is too large or nested too deeply for the template of this hook. Send less, or choose parts of the payload in prompt."
	case err != nil:
		c.log.Error("failed to fill the template of a webhook", "delivery", id, "err", err)
		return http.StatusInternalServerError, "The template of this hook could not be filled."
	}
	if words := unfit(claybot.Clean(text)); words != "" { // a Handler would acknowledge it and run nothing
		c.log.Warn("webhook event refused", "delivery", id, "why", words)
		return http.StatusUnprocessableEntity, words
	}
	if channel = connectors.OneLine(channel, maxChannel); channel == "" {
		channel = c.cfg.Name
	}
	return c.post(r.Context(), channel, c.message(d, text, more))
}

// refuse counts a request that its sender could not sign, for the operator, and says nothing of the
// cause to the sender.
func (c *Connector) refuse(why error, now time.Time) (status int, words string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused.Count++
	c.refused.Why, c.refused.At = why.Error(), now
	c.log.Debug("webhook request refused", "err", why)
	return http.StatusUnauthorized, unverified
}

// unfit says why no agent can take a text; empty for one that fits.
func unfit(text string) string {
	if n := utf8.RuneCountInString(text); n > inbox.MaxText {
		return fmt.Sprintf("The text for the agent has %d characters; the limit is %d. Choose parts of the payload in prompt.", n, inbox.MaxText)
	}
	if strings.TrimSpace(text) == "" {
		return "The template makes an empty text of this event."
	}
	return ""
}

// maxChannel is the longest name of a channel, in characters.
const maxChannel = 128

// unverified says nothing about which hooks there are.
const unverified = "The signature is missing, wrong or too old."

// message is what the agent gets of a delivery.
func (c *Connector) message(d Delivery, text string, more []string) claybot.AgentMessage {
	m := claybot.AgentMessage{
		ID: claybot.MessageID(c.cfg.Name + "/" + d.ID), Type: claybot.MessageUser, Text: text, At: claybot.At(d.At),
		From:    claybot.Sender{UserID: c.cfg.Name, Name: c.cfg.Name, Program: true, NoRules: true},
		Tainted: true, Event: d.Event,
	}
	if b, err := json.Marshal(d.Payload); err == nil { // it was read from JSON, or is a text
		m.Payload = b
	}
	for _, key := range more {
		m.Keys = append(m.Keys, c.cfg.Name+"/"+key)
	}
	if c.cfg.Callback == "" || c.cfg.Route != nil {
		m.Route = &claybot.Route{} // nowhere
		if c.cfg.Route != nil {
			*m.Route = *c.cfg.Route
		}
	}
	return m
}

// post hands a message to the handler.
func (c *Connector) post(ctx context.Context, channel string, m claybot.AgentMessage) (status int, words string) {
	h, leave, err := c.intake.Enter(ctx, channel)
	if err != nil {
		return http.StatusServiceUnavailable, "claybot is starting or stopping; send it again."
	}
	defer leave()
	err = h.Post(ctx, claybot.User(c.cfg.Name, channel, c.cfg.Name), m)
	var wrong *flows.InputError
	switch {
	case err == nil:
		c.pulse.OK()
		return http.StatusAccepted, ""
	case errors.Is(err, storage.ErrFlowFull):
		c.pulse.OK()
		c.log.Warn("webhook delivery refused; its sender has to repeat it", "message", m.ID, "why", err)
		return http.StatusTooManyRequests, "The workflow has as many unfinished runs as it may have; send the event again later."
	case errors.As(err, &wrong):
		c.pulse.OK()
		c.log.Warn("webhook delivery refused; its payload does not fit the workflow", "message", m.ID, "why", wrong)
		return http.StatusUnprocessableEntity, connectors.Capital(wrong.Error()) + "."
	case unstorable(err):
		c.log.Warn("webhook delivery cannot be stored", "message", m.ID, "err", err)
		return http.StatusUnprocessableEntity, "This event cannot be stored."
	default:
		c.log.Error("failed to store a webhook delivery; its sender has to repeat it", "message", m.ID, "err", err)
		return http.StatusServiceUnavailable, "The event could not be stored; send it again."
	}
}
