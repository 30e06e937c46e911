package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/storage"
)

// A sink is a Handler that keeps what it is given, each id and key once, as the store does.
type sink struct {
	mu   sync.Mutex
	fail error
	to   []claybot.Descriptor
	got  []claybot.AgentMessage
	seen map[string]bool
	hold chan struct{} // nil: posts do not wait
}

func (s *sink) Post(_ context.Context, to claybot.Descriptor, m claybot.AgentMessage) error {
	if s.hold != nil {
		<-s.hold
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	keys := append([]string{string(m.ID)}, m.Keys...)
	known := slices.ContainsFunc(keys, func(k string) bool { return s.seen[k] })
	for _, k := range keys {
		s.seen[k] = true
	}
	if !known {
		s.to, s.got = append(s.to, to), append(s.got, m)
	}
	return nil
}

func (*sink) Answer(context.Context, connectors.Press) (connectors.PressResult, error) {
	return connectors.PressResult{}, errors.New("webhooks have no buttons")
}

func (s *sink) Hears(context.Context, claybot.Descriptor, claybot.AgentMessage) (bool, error) {
	return true, nil
}

func (*sink) Moved(context.Context, string, string, string, claybot.Time) error {
	return errors.New("webhooks move no channels")
}

// A world is a webhook behind a real server.
type world struct {
	*sink
	c   *Connector
	url string
	log *bytes.Buffer
}

const (
	fakeSecret     = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	callbackSecret = "whsec_bm90LWEtc2VjcmV0LWF0LWFsbA=="
)

func start(t *testing.T, cfg Config) *world {
	t.Helper()
	w := &world{sink: &sink{seen: make(map[string]bool)}, log: new(bytes.Buffer)}
	if cfg.Name == "" {
		cfg.Name = "ci"
	}
	if cfg.Fill == nil {
		cfg.Fill = func(d Delivery) (string, string, error) { return "", fmt.Sprint(d.Event, " ", d.Payload), nil }
	}
	cfg.Log = slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w.c = New(cfg)
	mux := http.NewServeMux()
	mux.Handle("POST /hooks/{name}", only(w.c))
	server := httptest.NewServer(mux)
	w.url = server.URL + "/hooks/"
	t.Cleanup(server.Close)
	if w.c.fault == nil {
		w.c.intake.Open(w.sink) // as Run does
		w.c.pulse.OK()
	}
	return w
}

// post sends a body with headers, in chunks where it is no *bytes.Reader.
func (w *world) post(t *testing.T, name string, h http.Header, body io.Reader) (status int, text string, got http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+name, body)
	if err != nil {
		t.Fatal(err)
	}
	if h != nil {
		req.Header = h.Clone()
	}
	resp, err := new(http.Transport).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(b)), resp.Header
}

// signed returns the headers of a body.
func (w *world) signed(id, body string) http.Header {
	h := make(http.Header)
	prove(w.c.scheme, h, id, []byte(body), w.c.cfg.Now())
	return h
}

