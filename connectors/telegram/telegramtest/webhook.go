package telegramtest

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// SecretHeader is the header with the secret of a webhook.
const SecretHeader = "X-Telegram-Bot-Api-Secret-Token" //nolint:gosec // the name of a header

// The first and the longest pause between two deliveries of an update that was not taken.
const (
	hookPause = time.Second
	hookMost  = time.Minute
)

// hookConnections is how many updates are delivered at once unless setWebhook says otherwise
// (core.telegram.org/bots/api#setwebhook, read 2026-11-28).
const hookConnections = 40

// hookPorts are those that a webhook may have.
var hookPorts = []string{"", "443", "80", "88", "8443"}

// A hook is a webhook.
type hook struct {
	url, secret string
	most        int // connections; 0: hookConnections
	failed      time.Time
	failure     string
	stop        chan struct{} // of its deliveries; nil for none
}

// SetWebhook makes polling impossible, as a webhook set by another program, which gets
// nothing here.
func (s *Server) SetWebhook(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setHook(hook{url: url})
}

// CertificateFailure is what Telegram reports of a webhook whose certificate it does not take, such as one that
// has expired (core.telegram.org/bots/webhooks and issues of github.com/tdlib/telegram-bot-api, read
// 2026-11-30).
const CertificateFailure = "SSL error {error:0A000086:SSL routines::certificate verify failed}"

// BreakWebhook sets a webhook to which nothing could be delivered, and why.
func (s *Server) BreakWebhook(url, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setHook(hook{url: url, failed: time.Now(), failure: why})
}

// setHook replaces the webhook. The lock is held.
func (s *Server) setHook(h hook) {
	if s.hook.stop != nil {
		close(s.hook.stop)
	}
	s.hook = h
	if h.url != "" {
		s.queue.terminate()
	}
}

