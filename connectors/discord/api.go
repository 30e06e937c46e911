package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot/connectors"
)

// A client calls the REST API. Its errors are *connectors.RetryError, *refusal, *failure or the
// context's; none of them contains an address or the token.
type client struct {
	http  http.RoundTripper // follows no redirect
	base  string            // without a slash at its end
	token string
	rates *rates
	clock clock
}

// A call is one request. Its what is the name of the route for the rate limits and for errors,
// and major the channel or the application that Discord counts it for.
type call struct {
	method, what, path, major string
	body                      any              // JSON; nil for none
	form                      *connectors.Form // in place of the body
	// reserve is how many calls of the bucket the call leaves for others.
	reserve int
	// behind calls leave half of what the bot may call in a second to others.
	behind bool
	// open calls are authorized by their address, which is a secret; they have no limit of the bot.
	open bool
}

// channelCall is a call below a channel.
func channelCall(method, what, channel, rest string, body any) call {
	return call{method: method, what: what, path: "/channels/" + channel + rest, major: channel, body: body}
}

// A refusal is an error response of Discord.
type refusal struct {
	what    string
	status  int
	code    int
	message string
}

func (e *refusal) Error() string {
	return fmt.Sprintf("discord: %s: %s (%d, HTTP status %d)", e.what, e.message, e.code, e.status)
}

// A failure is a call without a readable response.
type failure struct {
	what string
	left bool // the request may have reached Discord
	err  error
}

func (e *failure) Error() string { return "discord: " + e.what + ": " + e.err.Error() }
func (e *failure) Unwrap() error { return e.err }

// refusedWith reports whether err is a refusal with one of the codes, or with the status.
func refusedWith(err error, status int, codes ...int) bool {
	var r *refusal
	return errors.As(err, &r) && (r.status == status || slices.Contains(codes, r.code))
}

// do makes one call within the rate limits and decodes the result, unless that is nil. A call
// that has no room in its limit is not made: the error is a RetryError.
func (c *client) do(ctx context.Context, x call, result any) error {
	if !x.open {
		if wait, all := c.rates.take(x); wait > 0 {
			return &connectors.RetryError{After: wait, All: all, GivesWay: x.reserve > 0, Err: errors.New("discord: " + x.what + ": no more calls are allowed now")}
		}
	}
	if x.form == nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, callTimeout)
		defer cancel()
	}
	send := func(req *http.Request) (*http.Response, error) {
		if !x.open {
			req.Header.Set("Authorization", "Bot "+c.token)
		}
		req.Header.Set("User-Agent", "DiscordBot (https://github.com/claybot/claybot, 1)")
		return c.http.RoundTrip(req)
	}
	a, left, err := connectors.Exchange(ctx, send, connectors.Request{Method: x.method, Address: c.base + x.path, JSON: x.body, Form: x.form, Limit: maxAnswerBytes})
	c.clock.dated(a.Header)
	if err != nil {
		return &failure{what: x.what, left: left, err: bare(err)}
	}
	return c.verdict(x, a, result)
}

// verdict turns a response into nil, a RetryError, a refusal or a failure.
func (c *client) verdict(x call, a connectors.Answer, result any) error {
	var said struct {
		Message    string  `json:"message"`
		Code       int     `json:"code"`
		RetryAfter float64 `json:"retry_after"`
		Global     bool    `json:"global"`
	}
	if a.Status >= 300 {
		_ = json.Unmarshal(a.Body, &said) // a proxy may have answered
	}
	if !x.open {
		c.rates.learn(x.what, x.major, a.Header)
		if a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden {
			c.rates.invalid()
		}
	}
	switch {
	case a.Status < 300 && result == nil:
		return nil
	case a.Status < 300:
		if err := connectors.Decode(a.Body, result); err != nil {
			return &failure{what: x.what, left: true, err: errors.New("the answer cannot be read")}
		}
		return nil
	case a.Status == http.StatusTooManyRequests:
		after, all := c.rates.refused(x.what, x.major, seconds(said.RetryAfter), said.Global, a.Header)
		return &connectors.RetryError{After: after, All: all, Err: errors.New("discord: " + x.what + ": too many requests")}
	case a.Status < 400 || a.Status >= 500:
		return &failure{what: x.what, left: true, err: fmt.Errorf("HTTP status %d", a.Status)}
	}
	return &refusal{what: x.what, status: a.Status, code: said.Code, message: connectors.OneLine(said.Message, 200)}
}

// soon is do that waits for a moment where the limit of the route is a short one.
func (c *client) soon(ctx context.Context, x call, result any) error {
	for {
		err := c.do(ctx, x, result)
		var retry *connectors.RetryError
		if !errors.As(err, &retry) || retry.After > shortWait || !connectors.Sleep(ctx, retry.After) {
			return err
		}
	}
}

// bare returns an error without the address that was called.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// isID reports whether s has the form of an id.
func isID(s string) bool { return s != "" && len(s) <= 20 && strings.Trim(s, "0123456789") == "" }
