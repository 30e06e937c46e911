package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/webhook"
)

const secret = "a fake secret for tests"

func events() []claybot.Event {
	return []claybot.Event{
		{V: 1, Run: "r1", Seq: 3, Type: claybot.EventToolCalled, At: 5, Data: json.RawMessage(`{"tool":"shell"}`)},
		{V: 1, Run: "r1", Seq: 4, Type: claybot.EventRunCanceled, At: 6, Data: json.RawMessage(`{"by":"user"}`)},
	}
}

// A receiver is the other side, which checks each request as it should.
type receiver struct {
	*httptest.Server
	got chan received
}

type received struct {
	header http.Header
	body   []byte
	valid  error
}

func receive(t *testing.T, answer http.HandlerFunc) *receiver {
	t.Helper()
	rc := &receiver{got: make(chan received, 16)}
	rc.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		rc.got <- received{r.Header, body, webhook.Verify(secret, r.Header, body, time.Now(), time.Hour)}
		answer(w, r)
	}))
	t.Cleanup(rc.Close)
	return rc
}

// patient is a sink whose receiver may take its time, as on a busy machine.
func patient(url string) *webhook.Sink {
	return webhook.New(webhook.Config{Name: "audit", URL: url, Secret: secret, Within: time.Hour})
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func TestPublish(t *testing.T) {
	for _, code := range []int{200, 201, 202, 204} {
		rc := receive(t, status(code))
		s := patient(rc.URL)
		for range 2 { // the same batch has the same id
			if err := s.Publish(t.Context(), events()); err != nil {
				t.Fatalf("%d: %v", code, err)
			}
			got := <-rc.got
			if got.valid != nil {
				t.Errorf("the receiver refuses the signature: %v", got.valid)
			}
			want := `{"events":[` + string(runs.Encode(events()[0])) + "," + string(runs.Encode(events()[1])) + "]}"
			if string(got.body) != want {
				t.Errorf("got %s, want %s", got.body, want)
			}
			if id := got.header.Get(webhook.DeliveryHeader); id != "r1/3-4" {
				t.Errorf("delivery %q", id)
			}
			if kind := got.header.Get("Content-Type"); kind != "application/json" {
				t.Errorf("content type %q", kind)
			}
			if err := webhook.Verify("another secret of tests", got.header, got.body, time.Now(), time.Hour); !errors.Is(err, webhook.ErrSignature) {
				t.Errorf("with another secret: %v", err)
			}
		}
	}
}

func TestNothingToPublish(t *testing.T) {
	s := webhook.New(webhook.Config{Name: "audit", URL: "http://127.0.0.1:1", Secret: secret})
	if err := s.Publish(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestRefusals(t *testing.T) {
	tests := []struct {
		code    int
		header  string // Retry-After
		refused bool
		after   time.Duration
		text    string
	}{
		{code: 400, refused: true, text: "400 Bad Request; it does not accept these events"},
		{code: 401, refused: true, text: "same secret"},
		{code: 403, refused: true, text: "same secret"},
		{code: 404, refused: true, text: "check the address"},
		{code: 410, refused: true, text: "check the address"},
		{code: 413, refused: true, text: "does not accept"},
		{code: 422, refused: true, text: "does not accept"},
		{code: 408, text: "408"},
		{code: 429, header: "7", after: 7 * time.Second, text: "429"},
		{code: 429, header: "-7", text: "429"},
		{code: 429, header: "soon", text: "429"},
		{code: 503, header: "99999999999999", after: 24 * time.Hour, text: "503"}, // Atoi takes it on 64 bits
		{code: 503, header: "Thu, 01 Jan 1970 00:00:00 GMT", text: "503"},
		{code: 500, text: "500 Internal Server Error"},
		{code: 302, text: "redirects are not followed"},
		{code: 307, text: "redirects are not followed"},
	}
	for _, tt := range tests {
		rc := receive(t, func(w http.ResponseWriter, _ *http.Request) {
			if tt.header != "" {
				w.Header().Set("Retry-After", tt.header)
			}
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(tt.code)
			io.WriteString(w, "words of the receiver")
		})
		s := patient(rc.URL + "/hook?token=fake-canary")
		err := s.Publish(t.Context(), events())
		e, ok := errors.AsType[*runs.SinkError](err)
		if !ok {
			t.Fatalf("%d: %v", tt.code, err)
		}
		if e.Batch != strings.Contains(e.Text, "these events") {
			t.Errorf("%d: batch %v", tt.code, e.Batch)
		}
		if e.Refused != tt.refused || e.After != tt.after || !strings.Contains(e.Text, tt.text) || !strings.HasPrefix(e.Text, "relay audit: ") {
			t.Errorf("%d %q: got %+v", tt.code, tt.header, e)
		}
		noSecrets(t, err, rc.URL)
		if len(rc.got) != 1 {
			t.Errorf("%d: %d requests", tt.code, len(rc.got))
		}
	}
}

// noSecrets looks for what must not be in an error.
func noSecrets(t *testing.T, err error, address string) {
	t.Helper()
	_, host, _ := strings.Cut(address, "://")
	for _, bad := range []string{"fake-canary", secret, host, "words of the receiver"} {
		if strings.Contains(err.Error(), bad) {
			t.Errorf("%q in the error %q", bad, err)
		}
	}
}

func TestRetryAfterDate(t *testing.T) {
	rc := receive(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", time.Now().Add(48*time.Hour).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	err := patient(rc.URL).Publish(t.Context(), events())
	if e, ok := errors.AsType[*runs.SinkError](err); !ok || e.After < 24*time.Hour || e.After > 48*time.Hour {
		t.Errorf("got %+v", err)
	}
}

func TestUnreachable(t *testing.T) {
	// An address without a listener: not one that was free a moment ago, which
	// may be that of the next server.
	const closed = "http://127.0.0.1:1"
	cut := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer cut.Close()
	secure := httptest.NewUnstartedServer(status(200))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS() // with an unknown certificate
	defer secure.Close()
	plain := receive(t, status(200))
	tests := map[string]struct{ url, want string }{
		"refused":     {closed, "refused"},
		"cut":         {cut.URL, "closed without an answer"},
		"certificate": {secure.URL, "certificate"},
		"no TLS":      {"https" + strings.TrimPrefix(plain.URL, "http"), "TLS"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := patient(tt.url + "/hook?token=fake-canary")
			err := s.Publish(t.Context(), events())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			noSecrets(t, err, tt.url)
		})
	}
}

func TestHangs(t *testing.T) {
	leave := make(chan struct{})
	hang := func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-leave:
		case <-r.Context().Done():
		}
	}
	rc := receive(t, hang)
	defer close(leave)
	s := webhook.New(webhook.Config{Name: "audit", URL: rc.URL + "/?token=fake-canary", Secret: secret, Within: 20 * time.Millisecond})
	err := s.Publish(t.Context(), events())
	if err == nil || !strings.Contains(err.Error(), "no answer within 20ms") {
		t.Errorf("got %v", err)
	}
	noSecrets(t, err, rc.URL)

	// The end of the process does not wait for the receiver.
	cause := errors.New("the daemon ends")
	ctx, cancel := context.WithCancelCause(t.Context())
	rc = receive(t, hang) // another one: what was given up after 20 ms may arrive late, or never
	s = webhook.New(webhook.Config{Name: "audit", URL: rc.URL, Secret: secret, Within: time.Hour})
	go func() {
		<-rc.got
		cancel(cause)
	}()
	if err := s.Publish(ctx, events()); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

func TestBadConfig(t *testing.T) {
	tests := map[string]webhook.Config{
		"no URL":     {Secret: secret},
		"no host":    {URL: "https://", Secret: secret},
		"file":       {URL: "file:///fake-canary", Secret: secret},
		"no scheme":  {URL: "fake-canary.example.com", Secret: secret},
		"broken":     {URL: "http://fake-canary.example.com/%zz", Secret: secret},
		"user":       {URL: "https://fake-canary:x@example.com", Secret: secret},
		"control":    {URL: "https://example.com/fake-canary\n", Secret: secret},
		"no secret":  {URL: "https://example.com/fake-canary"},
		"wrong port": {URL: "https://fake-canary.example.com:port", Secret: secret},
	}
	for name, cfg := range tests {
		t.Run(name, func(t *testing.T) {
			cfg.Name = "audit"
			err := webhook.New(cfg).Publish(t.Context(), events())
			e, ok := errors.AsType[*runs.SinkError](err)
			if !ok || !e.Refused {
				t.Fatalf("got %v", err)
			}
			noSecrets(t, err, "://example.com")
		})
	}
}
