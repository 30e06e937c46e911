package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot/connectors"
)

// A client calls methods of the Bot API. Its errors are *refusal, *failure or
// the context's; none of them contains the address or the token.
type client struct {
	http  *connectors.Pool // follows no redirect, which would carry the token elsewhere
	user  *url.Userinfo    // of the address; nil for none
	base  string           // ends in /bot<token>/
	files string           // ends in /file/bot<token>/
	token string
	err   error // the base address is unusable
}

func newClient(cfg Config, connections int) *client {
	base := strings.TrimRight(cfg.BaseURL, "/")
	c := &client{token: cfg.Token, base: base + "/bot" + cfg.Token + "/", files: base + "/file/bot" + cfg.Token + "/"}
	u, err := url.Parse(cfg.BaseURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		c.err = errors.New("telegram: the address of the Bot API is not an http or https address")
	} else {
		c.user = u.User
	}
	transport := cfg.HTTP
	if transport == nil {
		transport = newTransport(connections)
	}
	c.http = connectors.NewPool(transport, cfg.Gate.Off)
	return c
}

func newTransport(connections int) *http.Transport {
	// HTTP/1.1 only: on one HTTP/2 connection a hanging poll would be hard to
	// tell from a dead connection, and would take the others with it.
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout: dialTimeout,
		MaxIdleConns:        connections,
		MaxIdleConnsPerHost: connections,
		MaxConnsPerHost:     connections,
		IdleConnTimeout:     90 * time.Second,
		Protocols:           &protocols,
	}
}

// A refusal is an error response of Telegram.
type refusal struct {
	method      string
	code        int
	description string
	retryAfter  time.Duration
	migrateTo   int64
}

func (e *refusal) Error() string {
	return fmt.Sprintf("telegram: %s: %s (%d)", e.method, e.description, e.code)
}

func (e *refusal) says(parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(strings.ToLower(e.description), p) {
			return true
		}
	}
	return false
}

// A failure is a call without a readable response.
type failure struct {
	method string
	left   bool // bytes of the request may have reached Telegram
	err    error
}

func (e *failure) Error() string { return "telegram: " + e.method + ": " + e.err.Error() }
func (e *failure) Unwrap() error { return e.err }

// answer is the envelope of every answer.
type answer struct {
	OK          bool   `json:"ok"`
	Result      any    `json:"result"`
	Code        int    `json:"error_code"`
	Description string `json:"description"`
	Parameters  struct {
		RetryAfter int   `json:"retry_after"`
		MigrateTo  int64 `json:"migrate_to_chat_id"`
	} `json:"parameters"`
}

// call invokes method within callTimeout and decodes the result into result.
func (c *client) call(ctx context.Context, method string, params, result any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if params == nil {
		params = struct{}{}
	}
	return c.decide(ctx, method, connectors.Request{JSON: params, Limit: maxReplyBytes}, result)
}

// decide makes a call and decodes the result.
func (c *client) decide(ctx context.Context, method string, r connectors.Request, result any) error {
	got, err := c.do(ctx, method, r)
	if err != nil {
		return err
	}
	a := answer{Result: result}
	return c.verdict(method, got, json.Unmarshal(got.Body, &a), a)
}

// do sends a request to a method.
func (c *client) do(ctx context.Context, method string, r connectors.Request) (connectors.Answer, error) {
	r.Method, r.Address = http.MethodPost, c.base+method
	a, left, err := connectors.Exchange(ctx, c.exchange, r)
	if err != nil {
		return a, &failure{method: method, left: left, err: c.redact(err)}
	}
	return a, nil
}

// exchange makes one request.
func (c *client) exchange(req *http.Request) (*http.Response, error) {
	if c.user != nil {
		password, _ := c.user.Password()
		req.SetBasicAuth(c.user.Username(), password)
	}
	return c.http.RoundTrip(req)
}

// closeIdle makes the next request open a connection.
func (c *client) closeIdle() {
	c.http.CloseIdleConnections()
}

// verdict turns an answer into nil, a refusal or a failure.
func (c *client) verdict(method string, got connectors.Answer, decode error, a answer) error {
	status, retry := got.Status, got.Header.Get("Retry-After")
	var wrongType *json.UnmarshalTypeError
	readable := decode == nil || errors.As(decode, &wrongType) && a.Description != ""
	switch {
	case readable && a.OK && status < 300:
		return nil
	case readable && !a.OK && a.Code != 0 && a.Code < 500 && status < 500:
		r := &refusal{method: method, code: a.Code, description: c.clean(a.Description), migrateTo: a.Parameters.MigrateTo}
		r.retryAfter = seconds(a.Parameters.RetryAfter)
		if r.code == http.StatusTooManyRequests && r.retryAfter <= 0 {
			r.retryAfter = headerDelay(retry)
		}
		return r
	case status == http.StatusTooManyRequests:
		return &refusal{method: method, code: status, description: "too many requests", retryAfter: headerDelay(retry)}
	case status >= 400 && status < 500:
		// Something between us and Telegram refused; the request was not done.
		return &failure{method: method, err: fmt.Errorf("HTTP status %d without a readable answer", status)}
	case status >= 300 && status < 400:
		return &failure{method: method, err: fmt.Errorf("HTTP status %d: the address of the Bot API redirects", status)}
	case status >= 500:
		return &failure{method: method, left: true, err: fmt.Errorf("HTTP status %d", status)}
	}
	return &failure{method: method, left: true, err: errors.New("unreadable answer")}
}

// headerDelay parses a Retry-After header in seconds; the default is 5 s.
func headerDelay(s string) time.Duration {
	if n, err := strconv.Atoi(s); n > 0 && (err == nil || errors.Is(err, strconv.ErrRange)) {
		return seconds(n)
	}
	return 5 * time.Second
}

// seconds converts a wait that Telegram requests, limited to maxSilence.
func seconds(n int) time.Duration {
	return time.Duration(min(n, int(maxSilence/time.Second))) * time.Second
}

// redact removes the address, which contains the token, from a transport error.
func (c *client) redact(err error) error {
	var u *url.Error
	for errors.As(err, &u) {
		err = u.Err
	}
	if text := err.Error(); c.clean(text) != text {
		return errors.New(c.clean(text))
	}
	return err
}

// clean removes the token and its secret half from a text.
func (c *client) clean(text string) string {
	if c.token == "" {
		return text
	}
	text = strings.ReplaceAll(text, c.token, "[secret:telegram]")
	if _, secret, ok := strings.Cut(c.token, ":"); ok && len(secret) > 8 {
		text = strings.ReplaceAll(text, secret, "[secret:telegram]")
		text = strings.ReplaceAll(text, url.QueryEscape(secret), "[secret:telegram]")
	}
	return text
}

// refusesToken reports whether err means that the token is invalid.
func refusesToken(err error) bool {
	var r *refusal
	return errors.As(err, &r) && (r.code == http.StatusUnauthorized || r.code == http.StatusNotFound)
}

// retryAfter is the wait that err asks for, or 0.
func retryAfter(err error) time.Duration {
	var r *refusal
	if errors.As(err, &r) && r.code == http.StatusTooManyRequests {
		return r.retryAfter
	}
	return 0
}
