package slack

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

func TestFilesAreFetched(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.start(t)
		report := w.slack.AddFile("report.pdf", "application/pdf", []byte("%PDF-1"))
		page := w.slack.AddFile("page.html", "text/html", []byte("<html>mine</html>"))
		canvas := w.slack.AddCanvas("Plan", "<h1>Plan</h1>")
		w.slack.Write(slacktest.Post{Channel: "DU1", User: "U1", Subtype: "file_share", Text: "both", Files: []slacktest.File{report, page, canvas}})
		w.settled(t)
		m := w.inbox.all()[0].message
		if f := m.Files[len(m.Files)-1]; f.Name != "Plan.html" || f.MIMEType != "text/html" {
			t.Errorf("a canvas is %+v", f)
		}
		if m.Text != "both" || len(m.Files) != 3 || m.Files[0].ID == m.Files[1].ID {
			t.Fatalf("got %q %+v", m.Text, m.Files)
		}
		for i, want := range []string{"%PDF-1", "<html>mine</html>", "<h1>Plan</h1>"} {
			body, err := w.Fetch(t.Context(), m.Files[i])
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(body)
			if err != nil || string(data) != want || body.Close() != nil {
				t.Errorf("fetched %q, %v", data, err)
			}
		}
	})
}

// The token stays with Slack, and a page for logging in is no file.
func TestFilesThatCannotBeFetched(t *testing.T) {
	tests := []struct {
		name  string
		prep  func(s *slacktest.Server, id string)
		final string // empty: to be tried again
	}{
		{"scope", func(s *slacktest.Server, _ string) { s.Lack("files:read", true) }, texts.SlackFileNoScope},
		{"login page", func(s *slacktest.Server, _ string) {
			s.Fail("files.info", slacktest.Fault{Skip: true})
			s.Fail("file", slacktest.Fault{Status: 403})
		}, texts.SlackFileNoScope},
		{"redirect", func(s *slacktest.Server, _ string) { s.Fail("file", slacktest.Fault{Status: 302}) }, texts.SlackFileNoScope},
		{"deleted", func(s *slacktest.Server, id string) { s.DeleteFile(id) }, texts.SlackFileGone},
		{"unknown", func(s *slacktest.Server, _ string) { s.Fail("files.info", slacktest.Fault{Error: "file_not_found"}) }, texts.SlackFileGone},
		{"gone in between", func(s *slacktest.Server, _ string) { s.Fail("file", slacktest.Fault{Status: 404}) }, texts.SlackFileGone},
		{"foreign host", func(s *slacktest.Server, id string) { s.Redirect(id, "https://files.slack.com.evil.test/x") }, texts.SlackFileForeign},
		{"foreign user", func(s *slacktest.Server, id string) { s.Redirect(id, "https://slack.com@evil.test/x") }, texts.SlackFileForeign},
		{"no TLS", func(s *slacktest.Server, id string) { s.Redirect(id, "http://files.slack.com/x") }, texts.SlackFileForeign},
		{"odd port", func(s *slacktest.Server, id string) { s.Redirect(id, "https://files.slack.com:8443/x") }, texts.SlackFileForeign},
		{"no address", func(s *slacktest.Server, id string) { s.Redirect(id, "::") }, texts.SlackFileForeign},
		{"upstream", func(s *slacktest.Server, _ string) { s.Fail("file", slacktest.Fault{Status: 502}) }, ""},
		{"lost", func(s *slacktest.Server, _ string) { s.Fail("files.info", slacktest.Fault{Lost: true}) }, ""},
		{"limited", func(s *slacktest.Server, _ string) {
			s.Fail("files.info", slacktest.Fault{RetryAfter: 2 * time.Second})
		}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
				f := w.slack.AddFile("a.bin", "application/octet-stream", []byte("bytes"))
				tt.prep(w.slack, f.ID)
				_, err := w.Fetch(t.Context(), claybot.FileReference{Source: f.ID})
				var refused *connectors.RefusedError
				switch {
				case err == nil:
					t.Fatal("no error")
				case errors.As(err, &refused) != (tt.final != "") || refused != nil && refused.Text != tt.final:
					t.Errorf("got %v", err)
				}
				noCanary(t, "error", err.Error())
				if tt.final != "" {
					return
				}
				var retry *connectors.RetryError
				if errors.As(err, &retry) {
					if _, err := w.Fetch(t.Context(), claybot.FileReference{Source: f.ID}); !errors.As(err, &retry) {
						t.Errorf("within the pause: %v", err)
					}
					time.Sleep(retry.After)
				}
				body, err := w.Fetch(t.Context(), claybot.FileReference{Source: f.ID})
				if err != nil {
					t.Fatalf("tried again: %v", err)
				}
				if data, err := io.ReadAll(body); err != nil || string(data) != "bytes" || body.Close() != nil {
					t.Errorf("tried again: %q, %v", data, err)
				}
			})
		})
	}
}

