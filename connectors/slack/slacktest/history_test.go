package slacktest

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"
)

// History refuses what Slack refuses.
func TestHistoryRefuses(t *testing.T) {
	inBubble(t, Config{NoEcho: true}, func(t *testing.T, c *client) {
		ts := c.Say("", "C1", "U1", "one")
		c.DM("U1", "hello")
		c.Say("", "C2", "U1", "elsewhere")
		c.Leave("C2", true)
		c.Lack("im:history", true)
		for _, tt := range []struct {
			want string
			args []string
		}{
			{"", []string{"channel", "C1", "limit", "999", "oldest", "0", "latest", ts, "inclusive", "1"}},
			{"invalid_limit", []string{"channel", "C1", "limit", "1000"}},
			{"invalid_limit", []string{"channel", "C1", "limit", "0"}},
			{"invalid_limit", []string{"channel", "C1", "limit", "few"}},
			{"invalid_ts_oldest", []string{"channel", "C1", "oldest", "yesterday"}},
			{"invalid_ts_latest", []string{"channel", "C1", "latest", "-1"}},
			{"invalid_cursor", []string{"channel", "C1", "cursor", "2"}},
			{"channel_not_found", []string{"channel", "C9"}},
			{"not_in_channel", []string{"channel", "C2"}},
			{"missing_scope", []string{"channel", "DU1"}},
		} {
			a := c.bot(t, "conversations.history", tt.args...)
			if code, _ := a["error"].(string); code != tt.want {
				t.Errorf("%q: %v, want %q", tt.args, a, tt.want)
			}
			if tt.want == "missing_scope" && a["needed"] != "im:history" {
				t.Errorf("%v", a)
			}
		}
	})
}

// A page that was begun goes on at its place while people write, and the first
// message of a thread tells of its replies.
func TestHistoryPages(t *testing.T) {
	inBubble(t, Config{NoEcho: true, HistoryItems: 2}, func(t *testing.T, c *client) {
		root := c.Say("", "C1", "U1", "1")
		c.Say("", "C1", "U1", "2")
		c.Say("", "C1", "U1", "3")
		reply := c.Write(Post{Channel: "C1", User: "U1", Text: "reply", Thread: root})
		c.Write(Post{Channel: "C1", User: "U1", Text: "to all", Thread: root, Subtype: "thread_broadcast", UserTeam: "T9"})
		var texts []string
		var last map[string]any
		for cursor, pages := "", 0; pages < 5; pages++ {
			a := c.bot(t, "conversations.history", "channel", "C1", "cursor", cursor)
			c.Say("", "C1", "U1", "new")
			messages, _ := a["messages"].([]any)
			for _, m := range messages {
				last, _ = m.(map[string]any)
				text, _ := last["text"].(string)
				texts = append(texts, text)
				if text == "to all" && (last["subtype"] != "thread_broadcast" || last["user_team"] != "T9" || last["thread_ts"] != root) {
					t.Errorf("%v", last)
				}
			}
			meta, _ := a["response_metadata"].(map[string]any)
			cursor, _ = meta["next_cursor"].(string)
			if cursor == "" {
				break
			}
		}
		if !slices.Equal(texts, []string{"to all", "3", "2", "1"}) {
			t.Errorf("got %q", texts)
		}
		if latest, _ := last["latest_reply"].(string); last["reply_count"] != 2.0 || latest <= reply || last["thread_ts"] != root {
			t.Errorf("the first message: %v", last)
		}
	})
}

// History has limits of its own for each method.
func TestHistoryRate(t *testing.T) {
	inBubble(t, Config{NoEcho: true, PerMinute: map[string]int{"conversations.history": 1, "conversations.replies": 1}}, func(t *testing.T, c *client) {
		ts := c.Say("", "C1", "U1", "one")
		status := func(method string) int {
			args := []string{"channel", "C1"}
			if method == "conversations.replies" {
				args = append(args, "ts", ts)
			}
			resp, _ := c.call(t, "xoxb-test", method, args...)
			if resp.StatusCode == http.StatusTooManyRequests && resp.Header.Get("Retry-After") != "60" {
				t.Errorf("retry after %q", resp.Header.Get("Retry-After"))
			}
			return resp.StatusCode
		}
		if a, b, d := status("conversations.history"), status("conversations.history"), status("conversations.replies"); a != 200 || b != 429 || d != 200 {
			t.Errorf("%d %d %d", a, b, d)
		}
		time.Sleep(time.Minute)
		if a := status("conversations.history"); a != 200 {
			t.Errorf("a minute later: %d", a)
		}
	})
}