func TestDelivery(t *testing.T) {
	w := start(t, Config{Scheme: Standard, Secret: fakeSecret, Fill: func(d Delivery) (string, string, error) {
		v, _ := d.Payload.(map[string]any)
		return fmt.Sprint(v["channel"]), fmt.Sprint("state ", v["state"]), nil
	}})
	body := `{"channel":"deploys","state":12345678901234567890}`
	for range 2 { // the second one is a repeat
		if status, text, _ := w.post(t, "ci", w.signed("msg_1", body), strings.NewReader(body)); status != 202 || text != "{}" {
			t.Fatalf("%d %s", status, text)
		}
	}
	want := claybot.AgentMessage{
		ID: "ci/msg_1", Type: claybot.MessageUser, Text: "state 12345678901234567890", Tainted: true,
		From: claybot.Sender{UserID: "ci", Name: "ci", Program: true, NoRules: true}, Route: &claybot.Route{}, Payload: []byte(body),
	}
	if len(w.got) != 1 || w.to[0] != claybot.User("ci", "deploys", "ci") {
		t.Fatalf("%v %+v", w.to, w.got)
	}
	got := w.got[0]
	if want.At = got.At; got.FirstHand || fmt.Sprintf("%+v", got) != strings.Replace(fmt.Sprintf("%+v", want), fmt.Sprintf("%p", want.Route), fmt.Sprintf("%p", got.Route), 1) || *got.Route != *want.Route {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Each bad request gets its status, and nothing of it reaches an agent.
func TestBadRequests(t *testing.T) {
	w := start(t, Config{Scheme: Standard, Secret: fakeSecret, Limit: 1 << 20})
	body := `{"a":1}`
	good := func(body string) http.Header { return w.signed("msg_1", body) }
	big := `"` + strings.Repeat("x", 1<<20-2) + `"`
	for name, tt := range map[string]struct {
		hook   string
		h      http.Header
		body   io.Reader
		status int
		code   string
	}{
		"unknown name":            {"cd", good(body), strings.NewReader(body), 404, "not_found"},
		"unknown name, no header": {"cd", nil, strings.NewReader(body), 404, "not_found"},
		"no signature":            {"ci", nil, strings.NewReader(body), 401, "signature"},
		"wrong signature":         {"ci", good(body + " "), strings.NewReader(body), 401, "signature"},
		"another scheme":          {"ci", headers("X-Hub-Signature-256", "sha256=00"), strings.NewReader(body), 401, "signature"},
		"a bearer token":          {"ci", headers("Authorization", "Bearer "+fakeSecret), strings.NewReader(body), 401, "signature"},
		"an empty body":           {"ci", good(""), strings.NewReader(""), 400, "bad_request"},
		"white space":             {"ci", good(" \n"), strings.NewReader(" \n"), 400, "bad_request"},
		"no text":                 {"ci", good("\xff\xfe"), strings.NewReader("\xff\xfe"), 400, "bad_request"},
		"over the limit":          {"ci", good(big + " "), strings.NewReader(big + " "), 413, "too_large"},
		"over the limit, chunked": {"ci", good(big + " "), io.MultiReader(strings.NewReader(big), strings.NewReader(" ")), 413, "too_large"},
		"over, with no signature": {"ci", nil, strings.NewReader(big + " "), 401, "signature"},
	} {
		status, text, _ := w.post(t, tt.hook, tt.h, tt.body)
		var said struct {
			Error struct{ Code, Message string }
		}
		if err := json.Unmarshal([]byte(text), &said); err != nil || status != tt.status || said.Error.Code != tt.code {
			t.Errorf("%s: %d %s", name, status, text)
		}
		if strings.Contains(text, "ci") && tt.status == 401 {
			t.Errorf("%s: the answer names the hook: %s", name, text)
		}
	}
	if resp, err := new(http.Client).Get(w.url + "ci"); err != nil || resp.StatusCode != http.StatusMethodNotAllowed { //nolint:noctx // on loopback
		t.Errorf("GET: %v %v", resp, err)
	} else {
		_ = resp.Body.Close()
	}
	if len(w.got) > 0 {
		t.Errorf("posted: %+v", w.got)
	}
	if log := w.log.String(); strings.Contains(log, fakeSecret) || strings.Contains(log, fakeSecret[6:]) {
		t.Errorf("the log has the secret: %s", log)
	}
}

// A body of exactly the limit is taken, in chunks too; one that is no JSON is a text.
func TestGoodBodies(t *testing.T) {
	w := start(t, Config{Scheme: HMAC, Secret: "not-a-secret", Header: "X-Sig", Limit: 1 << 20, Fill: func(d Delivery) (string, string, error) {
		return "", fmt.Sprintf("%.100s", fmt.Sprint(d.Payload)), nil
	}})
	big := `"` + strings.Repeat("x", 1<<20-2) + `"`
	for i, tt := range []struct {
		kind, body string
		chunked    bool
		want       string
	}{
		{"", big, false, strings.Trim(big, `"`)},
		{"", strings.Replace(big, "x", "y", 1), true, strings.Trim(strings.Replace(big, "x", "y", 1), `"`)},
		{"text/plain", "the build failed", false, "the build failed"},
		{"application/json", `{"a":1} trailing`, false, `{"a":1} trailing`},
		{"application/x-www-form-urlencoded", "payload=%7B%22a%22%3A2%7D", false, "map[a:2]"},
		{"application/x-www-form-urlencoded", "a=1&b=2", false, "a=1&b=2"},
		{"", "null", false, "<nil>"},
	} {
		h := w.signed("", tt.body)
		h.Set("Content-Type", tt.kind)
		var body io.Reader = strings.NewReader(tt.body)
		if tt.chunked {
			body = io.MultiReader(body)
		}
		if status, text, _ := w.post(t, "ci", h, body); status != 202 || len(w.got) != i+1 || w.got[i].Text != fmt.Sprintf("%.100s", tt.want) {
			t.Fatalf("%.40s: %d %s, %d messages", tt.body, status, text, len(w.got))
		}
	}
}

// GitHub's ids are not signed: a captured request with another one is a repeat.
func TestRepeatWithAnotherID(t *testing.T) {
	w := start(t, Config{Scheme: GitHub, Secret: "not-a-secret"})
	body := `{"action":"opened"}`
	for _, id := range []string{"d1", "d2", ""} {
		h := w.signed(id, body)
		h.Set("X-GitHub-Event", "pull_request")
		if status, _, _ := w.post(t, "ci", h, strings.NewReader(body)); status != 202 {
			t.Errorf("%s: %d", id, status)
		}
	}
	if len(w.got) != 1 || w.got[0].Text != "pull_request map[action:opened]" {
		t.Errorf("got %+v", w.got)
	}
}

// What cannot be stored now is to be repeated; what can never be is not.
func TestStoreFails(t *testing.T) {
	w := start(t, Config{Scheme: Standard, Secret: fakeSecret})
	for i, tt := range []struct {
		err    error
		status int
		retry  string
	}{
		{errors.New("the disk is full"), 503, "5"},
		{&storage.Fault{Class: storage.ClassMessage, Err: errors.New("too long")}, 422, ""},
		{nil, 202, ""},
	} {
		w.fail = tt.err
		status, text, h := w.post(t, "ci", w.signed("msg_1", "1"), strings.NewReader("1"))
		if status != tt.status || h.Get("Retry-After") != tt.retry || strings.Contains(text, "disk") {
			t.Errorf("%d: %d %s %v", i, status, text, h)
		}
	}
	if len(w.got) != 1 {
		t.Errorf("got %+v", w.got)
	}
}

// An event of whose text no agent could take anything is refused, and nothing is stored: its
// sender can correct it and send it again.
func TestUnfitTexts(t *testing.T) {
	w := start(t, Config{Scheme: Standard, Secret: fakeSecret, Fill: func(d Delivery) (string, string, error) { return "", fmt.Sprint(d.Payload), nil }})
	for _, tt := range []struct {
		text   string
		status int
		says   string
	}{
		{strings.Repeat("ä", inbox.MaxText+1), 422, "has 100001 characters; the limit is 100000"},
		{" ", 422, "empty text"},
		{strings.Repeat("ä", inbox.MaxText), 202, "{}"},
		{strings.Repeat("b", inbox.MaxText), 202, "{}"}, // of the same id as the others
	} {
		body, err := json.Marshal(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		if status, text, _ := w.post(t, "ci", w.signed("msg_1", string(body)), bytes.NewReader(body)); status != tt.status || !strings.Contains(text, tt.says) {
			t.Errorf("%.10s: %d %.200s", tt.text, status, text)
		}
	}
	if len(w.got) != 1 {
		t.Errorf("%d messages", len(w.got))
	}
}

// Before Run and after it, the sender is asked to repeat; Run waits for what is being
// posted.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Config{Name: "ci", Scheme: Bearer, Secret: "not-a-secret", Fill: func(Delivery) (string, string, error) { return "", "x", nil }})
		s := &sink{seen: make(map[string]bool)}
		ask := func(body string) int {
			r := httptest.NewRequest(http.MethodPost, "/hooks/ci", strings.NewReader(body))
			r.Header.Set("Authorization", "Bearer not-a-secret")
			status, _ := c.receive(httptest.NewRecorder(), r)
			return status
		}
		if status := ask("1"); status != 503 || c.Health().State != connectors.StateStarting {
			t.Errorf("before: %d", status)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Run(ctx, s) }()
		synctest.Wait()
		if status := ask("1"); status != 202 || c.Health().State != connectors.StateLive {
			t.Errorf("meanwhile: %d", status)
		}
		s.hold = make(chan struct{}) // a post hangs
		posting := make(chan int)
		go func() { posting <- ask("2") }()
		synctest.Wait()
		why := errors.New("the end")
		cancel(why)
		synctest.Wait()
		select {
		case err := <-ended:
			t.Errorf("ended with %v before the post", err)
		default:
		}
		close(s.hold)
		if status := <-posting; status != 202 {
			t.Errorf("the last post: %d", status)
		}
		if err := <-ended; !errors.Is(err, why) {
			t.Errorf("ended with %v", err)
		}
		if status := ask("3"); status != 503 || len(s.got) != 2 {
			t.Errorf("after: %d, %d messages", status, len(s.got))
		}
	})
}

