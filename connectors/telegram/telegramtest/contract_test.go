package telegramtest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A bot that names no kinds of updates gets all but three.
func TestKindsOfUpdates(t *testing.T) {
	s := New(Config{})
	defer s.Close()
	kinds := []string{"message", "edited_message", "callback_query", "my_chat_member", "chat_member", "message_reaction"}
	for _, tt := range []struct {
		asked string
		want  []string
	}{
		{`{}`, []string{"message", "edited_message", "callback_query", "my_chat_member"}},
		{`{"allowed_updates":["chat_member"]}`, []string{"chat_member"}},
		{`{}`, []string{"chat_member"}}, // it is kept
		{`{"allowed_updates":[]}`, []string{"message", "edited_message", "callback_query", "my_chat_member"}},
	} {
		if status, a := post(t, s, "getUpdates", tt.asked); status != http.StatusOK {
			t.Fatalf("%s: %v", tt.asked, a)
		}
		var got []string
		for _, kind := range kinds {
			if s.Deliver(kind, map[string]any{}) != 0 {
				got = append(got, kind)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.asked, got, tt.want)
		}
	}
	post(t, s, "getUpdates", `{"allowed_updates":["reaction"]}`)
	if got := s.Strange(); !slices.Equal(got, []string{"unknown kind of update reaction"}) {
		t.Errorf("strange: %q", got)
	}
}

// In groups a bot in privacy mode sees what is for it.
func TestPrivacyMode(t *testing.T) {
	const group = -1000000000001
	s := New(Config{})
	defer s.Close()
	s.Say(group, 7, "/start")
	_, a := post(t, s, "sendMessage", fmt.Sprintf(`{"chat_id":%d,"text":"mine"}`, group))
	result, _ := a["result"].(map[string]any)
	mine, _ := result["message_id"].(float64)
	_, other := s.Write(Incoming{ChatID: group, UserID: 8, Text: "of another"})
	for _, tt := range []struct {
		name string
		in   Incoming
		want bool
	}{
		{"talk", Incoming{Text: "good morning"}, false},
		{"photo", Incoming{Fields: map[string]any{"photo": []any{}}}, false},
		{"mention", Incoming{Text: "what now, @claybot"}, true},
		{"mention in a caption", Incoming{Caption: "@claybot look", Fields: map[string]any{"photo": []any{}}}, true},
		{"command", Incoming{Text: "/help"}, true},
		{"reply to the bot", Incoming{Text: "and then?", ReplyTo: int64(mine)}, true},
		{"reply to another", Incoming{Text: "and then?", ReplyTo: other}, false},
		{"by way of the bot", Incoming{Text: "cat", Fields: map[string]any{"via_bot": map[string]any{"id": 1234567}}}, true},
		{"service", Incoming{Fields: map[string]any{"new_chat_members": []any{}}}, true},
	} {
		tt.in.ChatID, tt.in.UserID = group, 7
		if update, _ := s.Write(tt.in); (update != 0) != tt.want {
			t.Errorf("%s: update %d, want one: %v", tt.name, update, tt.want)
		}
	}
	s.Promote(group)
	if s.Say(group, 7, "good morning") == 0 {
		t.Error("an administrator does not see all")
	}
	if _, a := post(t, s, "getMe", `{}`); strings.Contains(fmt.Sprint(a), "can_read_all_group_messages:true") {
		t.Errorf("privacy mode is off: %v", a)
	}
}

func TestUnknownParameters(t *testing.T) {
	s := New(Config{})
	defer s.Close()
	s.Say(7, 7, "hi")
	if status, a := post(t, s, "sendMessage", `{"chat_id":7,"text":"x","disable_web_page_preview":true}`); status != http.StatusBadRequest {
		t.Errorf("%d %v", status, a)
	}
	if status, a := post(t, s, "sendMessage", `{"chat_id":7,"text":"x","link_preview_options":{"disabled":true}}`); status != http.StatusBadRequest {
		t.Errorf("%d %v", status, a)
	}
	if got := s.Strange(); !slices.Equal(got, []string{"unknown parameter disable_web_page_preview of sendmessage", "unknown field disabled of link_preview_options"}) || len(s.Sent(7)) != 0 {
		t.Errorf("strange: %q", got)
	}
}