// Only what happens where the bot is a member is delivered, and only for a while.
func TestSubscriptionsAndForget(t *testing.T) {
	inBubble(t, Config{Forget: 5 * time.Minute}, func(t *testing.T, c *client) {
		c.DM("U1", "lost")
		time.Sleep(5 * time.Minute)
		c.DM("U1", "kept")
		c.Leave("C1", true)
		c.Say("", "C1", "U1", "no member")
		c.Leave("C1", false)
		c.Mention("C1", "U1", "twice", true)
		time.Sleep(time.Minute)
		conn, _ := c.connect(t)
		defer conn.Close()
		var texts []string
		for range 5 {
			f := frameOf(t, conn)
			payload, _ := f["payload"].(map[string]any)
			e, _ := payload["event"].(map[string]any)
			text, _ := e["text"].(string)
			texts = append(texts, text)
		}
		if !slices.Equal(texts, []string{"kept", "", "", "<@UBOT> twice", "<@UBOT> twice"}) { // without a text: the bot left and joined
			t.Errorf("got %q", texts)
		}
		if n := c.Traffic().Delivered; n != 5 {
			t.Errorf("%d envelopes delivered", n)
		}
	})
}

// While Slack is down nothing is answered.
func TestDown(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, c *client) {
		conn, _ := c.connect(t)
		defer conn.Close()
		c.Down(true)
		if _, _, err := conn.ReadMessage(); err == nil {
			t.Error("the socket is open")
		}
		if resp, _ := c.call(t, "xapp-test", "apps.connections.open"); resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("status %d", resp.StatusCode)
		}
		c.Down(false)
		again, _ := c.connect(t)
		_ = again.Close()
	})
}

// A list has what the types and scopes allow, page by page, at the pace of its tier.
func TestConversationsList(t *testing.T) {
	inBubble(t, Config{NoEcho: true}, func(t *testing.T, c *client) {
		for _, user := range []string{"U1", "U2", "U3"} {
			c.DM(user, "hello")
		}
		c.Say("", "C1", "U1", "one")
		c.Lack("channels:read", true)
		var ids []string
		cursor := ""
		for range 4 {
			a := c.bot(t, "conversations.list", "types", "im", "limit", "2", "cursor", cursor)
			list, _ := a["channels"].([]any)
			for _, x := range list {
				if x, ok := x.(map[string]any); ok {
					ids = append(ids, fmt.Sprint(x["id"], " ", x["user"]))
				}
			}
			meta, _ := a["response_metadata"].(map[string]any)
			if cursor, _ = meta["next_cursor"].(string); cursor == "" {
				break
			}
		}
		if want := []string{"DU1 U1", "DU2 U2", "DU3 U3"}; !slices.Equal(ids, want) {
			t.Errorf("got %q, want %q", ids, want)
		}
		for _, tt := range []struct {
			want string
			args []string
		}{
			{"invalid_limit", []string{"types", "im", "limit", "1000"}},
			{"invalid_cursor", []string{"types", "im", "cursor", "2"}},
			{"invalid_types", []string{"types", "dm"}},
			{"missing_scope", nil}, // public channels
		} {
			if a := c.bot(t, "conversations.list", tt.args...); a["error"] != tt.want {
				t.Errorf("%q: %v, want %q", tt.args, a, tt.want)
			}
		}
		for range tier2 {
			c.bot(t, "conversations.list", "types", "im")
		}
		if last := c.Calls("conversations.list"); last[len(last)-1].Answer != "ratelimited" {
			t.Errorf("after %d calls: %+v", len(last), last[len(last)-1])
		}
	})
}
