package slack

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/claybot/claybot/connectors"
)

const (
	// tolerance is how far the time of a request may be from now. Both headers and the sum:
	// docs.slack.dev/authentication/verifying-requests-from-slack, read 2026-11-28.
	tolerance       = 5 * time.Minute
	timestampHeader = "X-Slack-Request-Timestamp"
	signatureHeader = "X-Slack-Signature"
	signatureMark   = "v0="

	// checkEvery is how often claybot calls Slack while requests may arrive.
	checkEvery = 15 * time.Second
)

// hooked is the state of a connector that takes requests.
type hooked struct {
	intake connectors.Intake
	bodies connectors.Bodies
	taker  atomic.Pointer[taker]
	fault  atomic.Pointer[string] // why Slack sends no requests; nil or empty for nothing
}

// watchSockets looks from time to time whether the Socket Mode of the app is on, until ctx is done: then
// Slack waits for a socket, and sends no requests.
func (c *Connector) watchSockets(ctx context.Context) {
	on := false
	for {
		again := socketsEvery
		switch err := c.ExamineApp(ctx); {
		case err == nil:
			if !on {
				c.log.Warn("slack sends no requests, because socket mode is on")
			}
			on = true
		case SocketsOff(err):
			on = false
		default:
			c.log.Debug("whether socket mode is off stays unknown", "err", err)
		}
		fault := ""
		if on {
			again, fault = socketsAgain, socketsOn
		}
		c.hooked.fault.Store(&fault)
		select {
		case <-ctx.Done():
			return
		case <-time.After(again):
		}
	}
}

// socketsOn is what Health says while Slack sends no requests.
const socketsOn = "Socket Mode is on for this app, so Slack sends no requests; switch it off at api.slack.com/apps, Socket Mode, or set slack.receive: socket"

// A taker passes requests to the receiver of the present Run.
type taker struct {
	ctx      context.Context // of Run
	receiver *receiver
	fatal    chan error   // ends Run
	took     atomic.Int64 // Unix time of the last request that was taken; 0: none
}

// A request is an event, an action or a command that came over HTTP. Slack waits 3 s for the answer.
type request struct{ acked chan any }

func (q request) ack(_ string, payload any) error {
	q.acked <- payload // has room for one, and there is one
	return nil
}

// Address implements connectors.Addressed: where Slack sends requests; empty with Socket Mode.
func (c *Connector) Address() string { return c.cfg.Hook }

// Limit implements connectors.Hooked.
func (c *Connector) Limit() int64 {
	if c.cfg.Hook == "" || c.cfg.SigningSecret == "" {
		return 0
	}
	return maxFrameBytes
}

// listen takes the requests that Slack sends to ServeHTTP until ctx is done, in place of sockets.
func (c *Connector) listen(ctx context.Context, r *receiver) error {
	ctx, cancel := context.WithCancel(ctx)
	r.order = &order{}
	t := &taker{ctx: ctx, receiver: r, fatal: make(chan error, 1)}
	r.back.opened()
	c.hooked.taker.Store(t)
	c.hooked.intake.Open(r.handler)
	defer c.hooked.intake.Close()
	defer r.work.Close() // what waits is dropped, and Slack sends it again
	defer cancel()
	c.pulse.OK()
	check := time.NewTicker(checkEvery)
	defer check.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-t.fatal:
			return err
		case <-check.C:
		}
		_, err := c.identify(ctx)
		lost, waiting := r.order.look(time.Now())
		switch {
		case err == nil && waiting:
			c.pulse.Fail("messages cannot be stored and wait at Slack")
		case err == nil:
			if r.back.opened(); lost { // opened has an effect if the last success was long ago, as here
				c.log.Warn("messages were not stored in time; they are read from the history")
			}
			c.pulse.OK()
		case permanent(err):
			return err
		case ctx.Err() == nil:
			c.log.Warn("slack cannot be reached", "err", err)
			c.pulse.Fail(err.Error() + "; trying again")
		}
	}
}

// ServeHTTP takes one request of Slack, and answers with success only when what it brought is durable.
// Slack sends an event again after any other answer.
func (c *Connector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.admit(w, r, func(f frame) { c.pass(w, r, f) })
}

