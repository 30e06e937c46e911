package webchat

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

func TestPostIsDurableAndNamed(t *testing.T) {
	m, srv := start(t)
	code, v := call(t, srv, "POST", "/messages", `{"id":"a1","text":"hello","conversation":"trip"}`)
	if code != http.StatusAccepted || v["messageId"] != "web/me/trip/a1" {
		t.Fatalf("post = %d %v", code, v)
	}
	code, v = call(t, srv, "POST", "/messages?conversation=trip", `{"text":"no id"}`)
	id, _ := v["messageId"].(string)
	if code != http.StatusAccepted || !strings.HasPrefix(id, "web/me/trip/") || len(id) < len("web/me/trip/")+20 {
		t.Fatalf("post without an id = %d %v", code, v)
	}
	got := m.posted()
	if len(got) != 2 || got[0].Text != "hello" || got[0].Type != claybot.MessageUser || got[0].At == 0 || got[0].From.UserID != "me" {
		t.Errorf("posted %+v", got)
	}
	if want := claybot.User("web", "trip", "me"); m.to[0] != want || m.to[1] != want {
		t.Errorf("to %v, want %v", m.to, want)
	}
}

func TestPostRefusals(t *testing.T) {
	m, srv := start(t)
	long := strings.Repeat("ä", textLimit+1)
	for _, tc := range []struct {
		name, body string
		code       int
		says       string
	}{
		{"empty", `{"text":" \n "}`, 400, "empty"},
		{"too long", `{"text":"` + long + `"}`, 400, "100001 characters"},
		{"huge", `{"text":"` + strings.Repeat("x", bodyLimit) + `"}`, 413, "1 MiB"},
		{"no object", `hello`, 400, "JSON object"},
		{"two objects", `{"text":"a"}{"text":"b"}`, 400, "JSON object"},
		{"unknown field", `{"text":"a","admin":true}`, 400, "JSON object"},
		{"id with separator", `{"text":"a","id":"../x"}`, 400, "letters"},
		{"conversation with separator", `{"text":"a","conversation":"a/b"}`, 400, "letters"},
		{"long conversation", `{"text":"a","conversation":"` + strings.Repeat("c", 65) + `"}`, 400, "64"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, v := call(t, srv, "POST", "/messages", tc.body)
			if code != tc.code || !strings.Contains(fmt.Sprint(v["error"]), tc.says) {
				t.Errorf("got %d %v, want %d with %q", code, v, tc.code, tc.says)
			}
		})
	}
	if got := m.posted(); len(got) != 0 {
		t.Errorf("refused messages were posted: %v", got)
	}
	if code, _ := call(t, srv, "POST", "/messages", `{"text":"`+strings.Repeat("ä", textLimit)+`"}`); code != 202 {
		t.Errorf("a text of the largest size = %d", code)
	}
}

func TestPostRepairsText(t *testing.T) {
	m, srv := start(t)
	if code, v := call(t, srv, "POST", "/messages", "{\"text\":\"a\xff\xfeb\\u0000c\"}"); code != 202 {
		t.Fatalf("post = %d %v", code, v)
	}
	if got := m.posted()[0].Text; got != "a\uFFFD\uFFFDbc" {
		t.Errorf("text = %q", got)
	}
}

func TestCommands(t *testing.T) {
	for _, tc := range []struct {
		text, shown string
		typ         claybot.MessageType
		command     string
	}{
		{"/new plan my week", "/new plan my week", claybot.MessageReset, ""},
		{"/stop", "/stop", claybot.MessageCancel, ""},
		{"/status", "/status", claybot.MessageCommand, "status"},
		{"/etc/passwd is a file", "/etc/passwd is a file", claybot.MessageUser, ""},
		{"/help@otherbot", "/help", claybot.MessageCommand, "help"},
	} {
		m, srv := start(t)
		if code, v := call(t, srv, "POST", "/messages", `{"text":"`+tc.text+`"}`); code != 202 {
			t.Fatalf("%s: %d %v", tc.text, code, v)
		}
		got := m.posted()[0]
		if got.Type != tc.typ || got.Command != tc.command || userView(got).Text != tc.shown {
			t.Errorf("%s became %s %q, shown as %q", tc.text, got.Type, got.Command, userView(got).Text)
		}
	}
}

func TestStoreErrorsAreSaidInWords(t *testing.T) {
	m, srv := start(t)
	for _, tc := range []struct {
		err  error
		code string
	}{
		{errors.New("secret detail"), "not_stored"},
		{fmt.Errorf("post: %w", storage.ErrFull), "disk_full"},
	} {
		m.mu.Lock()
		m.refuse = tc.err
		m.mu.Unlock()
		code, v := call(t, srv, "POST", "/messages", `{"text":"a"}`)
		if s := fmt.Sprint(v); code != 503 || !strings.Contains(s, tc.code) || strings.Contains(s, "secret detail") {
			t.Errorf("%v: got %d %v", tc.err, code, v)
		}
	}
}

func TestNobodyIsServedBeforeRunOrWithoutLogin(t *testing.T) {
	m := &memory{chat: New(Config{Name: "terminal"})}
	srv := httptest.NewServer(m.chat.Handler(m, m, login))
	defer srv.Close()
	if code, v := call(t, srv, "POST", "/messages", `{"text":"a"}`); code != 503 {
		t.Errorf("post before Run = %d %v", code, v)
	}
	if code, v := call(t, srv, "GET", "/stream", ""); code != 503 {
		t.Errorf("stream before Run = %d %v", code, v)
	}
	if code, v := call(t, srv, "GET", "/transcript", ""); code != 503 || !strings.Contains(fmt.Sprint(v), "not_ready") {
		t.Errorf("transcript before Run = %d %v", code, v)
	}
	for _, path := range []string{"/stream", "/transcript"} {
		req := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
		w := httptest.NewRecorder()
		m.chat.Handler(m, m, login).ServeHTTP(w, req)
		if w.Code != http.StatusUnauthorized {
			t.Errorf("%s without login = %d", path, w.Code)
		}
	}
}

