package telegram

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
	"github.com/claybot/claybot/texts"
)

// What comes with a message is a reference at first; the bytes are fetched by it.
func TestFilesAreFetched(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		ref := b.server.AddFile("a.bin", []byte("the bytes"))
		with := func(more map[string]any) map[string]any {
			m := map[string]any{}
			for k, v := range ref {
				m[k] = v
			}
			for k, v := range more {
				m[k] = v
			}
			return m
		}
		for _, fields := range []map[string]any{
			{"photo": []any{map[string]any{"file_id": "small", "width": 1, "height": 1}, with(map[string]any{"width": 8, "height": 6})}, "caption": "look"},
			{"document": with(map[string]any{"file_name": "../re\u202eport.pdf", "mime_type": "application/pdf"})},
			{"voice": with(map[string]any{"duration": 12})},
			{"audio": with(map[string]any{"title": "Song", "duration": 100})},
			{"video": with(map[string]any{"duration": 9})},
			{"video_note": with(map[string]any{"duration": 3, "length": 240})},
			{"animation": with(nil), "document": with(nil)},
		} {
			b.server.Write(telegramtest.Incoming{ChatID: 7, UserID: 7, Fields: fields})
		}
		b.run()
		synctest.Wait()
		kinds := []claybot.FileKind{"photo", "document", "voice", "audio", "video", "video", "video"}
		if len(b.sink.got) != len(kinds) {
			t.Fatalf("%d messages", len(b.sink.got))
		}
		for i, m := range b.sink.got {
			if len(m.Files) != 1 || m.Files[0].Kind != kinds[i] || m.Files[0].Name == "" || strings.Contains(m.Text, "[") {
				t.Fatalf("message %d: %q %+v", i, m.Text, m.Files)
			}
			f := m.Files[0]
			if f.ID != b.sink.got[0].Files[0].ID || claybot.AgentID(f.ID).Validate() != nil {
				t.Errorf("the same file has the ids %s and %s", b.sink.got[0].Files[0].ID, f.ID)
			}
			body, err := b.conn.Fetch(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(body)
			if err != nil || string(data) != "the bytes" || body.Close() != nil {
				t.Errorf("fetched %q, %v", data, err)
			}
		}
		if m := b.sink.got[0]; m.Text != "look" {
			t.Errorf("the caption became %q", m.Text)
		}
		if f := b.sink.got[2].Files[0]; f.Seconds != 12 {
			t.Errorf("a voice message of %d s", f.Seconds)
		}
	})
}

// Whatever goes wrong with a file is either final, in words, or may be tried
// again; the token is in none of it.
func TestFilesThatCannotBeFetched(t *testing.T) {
	big := claybot.FileReference{Source: "big"}
	tests := []struct {
		name  string
		prep  func(s *telegramtest.Server, id string)
		file  *claybot.FileReference
		final string // empty: to be tried again
	}{
		{name: "unknown", file: &claybot.FileReference{Source: "nonsense"}, final: texts.TelegramFileGone},
		{name: "too big", file: &big, final: texts.TelegramFileTooLarge, prep: func(s *telegramtest.Server, _ string) {
			s.Fail(telegramtest.Fault{Method: "getFile", Status: 400, Description: "Bad Request: file is too big"})
		}},
		{name: "temporarily", prep: func(s *telegramtest.Server, _ string) {
			s.Fail(telegramtest.Fault{Method: "getFile", Status: 400, Description: "Bad Request: wrong file_id or the file is temporarily unavailable"})
		}},
		{name: "gone", final: texts.TelegramFileGone, prep: func(s *telegramtest.Server, id string) { s.LoseFile(id) }},
		{name: "no answer", prep: func(s *telegramtest.Server, _ string) { s.Fail(telegramtest.Fault{Method: "getFile", Drop: true}) }},
		{name: "no file", prep: func(s *telegramtest.Server, _ string) { s.Fail(telegramtest.Fault{Method: "file", Drop: true}) }},
		{name: "cut", prep: func(s *telegramtest.Server, _ string) { s.Fail(telegramtest.Fault{Method: "file", Cut: true}) }},
		{name: "upstream", prep: func(s *telegramtest.Server, _ string) {
			s.Fail(telegramtest.Fault{Method: "file", Status: 502, Body: "<html>bad gateway</html>"})
		}},
		{name: "redirect", prep: func(s *telegramtest.Server, _ string) {
			s.Fail(telegramtest.Fault{Method: "file", Status: 302, Body: "elsewhere"})
		}},
		{name: "limited", prep: func(s *telegramtest.Server, _ string) {
			s.Fail(telegramtest.Fault{Method: "getFile", Status: 429, Description: "Too Many Requests", RetryAfter: 7})
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, b *bubble) {
				ref := b.server.AddFile("a.bin", bytes.Repeat([]byte("x"), 100_000))
				id, _ := ref["file_id"].(string)
				f := claybot.FileReference{Source: id}
				if tt.file != nil {
					f = *tt.file
				}
				if tt.prep != nil {
					tt.prep(b.server, id)
				}
				body, err := b.conn.Fetch(t.Context(), f)
				if err == nil {
					_, err = io.ReadAll(body)
					_ = body.Close() // it was only read
				}
				var refused *connectors.RefusedError
				switch {
				case err == nil:
					t.Fatal("no error")
				case errors.As(err, &refused) != (tt.final != ""):
					t.Errorf("got %v", err)
				case refused != nil && refused.Text != tt.final:
					t.Errorf("told %q, want %q", refused.Text, tt.final)
				case strings.Contains(err.Error(), "FAKE"):
					t.Errorf("the token shows: %v", err)
				}
				if tt.final != "" {
					return
				}
				if body, err = b.conn.Fetch(t.Context(), f); err != nil {
					t.Fatalf("tried again: %v", err)
				}
				if data, err := io.ReadAll(body); err != nil || len(data) != 100_000 || body.Close() != nil {
					t.Errorf("tried again: %d bytes, %v", len(data), err)
				}
			})
		})
	}
}

