package slack

import (
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/slack/slacktest"
)

// What users paste is what tests give to the emulator.
func TestDocsQuoteTheManifest(t *testing.T) {
	docs, err := os.ReadFile("../../docs/slack.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(docs), "```yaml\n")
	block, _, _ = strings.Cut(block, "```")
	var quoted strings.Builder
	for line := range strings.Lines(block) {
		quoted.WriteString(strings.TrimPrefix(line, "   "))
	}
	if got := strings.TrimRight(quoted.String(), " "); got != Manifest {
		t.Errorf("docs/slack.md has the manifest\n%s\nwant connectors/slack/manifest.yaml", got)
	}
}

// Each scope that the app lacks is named at the start, and no other.
func TestMissingScopes(t *testing.T) {
	for _, missing := range append([]string{""}, scopes()...) {
		inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
			w.slack.Lack(missing, true)
			w.start(t)
			synctest.Wait()
			h := w.Health()
			if h.State != connectors.StateLive || (h.Err == "") != (missing == "") {
				t.Errorf("without %q: %+v", missing, h)
			}
			for _, scope := range scopes() {
				if named := slices.Contains(strings.FieldsFunc(h.Err, func(r rune) bool { return strings.ContainsRune(" ;,", r) }), scope); named != (scope == missing) {
					t.Errorf("without %q, %q is named: %v in %q", missing, scope, named, h.Err)
				}
			}
		})
	}
	if n := len(scopes()); n < 10 {
		t.Errorf("%d scopes in the manifest", n)
	}
}

// A scope that is taken away while the connector runs is named when Slack asks for it.
func TestScopeTakenAway(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.start(t)
		w.slack.DM("U1", "hi")
		w.slack.Lack("chat:write", true)
		if _, err := w.Send(t.Context(), outgoing("DU1", "", "hello")); !permanent(err) {
			t.Errorf("send: %v", err)
		}
		if h := w.Health(); h.State != connectors.StateLive || !strings.Contains(h.Err, "chat:write") {
			t.Errorf("%+v", h)
		}
	})
}

// Without one scope, everything else works, and what does not says which scope it needs.
func TestWithoutOneScope(t *testing.T) {
	for _, missing := range scopes() {
		inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
			w.slack.Open("C2", slacktest.Private)
			w.slack.Open("C3", slacktest.Group)
			w.slack.Lack(missing, true)
			w.start(t)
			file := w.slack.AddFile("a.txt", "text/plain", []byte("a"))
			heard := map[string]string{"DU1": "im:history", "C1": "", "C2": "", "C3": ""} // of a mention there are two events
			for channel := range heard {
				text := "<@UBOT> " + channel
				w.slack.Write(slacktest.Post{Channel: channel, User: "U1", Text: text, Mention: channel != "DU1"})
			}
			w.settled(t)
			for channel, scope := range heard {
				if got := slices.Contains(w.inbox.texts(), channel); got == (missing == scope) {
					t.Errorf("without %s, a message of %s comes: %v", missing, channel, got)
				}
			}
			ts := w.slack.Say("", "DU1", "U1", "to be reacted to")
			o := outgoing("DU1", "", "hello")
			o.Tried = claybot.Now()
			_, sendErr := w.Send(t.Context(), o)
			_, _, findErr := w.Find(t.Context(), o)
			_, fileErr := w.SendFile(t.Context(), withFile(o), func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("a")), nil })
			body, fetchErr := w.Fetch(t.Context(), claybot.FileReference{Source: file.ID})
			if fetchErr == nil {
				_ = body.Close() // it was only opened
			}
			for _, call := range []struct {
				scope string
				err   error
			}{
				{"chat:write", sendErr},
				{"im:history", findErr},
				{"files:write", fileErr},
				{"files:read", fetchErr},
				{"reactions:write", w.React(t.Context(), o.Route, ts, "👍")},
			} {
				if (call.err != nil) != (missing == call.scope) || call.err != nil && !strings.Contains(call.err.Error(), missing) {
					t.Errorf("without %s, what needs %s: %v", missing, call.scope, call.err)
				}
			}
			if h := w.Health(); h.State != connectors.StateLive || !strings.Contains(h.Err, missing) {
				t.Errorf("without %s: %+v", missing, h)
			}
		})
	}
}

func withFile(o claybot.Outgoing) claybot.Outgoing {
	o.ID, o.Kind, o.File = "with-file", claybot.OutgoingFile, &claybot.FileReference{ID: "f1", Name: "a.txt", Size: 1, Kind: claybot.FileDocument}
	return o
}

// A mention that comes only as a message of the channel, as one with a file may, is
// answered in every kind of channel; anything else there is not.
func TestMessagesOfChannels(t *testing.T) {
	for _, kind := range []string{slacktest.Public, slacktest.Private, slacktest.Group} {
		inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
			w.start(t)
			w.slack.Open("C1", kind)
			w.slack.Write(slacktest.Post{Channel: "C1", User: "U1", Text: "<@UBOT> read this", Subtype: "file_share", Files: []slacktest.File{w.slack.AddFile("a.txt", "text/plain", []byte("a"))}})
			w.slack.Say("", "C1", "U1", "to others")
			w.settled(t)
			all := w.inbox.all()
			if len(all) != 1 || all[0].message.Text != "read this" || len(all[0].message.Files) != 1 || !all[0].message.Context.Group {
				t.Errorf("%s: got %+v", kind, all)
			}
		})
	}
}

// A workspace that removes the app stops the connector.
func TestRemovedApp(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.start(t)
		w.slack.Uninstall()
		if err := <-w.ended; !permanent(err) {
			t.Errorf("Run = %v", err)
		}
		w.ended <- nil // for the end of the world
	})
}
