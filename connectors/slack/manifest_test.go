package slack

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

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