// picture is a small PNG.
func picture(w, h int) []byte {
	var b bytes.Buffer
	_ = png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))) // a buffer takes everything
	return b.Bytes()
}

func withFile(kind claybot.FileKind, name, caption string, data []byte) (claybot.Outgoing, func() (io.ReadCloser, error)) {
	o := outgoing("7", caption)
	o.Kind, o.File = claybot.OutgoingFile, &claybot.FileReference{ID: "f", Name: name, Size: int64(len(data)), Kind: kind}
	return o, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
}

func TestSendFile(t *testing.T) {
	long := strings.Repeat("a", 960)
	tests := []struct {
		name, caption  string
		kind           claybot.FileKind
		file           string
		data           []byte
		method, source string
	}{
		{"document", "**here**", "document", "report.pdf", []byte("%PDF"), "senddocument", "<b>here</b>"},
		{"no caption", "", "document", "a.txt", []byte("x"), "senddocument", ""},
		{"photo", "look", "photo", "a.png", picture(3, 3), "sendphoto", "look"},
		{"a photo that is none", "look", "photo", "a.png", []byte("no picture"), "senddocument", "look"},
		{"a photo too long", "", "photo", "a.png", picture(1, 100), "senddocument", ""},
		{"voice", "", "voice", "a.ogg", []byte("OggS…"), "sendvoice", ""},
		{"a voice that is none", "", "voice", "a.txt", []byte("text"), "senddocument", ""},
		{"hostile name", "", "document", "a\"; name=\"chat_id\r\n\r\n9\\.txt", []byte("x"), "senddocument", ""},
		{"longest caption", long, "document", "a.txt", []byte("x"), "senddocument", long},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, b *bubble) {
				b.server.Say(7, 7, "hi")
				o, open := withFile(tt.kind, tt.file, tt.caption, tt.data)
				receipt, err := b.conn.SendFile(t.Context(), o, open)
				if err != nil || receipt != "2" {
					t.Fatalf("got %q, %v", receipt, err)
				}
				got := b.server.Sent(7)
				if len(got) != 1 || got[0].File == nil {
					t.Fatalf("people see %+v", got)
				}
				f := got[0].File
				if f.Method != tt.method || f.Source != tt.source || !bytes.Equal(f.Data, tt.data) {
					t.Errorf("sent by %s, %q, %d bytes", f.Method, f.Source, len(f.Data))
				}
			})
		})
	}
}