func (s *Server) webhooks(c *call) ([]byte, *apiError) {
	var p struct {
		URL     string    `json:"url"`
		Secret  string    `json:"secret_token"`
		Most    integer   `json:"max_connections"`
		Allowed *[]string `json:"allowed_updates"`
		Drop    bool      `json:"drop_pending_updates"`
	}
	if err := json.Unmarshal(c.params, &p); err != nil {
		return nil, badParams(err)
	}
	if c.method == "getwebhookinfo" {
		return s.hookInfo(), nil
	}
	h := hook{url: p.URL, secret: p.Secret, most: max(int(p.Most), 0)}
	if c.method == "deletewebhook" {
		h = hook{}
	}
	if e := h.check(); e != nil {
		return nil, e
	}
	if p.Allowed != nil {
		s.wanted(*p.Allowed)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.Drop {
		s.queue.forget(s.queue.next)
	}
	if h.url != "" {
		h.stop = make(chan struct{})
	}
	s.setHook(h)
	if h.stop != nil {
		s.hooking.Go(func() { s.deliverTo(h) })
	}
	return []byte("true"), nil
}

// check refuses an address and a secret that Telegram refuses. Loopback may do without TLS
// and with any port, which Telegram does not allow.
func (h hook) check() *apiError {
	if h.url == "" {
		return nil
	}
	u, err := url.Parse(h.url)
	local := err == nil && (u.Hostname() == "127.0.0.1" || strings.HasSuffix(u.Hostname(), ".test"))
	switch {
	case err != nil || u.Host == "":
		return badRequest("bad webhook: invalid URL")
	case !local && u.Scheme != "https":
		return badRequest("bad webhook: An HTTPS URL must be provided for webhook")
	case !local && !slices.Contains(hookPorts, u.Port()):
		return badRequest("bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443")
	case len(h.secret) > 256:
		return badRequest("secret token is too long")
	case strings.Trim(h.secret, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "":
		return badRequest("secret token contains unallowed characters")
	}
	return nil
}

func (s *Server) hookInfo() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := map[string]any{"url": s.hook.url, "pending_update_count": s.queue.len(), "has_custom_certificate": false}
	if len(s.queue.allowed) > 0 {
		info["allowed_updates"] = s.queue.allowed
	}
	if s.hook.most > 0 {
		info["max_connections"] = s.hook.most
	}
	if s.hook.failure != "" {
		info["last_error_date"], info["last_error_message"] = s.hook.failed.Unix(), s.hook.failure
	}
	return mustJSON(info)
}

// A lane is the delivery of the updates of one chat to a webhook: one at a time, in order.
type lane struct {
	busy  bool
	pause time.Duration // after the next failure
	due   time.Time     // not before
}

// A pushed is the outcome of one delivery.
type pushed struct {
	update queued
	after  time.Duration // that the receiver asks for
	err    error
}

// deliverTo posts updates to a webhook, each again until it is taken or too old, until the webhook is
// replaced. It posts those of several chats at a time, and those of one chat one after the other
// (WebhookActor.cpp of github.com/tdlib/telegram-bot-api, read 2026-11-28).
func (s *Server) deliverTo(h hook) {
	client := &http.Client{
		Transport: s.cfg.Hooks, Timeout: time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	most := h.most
	if most == 0 {
		most = hookConnections
	}
	lanes, flying := make(map[string]*lane), 0
	landed := make(chan pushed, most)
	for {
		u, due, arrived := s.nextFor(lanes, flying < most)
		if u != nil {
			flying++
			go func() {
				after, err := push(client, h, u.body)
				landed <- pushed{*u, after, err}
			}()
			continue
		}
		var wait <-chan time.Time
		if !due.IsZero() {
			wait = time.After(time.Until(due))
		}
		select {
		case <-arrived:
		case <-wait:
		case p := <-landed:
			flying--
			s.land(lanes[p.update.lane], p)
		case <-h.stop:
			return
		case <-s.done:
			return
		}
	}
}

// nextFor takes the oldest update whose lane is free. Without one it returns when a lane is, zero if none
// waits for a time, and a channel that is closed when an update arrives.
func (s *Server) nextFor(lanes map[string]*lane, room bool) (u *queued, due time.Time, arrived chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.forget(0)
	now := time.Now()
	seen := make(map[string]bool) // an older update of the lane waits
	for _, w := range s.queue.waiting[s.queue.head:] {
		l := lanes[w.lane]
		if l == nil {
			l = &lane{pause: hookPause}
			lanes[w.lane] = l
		}
		switch {
		case !room || l.busy || seen[w.lane]:
		case l.due.After(now):
			if due.IsZero() || l.due.Before(due) {
				due = l.due
			}
		default:
			l.busy = true
			return &w, due, nil
		}
		seen[w.lane] = true
	}
	if s.queue.arrived == nil {
		s.queue.arrived = make(chan struct{})
	}
	return nil, due, s.queue.arrived
}

// land notes the outcome of a delivery.
func (s *Server) land(l *lane, p pushed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.busy = false
	if p.err == nil {
		s.queue.drop(p.update.id)
		s.touch()
		l.pause = hookPause
		return
	}
	s.hook.failed, s.hook.failure = time.Now(), p.err.Error()
	l.due = time.Now().Add(max(l.pause, p.after))
	l.pause = min(2*l.pause, hookMost)
}

// push delivers one update. With an error it returns the pause that the receiver asks for.
func push(client *http.Client, h hook, body []byte) (time.Duration, error) {
	req, err := http.NewRequest(http.MethodPost, h.url, bytes.NewReader(body)) //nolint:noctx // the client has a time limit
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	if h.secret != "" {
		req.Header.Set(SecretHeader, h.secret)
	}
	resp, err := client.Do(req)
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &untrusted) {
		return 0, errors.New(CertificateFailure)
	}
	if err != nil {
		return 0, errors.New("connection failed")
	}
	_ = resp.Body.Close() // what it says does not count
	if resp.StatusCode/100 == 2 {
		return 0, nil
	}
	after, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // without one it is 0
	return time.Duration(after) * time.Second, fmt.Errorf("wrong response from the webhook: %s", resp.Status)
}
