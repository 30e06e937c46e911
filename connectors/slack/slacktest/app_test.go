package slacktest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// small is a manifest with one event and one scope more than that.
const small = `
oauth_config:
  scopes:
    bot:
      - chat:write
      - im:history
settings:
  event_subscriptions:
    bot_events:
      - message.im
  socket_mode_enabled: true
`

func TestManifest(t *testing.T) {
	a, err := readManifest(manifest(t))
	if err != nil || !a.scopes["im:read"] || !a.events["message.mpim"] || !a.commands["/claybot"] || !a.interactive || !a.sockets || len(a.scopes) < 10 || len(a.commands) != 1 {
		t.Errorf("%+v, %v", a, err)
	}
	for _, tt := range []struct{ old, fresh, want string }{
		{"im:history", "im:read", "needs the scope im:history"},
		{"- message.im", "- message.all", "not known"},
		{"settings:", "features:\n  slash_commands:\n    - command: /a\nsettings:", "shortcuts need the scope commands"},
	} {
		if _, err := readManifest(strings.Replace(small, tt.old, tt.fresh, 1)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.fresh, err, tt.want)
		}
	}
}

// Of each kind of conversation the app gets what it subscribed to, has a scope for and is a
// member of.
func TestEventsOfTheApp(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, c *client) {
		c.Open("C2", Private)
		c.Open("C3", Group)
		heard := func() (kinds []string) {
			before := len(c.Unacked())
			for _, channel := range []string{"C1", "C2", "C3", "DU1"} {
				c.Say("", channel, "U1", "hello")
				if n := len(c.Unacked()); n > before {
					kinds, before = append(kinds, c.kind(channel)), n
				}
			}
			return kinds
		}
		if got := heard(); !slices.Equal(got, []string{Public, Private, Group, Direct}) {
			t.Errorf("heard %q", got)
		}
		c.Lack("groups:history", true)
		c.Leave("C1", true)
		if got := heard(); !slices.Equal(got, []string{Group, Direct}) {
			t.Errorf("without a scope and a membership: %q", got)
		}
	})
	inBubble(t, Config{Manifest: small}, func(t *testing.T, c *client) {
		c.Mention("C1", "U1", "hello", false)
		c.Slash("C1", "U1", "/claybot", "help")
		c.DM("U1", "hello")
		if n := len(c.Unacked()); n != 1 {
			t.Errorf("%d envelopes, want that of the direct message", n)
		}
	})
}

// Calls have scopes, tiers and documented arguments only.
func TestCallsOfTheApp(t *testing.T) {
	inBubble(t, Config{Manifest: small}, func(t *testing.T, c *client) {
		c.DM("U1", "hello")
		resp, _ := c.call(t, "xoxb-test", "auth.test")
		if got := resp.Header.Get("X-Oauth-Scopes"); got != "chat:write,im:history" {
			t.Errorf("scopes %q", got)
		}
		if a := c.bot(t, "users.info", "user", "U1"); a["error"] != "missing_scope" || a["needed"] != "users:read" || a["provided"] != "chat:write,im:history" {
			t.Errorf("%v", a)
		}
		for _, tt := range []struct{ method, arg, want string }{
			{"chat.postMessage", "unfurl", "invalid_arguments"},
			{"chat.unfold", "channel", "unknown_method"},
		} {
			if a := c.bot(t, tt.method, "channel", "DU1", "text", "hello", tt.arg, "DU1"); a["error"] != tt.want {
				t.Errorf("%s: %v", tt.method, a)
			}
		}
		if got := c.Strange(); !slices.Equal(got, []string{"unknown argument unfurl of chat.postMessage", "unknown method chat.unfold"}) {
			t.Errorf("strange: %q", got)
		}
		a := c.bot(t, "chat.postMessage", "channel", "DU1", "text", "mine")
		ts, _ := a["ts"].(string)
		edit := func() (int, string) {
			resp, _ := c.call(t, "xoxb-test", "chat.update", "channel", "DU1", "ts", ts, "text", "more")
			return resp.StatusCode, resp.Header.Get("Retry-After")
		}
		for i := range tier3 {
			if status, _ := edit(); status != http.StatusOK {
				t.Fatalf("edit %d: %d", i, status)
			}
		}
		time.Sleep(20 * time.Second)
		if status, after := edit(); status != http.StatusTooManyRequests || after != "40" {
			t.Errorf("above the tier: %d, retry after %q", status, after)
		}
		time.Sleep(40 * time.Second)
		if status, _ := edit(); status != http.StatusOK {
			t.Errorf("a minute later: %d", status)
		}
	})
}