// A chat takes one message a second and a burst, a group 20 a minute, the bot 30 a second.
func TestLimits(t *testing.T) {
	const group = -1000000000001
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{SeesAll: true})
		defer s.Close()
		for i := range int64(40) {
			s.Say(100+i, 100+i, "hi")
		}
		s.Say(group, 7, "hi")
		send := func(chat int64) (status, after int) {
			status, a := post(t, s, "sendMessage", fmt.Sprintf(`{"chat_id":%d,"text":"x"}`, chat))
			if p, ok := a["parameters"].(map[string]any); ok {
				n, _ := p["retry_after"].(float64)
				after = int(n)
			}
			return status, after
		}
		for i := range int64(allSecond) {
			if status, _ := send(100 + i); status != http.StatusOK {
				t.Fatalf("chat %d: %d", i, status)
			}
		}
		if status, after := send(100 + allSecond); status != http.StatusTooManyRequests || after != 1 {
			t.Errorf("above the rate of the bot: %d after %d", status, after)
		}
		time.Sleep(2 * time.Second)
		for i := range chatBurst {
			if status, _ := send(101); status != http.StatusOK {
				t.Fatalf("burst %d: %d", i, status)
			}
		}
		if status, after := send(101); status != http.StatusTooManyRequests || after != 1 {
			t.Errorf("above the burst of a chat: %d after %d", status, after)
		}
		time.Sleep(time.Minute)
		for i := range groupMinute {
			if status, _ := send(group); status != http.StatusOK {
				t.Fatalf("group %d: %d", i, status)
			}
			time.Sleep(2 * time.Second)
		}
		if status, after := send(group); status != http.StatusTooManyRequests || after != 20 {
			t.Errorf("above the rate of a group: %d after %d", status, after)
		}
		if s.Violations() != 0 {
			t.Errorf("%d violations", s.Violations())
		}
	})
}

// A receiver takes updates from a webhook.
type receiver struct {
	mu     sync.Mutex
	got    []string
	status int
	after  string
	secret []string
}

func (r *receiver) RoundTrip(req *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got, r.secret = append(r.got, string(b)), append(r.secret, req.Header.Get(SecretHeader))
	w := httptest.NewRecorder()
	if r.after != "" {
		w.Header().Set("Retry-After", r.after)
	}
	w.WriteHeader(r.status)
	return w.Result(), nil
}

// set changes the answer and forgets what came.
func (r *receiver) set(status int, after string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status, r.after, r.got = status, after, nil
}

func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.got)
}

// A webhook gets each update with its secret until it takes it, in order; then the bot may
// poll again.
func TestWebhook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{status: http.StatusOK}
		s := New(Config{Hooks: r})
		defer s.Close()
		for _, bad := range []string{
			`{"url":"http://claybot.example/hook"}`, `{"url":"https://claybot.example:8080/hook"}`, `{"url":"hook"}`,
			`{"url":"https://claybot.example/hook","secret_token":"no spaces"}`,
			`{"url":"https://claybot.example/hook","secret_token":"` + strings.Repeat("x", 257) + `"}`,
			`{"url":"https://claybot.example/hook","secret":"x"}`,
		} {
			if status, _ := post(t, s, "setWebhook", bad); status != http.StatusBadRequest {
				t.Errorf("%.60s: %d", bad, status)
			}
		}
		s.Say(7, 7, "before")
		if status, a := post(t, s, "setWebhook", `{"url":"https://claybot.example/hook","secret_token":"s3cret","allowed_updates":["message"]}`); status != http.StatusOK {
			t.Fatal(a)
		}
		synctest.Wait()
		s.Say(7, 7, "after")
		synctest.Wait()
		if r.count() != 2 || !strings.Contains(r.got[0], "before") || !strings.Contains(r.got[1], "after") || r.secret[0] != "s3cret" || len(s.Pending()) != 0 {
			t.Errorf("got %q with %q, waiting %v", r.got, r.secret, s.Pending())
		}
		if status, a := post(t, s, "getUpdates", `{}`); status != http.StatusConflict {
			t.Errorf("poll beside a webhook: %d %v", status, a)
		}
		r.set(http.StatusInternalServerError, "")
		s.Say(7, 7, "not taken")
		time.Sleep(10 * time.Second) // at 0, 1, 3, 7 s
		if n := r.count(); n != 4 || len(s.Pending()) != 1 {
			t.Errorf("%d deliveries in 10 s", n)
		}
		if _, a := post(t, s, "getWebhookInfo", `{}`); !strings.Contains(fmt.Sprint(a), "500") {
			t.Errorf("info %v", a)
		}
		r.set(http.StatusServiceUnavailable, "30")
		time.Sleep(10 * time.Second) // asked once, told to wait
		r.set(http.StatusOK, "")
		time.Sleep(15 * time.Second)
		if n := r.count(); n != 0 {
			t.Errorf("%d deliveries within the time that it asked for", n)
		}
		time.Sleep(30 * time.Second)
		if r.count() != 1 || len(s.Pending()) != 0 {
			t.Errorf("got %q", r.got)
		}
		post(t, s, "deleteWebhook", `{}`)
		s.Say(7, 7, "polled")
		if status, a := post(t, s, "getUpdates", `{}`); status != http.StatusOK || !strings.Contains(fmt.Sprint(a), "polled") || r.count() != 1 {
			t.Errorf("%d %v", status, a)
		}
	})
}
