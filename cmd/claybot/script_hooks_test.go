package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// What scripts sign with, and claybot its callbacks: obviously fakes.
const (
	hookSecret     = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	callbackSecret = "whsec_bm90LWEtc2VjcmV0LWF0LWFsbA=="
)

// standardSignature signs as Standard Webhooks does.
func standardSignature(ts *testscript.TestScript, secret, id, stamp, body string) string {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	ts.Check(err)
	m := hmac.New(sha256.New, key)
	_, _ = io.WriteString(m, id+"."+stamp+"."+body) // never fails
	return "v1," + base64.StdEncoding.EncodeToString(m.Sum(nil))
}

// postHook sends an event to a webhook: hook STATUS NAME ID BODY [SKEW], signed as Standard
// Webhooks asks by a clock that is wrong by SKEW; hook STATUS NAME github:ID BODY as GitHub
// does; hook STATUS NAME none BODY without a signature.
func postHook(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 || len(args) > 5 {
		ts.Fatalf("usage: hook STATUS NAME ID|github:ID|none BODY [SKEW]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	at, id, body := time.Now(), args[2], args[3]
	if len(args) == 5 {
		skew, err := time.ParseDuration(args[4])
		ts.Check(err)
		at = at.Add(skew)
	}
	overHTTP(ts, want, http.MethodPost, "/hooks/"+args[1], body, func(req *http.Request) {
		if delivery, github := strings.CutPrefix(id, "github:"); github {
			m := hmac.New(sha256.New, []byte(hookSecret))
			_, _ = io.WriteString(m, body) // never fails
			req.Header.Set("X-GitHub-Delivery", delivery)
			req.Header.Set("X-GitHub-Event", "push")
			req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(m.Sum(nil)))
		} else if id != "none" {
			stamp := strconv.FormatInt(at.Unix(), 10)
			req.Header.Set("webhook-id", id)
			req.Header.Set("webhook-timestamp", stamp)
			req.Header.Set("webhook-signature", standardSignature(ts, hookSecret, id, stamp, body))
		}
	})
}

// postJSON sends a body without a login: post STATUS PATH BODY. A number as the body is one of so many bytes.
func postJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: post STATUS PATH BODY")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	body := args[2]
	if n, err := strconv.Atoi(body); err == nil {
		body = `"` + strings.Repeat("x", n) + `"`
	}
	overHTTP(ts, want, http.MethodPost, args[1], body, func(req *http.Request) { req.Header.Set("Content-Type", "application/json") })
}

// A callback takes what webhooks answer, once it verified each request.
type callback struct {
	ts *testscript.TestScript

	mu    sync.Mutex
	fail  int // requests that are answered with 503 first
	texts []string
	bad   []string
}

// ServeHTTP implements http.Handler.
func (c *callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	var got struct{ Text, Delivery string }
	want := standardSignature(c.ts, callbackSecret, r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp"), string(body))
	switch {
	case err != nil || r.Header.Get("webhook-signature") != want || json.Unmarshal(body, &got) != nil:
		c.bad = append(c.bad, string(body))
		w.WriteHeader(http.StatusUnauthorized)
	case c.fail > 0:
		c.fail--
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		c.texts = append(c.texts, got.Delivery+": "+got.Text)
	}
}

// callbackCommand is callback fail N, callback expect REGEXP, and callback expect-none.
func (r *rig) callbackCommand(ts *testscript.TestScript, args []string) {
	read := func() []string {
		r.callback.mu.Lock()
		defer r.callback.mu.Unlock()
		if len(r.callback.bad) > 0 {
			ts.Fatalf("badly signed: %q", r.callback.bad)
		}
		return r.callback.texts
	}
	switch {
	case r.callback == nil:
		ts.Fatalf("there is no callback; use: fakes callback")
	case len(args) == 2 && args[0] == "fail":
		n, err := strconv.Atoi(args[1])
		ts.Check(err)
		r.callback.mu.Lock()
		r.callback.fail = n
		r.callback.mu.Unlock()
	case len(args) == 2 && args[0] == "expect":
		r.expect(ts, "callback", args[1:], read)
	case len(args) == 1 && args[0] == "expect-none":
		r.settle(ts, nil)
		r.expectNone(ts, "callback", read())
	default:
		ts.Fatalf("usage: callback fail|expect|expect-none ...")
	}
}

// freePort sets a variable to a port of the loopback address that is free: free-port VARIABLE.
func freePort(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: free-port VARIABLE")
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	ts.Check(err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	ts.Check(err)
	ts.Setenv(args[0], port)
	ts.Check(l.Close())
}
