package telegram

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
	"github.com/claybot/claybot/storage"
)

const testHook = "https://claybot.test/hooks/telegram"

// hookBubble is a bubble with a webhook.
func hookBubble(t *testing.T, test func(t *testing.T, b *bubble, door *doorway)) {
	t.Helper()
	door := &doorway{}
	inBubbleWith(t, telegramtest.Config{Hooks: door}, Config{Hook: testHook}, func(t *testing.T, b *bubble) {
		door.to.Store(b.conn)
		test(t, b, door)
		if secret := b.conn.hookSecret(); strings.Contains(b.logs.String(), secret) {
			t.Error("the secret of the webhook is in the log")
		}
	})
}

func TestHookRequests(t *testing.T) {
	hookBubble(t, func(t *testing.T, b *bubble, _ *doorway) {
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
	hookBubble(t, func(t *testing.T, b *bubble, door *doorway) {
		b.run()
		synctest.Wait()
		b.server.SetWebhook("https://other.test/hook")
		b.server.Say(7, 7, "for claybot")
		time.Sleep(hookEvery)
		synctest.Wait()
		if got := b.sink.texts(); !slices.Equal(got, []string{"for claybot"}) {
			t.Errorf("got %q", got)
		}
		door.to.Store(nil)
		b.server.Say(7, 7, "no answer")
		time.Sleep(hookEvery + time.Second)
		synctest.Wait()
		if h := b.conn.Health(); h.State == connectors.StateLive || !strings.Contains(h.Err, "connection failed") || !strings.Contains(h.Err, testHook) {
			t.Errorf("health %+v", h)
		}
		door.to.Store(b.conn)
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

// From polls to a webhook and back, while people write: each message comes once, in order.
func TestPollsAndHook(t *testing.T) {
	door := &doorway{}
	inBubbleWith(t, telegramtest.Config{Hooks: door}, Config{}, func(t *testing.T, b *bubble) {
		var want []string
		polling, cfg := b.conn, b.conn.cfg
		cfg.Hook = testHook
		listening := New(cfg)
		door.to.Store(listening)
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