// A login page of status 200 is told from a page that a person uploaded.
func TestLoginPage(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		f := w.slack.AddFile("a.png", "image/png", []byte("bytes"))
		w.cfg.BotToken = "xoxb-canary-other" // the server shows its page to strangers
		other := New(w.cfg)
		_, err := other.download(t.Context(), "http://slack.test/files-pri/"+f.ID, "image/png")
		var refused *connectors.RefusedError
		if !errors.As(err, &refused) || refused.Text != texts.SlackFileNoScope {
			t.Errorf("got %v", err)
		}
	})
}

// marks outlive a connector.
type marks struct {
	storage.CheckpointSet // nil: what a connector does not use
	mu                    sync.Mutex
	kept                  map[string]string
	fail                  error
}

func (m *marks) Checkpoint(_ context.Context, key string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kept[key], m.fail
}

func (m *marks) SetCheckpoint(_ context.Context, key, value string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail == nil {
		m.kept[key] = value
	}
	return m.fail
}

func (m *marks) SetCheckpoints(_ context.Context, values map[string]string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, value := range values {
		if m.kept[key] = value; value == "" {
			delete(m.kept, key)
		}
	}
	return m.fail
}

func (m *marks) ListCheckpoints(_ context.Context, prefix string) (all []storage.Checkpoint, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, value := range m.kept {
		if strings.HasPrefix(key, prefix) {
			all = append(all, storage.Checkpoint{Key: key, Value: value})
		}
	}
	return all, m.fail
}

func fileOut(id, thread string, data []byte) (claybot.Outgoing, func() (io.ReadCloser, error)) {
	o := claybot.Outgoing{
		ID: id, Kind: claybot.OutgoingFile, Text: "the **report**", Part: 1, Parts: 1, Tried: claybot.Now(),
		Route: claybot.Route{Connector: "slack", ChannelID: "T1/C1", ThreadID: thread},
		File:  &claybot.FileReference{ID: "f", Name: "report.pdf", Size: int64(len(data)), Kind: claybot.FileDocument},
	}
	return o, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
}

func TestSendFile(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		ts := w.slack.Say("", "C1", "U1", "hi")
		o, open := fileOut("o1", ts, []byte("content"))
		receipt, err := w.SendFile(t.Context(), o, open)
		if err != nil {
			t.Fatal(err)
		}
		got := w.slack.Files("C1")
		if len(got) != 1 || got[0].ID != receipt || got[0].Thread != ts || got[0].Name != "report.pdf" || got[0].Comment != "the *report*" || string(got[0].Data) != "content" {
			t.Errorf("people see %+v", got)
		}
	})
}

// Before the last step nothing was sent, whatever failed; the last step is
// looked up, also by another process.
func TestSendFileStepByStep(t *testing.T) {
	const first, second, last = "files.getUploadURLExternal", "upload", "files.completeUploadExternal"
	tests := []struct {
		name, method string
		fault        slacktest.Fault
		ambiguous    bool
		found        bool
	}{
		{"no address", first, slacktest.Fault{Lost: true}, false, false},
		{"address 500", first, slacktest.Fault{Status: 500}, false, false},
		{"address internal", first, slacktest.Fault{Error: "internal_error"}, false, false},
		{"bytes 500", second, slacktest.Fault{Status: 500}, false, false},
		{"bytes lost", second, slacktest.Fault{Lost: true}, false, false},
		{"shared, lost", last, slacktest.Fault{Lost: true}, true, true},
		{"shared, cut", last, slacktest.Fault{Cut: true}, true, true},
		{"not shared", last, slacktest.Fault{Status: 503}, true, false},
		{"not shared, internal", last, slacktest.Fault{Error: "internal_error"}, true, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
				w.cfg.Marks = &marks{kept: make(map[string]string)}
				w.Connector = New(w.cfg)
				w.slack.Say("", "C1", "U1", "hi")
				w.slack.Fail(tt.method, tt.fault)
				o, open := fileOut("o1", "", []byte("content"))
				_, err := w.SendFile(t.Context(), o, open)
				var unknown *connectors.AmbiguousError
				var permanent *connectors.PermanentError
				if err == nil || errors.As(err, &unknown) != tt.ambiguous || errors.As(err, &permanent) {
					t.Fatalf("got %v", err)
				}
				noCanary(t, "error", err.Error())
				for range 2 { // as it is, and after a restart
					_, found, err := w.Find(t.Context(), o)
					if err != nil || found != tt.found {
						t.Errorf("found %v, %v", found, err)
					}
					w.Connector = New(w.cfg)
				}
				if tt.found {
					return
				}
				if _, err := w.SendFile(t.Context(), o, open); err != nil || len(w.slack.Files("C1")) != 1 {
					t.Errorf("sent again: %v, people see %d files", err, len(w.slack.Files("C1")))
				}
			})
		})
	}
}