// Only what goes wrong behind the last byte may have been sent.
func TestSendFileFails(t *testing.T) {
	tests := []struct {
		name  string
		fault telegramtest.Fault
		want  func(error) bool
	}{
		{"lost answer", telegramtest.Fault{Lost: true}, isAmbiguous},
		{"cut answer", telegramtest.Fault{Cut: true}, isAmbiguous},
		{"upstream", telegramtest.Fault{Status: 502, Body: "<html>"}, isAmbiguous},
		{"limited", telegramtest.Fault{Status: 429, Description: "Too Many Requests", RetryAfter: 9}, func(err error) bool {
			var e *connectors.RetryError
			return errors.As(err, &e) && e.After == 9*time.Second
		}},
		{"blocked", telegramtest.Fault{Status: 403, Description: "Forbidden: bot was blocked by the user"}, func(err error) bool {
			var e *connectors.PermanentError
			return errors.As(err, &e) && e.DeadRoute
		}},
		{"too large", telegramtest.Fault{Status: 413, Description: "Request Entity Too Large"}, isPermanent},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, b *bubble) {
				b.server.Say(7, 7, "hi")
				tt.fault.Method = "sendDocument"
				b.server.Fail(tt.fault)
				o, open := withFile("document", "a.txt", "words", []byte("content"))
				_, err := b.conn.SendFile(t.Context(), o, open)
				if !tt.want(err) || strings.Contains(fmt.Sprint(err), "FAKE") {
					t.Errorf("got %v", err)
				}
			})
		})
	}
	t.Run("before the last byte", func(t *testing.T) {
		inBubble(t, Config{}, func(t *testing.T, b *bubble) {
			b.server.Say(7, 7, "hi")
			o, _ := withFile("document", "a.txt", "", make([]byte, 1<<20))
			_, err := b.conn.SendFile(t.Context(), o, func() (io.ReadCloser, error) {
				return io.NopCloser(io.MultiReader(bytes.NewReader(make([]byte, 1<<19)), broken{})), nil
			})
			if err == nil || isAmbiguous(err) || isPermanent(err) || len(b.server.Sent(7)) != 0 {
				t.Errorf("got %v", err)
			}
			time.Sleep(time.Second) // the server lingers
		})
	})
	t.Run("the file is gone", func(t *testing.T) {
		inBubble(t, Config{}, func(t *testing.T, b *bubble) {
			gone := &connectors.PermanentError{Err: errors.New("gone")}
			o, _ := withFile("document", "a.txt", "", []byte("x"))
			_, err := b.conn.SendFile(t.Context(), o, func() (io.ReadCloser, error) { return nil, gone })
			if !errors.Is(err, gone) {
				t.Errorf("got %v", err)
			}
		})
	})
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("the disk broke") }

func isAmbiguous(err error) bool {
	var e *connectors.AmbiguousError
	return errors.As(err, &e)
}

func isPermanent(err error) bool {
	var e *connectors.PermanentError
	return errors.As(err, &e)
}

// A refused format costs neither the caption nor the file, a group that moved
// neither.
func TestSendFileFallsBack(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(7, 7, "hi")
		b.server.Fail(telegramtest.Fault{Method: "sendDocument", Status: 400, Description: "Bad Request: can't parse entities: odd"})
		o, open := withFile("document", "a.txt", "**b**", []byte("x"))
		o.Resent = true
		if _, err := b.conn.SendFile(t.Context(), o, open); err != nil {
			t.Fatal(err)
		}
		if got := b.server.Sent(7)[0]; !strings.HasPrefix(got.Text, "(sent again") || !strings.HasSuffix(got.Text, "**b**") {
			t.Errorf("got %q", got.Text)
		}
		b.server.Mention(-5, 7, "hi")
		b.run()
		synctest.Wait()
		b.server.Migrate(-5, -1000000000005)
		o.Route.ChannelID, o.Resent = "-5", false
		if _, err := b.conn.SendFile(t.Context(), o, open); err != nil {
			t.Fatal(err)
		}
		if got := b.server.Sent(-1000000000005); len(got) != 1 || string(got[0].File.Data) != "x" {
			t.Errorf("the new group shows %+v", got)
		}
	})
}

func TestReact(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		_, id := b.server.Write(telegramtest.Incoming{ChatID: 7, UserID: 7, Text: "hi"})
		route, message := claybot.Route{Connector: "telegram", ChannelID: "7"}, fmt.Sprint(id)
		for _, emoji := range []string{"👍", "❤️", "👍"} { // with a variation selector, too
			if err := b.conn.React(t.Context(), route, message, emoji); err != nil {
				t.Fatalf("%s: %v", emoji, err)
			}
		}
		if got := b.server.Reaction(7, id); got != "👍" {
			t.Errorf("the message has %q", got)
		}
		var refused *connectors.RefusedError
		for _, bad := range [][2]string{{message, "🦀"}, {message, "hello"}, {"999", "👍"}, {"x", "👍"}} {
			if err := b.conn.React(t.Context(), route, bad[0], bad[1]); !errors.As(err, &refused) {
				t.Errorf("%v: %v", bad, err)
			}
		}
		b.server.Fail(telegramtest.Fault{Method: "setMessageReaction", Status: 429, RetryAfter: 3})
		var retry *connectors.RetryError
		if err := b.conn.React(t.Context(), route, message, "🔥"); !errors.As(err, &retry) || retry.After != 3*time.Second {
			t.Errorf("limited: %v", err)
		}
		if err := b.conn.React(context.Background(), claybot.Route{ChannelID: "7"}, message, "🔥"); !errors.As(err, &retry) {
			t.Errorf("within the silence: %v", err)
		}
	})
}
