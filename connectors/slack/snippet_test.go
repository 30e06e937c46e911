package slack

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/slack/slacktest"
)

// snippetOut is code of a reply.
func snippetOut(id, name, code string) (claybot.Outgoing, func() (io.ReadCloser, error)) {
	o, open := fileOut(id, "", []byte(code))
	o.Kind, o.Text, o.Route.ChannelID = claybot.OutgoingAnswer, "", "T1/DU1"
	o.File = &claybot.FileReference{ID: "f", Name: name, MIMEType: "text/plain", Size: int64(len(code)), Kind: claybot.FileDocument}
	return o, open
}

// Code of a reply is a snippet in its language. A type that Slack does not know, and code that is too long for one,
// is a file, and so are other files.
func TestSnippet(t *testing.T) {
	for _, c := range []struct {
		name, code, mime string
		kind             claybot.OutgoingKind
		want             string
		asked            int
	}{
		{"code.go", "x := 1", "text/plain", claybot.OutgoingAnswer, "go", 1},
		{"code-2.py", "x = 1", "text/plain", claybot.OutgoingAnswer, "python", 1},
		{"code.txt", "x", "text/plain", claybot.OutgoingAnswer, "text", 1},
		{"code.json", "{}", "text/plain", claybot.OutgoingAnswer, "text", 1},
		{"code.r", "x", "text/plain", claybot.OutgoingAnswer, "", 2}, // which the emulator does not know
		{"code.go", strings.Repeat("x", 1_000_001), "text/plain", claybot.OutgoingAnswer, "", 1},
		{"reply.md", "# x", "text/markdown", claybot.OutgoingAnswer, "", 1},
		{"code.go", "x", "text/plain", claybot.OutgoingFile, "", 1},
	} {
		inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
			w.slack.DM("U1", "hi")
			o, _ := snippetOut("o1", c.name, c.code)
			o.Kind, o.File.MIMEType = c.kind, c.mime
			receipt, err := w.SendFile(t.Context(), o, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader([]byte(c.code))), nil })
			files := w.slack.Files("DU1")
			if err != nil || len(files) != 1 || files[0].ID != receipt || files[0].Snippet != c.want || string(files[0].Data) != c.code {
				t.Errorf("%s: %v; %.200v", c.name, err, files)
			}
			if n := len(w.slack.Calls(methodUploadURL)); n != c.asked {
				t.Errorf("%s: asked %d times", c.name, n)
			}
		})
	}
}

// An app without the scope takes no snippets, as far as Slack says so at the start or when it refuses the first one.
// That one is not retried: its code is sent as text.
func TestSnippetScope(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.slack.DM("U1", "hi")
		if !w.TakesSnippets() {
			t.Error("an app that may have the scope takes no snippets")
		}
		w.slack.Lack("files:write", true)
		o, open := snippetOut("o1", "code.go", "x")
		_, err := w.SendFile(t.Context(), o, open)
		var permanent *connectors.PermanentError
		if !errors.As(err, &permanent) || permanent.DeadRoute || len(w.slack.Calls(methodUploadURL)) != 1 || w.TakesSnippets() {
			t.Errorf("%v; takes %v", err, w.TakesSnippets())
		}
		w.slack.Lack("files:write", false)
		w.start(t)
		if !w.TakesSnippets() {
			t.Error("the scope is there at the start")
		}
		w.slack.Lack("files:write", true)
		w.restart(t)
		synctest.Wait()
		if w.TakesSnippets() {
			t.Error("the scope is missing at the start")
		}
	})
}

// A snippet whose last answer is lost is found by the next process.
func TestSnippetCrash(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.cfg.Marks = &marks{kept: make(map[string]string)}
		w.Connector = New(w.cfg)
		w.slack.DM("U1", "hi")
		o, open := snippetOut("o1", "code.go", "x")
		w.slack.Fail(methodComplete, slacktest.Fault{Lost: true, Done: true})
		_, err := w.SendFile(t.Context(), o, open)
		var unknown *connectors.AmbiguousError
		if !errors.As(err, &unknown) {
			t.Errorf("%v", err)
		}
		w.Connector = New(w.cfg)
		receipt, found, err := w.Find(t.Context(), o)
		if files := w.slack.Files("DU1"); err != nil || !found || len(files) != 1 || files[0].ID != receipt || files[0].Snippet != "go" {
			t.Errorf("%q %v %v: %v", receipt, found, err, files)
		}
	})
}