// A webhook without a secret is not there, and stops with a sentence that names the key.
func TestNoSecret(t *testing.T) {
	w := start(t, Config{Scheme: Bearer, SecretName: "connectors.ci.secret"})
	if status, text, _ := w.post(t, "ci", headers("Authorization", "Bearer "), strings.NewReader("1")); status != 404 {
		t.Errorf("%d %s", status, text)
	}
	err := w.c.Run(t.Context(), w.sink)
	var stop *connectors.PermanentError
	if !errors.As(err, &stop) || !strings.Contains(err.Error(), "set connectors.ci.secret") || w.c.Health().State != connectors.StateStopped {
		t.Errorf("%v, %+v", err, w.c.Health())
	}
}

func TestSend(t *testing.T) {
	for _, tt := range []struct {
		status int
		retry  string
		hang   bool
		want   string
	}{
		{200, "", false, ""},
		{204, "", false, ""},
		{429, "7", false, "*connectors.RetryError 7s"},
		{429, "", false, "*connectors.RetryError 30s"},
		{429, "99999999999999", false, "*connectors.RetryError 24h0m0s"},
		{503, "9", false, "*connectors.RetryError 9s"},
		{503, "", false, "plain"},
		{500, "", false, "plain"},
		{408, "", false, "plain"},
		{301, "", false, "*connectors.PermanentError"},
		{400, "", false, "*connectors.PermanentError"},
		{404, "", false, "*connectors.PermanentError"},
		{410, "", false, "*connectors.PermanentError"},
		{0, "", true, "*connectors.AmbiguousError"},
	} {
		s := made(t, Config{Scheme: Standard, Secret: callbackSecret})
		var got reply
		var verified error
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			verified = s.verify(r.Header, body, now)
			_ = json.Unmarshal(body, &got)
			if tt.hang {
				panic(http.ErrAbortHandler)
			}
			w.Header().Set("Retry-After", tt.retry)
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(tt.status)
		}))
		w := start(t, Config{Scheme: Standard, Secret: fakeSecret, Callback: server.URL + "/private-path", CallbackSecret: callbackSecret, Now: func() time.Time { return now }})
		o := claybot.Outgoing{ID: "out1", Message: "ci/msg_1", Route: claybot.Route{Connector: "ci", ChannelID: "deploys"}, Text: "**done**", Part: 1, Parts: 1}
		receipt, err := w.c.Send(t.Context(), o)
		server.Close()
		if said := kind(err); said != tt.want || err == nil && receipt != "ci/out1" {
			t.Errorf("%d: %q %v, want %s", tt.status, receipt, err, tt.want)
		}
		if err != nil && (strings.Contains(err.Error(), "private-path") || strings.Contains(err.Error(), fakeSecret)) {
			t.Errorf("%d: the error has the address: %v", tt.status, err)
		}
		if verified != nil || got.ID != "out1" || got.Delivery != "msg_1" || got.Channel != "deploys" || got.Text != "**done**" {
			t.Errorf("%d: %v, %+v", tt.status, verified, got)
		}
	}
	w := start(t, Config{Scheme: Standard, Secret: fakeSecret, Callback: "http://127.0.0.1:" + strconv.Itoa(1) + "/", CallbackSecret: callbackSecret})
	if _, err := w.c.Send(t.Context(), claybot.Outgoing{ID: "o"}); kind(err) != "plain" {
		t.Errorf("a refused connection: %v", err)
	}
	w = start(t, Config{Scheme: Standard, Secret: fakeSecret})
	if receipt, err := w.c.Send(t.Context(), claybot.Outgoing{ID: "o"}); err != nil || receipt != "ci/o" {
		t.Errorf("without a callback: %q %v", receipt, err)
	}
}

