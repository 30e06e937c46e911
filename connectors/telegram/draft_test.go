package telegram

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
)

// Private chats show unfinished text as drafts, which the next message and 30 seconds take
// away (core.telegram.org/bots/api#sendmessagedraft, read 2026-11-28).
func TestDraft(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(7, 7, "hi")
		o := outgoing("7", "growing **text**")
		o.Run, o.Progress = "r1", true
		shows := func(want string) {
			t.Helper()
			if d, ok := b.server.Draft(7); ok != (want != "") || ok && d.Text != want {
				t.Errorf("the chat shows %+v, want %q", d, want)
			}
		}
		for _, text := range []string{"growing **text**", "growing **text** more"} {
			o.Text = text
			if shown, err := b.conn.Draft(t.Context(), o); !shown || err != nil {
				t.Fatal(shown, err)
			}
			shows(strings.ReplaceAll(text, "**", ""))
			time.Sleep(time.Second)
		}
		first, _ := b.server.Draft(7)
		time.Sleep(31 * time.Second)
		shows("")
		if _, err := b.conn.Draft(t.Context(), o); err != nil {
			t.Error(err)
		}
		if again, _ := b.server.Draft(7); again.ID != first.ID || again.ID == 0 {
			t.Errorf("draft %d became %d", first.ID, again.ID)
		}
		o.Progress = false
		if _, err := b.conn.Send(t.Context(), o); err != nil {
			t.Error(err)
		}
		shows("")
		if n := len(b.server.Sent(7)); n != 1 {
			t.Errorf("%d messages", n)
		}
	})
}

// Where there are no drafts, Draft says so, and asks a server that does not know them once.
func TestNoDrafts(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(7, 7, "hi")
		b.server.Mention(-100, 7, "hi")
		draft := func(chat string) (bool, error) {
			o := outgoing(chat, "text")
			o.Run, o.Progress = "r1", true
			time.Sleep(2 * time.Second)
			return b.conn.Draft(t.Context(), o)
		}
		if shown, err := draft("-100"); shown || err != nil || b.server.Calls("sendMessageDraft") != 0 {
			t.Errorf("in a group: %v, %v", shown, err)
		}
		b.server.Fail(telegramtest.Fault{Method: "sendMessageDraft", Status: 400, Description: "Bad Request: TEXTDRAFT_PEER_INVALID"})
		if shown, err := draft("7"); shown || err != nil {
			t.Errorf("a peer without drafts: %v, %v", shown, err)
		}
		b.server.Fail(telegramtest.Fault{Method: "sendMessageDraft", Status: 500})
		if shown, err := draft("7"); shown || err == nil {
			t.Errorf("a failing server: %v, %v", shown, err)
		}
		b.server.Fail(telegramtest.Fault{Method: "sendMessageDraft", Status: 429, RetryAfter: 9})
		var wait *connectors.RetryError
		if _, err := draft("7"); !errors.As(err, &wait) || wait.After != 9*time.Second {
			t.Errorf("too many: %v", err)
		}
		calls := b.server.Calls("sendMessageDraft")
		if _, err := draft("7"); err != nil || b.server.Calls("sendMessageDraft") != calls {
			t.Errorf("within the silence: %v", err)
		}
		time.Sleep(time.Minute)
		if shown, err := draft("7"); !shown || err != nil {
			t.Errorf("later: %v, %v", shown, err)
		}
		b.server.Fail(telegramtest.Fault{Method: "sendMessageDraft", Status: 404, Description: "Not Found", Times: -1})
		for range 3 {
			if shown, err := draft("7"); shown || err != nil {
				t.Errorf("an old server: %v, %v", shown, err)
			}
		}
		if n := b.server.Calls("sendMessageDraft"); n != calls+2 {
			t.Errorf("an old server was asked %d times", n-calls-1)
		}
	})
}

// The emulator refuses what Telegram refuses.
func TestDraftContract(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(7, 7, "hi")
		b.server.Mention(-100, 7, "hi")
		for params, want := range map[string]string{
			`{"chat_id":7,"text":"a"}`:                                              "draft_id",
			`{"chat_id":-100,"draft_id":1,"text":"a"}`:                              "TEXTDRAFT_PEER_INVALID",
			`{"chat_id":7,"draft_id":1,"text":"` + strings.Repeat("a", 4097) + `"}`: "too long",
			`{"chat_id":7,"draft_id":1,"text":""}`:                                  "",
		} {
			var done bool
			err := b.conn.send.call(t.Context(), "sendMessageDraft", json.RawMessage(params), &done)
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s: %v, want %s", strconv.Quote(params[:min(len(params), 60)]), err, want)
			}
		}
	})
}

// No link in what the bot sends or edits has a preview.
func TestNoLinkPreviews(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(7, 7, "hi")
		o := outgoing("7", "see https://example.org/a and [this](https://example.org/b)")
		receipt, err := b.conn.Send(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		previews := func() (n int) {
			for _, m := range b.server.Sent(7) {
				if m.Preview {
					n++
				}
			}
			return n
		}
		if previews() != 0 {
			t.Error("a message has a preview")
		}
		o.Edit, o.Text = receipt, "and https://example.org/c"
		if _, err := b.conn.Send(t.Context(), o); err != nil || previews() != 0 {
			t.Errorf("an edit has a preview: %v", err)
		}
		var sent struct{}
		if err := b.conn.send.call(t.Context(), "sendMessage", json.RawMessage(`{"chat_id":7,"text":"https://example.org"}`), &sent); err != nil || previews() != 1 {
			t.Errorf("the emulator shows no preview where a bot asks for none to be left out: %v", err)
		}
	})
}
