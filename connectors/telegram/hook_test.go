package telegram

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/connectorstest"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
	"github.com/claybot/claybot/storage"
)

const testHook = "https://claybot.test/hooks/telegram"

// hookBubble is a bubble with a webhook.
func hookBubble(t *testing.T, test func(t *testing.T, b *bubble, door *connectorstest.Doorway)) {
	t.Helper()
	door := &connectorstest.Doorway{}
	inBubbleWith(t, telegramtest.Config{Hooks: door}, Config{Hook: testHook}, func(t *testing.T, b *bubble) {
		door.Lead(b.conn)
		test(t, b, door)
		if secret := b.conn.hookSecret(); strings.Contains(b.logs.String(), secret) {
			t.Error("the secret of the webhook is in the log")
		}
	})
}

func TestHookRequests(t *testing.T) {
	hookBubble(t, func(t *testing.T, b *bubble, _ *connectorstest.Doorway) {
		secret := b.conn.hookSecret()
		text := func(id int) string {
			return fmt.Sprintf(`{"update_id":%d,"message":{"message_id":%d,"from":{"id":7},"chat":{"id":7,"type":"private"},"text":"update %d"}}`, id, id, id)
		}
		broken := &storage.Fault{Class: storage.ClassMessage, Err: errors.New("no id")}
		b.sink.fail = func(m claybot.AgentMessage) error {
			switch m.Text {
			case "update 20":
				return broken
			case "update 21":
				return storage.ErrBusy
			}
			return nil
		}
		post := func(body string, secrets ...string) *httptest.ResponseRecorder {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/hooks/telegram", strings.NewReader(body))
			r.Header[hookHeader] = secrets
			w := httptest.NewRecorder()
			b.conn.ServeHTTP(w, r)
			return w
		}
		if w := post(text(1), secret); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("before the start: %d %v", w.Code, w.Header())
		}
		b.run()
		synctest.Wait()
		for _, tt := range []struct {
			name, body string
			secrets    []string
			status     int
			posted     string
		}{
			{"as it should be", text(1), []string{secret}, 200, "update 1"},
			{"again", text(1), []string{secret}, 200, ""},
			{"no secret", text(2), nil, 401, ""},
			{"an empty secret", text(2), []string{""}, 401, ""},
			{"another secret", text(2), []string{strings.Repeat("0", len(secret))}, 401, ""},
			{"two secrets", text(2), []string{secret, secret}, 401, ""},
			{"the token", text(2), []string{telegramtest.Token}, 401, ""},
			{"too large", strings.Repeat(" ", maxUpdateBytes) + text(2), []string{secret}, 400, ""},
			{"no update", "hello", []string{secret}, 200, ""},
			{"no id", `{"message":{}}`, []string{secret}, 200, ""},
			{"a kind that is not known", `{"update_id":3,"future":{}}`, []string{secret}, 200, ""},
			{"wrong types", `{"update_id":3,"message":[]}`, []string{secret}, 200, ""},
			{"cannot be stored ever", text(20), []string{secret}, 200, ""},
			{"cannot be stored now", text(21), []string{secret}, 503, ""},
		} {
			before := len(b.sink.texts())
			w := post(tt.body, tt.secrets...)
			got := strings.Join(b.sink.texts()[before:], ", ")
			if w.Code != tt.status || got != tt.posted || w.Body.Len() > 0 {
				t.Errorf("%s: %d %q, posted %q, want %d and %q", tt.name, w.Code, w.Body, got, tt.status, tt.posted)
			}
		}
		if err := b.end(); err == nil {
			t.Error("it ended without a cause")
		}
		if w := post(text(4), secret); w.Code != http.StatusServiceUnavailable {
			t.Errorf("after the end: %d", w.Code)
		}
	})
}

// A webhook that another program takes is set again, and one that does not work makes the connector fail
// until it does.
func TestHookFaults(t *testing.T) {
	hookBubble(t, func(t *testing.T, b *bubble, door *connectorstest.Doorway) {
		b.run()
		synctest.Wait()
		b.server.SetWebhook("https://other.test/hook")
		b.server.Say(7, 7, "for claybot")
		time.Sleep(hookEvery)
		synctest.Wait()
		if got := b.sink.texts(); !slices.Equal(got, []string{"for claybot"}) {
			t.Errorf("got %q", got)
		}
		door.Lead(nil)
		b.server.Say(7, 7, "no answer")
		time.Sleep(hookEvery + time.Second)
		synctest.Wait()
		if h := b.conn.Health(); h.State == connectors.StateLive || !strings.Contains(h.Err, "connection failed") || !strings.Contains(h.Err, testHook) {
			t.Errorf("health %+v", h)
		}
		door.Lead(b.conn)
		time.Sleep(3 * hookEvery)
		synctest.Wait()
		if got := b.sink.texts(); len(got) != 2 {
			t.Errorf("got %q", got)
		}
		if h := b.conn.Health(); h.State != connectors.StateLive || len(b.server.Pending()) > 0 {
			t.Errorf("health %+v, waiting %v", h, b.server.Pending())
		}
		b.server.Fail(telegramtest.Fault{Method: "getWebhookInfo", Status: http.StatusUnauthorized, Description: "Unauthorized"})
		time.Sleep(hookEvery)
		if err := <-b.ended; !strings.Contains(fmt.Sprint(err), "token is refused") {
			t.Errorf("ended with %v", err)
		}
		b.stop()
		b.stop = nil
	})
}

