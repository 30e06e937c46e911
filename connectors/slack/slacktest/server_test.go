package slacktest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"github.com/claybot/claybot/connectors/connectorstest"
)

// A client talks to a Server by hand.
type client struct {
	*Server
	pipe *connectorstest.Pipe
	http *http.Client
}

func inBubble(t *testing.T, cfg Config, test func(t *testing.T, c *client)) {
	t.Helper()
	if cfg.Manifest == "" {
		cfg.Manifest = manifest(t)
	}
	synctest.Test(t, func(t *testing.T) {
		c := &client{Server: New(cfg), pipe: connectorstest.NewPipe()}
		transport := &http.Transport{DialContext: c.pipe.Dial}
		c.http = &http.Client{Transport: transport}
		httpd := &http.Server{Handler: c, ReadHeaderTimeout: time.Minute}
		var serving sync.WaitGroup
		serving.Go(func() { _ = httpd.Serve(c.pipe) }) // ends with the listener
		defer func() {
			c.Close()
			transport.CloseIdleConnections()
			if err := httpd.Close(); err != nil {
				t.Error(err)
			}
			serving.Wait()
		}()
		test(t, c)
	})
}

// manifest is the manifest of claybot's own app.
func manifest(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../manifest.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// call makes one call and returns the status and the decoded answer.
func (c *client) call(t *testing.T, token, method string, args ...string) (*http.Response, map[string]any) {
	t.Helper()
	form := url.Values{}
	for i := 0; i < len(args); i += 2 {
		form.Set(args[i], args[i+1])
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://slack.test/api/"+method, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close() // read to its end
	var a map[string]any
	if err == nil && json.Unmarshal(body, &a) != nil {
		a = map[string]any{"error": string(body)}
	}
	if err != nil {
		a = map[string]any{"error": err.Error()}
	}
	return resp, a
}

func (c *client) bot(t *testing.T, method string, args ...string) map[string]any {
	t.Helper()
	_, a := c.call(t, "xoxb-test", method, args...)
	return a
}

// connect opens a socket and reads its hello.
func (c *client) connect(t *testing.T) (*websocket.Conn, map[string]any) {
	t.Helper()
	_, a := c.call(t, "xapp-test", "apps.connections.open")
	address, _ := a["url"].(string)
	conn, err := c.dial(t, address)
	if err != nil {
		t.Fatalf("dial %q: %v", address, err)
	}
	return conn, frameOf(t, conn)
}

func (c *client) dial(t *testing.T, address string) (*websocket.Conn, error) {
	t.Helper()
	d := websocket.Dialer{NetDialContext: c.pipe.Dial}
	conn, resp, err := d.DialContext(t.Context(), address, nil)
	if resp != nil {
		_ = resp.Body.Close() // in memory
	}
	return conn, err
}

func frameOf(t *testing.T, conn *websocket.Conn) map[string]any {
	t.Helper()
	var f map[string]any
	if err := conn.ReadJSON(&f); err != nil {
		t.Fatalf("read: %v", err)
	}
	return f
}

func ack(t *testing.T, conn *websocket.Conn, f map[string]any) {
	t.Helper()
	if err := conn.WriteJSON(map[string]any{"envelope_id": f["envelope_id"]}); err != nil {
		t.Error(err)
	}
	synctest.Wait()
}

func closeSocket(t *testing.T, conn *websocket.Conn) {
	t.Helper()
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	synctest.Wait()
}

// TestReplyToDeleted: a reply to a message that is gone stands in the channel; one to a
// tombstone, in its thread.
func TestReplyToDeleted(t *testing.T) {
	inBubble(t, Config{NoEcho: true}, func(t *testing.T, c *client) {
		alone, answered := c.Say("", "C1", "U1", "alone"), c.Say("", "C1", "U1", "answered")
		c.Write(Post{Channel: "C1", User: "U1", Text: "more", Thread: answered})
		for _, ts := range []string{alone, answered} {
			c.Delete("C1", ts)
			c.bot(t, "chat.postMessage", "channel", "C1", "text", "x", "thread_ts", ts)
		}
		posted := c.Posted("C1")
		if len(posted) != 2 || posted[0].Thread != "" || posted[1].Thread != answered {
			t.Errorf("posted %+v, want one message in the channel and one in the thread %s", posted, answered)
		}
	})
}

func TestRules(t *testing.T) {
	inBubble(t, Config{NoEcho: true}, func(t *testing.T, c *client) {
		root := c.Say("", "C1", "U1", "hello")
		reply := c.Write(Post{Channel: "C1", User: "U1", Text: "more", Thread: root})
		posted := c.bot(t, "chat.postMessage", "channel", "C1", "text", "mine")
		mine, _ := posted["ts"].(string)
		long := strings.Repeat("é", 4001)
		for _, r := range []struct {
			token, method string
			args          []string
			want          any
		}{
			{"", "auth.test", nil, "not_authed"},
			{"xoxb-wrong", "auth.test", nil, "invalid_auth"},
			{"xapp-test", "auth.test", nil, "not_allowed_token_type"},
			{"xoxb-test", "apps.connections.open", nil, "not_allowed_token_type"},
			{"xoxb-test", "no.such.method", nil, "unknown_method"},
			{"xoxb-test", "users.info", []string{"user", "U1"}, nil},
			{"xoxb-test", "chat.postMessage", []string{"channel", "C9", "text", "x"}, "channel_not_found"},
			{"xoxb-test", "chat.postMessage", []string{"channel", "C1", "text", " "}, "no_text"},
			{"xoxb-test", "chat.postMessage", []string{"channel", "C1", "text", strings.Repeat("x", 40_001)}, "msg_too_long"},
			{"xoxb-test", "chat.postMessage", []string{"channel", "C1", "text", long}, nil},
			{"xoxb-test", "chat.postMessage", []string{"channel", "C1", "text", "x", "thread_ts", "1.0"}, "thread_not_found"},
			{"xoxb-test", "chat.postMessage", []string{"channel", "C1", "text", "x", "thread_ts", reply}, "invalid_thread_ts"},
			{"xoxb-test", "chat.postMessage", []string{"channel", "C1", "text", "x", "metadata", "{}"}, "invalid_metadata_format"},
			{"xoxb-test", "chat.update", []string{"channel", "C1", "ts", root, "text", "x"}, "cant_update_message"},
			{"xoxb-test", "chat.update", []string{"channel", "C1", "ts", "1.0", "text", "x"}, "message_not_found"},
			{"xoxb-test", "chat.update", []string{"channel", "C1", "ts", mine, "text", long}, "msg_too_long"},
			{"xoxb-test", "conversations.replies", []string{"channel", "C1", "ts", "1.0"}, "thread_not_found"},
		} {
			if _, a := c.call(t, r.token, r.method, r.args...); a["error"] != r.want {
				t.Errorf("%s %.60v: %v, want %v", r.method, r.args, a["error"], r.want)
			}
		}
		for _, call := range c.Journal() {
			if call.Form.Has("token") {
				t.Error("the journal holds a token")
			}
		}
	})
}

func TestHistory(t *testing.T) {
	inBubble(t, Config{NoEcho: true, HistoryDelay: time.Second, HistoryItems: 2}, func(t *testing.T, c *client) {
		root := c.Say("", "C1", "U1", "one")
		c.bot(t, "chat.postMessage", "channel", "C1", "text", "two", "metadata", `{"event_type":"e","event_payload":{"id":"x"}}`)
		c.bot(t, "chat.postMessage", "channel", "C1", "text", "in the thread", "thread_ts", root)
		texts := func(method string, args ...string) string {
			var all []string
			for cursor, more := "", true; more; {
				a := c.bot(t, method, append(args, "channel", "C1", "cursor", cursor)...)
				page, _ := a["messages"].([]any)
				for _, m := range page {
					m, _ := m.(map[string]any)
					text, _ := m["text"].(string)
					if m["metadata"] != nil {
						text += "+"
					}
					all = append(all, text)
				}
				meta, _ := a["response_metadata"].(map[string]any)
				cursor, more = "", a["has_more"] == true
				if more {
					cursor, _ = meta["next_cursor"].(string)
				}
			}
			return strings.Join(all, ",")
		}
		if got := texts("conversations.history"); got != "" {
			t.Errorf("at once: %q", got)
		}
		time.Sleep(time.Second)
		c.Say("", "C1", "U1", "too new")
		for _, x := range []struct{ method, metadata, want string }{
			{"conversations.history", "0", "two,one"},
			{"conversations.history", "1", "two+,one"},
			{"conversations.replies", "1", "one,in the thread"},
		} {
			args := []string{"include_all_metadata", x.metadata}
			if x.method == "conversations.replies" {
				args = append(args, "ts", root)
			}
			if got := texts(x.method, args...); got != x.want {
				t.Errorf("%s: %q, want %q", x.method, got, x.want)
			}
		}
		if got := texts("conversations.history", "oldest", root, "inclusive", "0"); got != "two" {
			t.Errorf("after the first: %q", got)
		}
	})
}

func TestFaults(t *testing.T) {
	inBubble(t, Config{NoEcho: true, PostEvery: time.Second, Burst: 1}, func(t *testing.T, c *client) {
		c.Say("", "C1", "U1", "hello")
		post := func() (*http.Response, map[string]any) {
			return c.call(t, "xoxb-test", "chat.postMessage", "channel", "C1", "text", "x")
		}
		c.Fail("chat.postMessage", Fault{Error: "internal_error"}, Fault{Status: 503}, Fault{RetryAfter: 1500 * time.Millisecond}, Fault{Cut: true}, Fault{Skip: true})
		if _, a := post(); a["error"] != "internal_error" {
			t.Errorf("%v", a)
		}
		if r, _ := post(); r.StatusCode != 503 {
			t.Errorf("status %d", r.StatusCode)
		}
		if r, _ := post(); r.StatusCode != 429 || r.Header.Get("Retry-After") != "2" {
			t.Errorf("status %d, %v", r.StatusCode, r.Header)
		}
		if _, a := post(); a["error"] != io.ErrUnexpectedEOF.Error() {
			t.Errorf("cut: %v", a)
		}
		if r, _ := post(); r.StatusCode != 429 || r.Header.Get("Retry-After") != "1" {
			t.Errorf("over the rate: status %d, %v", r.StatusCode, r.Header)
		}
		time.Sleep(time.Second)
		if _, a := post(); a["ok"] != true {
			t.Errorf("%v", a)
		}
		if got := c.Posted("C1"); len(got) != 2 {
			t.Errorf("posted %+v", got)
		}
	})
}

func TestSocketLife(t *testing.T) {
	inBubble(t, Config{Redeliver: 2 * time.Second, Ping: time.Hour}, func(t *testing.T, c *client) {
		c.DM("U1", "before anybody listens")
		_, a := c.call(t, "xapp-test", "apps.connections.open")
		address, _ := a["url"].(string)
		one, err := c.dial(t, address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.dial(t, address); err == nil {
			t.Error("an address worked twice")
		}
		if f := frameOf(t, one); f["type"] != "hello" || f["num_connections"] != 1.0 {
			t.Errorf("%v", f)
		}
		first := frameOf(t, one)
		again := frameOf(t, one) // two seconds later
		if again["envelope_id"] != first["envelope_id"] || first["retry_attempt"] != nil || again["retry_attempt"] != 1.0 {
			t.Errorf("first %v\nagain %v", first, again)
		}
		ack(t, one, again)
		if acks := c.Acks(); len(acks) != 1 || acks[0].Attempts != 2 || acks[0].At.Sub(acks[0].Sent) != 2*time.Second {
			t.Errorf("%+v", acks)
		}

		c.Disconnect("warning", time.Second)
		if f := frameOf(t, one); f["type"] != "disconnect" || f["reason"] != "warning" {
			t.Errorf("%v", f)
		}
		c.DM("U1", "still on the old socket")
		late := frameOf(t, one)
		two, hello := c.connect(t)
		if hello["num_connections"] != 2.0 {
			t.Errorf("%v", hello)
		}
		ack(t, two, late)
		if c.Traffic().Stray != 1 || len(c.Unacked()) != 1 {
			t.Errorf("an acknowledgement on the wrong socket counts: %+v", c.Traffic())
		}
		if _, _, err := one.ReadMessage(); err == nil {
			t.Error("the old socket is open after its time")
		}
		if f := frameOf(t, two); f["envelope_id"] != late["envelope_id"] {
			t.Errorf("%v did not move to the other socket", f)
		}
		closeSocket(t, one)
		closeSocket(t, two)
		time.Sleep(time.Minute)
		if got := c.Traffic(); got.Most != 2 || got.Opened != 2 || got.Gap != time.Minute || got.Requeued != 2 {
			t.Errorf("%+v", got)
		}
	})
}

func TestEventsOfOnePost(t *testing.T) {
	inBubble(t, Config{Pick: Newest, Ping: time.Hour}, func(t *testing.T, c *client) {
		conn, _ := c.connect(t)
		ts := c.Mention("C1", "U1", "hi", true)
		c.bot(t, "chat.postMessage", "channel", "C1", "text", "mine")
		c.Slash("C1", "U1", "/claybot", "help")
		var got []string
		for range 4 {
			f := frameOf(t, conn)
			ack(t, conn, f)
			payload, _ := f["payload"].(map[string]any)
			event, _ := payload["event"].(map[string]any)
			word, _ := event["type"].(string)
			if event["ts"] == ts {
				word += "!"
			}
			if event["bot_id"] == "BBOT" {
				word += " of the bot"
			}
			got = append(got, word)
		}
		if s := strings.Join(got, ","); s != "app_mention!,message!,message of the bot," {
			t.Errorf("events %q", s)
		}
		if err := c.WaitAcked(t.Context()); err != nil {
			t.Error(err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.WaitPosted(short, "C1", func(m Message) bool { return m.Text == "never" }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waited for nothing: %v", err)
		}
		if m, err := c.WaitPosted(t.Context(), "C1", func(m Message) bool { return m.Text == "mine" }); err != nil || m.BotID != "BBOT" {
			t.Errorf("%+v, %v", m, err)
		}
		closeSocket(t, conn)
	})
}

func TestTooManySockets(t *testing.T) {
	inBubble(t, Config{Ping: time.Hour, PerMinute: map[string]int{"apps.connections.open": 0}}, func(t *testing.T, c *client) {
		for range maxSockets {
			conn, _ := c.connect(t)
			defer closeSocket(t, conn)
		}
		conn, f := c.connect(t)
		if f["type"] != "disconnect" || f["reason"] != "too_many_websockets" {
			t.Errorf("%v", f)
		}
		closeSocket(t, conn)
	})
}
