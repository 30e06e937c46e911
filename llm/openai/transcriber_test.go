package openai

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/openai/openaitest"
	"github.com/claybot/claybot/llm/provider"
)

// hearing runs fn with an emulator and a transcriber in simulated time.
func hearing(t *testing.T, fn func(t *testing.T, s *openaitest.Server, c *Transcriber)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := openaitest.New(openaitest.Config{Key: fakeKey})
		dial, stop := s.Pipe()
		tr := provider.NewTransport()
		tr.Proxy, tr.DialContext = nil, dial
		c := NewTranscriber(TranscriberConfig{BaseURL: "http://model.invalid/v1", Key: fakeKey, HTTP: tr})
		fn(t, s, c)
		c.CloseIdleConnections()
		stop()
	})
}

var voice = []byte("OggS fake voice")

func TestTranscribe(t *testing.T) {
	hearing(t, func(t *testing.T, s *openaitest.Server, c *Transcriber) {
		s.ScriptAudio(openaitest.Reply{Text: " hello there\n", Usage: &openaitest.Usage{Prompt: 30, Completion: 4}})
		got, err := c.Transcribe(t.Context(), "Ann's secret plans.oga", "audio/ogg", voice)
		want := llm.Speech{Text: "hello there", Model: DefaultTranscriber, Usage: claybot.Usage{Input: 30, Output: 4, LLMCalls: 1, Unpriced: 1}}
		if err != nil || got != want {
			t.Errorf("got %+v, %v", got, err)
		}
		if a := s.Audios()[0]; a.Name != "audio.oga" || !bytes.Equal(a.Data, voice) || a.Model != DefaultTranscriber {
			t.Errorf("got %+v", a)
		}
		if got, err := c.Transcribe(t.Context(), "", "audio/ogg; codecs=opus", voice); err != nil || got.Text != "heard 15 bytes" || got.Usage.Unpriced != 1 {
			t.Errorf("got %+v, %v", got, err)
		}
		if _, err := c.Transcribe(t.Context(), "a.mp3", "", bytes.Repeat([]byte{1}, llm.MaxAudio)); err != nil {
			t.Errorf("the largest recording: %v", err)
		}
	})
}

func TestTranscribeRetries(t *testing.T) {
	type replies = []openaitest.Reply
	for _, tt := range []struct {
		name    string
		replies replies
		class   llm.Class // empty: success
		tries   int
	}{
		{"cut", replies{{Fault: openaitest.FaultDrop}, {Text: "ok"}}, "", 2},
		{"limited", replies{{Fault: openaitest.FaultRate, RetryAfter: "9"}, {Text: "ok"}}, "", 2},
		{"no header", replies{{Fault: openaitest.FaultHang}, {Text: "ok"}}, "", 2},
		{"silence", replies{{}}, "", 1},
		{"web page", replies{{Fault: openaitest.FaultHTML}, {Fault: openaitest.FaultHTML}, {Fault: openaitest.FaultHTML}}, llm.Transient, 3},
		{"key", replies{{Fault: openaitest.FaultAuth}}, llm.Permanent, 1},
		{"no model", replies{{Fault: openaitest.FaultNotFound}}, llm.Permanent, 1},
	} {
		hearing(t, func(t *testing.T, s *openaitest.Server, c *Transcriber) {
			s.ScriptAudio(tt.replies...)
			_, err := c.Transcribe(t.Context(), "a.mp3", "", voice)
			var e *llm.Error
			if errors.As(err, &e) != (tt.class != "") || e != nil && e.Class != tt.class || len(s.Audios()) != tt.tries {
				t.Errorf("%s: %v after %d tries", tt.name, err, len(s.Audios()))
			}
		})
	}
	hearing(t, func(t *testing.T, s *openaitest.Server, c *Transcriber) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s.ScriptAudio(openaitest.Reply{Fault: openaitest.FaultHang})
		if _, err := c.Transcribe(ctx, "a.mp3", "", voice); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the end of the caller's time", err)
		}
	})
}

// What cannot be transcribed is sent nowhere.
func TestTranscribeRefuses(t *testing.T) {
	hearing(t, func(t *testing.T, s *openaitest.Server, c *Transcriber) {
		for want, bad := range map[string]struct {
			file, mime string
			audio      []byte
		}{
			"empty":            {"a.mp3", "", nil},
			"more than 25 MiB": {"a.mp3", "", make([]byte, llm.MaxAudio+1)},
			"of this form":     {"a.txt", "text/plain", voice},
		} {
			var e *llm.Error
			if _, err := c.Transcribe(t.Context(), bad.file, bad.mime, bad.audio); !errors.As(err, &e) || e.Class != llm.Permanent || !strings.Contains(e.Text, want) {
				t.Errorf("%s: %v", want, err)
			}
		}
		if n := len(s.Audios()) + len(s.Refused()); n != 0 {
			t.Errorf("%d requests were made", n)
		}
		var e *llm.Error
		if _, err := NewTranscriber(TranscriberConfig{BaseURL: "nowhere"}).Transcribe(t.Context(), "a.mp3", "", voice); !errors.As(err, &e) || e.Class != llm.Permanent {
			t.Errorf("a bad base URL: %v", err)
		}
	})
}