// Two members take the presses of one question in turn: what is submitted is what the message shows.
func TestHookChoicesOfMembers(t *testing.T) {
	hookBubble(t, func(t *testing.T, b *bubble, door *connectorstest.Doorway) {
		other := New(b.conn.cfg)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- other.Run(ctx, b.sink) }()
		defer func() { cancel(); <-ended }()
		b.run()
		synctest.Wait()
		b.server.Say(asked, asked, "hi")
		m := b.ask(tea, asked)
		for i, text := range []string{"tea", "coffee", "milk", "✓ coffee", "Done"} {
			door.Lead([]*Connector{b.conn, other}[i%2])
			if _, ok := b.server.Press(asked, asked, m.ID, text); !ok {
				t.Fatalf("no button %q: %q", text, b.shown(asked, m.ID).Buttons())
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		if len(b.sink.presses) != 1 || b.sink.presses[0].Answer.Text != `["1","3"]` {
			t.Errorf("answers %+v", b.sink.presses)
		}
	})
}

// A webhook of claybot's own, which members with earlier settings set again and again, is deleted each time
// by one that polls.
func TestPollsAfterAnOwnHook(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.run()
		for i := range 3 {
			synctest.Wait()
			b.server.SetWebhook(testHook)
			b.server.Say(7, 7, fmt.Sprint("message ", i))
			time.Sleep(time.Minute)
			synctest.Wait()
			if got := b.sink.texts(); len(got) != i+1 || b.conn.Health().State != connectors.StateLive {
				t.Errorf("round %d: got %q, %+v", i, got, b.conn.Health())
			}
		}
	})
}

// While an update waits that Telegram failed to deliver, however long ago it tried, no contact is noted:
// it may drop that update.
func TestHookGap(t *testing.T) {
	hookBubble(t, func(t *testing.T, b *bubble, door *connectorstest.Doorway) {
		b.run()
		synctest.Wait()
		door.Lead(nil)
		b.server.Say(7, 7, "lost")
		for minute := range 23*60 + 50 {
			b.server.Fail(telegramtest.Fault{Method: "getWebhookInfo", Times: 6, Body: fmt.Sprintf(
				`{"ok":true,"result":{"url":%q,"pending_update_count":1,"last_error_date":%d,"last_error_message":"Connection timed out"}}`, testHook, time.Now().Unix()-140)})
			time.Sleep(time.Minute)
			if h := b.conn.Health(); minute > 2 && h.State == connectors.StateLive {
				t.Fatalf("health %+v", h)
			}
		}
		if len(b.sink.missed) > 0 {
			t.Errorf("too early: %+v", b.sink.missed)
		}
		b.server.Heal()
		time.Sleep(15 * time.Minute) // Telegram drops it
		synctest.Wait()
		if len(b.sink.missed) != 1 {
			t.Errorf("missed %+v", b.sink.missed)
		}
	})
}

// A message that Telegram delivers beside a press that could not be stored waits for it.
func TestHookOrderOfAPerson(t *testing.T) {
	hookBubble(t, func(t *testing.T, b *bubble, _ *connectorstest.Doorway) {
		var order []string
		fails := 1
		b.sink.answer = func(connectors.Press) (connectors.PressResult, error) {
			if fails--; fails >= 0 {
				return connectors.PressResult{}, storage.ErrBusy
			}
			order = append(order, "press")
			return connectors.PressResult{OK: true}, nil
		}
		b.sink.fail = func(m claybot.AgentMessage) error {
			order = append(order, m.Text)
			return nil
		}
		b.run()
		synctest.Wait()
		b.server.Say(asked, asked, "hi")
		m := b.ask(claybot.Question{ID: questionID, Type: claybot.QuestionBoolean}, asked)
		b.server.Press(asked, asked, m.ID, "Yes")
		synctest.Wait()
		b.server.Say(asked, asked, "later")
		b.server.Say(asked+1, asked+1, "of another")
		time.Sleep(time.Minute)
		synctest.Wait()
		if !slices.Equal(order, []string{"hi", "of another", "press", "later"}) {
			t.Errorf("order %q", order)
		}
	})
}

