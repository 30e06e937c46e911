package slack

import (
	"encoding/json"
	"io"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"go.yaml.in/yaml/v3"

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
	for _, missing := range append([]string{""}, (App{}).scopes()...) {
		inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
			w.slack.Lack(missing, true)
			w.start(t)
			synctest.Wait()
			h := w.Health()
			if h.State != connectors.StateLive || (h.Err == "") != (missing == "") {
				t.Errorf("without %q: %+v", missing, h)
			}
			for _, scope := range (App{}).scopes() {
				if named := slices.Contains(strings.FieldsFunc(h.Err, func(r rune) bool { return strings.ContainsRune(" ;,", r) }), scope); named != (scope == missing) {
					t.Errorf("without %q, %q is named: %v in %q", missing, scope, named, h.Err)
				}
			}
		})
	}
	if n := len((App{}).scopes()); n < 10 {
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
	for _, missing := range (App{}).scopes() {
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

// The embedded manifest is what the generator makes of an app with everything.
func TestManifestOfEverything(t *testing.T) {
	if got := (App{}).YAML(); got != Manifest {
		t.Errorf("connectors/slack/manifest.yaml should be\n%s", got)
	}
}

// YAML and JSON say the same, whatever the name, and so does the link.
func TestManifestForms(t *testing.T) {
	for _, name := range []string{"", "claybot", "yes", "a: b", "#1", "- x", "Bürohilfe", `"q" & <b>`, "a:", "null", "12", " spaced "} {
		for _, hook := range []string{"", "https://bot.example.org/hooks/slack"} {
			a := App{Name: name, Hook: hook}
			var fromYAML, fromJSON map[string]any
			if err := yaml.Unmarshal([]byte(a.YAML()), &fromYAML); err != nil {
				t.Fatalf("%q: %v", name, err)
			}
			if err := json.Unmarshal([]byte(a.JSON()), &fromJSON); err != nil || !reflect.DeepEqual(fromYAML, fromJSON) {
				t.Errorf("%q: %v, YAML\n%s\nJSON\n%s", name, err, a.YAML(), a.JSON())
			}
			link, err := a.Link()
			if err != nil {
				t.Fatal(err)
			}
			if u, err := url.Parse(link); err != nil || u.Host != "api.slack.com" || u.Query().Get("new_app") != "1" || u.Query().Get("manifest_yaml") != a.YAML() || strings.Contains(link, "+") {
				t.Errorf("link %s, %v", link, err)
			}
		}
	}
}

// What Slack refuses, and what no link can hold, is said.
func TestManifestLimits(t *testing.T) {
	if err := (App{Name: strings.Repeat("ü", 35)}).Check(); err != nil {
		t.Error(err)
	}
	for _, name := range []string{strings.Repeat("x", 36), "a\nb"} {
		if err := (App{Name: name}).Check(); err == nil {
			t.Errorf("%q is taken", name)
		}
	}
	if link, err := (App{Hook: "https://bot.example.org/" + strings.Repeat("x", 3000)}).Link(); err == nil || !strings.Contains(err.Error(), "too long for a link") {
		t.Errorf("link of %d characters, %v", len(link), err)
	}
}

// An app without a feature lacks its scopes and events, is complete as the emulator checks it,
// and Health misses none of them.
func TestManifestWithout(t *testing.T) {
	all := App{}
	for _, n := range needs {
		if n.feature == "" {
			continue
		}
		a := App{Without: []Feature{n.feature}}
		for _, scope := range all.scopes() {
			if got, want := slices.Contains(a.scopes(), scope), !slices.Contains(strings.Fields(n.scopes), scope); got != want {
				t.Errorf("without %s: scope %s: %v", n.feature, scope, got)
			}
		}
		for _, event := range all.events() {
			if got, want := slices.Contains(a.events(), event), !slices.Contains(strings.Fields(n.events), event) || event == "app_home_opened"; got != want { // two features need that one
				t.Errorf("without %s: event %s: %v", n.feature, event, got)
			}
		}
		inWorld(t, slacktest.Config{Manifest: a.YAML()}, func(t *testing.T, w *world) {
			w.cfg.Without = a.Without
			w.Connector = New(w.cfg)
			w.start(t)
			w.slack.DM("U1", "hi")
			w.settled(t)
			if h := w.Health(); h.Err != "" || len(w.inbox.all()) != 1 {
				t.Errorf("without %s: %+v, got %q", n.feature, h, w.inbox.texts())
			}
		})
		inWorld(t, slacktest.Config{Manifest: a.YAML()}, func(t *testing.T, w *world) {
			w.start(t)
			if h := w.Health(); n.scopes != "" && !strings.Contains(h.Err, strings.Fields(n.scopes)[0]) {
				t.Errorf("with %s, which the app lacks: %+v", n.feature, h)
			}
		})
	}
}