// Whatever the scheme of events, a callback is signed with its own secret: what it gets
// cannot be sent back as an event, and tells nothing of the secret of events.
func TestCallbackIsNoEvent(t *testing.T) {
	for _, cfg := range []Config{
		{Scheme: Standard, Secret: fakeSecret},
		{Scheme: GitHub, Secret: "not-a-secret"},
		{Scheme: Stripe, Secret: "not-a-secret"},
		{Scheme: HMAC, Secret: "not-a-secret", Header: "X-Sig"},
		{Scheme: Bearer, Secret: "not-a-secret"},
	} {
		var h http.Header
		var body []byte
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			h = r.Header.Clone()
			body, _ = io.ReadAll(r.Body)
		}))
		cfg.Callback, cfg.CallbackSecret = server.URL, callbackSecret
		w := start(t, cfg)
		_, err := w.c.Send(t.Context(), claybot.Outgoing{ID: "out1", Text: "done"})
		server.Close()
		if signed := made(t, Config{Scheme: Standard, Secret: callbackSecret}).verify(h, body, time.Now()); err != nil || signed != nil {
			t.Errorf("%s: %v, %v", cfg.Scheme, err, signed)
		}
		if status, _, _ := w.post(t, "ci", h, bytes.NewReader(body)); status != 401 || len(w.got) > 0 || strings.Contains(fmt.Sprint(h), "not-a-secret") {
			t.Errorf("%s: sent back: %d, %v", cfg.Scheme, status, h)
		}
	}
	w := start(t, Config{Scheme: Standard, Secret: fakeSecret, SecretName: "connectors.ci.secret", Callback: "http://127.0.0.1:1/", CallbackSecretName: "connectors.ci.callback_secret"})
	if err := w.c.Run(t.Context(), w.sink); err == nil || !strings.Contains(err.Error(), "callback: there is no secret, so it takes no request; set connectors.ci.callback_secret anew with claybot config set, which applies it") {
		t.Errorf("without a secret: %v", err)
	}
	if _, err := w.c.Send(t.Context(), claybot.Outgoing{ID: "o"}); kind(err) != "*connectors.PermanentError" {
		t.Errorf("without a secret: %v", err)
	}
}

// kind names the class of an error of Send.
func kind(err error) string {
	var retry *connectors.RetryError
	var permanent *connectors.PermanentError
	var ambiguous *connectors.AmbiguousError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &retry):
		return fmt.Sprintf("%T %s", retry, retry.After)
	case errors.As(err, &permanent):
		return fmt.Sprintf("%T", permanent)
	case errors.As(err, &ambiguous):
		return fmt.Sprintf("%T", ambiguous)
	}
	return "plain"
}