func TestSendFileRefused(t *testing.T) {
	tests := []struct {
		name string
		prep func(w *world)
		want string
	}{
		{"scope", func(w *world) { w.slack.Lack("files:write", true) }, "files:write"},
		{"not in channel", func(w *world) {
			w.slack.Fail("files.completeUploadExternal", slacktest.Fault{Error: "not_in_channel"})
		}, "/invite"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
				w.slack.Say("", "C1", "U1", "hi")
				tt.prep(w)
				o, open := fileOut("o1", "", []byte("content"))
				_, err := w.SendFile(t.Context(), o, open)
				var permanent *connectors.PermanentError
				if !errors.As(err, &permanent) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
	t.Run("nothing remembered", func(t *testing.T) {
		inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
			o, _ := fileOut("o1", "", []byte("x"))
			var permanent *connectors.PermanentError
			if _, _, err := w.Find(t.Context(), o); !errors.As(err, &permanent) {
				t.Errorf("got %v", err)
			}
		})
	})
	t.Run("marks fail", func(t *testing.T) {
		inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
			w.cfg.Marks = &marks{kept: make(map[string]string), fail: errors.New("disk full")}
			w.Connector = New(w.cfg)
			w.slack.Say("", "C1", "U1", "hi")
			o, open := fileOut("o1", "", []byte("content"))
			if _, err := w.SendFile(t.Context(), o, open); err == nil || len(w.slack.Files("C1")) != 0 {
				t.Errorf("shared a file that could not be found again: %v", err)
			}
		})
	})
	t.Run("limited", func(t *testing.T) {
		inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
			w.slack.Say("", "C1", "U1", "hi")
			w.slack.Fail("files.completeUploadExternal", slacktest.Fault{RetryAfter: 3 * time.Second})
			o, open := fileOut("o1", "", []byte("content"))
			var retry *connectors.RetryError
			for range 2 {
				if _, err := w.SendFile(t.Context(), o, open); !errors.As(err, &retry) || retry.After > 3*time.Second {
					t.Errorf("got %v", err)
				}
			}
			if n := len(w.slack.Calls("files.getUploadURLExternal")); n != 1 {
				t.Errorf("%d calls during the pause", n)
			}
		})
	})
}

func TestReact(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		ts := w.slack.Say("", "C1", "U1", "hi")
		route := claybot.Route{Connector: "slack", ChannelID: "T1/C1"}
		for _, emoji := range []string{"👍", "👍", ":tada:", "❤️"} {
			if err := w.React(t.Context(), route, ts, emoji); err != nil {
				t.Fatalf("%s: %v", emoji, err)
			}
		}
		if got := strings.Join(w.slack.Reactions("C1", ts), " "); got != "+1 tada heart" {
			t.Errorf("the message has %q", got)
		}
		var refused *connectors.RefusedError
		for _, bad := range [][2]string{{ts, "🦑"}, {ts, "a b"}, {"1.0", "👍"}, {"", "👍"}, {ts, "unknown_one"}} {
			if err := w.React(t.Context(), route, bad[0], bad[1]); !errors.As(err, &refused) {
				t.Errorf("%q: %v", bad, err)
			}
		}
		w.slack.Lack("reactions:write", true)
		if err := w.React(t.Context(), route, ts, "👀"); !errors.As(err, &refused) || !strings.Contains(refused.Text, "reactions:write") {
			t.Errorf("without the scope: %v", err)
		}
	})
}