func TestHeadDoesNotStayOpen(t *testing.T) {
	_, srv := start(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodHead, srv.URL+"/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Login", "me")
	for range 2 { // the second one uses the same connection
		resp, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("HEAD = %d, %v", resp.StatusCode, err)
		}
	}
}

func TestPostsOfOneConversationComeOneAfterAnother(t *testing.T) {
	m, srv := start(t)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if code, v := call(t, srv, "POST", "/messages", fmt.Sprintf(`{"id":"m%d","text":"x"}`, i)); code != 202 {
				t.Errorf("post = %d %v", code, v)
			}
		})
	}
	wg.Wait()
	if m.both || len(m.posted()) != 20 {
		t.Errorf("at once: %v; posted %d of 20", m.both, len(m.posted()))
	}
}

func TestRunWaitsForPosts(t *testing.T) {
	m := &memory{chat: New(Config{}), hold: make(chan struct{}), entered: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.chat.Run(ctx, m) }()
	waitLive(t, m.chat)
	srv := httptest.NewServer(m.chat.Handler(m, m, login))
	defer srv.Close()
	answered := make(chan int, 1)
	go func() {
		code, _ := call(t, srv, "POST", "/messages", `{"text":"a"}`)
		answered <- code
	}()
	<-m.entered
	cancel()
	select {
	case <-ended:
		t.Error("Run ended while a post was under way")
	default:
	}
	close(m.hold)
	if code := <-answered; code != 202 {
		t.Errorf("post during shutdown = %d", code)
	}
	<-ended
	if code, _ := call(t, srv, "POST", "/messages", `{"text":"b"}`); code != 503 {
		t.Errorf("post after Run = %d", code)
	}
}

func TestTranscript(t *testing.T) {
	m, srv := start(t)
	code, v := call(t, srv, "GET", "/transcript", "")
	if s := fmt.Sprint(v); code != 200 || s != "map[after:0 entries:[] more:false]" {
		t.Errorf("empty transcript = %d %v", code, s)
	}
	call(t, srv, "POST", "/messages", `{"id":"a","text":"<b>hi</b>"}`)
	m.say(t, me, "r1", "**bold** <script>")
	other := claybot.User("web", "main", "somebody-else")
	m.say(t, other, "r2", "not for me")
	code, v = call(t, srv, "GET", "/transcript?limit=10", "")
	got := fmt.Sprint(v)
	for _, want := range []string{"<b>hi</b>", "<p><strong>bold</strong> &lt;script&gt;</p>", "message:answered-by-r1", "after:2"} {
		if !strings.Contains(got, want) {
			t.Errorf("transcript %d %s lacks %s", code, got, want)
		}
	}
	if strings.Contains(got, "not for me") {
		t.Errorf("another person's message is shown: %s", got)
	}
	for _, q := range []string{"?limit=x", "?limit=0", "?conversation=a%2Fb"} {
		if code, v := call(t, srv, "GET", "/transcript"+q, ""); code != 400 {
			t.Errorf("transcript%s = %d %v", q, code, v)
		}
	}
}

// A page that shows nothing of claybot, because people wrote much, still knows
// where to go on.
func TestTranscriptGoesOnAtTheEndOfTheOutbox(t *testing.T) {
	m, srv := start(t)
	m.say(t, me, "r1", "an answer of long ago")
	m.mu.Lock()
	m.outbox, m.posts = append(m.outbox, claybot.Outgoing{N: 2, Route: me.Route()}), nil
	m.fixed = []storage.Entry{{Message: &claybot.AgentMessage{ID: "m1", Text: "waits"}}}
	m.mu.Unlock()
	if code, v := call(t, srv, "GET", "/transcript?limit=1", ""); code != 200 || fmt.Sprint(v["after"]) != "2" {
		t.Errorf("transcript = %d %v", code, v)
	}
	// What is said between the two reads comes by the stream, and only there.
	m.mu.Lock()
	m.fixed = append(m.fixed, storage.Entry{Outgoing: &claybot.Outgoing{N: 3, Text: "too new", Route: me.Route()}})
	m.mu.Unlock()
	if _, v := call(t, srv, "GET", "/transcript", ""); fmt.Sprint(v["after"]) != "2" || strings.Contains(fmt.Sprint(v), "too new") {
		t.Errorf("transcript = %v", v)
	}
}

func TestHealthIsThatOfTheDoor(t *testing.T) {
	door := connectors.Health{State: connectors.StateFailing, Err: "the port is taken"}
	c := New(Config{Door: func() connectors.Health { return door }})
	if h := c.Health(); h.State != connectors.StateStarting {
		t.Errorf("before Run: %+v", h)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx, &memory{}) }()
	for c.pulse.Health().State != connectors.StateLive {
		runtime.Gosched()
	}
	if h := c.Health(); h != door {
		t.Errorf("behind a closed door: %+v", h)
	}
	cancel()
	<-ended
	door.State = connectors.StateLive
	if h := c.Health(); h.State != connectors.StateLive || h.Err != "" {
		t.Errorf("behind an open door: %+v", h)
	}
}