// admit reads a request, and hands what Slack has signed on. It answers all other requests.
func (c *Connector) admit(w http.ResponseWriter, r *http.Request, pass func(frame)) {
	if !timely(r.Header, time.Now()) { // the body is not worth reading
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	body, release, err := c.hooked.bodies.Read(w, r, maxFrameBytes, false)
	defer release()
	switch {
	case errors.Is(err, connectors.ErrBodies):
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case err != nil:
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if !c.verified(r.Header, body, time.Now()) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	f, challenge := readRequest(r.Header.Get("Content-Type"), body)
	if challenge != "" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, challenge) // Slack may be gone
		return
	}
	pass(f)
}

// pass hands a request to the receiver, and answers it.
func (c *Connector) pass(w http.ResponseWriter, r *http.Request, f frame) {
	_, leave, err := c.hooked.intake.Enter(r.Context(), f.EnvelopeID)
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	defer leave()
	t := c.hooked.taker.Load()
	if since := missedSince(r.Header, f); !since.IsZero() {
		if took := t.took.Load(); took > 0 && took < since.Unix() {
			since = time.Unix(took, 0) // what came before it
		}
		t.receiver.back.suspect(since)
	}
	q := request{make(chan any, 1)}
	if err := t.receiver.take(t.ctx, q, f); err != nil {
		select {
		case t.fatal <- err:
		default:
		}
	}
	var payload any
	select {
	case payload = <-q.acked:
	case <-t.ctx.Done():
		select {
		case payload = <-q.acked: // by what ended the receiver, such as the removal of the app
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
	case <-r.Context().Done(): // Slack waits no longer
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	t.took.Store(time.Now().Unix())
	if payload == nil {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(payload) // Slack may be gone
}

// missedSince is since when requests may not have arrived, by what Slack says with one: it has dropped
// events for a limit, or sends this one for the third time, a minute after the first
// (docs.slack.dev/apis/events-api, Retries and Rate limiting, read 2026-11-28). Zero: nothing is missing.
func missedSince(h http.Header, f frame) time.Time {
	var e struct {
		Type   string `json:"type"`
		Minute int64  `json:"minute_rate_limited"`
		Time   int64  `json:"event_time"`
	}
	if f.Type != "events_api" || connectors.Decode(f.Payload, &e) != nil {
		return time.Time{}
	}
	tries, _ := strconv.Atoi(h.Get("X-Slack-Retry-Num")) // without one it is 0
	switch {
	case e.Type == "app_rate_limited" && e.Minute > 0:
		return time.Unix(e.Minute, 0)
	case tries >= 2 && e.Time > 0:
		return time.Unix(e.Time, 0)
	}
	return time.Time{}
}

// timely reports whether a header has a signature of Slack's form and a timestamp within the tolerance.
func timely(h http.Header, now time.Time) bool {
	stamps, given := h.Values(timestampHeader), h.Values(signatureHeader)
	if len(stamps) != 1 || len(given) != 1 || !strings.HasPrefix(given[0], signatureMark) {
		return false
	}
	seconds, err := strconv.ParseInt(stamps[0], 10, 64)
	return err == nil && now.Sub(time.Unix(seconds, 0)).Abs() <= tolerance
}

// verified reports whether Slack signed a request within the tolerance.
func (c *Connector) verified(h http.Header, body []byte, now time.Time) bool {
	if c.cfg.SigningSecret == "" || !timely(h, now) {
		return false
	}
	m := hmac.New(sha256.New, []byte(c.cfg.SigningSecret))
	_, _ = io.WriteString(m, "v0:"+h.Get(timestampHeader)+":") // never fails
	_, _ = m.Write(body)
	sum, err := hex.DecodeString(strings.TrimPrefix(h.Get(signatureHeader), signatureMark))
	return err == nil && hmac.Equal(sum, m.Sum(nil))
}

// readRequest turns the body of a request into the frame that a socket would bring. challenge is the
// answer to the request by which Slack verifies the address.
func readRequest(kind string, body []byte) (f frame, challenge string) {
	f.EnvelopeID = rand.Text()
	if !strings.HasPrefix(kind, "application/x-www-form-urlencoded") {
		var e struct{ Type, Challenge string }
		if connectors.Decode(body, &e) == nil && e.Type == "url_verification" {
			return f, e.Challenge
		}
		f.Type, f.Payload = "events_api", body
		return f, ""
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return f, ""
	}
	f.Accepts = true
	if form.Has("payload") {
		f.Type, f.Payload = "interactive", json.RawMessage(form.Get("payload"))
		return f, ""
	}
	fields := make(map[string]string)
	for name := range form {
		fields[name] = form.Get(name)
	}
	f.Type = "slash_commands"
	f.Payload, _ = json.Marshal(fields) // strings always marshal
	return f, ""
}
