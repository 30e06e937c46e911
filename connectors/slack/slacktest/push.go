package slacktest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// The retries of an event that was not taken: at once, after a minute and after five
// (docs.slack.dev/apis/events-api, Retries, read 2026-11-28). Actions and commands come once.
var retryAfter = []time.Duration{0, time.Minute, 5 * time.Minute}

// answerWithin is how long Slack waits for an answer.
const answerWithin = 3 * time.Second

// A pusher is where an app gets requests in place of sockets.
type pusher struct {
	url, secret string
	client      *http.Client
	lanes       map[string][]*envelope // by channel: what is to be sent after what is on its way
}

// Push switches Socket Mode off and makes Slack send all that happens to an address, signed with the secret;
// via carries the requests, nil for the default. Known difference: Slack promises no order; this
// one sends the first attempts of a channel in order.
func (s *Server) Push(address, secret string, via http.RoundTripper) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.push = &pusher{url: address, secret: secret, client: &http.Client{Transport: via, Timeout: answerWithin}, lanes: make(map[string][]*envelope)}
}

// Verify sends the request with which Slack verifies the address of Push, and returns the error that the
// settings of the app show.
func (s *Server) Verify() error {
	s.mu.Lock()
	p := s.push
	s.mu.Unlock()
	const challenge = "challenge-of-slack"
	body, err := json.Marshal(answer{"token": "deprecated", "challenge": challenge, "type": "url_verification"})
	if err != nil {
		return err
	}
	status, said, err := p.post("application/json", body, nil)
	if err != nil || status != http.StatusOK || string(said) != challenge {
		return fmt.Errorf("your URL didn't respond with the value of the challenge parameter: %d %q %w", status, said, err)
	}
	return nil
}

// Pull switches Socket Mode on again. Then Slack sends no requests, also where the app has an address for
// them (docs.slack.dev/apis/events-api/using-socket-mode, read 2026-11-30).
func (s *Server) Pull() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.push = nil
}

// post makes one signed request.
func (p *pusher) post(kind string, body []byte, more http.Header) (status int, said []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	for name, values := range more {
		req.Header[name] = values
	}
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	req.Header.Set("Content-Type", kind)
	req.Header.Set("X-Slack-Request-Timestamp", stamp)
	req.Header.Set("X-Slack-Signature", Signature(p.secret, stamp, body))
	resp, err := p.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	said, err = io.ReadAll(resp.Body)
	return resp.StatusCode, said, err
}

// Signature is how Slack signs the body of a request
// (docs.slack.dev/authentication/verifying-requests-from-slack, read 2026-11-28).
func Signature(secret, stamp string, body []byte) string {
	m := hmac.New(sha256.New, []byte(secret))
	_, _ = fmt.Fprintf(m, "v0:%s:%s", stamp, body) // never fails
	return "v0=" + hex.EncodeToString(m.Sum(nil))
}

// request is the body of an envelope as it comes over HTTP.
func (e *envelope) request() (kind string, body []byte) {
	switch e.kind {
	case "interactive":
		return "application/x-www-form-urlencoded", []byte(url.Values{"payload": {string(e.payload)}}.Encode())
	case "slash_commands":
		var fields map[string]string
		_ = json.Unmarshal(e.payload, &fields) // made of strings
		form := make(url.Values)
		for name, value := range fields {
			form.Set(name, value)
		}
		return "application/x-www-form-urlencoded", []byte(form.Encode())
	}
	return "application/json", e.payload
}

// lane keeps what happens in a channel in order.
func (e *envelope) lane() string {
	var p struct {
		Event struct{ Channel string }
	}
	_ = json.Unmarshal(e.payload, &p) // what is of no channel waits for nothing
	if p.Event.Channel == "" {
		return e.id
	}
	return p.Event.Channel
}

// hand sends an envelope, after those before it in its channel. The lock is held.
func (s *Server) hand(e *envelope) {
	p, lane := s.push, e.lane()
	waiting, busy := p.lanes[lane]
	if busy {
		p.lanes[lane] = append(waiting, e)
		return
	}
	p.lanes[lane] = nil
	s.running.Add(1)
	go func() {
		defer s.running.Done()
		for e != nil {
			s.pushed(e)
			e = s.nextIn(p, lane)
		}
	}()
}

func (s *Server) nextIn(p *pusher, lane string) *envelope {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := p.lanes[lane]
	if len(waiting) == 0 || s.closed {
		delete(p.lanes, lane)
		return nil
	}
	p.lanes[lane] = waiting[1:]
	return waiting[0]
}

// pushed sends an envelope once, and sees to what follows.
func (s *Server) pushed(e *envelope) {
	s.mu.Lock()
	if s.closed || s.down || s.push == nil || s.lost(e) {
		if s.down && !s.closed {
			e.timer = time.AfterFunc(time.Second, func() { s.pushed(e) })
		} else if s.push == nil {
			s.deliver(e)
		}
		s.mu.Unlock()
		return
	}
	e.attempts++
	if e.attempts == 1 {
		e.sent = time.Now()
	}
	s.traffic.Delivered++
	p, more := s.push, make(http.Header)
	if e.attempts > 1 {
		s.traffic.Repeated++
		more.Set("X-Slack-Retry-Num", strconv.Itoa(e.attempts-1))
		more.Set("X-Slack-Retry-Reason", "http_error")
	}
	kind, body := e.request()
	s.mu.Unlock()
	status, said, err := p.post(kind, body, more)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil && status/100 == 2:
		if len(said) == 0 {
			said = nil
		}
		s.confirm(e, said)
	case e.kind != "events_api" || e.attempts > len(retryAfter):
		s.traffic.Dropped++
		delete(s.open, e.id)
		s.change()
	default:
		e.timer = time.AfterFunc(retryAfter[e.attempts-1], func() { s.pushed(e) })
	}
}