// An update that could not be stored is waited for, also if an earlier one of the same person
// comes late.
func TestHookOrderWithALateUpdate(t *testing.T) {
	hookBubble(t, func(t *testing.T, b *bubble, _ *connectorstest.Doorway) {
		down := true
		b.sink.fail = func(claybot.AgentMessage) error {
			if down {
				return storage.ErrBusy
			}
			return nil
		}
		b.run()
		synctest.Wait()
		for _, step := range []struct {
			update int
			down   bool
			status int
		}{{12, true, 503}, {11, false, 200}, {13, false, 503}, {12, false, 200}, {13, false, 200}} {
			down = step.down
			body := fmt.Sprintf(`{"update_id":%[1]d,"message":{"message_id":%[1]d,"date":1,"from":{"id":7,"first_name":"Ann"},"chat":{"id":7,"type":"private"},"text":"update %[1]d"}}`, step.update)
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/hooks/telegram", strings.NewReader(body))
			r.Header[hookHeader] = []string{b.conn.hookSecret()}
			w := httptest.NewRecorder()
			if b.conn.ServeHTTP(w, r); w.Code != step.status {
				t.Errorf("update %d: %d, want %d", step.update, w.Code, step.status)
			}
		}
	})
}

// The end of the connector ends requests that wait for something else.
func TestHookEnds(t *testing.T) {
	hookBubble(t, func(t *testing.T, b *bubble, _ *connectorstest.Doorway) {
		b.server.Fail(telegramtest.Fault{Method: "getMe", Times: -1, Status: http.StatusBadGateway})
		b.run()
		synctest.Wait()
		b.server.Mention(-1_000_000_000_007, 7, "who am I?")
		time.Sleep(time.Second)
		began := time.Now()
		_ = b.end()
		if took := time.Since(began); took > 0 {
			t.Errorf("it ended after %v", took)
		}
	})
}

// From polls to a webhook and back, while people write: each message comes once, in order.
func TestPollsAndHook(t *testing.T) {
	door := &connectorstest.Doorway{}
	inBubbleWith(t, telegramtest.Config{Hooks: door}, Config{}, func(t *testing.T, b *bubble) {
		var want []string
		polling, cfg := b.conn, b.conn.cfg
		cfg.Hook = testHook
		listening := New(cfg)
		door.Lead(listening)
		for i := range 40 {
			b.conn = polling
			if i%2 == 1 {
				b.conn = listening
			}
			b.run()
			for n := range 3 {
				text := fmt.Sprintf("%d of round %d", n, i)
				want = append(want, text)
				b.server.Say(7, 7, text)
			}
			if i%4 < 2 {
				synctest.Wait()
			}
			time.Sleep(time.Duration(i) * time.Second)
			_ = b.end()
		}
		b.conn = polling
		b.run()
		time.Sleep(3 * time.Minute)
		got := b.sink.texts()
		if !slices.Equal(got, want) || len(b.server.Pending()) > 0 {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// A certified webhook is one whose certificate Telegram verifies; at is when it expires.
type certified struct {
	http.RoundTripper
	at atomic.Int64 // Unix time
}

func (c *certified) RoundTrip(r *http.Request) (*http.Response, error) {
	if time.Now().Unix() >= c.at.Load() {
		return nil, &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}}
	}
	return c.RoundTripper.RoundTrip(r)
}

// When the certificate of the webhook expires, the connector fails and says why, in the doctor as well; after it
// was renewed, what waited comes once and in order.
func TestHookCertificate(t *testing.T) {
	door := &connectorstest.Doorway{}
	gate := &certified{RoundTripper: door}
	inBubbleWith(t, telegramtest.Config{Hooks: gate}, Config{Hook: testHook}, func(t *testing.T, b *bubble) {
		door.Lead(b.conn)
		gate.at.Store(time.Now().Add(time.Hour).Unix())
		b.run()
		synctest.Wait()
		b.server.Say(7, 7, "in time")
		time.Sleep(time.Hour + time.Second)
		if h := b.conn.Health(); h.State != connectors.StateLive {
			t.Errorf("nothing waits: %+v", h)
		}
		b.server.Say(7, 7, "one")
		b.server.Say(7, 7, "two")
		b.server.Say(8, 8, "three")
		time.Sleep(hookEvery + time.Second)
		synctest.Wait()
		h := b.conn.Health()
		if h.State != connectors.StateFailing || !strings.Contains(h.Err, "certificate verify failed") || !strings.Contains(h.Err, "valid certificate") || !strings.Contains(h.Err, "(3 waiting)") {
			t.Errorf("health %+v", h)
		}
		w, err := b.conn.Webhook(t.Context())
		if err != nil || !w.Ours || w.Waiting != 3 || !strings.Contains(w.Failure, "certificate verify failed") {
			t.Errorf("the doctor sees %+v, %v", w, err)
		}
		gate.at.Store(time.Now().Add(24 * time.Hour).Unix())
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		got := b.sink.texts()
		if len(got) != 4 || got[0] != "in time" || slices.Index(got, "one") > slices.Index(got, "two") || !slices.Contains(got, "three") {
			t.Errorf("got %q", got)
		}
		if h := b.conn.Health(); h.State != connectors.StateLive {
			t.Errorf("after the renewal: %+v", h)
		}
	})
}