// Others' private channels do not exist for the bot, archived ones take nothing.
func TestMembership(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, c *client) {
		for channel, kind := range map[string]string{"C1": Public, "C2": Private, "C3": Public, "C4": Public} {
			c.Open(channel, kind)
			c.Leave(channel, channel < "C3")
		}
		c.Archive("C3")
		for channel, want := range map[string]any{"C1": "not_in_channel", "C2": "channel_not_found", "C3": "is_archived", "C4": nil} {
			if a := c.bot(t, "chat.postMessage", "channel", channel, "text", "hello"); a["error"] != want {
				t.Errorf("%s: %v, want %v", channel, a, want)
			}
		}
	})
}

func TestStreams(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, c *client) {
		root := c.Say("", "C1", "U1", "hello")
		start := func(args ...string) map[string]any {
			return c.bot(t, "chat.startStream", append([]string{"channel", "C1", "thread_ts", root}, args...)...)
		}
		if a := start(); a["error"] != "missing_recipient_user_id" {
			t.Errorf("without a recipient: %v", a)
		}
		streams := make(map[string]string)
		for _, name := range []string{"whole", "old", "halted"} {
			a := start("recipient_user_id", "U1", "recipient_team_id", "T1", "markdown_text", "a")
			streams[name], _ = a["ts"].(string)
		}
		add := func(name, text string) any {
			return c.bot(t, "chat.appendStream", "channel", "C1", "ts", streams[name], "markdown_text", text)["error"]
		}
		c.Halt("C1", streams["halted"])
		for name, want := range map[string]any{"whole": nil, "old": nil, "halted": "stopped_by_user"} {
			if got := add(name, "b"); got != want {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
		if got := add("whole", strings.Repeat("x", maxStreamChars+1)); got != "msg_too_long" {
			t.Errorf("too long: %v", got)
		}
		if a := c.bot(t, "chat.update", "channel", "C1", "ts", streams["whole"], "text", "z"); a["error"] != "streaming_state_conflict" {
			t.Errorf("edit: %v", a)
		}
		if a := c.bot(t, "chat.stopStream", "channel", "C1", "ts", streams["whole"], "markdown_text", "c"); a["ok"] != true {
			t.Errorf("stop: %v", a)
		}
		time.Sleep(streamLife)
		for _, name := range []string{"whole", "old"} {
			if got := add(name, "d"); got != "message_not_in_streaming_state" {
				t.Errorf("%s: %v", name, got)
			}
		}
		if a := c.bot(t, "chat.update", "channel", "C1", "ts", streams["old"], "text", "whole"); a["ok"] != true {
			t.Errorf("edit of an ended stream: %v", a)
		}
		var texts []string
		for _, m := range c.Posted("C1") {
			texts = append(texts, fmt.Sprint(m.Text, m.Streaming))
		}
		if !slices.Equal(texts, []string{"abcfalse", "wholefalse", "afalse"}) {
			t.Errorf("posted %q", texts)
		}
	})
}

// An address takes five messages in half an hour, also where the bot is no member.
func TestResponseURL(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, c *client) {
		conn, _ := c.connect(t)
		defer closeSocket(t, conn)
		c.Leave("C1", true)
		ack(t, conn, frameOf(t, conn))
		address := func() string {
			c.Slash("C1", "U1", "/claybot", "help")
			f := frameOf(t, conn)
			ack(t, conn, f)
			payload, _ := f["payload"].(map[string]any)
			text, _ := payload["response_url"].(string)
			return text
		}
		respond := func(to, body string) string {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := c.http.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			b, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			var a struct{ Error string }
			if resp.StatusCode != http.StatusOK && json.Unmarshal(b, &a) != nil {
				t.Errorf("%d %s", resp.StatusCode, b)
			}
			return a.Error
		}
		to := address()
		for body, want := range map[string]string{
			`{"text":"hello","unfold":true}`:               "invalid_payload",
			`{"text":" "}`:                                 "no_text",
			`{"text":"hello","response_type":"all"}`:       "invalid_payload",
			`{"text":"hello","replace_original":true}`:     "no_original_message",
			`{"text":"hello","response_type":"ephemeral"}`: "",
		} {
			if got := respond(to, body); got != want {
				t.Errorf("%s: %q, want %q", body, got, want)
			}
		}
		for i := range maxResponses {
			want := ""
			if i == maxResponses-1 {
				want = "used_url"
			}
			if got := respond(to, `{"text":"to all","response_type":"in_channel"}`); got != want {
				t.Errorf("response %d: %q, want %q", i+2, got, want)
			}
		}
		if n, m := len(c.Whispers("U1")), len(c.Posted("C1")); n != 1 || m != maxResponses-1 {
			t.Errorf("%d for one person, %d for all", n, m)
		}
		old := address()
		time.Sleep(responseLife)
		if got := respond(old, `{"text":"late"}`); got != "expired_url" {
			t.Errorf("late: %q", got)
		}
	})
}
