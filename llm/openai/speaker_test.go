package openai

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/openai/openaitest"
	"github.com/claybot/claybot/llm/provider"
)

// speaking runs fn with an emulator and a speaker in simulated time.
func speaking(t *testing.T, fn func(t *testing.T, s *openaitest.Server, c *Speaker)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := openaitest.New(openaitest.Config{Key: fakeKey})
		dial, stop := s.Pipe()
		tr := provider.NewTransport()
		tr.Proxy, tr.DialContext = nil, dial
		c := NewSpeaker(SpeakerConfig{BaseURL: "http://model.invalid/v1", Key: fakeKey, HTTP: tr})
		fn(t, s, c)
		c.CloseIdleConnections()
		stop()
	})
}

func TestSpeak(t *testing.T) {
	speaking(t, func(t *testing.T, s *openaitest.Server, c *Speaker) {
		got, err := c.Speak(t.Context(), "hello there")
		want := llm.Recording{Audio: []byte(openaitest.SpeechOf("hello there")), Model: DefaultSpeaker, Usage: claybot.Usage{LLMCalls: 1, Unpriced: 1}}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v", got, err)
		}
		if said := s.Spoken()[0]; said != (openaitest.Spoken{Model: DefaultSpeaker, Text: "hello there", Voice: DefaultVoice, Format: "opus"}) {
			t.Errorf("asked for %+v", said)
		}
		if _, err := c.Speak(t.Context(), strings.Repeat("ä", llm.MaxSpoken)); err != nil {
			t.Errorf("the longest text: %v", err)
		}
	})
}

func TestSpeakRetries(t *testing.T) {
	type replies = []openaitest.Reply
	ok := openaitest.Reply{Text: openaitest.SpeechOf("x")}
	for _, tt := range []struct {
		name    string
		replies replies
		class   llm.Class // empty: success
		tries   int
	}{
		{"cut", replies{{Fault: openaitest.FaultDrop}, ok}, "", 2},
		{"limited", replies{{Fault: openaitest.FaultRate, RetryAfter: "9"}, ok}, "", 2},
		{"no header", replies{{Fault: openaitest.FaultHang}, ok}, "", 2},
		{"another form", replies{{Text: "ID3 mp3"}, {Text: "ID3 mp3"}, {Text: "ID3 mp3"}}, llm.Transient, 3},
		{"empty", replies{{}, ok}, "", 2},
		{"web page", replies{{Fault: openaitest.FaultHTML}, {Fault: openaitest.FaultHTML}, {Fault: openaitest.FaultHTML}}, llm.Transient, 3},
		{"too large", replies{{Text: "OggS" + strings.Repeat("x", llm.MaxAudio)}}, llm.Permanent, 1},
		{"key", replies{{Fault: openaitest.FaultAuth}}, llm.Permanent, 1},
		{"no model", replies{{Fault: openaitest.FaultNotFound}}, llm.Permanent, 1},
	} {
		speaking(t, func(t *testing.T, s *openaitest.Server, c *Speaker) {
			s.ScriptSpeech(tt.replies...)
			_, err := c.Speak(t.Context(), "hello")
			var e *llm.Error
			if errors.As(err, &e) != (tt.class != "") || e != nil && e.Class != tt.class || len(s.Spoken()) != tt.tries {
				t.Errorf("%s: %v after %d tries", tt.name, err, len(s.Spoken()))
			}
		})
	}
	speaking(t, func(t *testing.T, s *openaitest.Server, c *Speaker) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s.ScriptSpeech(openaitest.Reply{Fault: openaitest.FaultHang})
		if _, err := c.Speak(ctx, "hello"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the end of the caller's time", err)
		}
	})
}

// What cannot be said is sent nowhere.
func TestSpeakRefuses(t *testing.T) {
	speaking(t, func(t *testing.T, s *openaitest.Server, c *Speaker) {
		for want, text := range map[string]string{"nothing to say": " \n", "more than 4096 characters": strings.Repeat("x", llm.MaxSpoken+1)} {
			var e *llm.Error
			if _, err := c.Speak(t.Context(), text); !errors.As(err, &e) || e.Class != llm.Permanent || !strings.Contains(e.Text, want) {
				t.Errorf("%s: %v", want, err)
			}
		}
		if n := len(s.Spoken()) + len(s.Refused()); n != 0 {
			t.Errorf("%d requests were made", n)
		}
		var e *llm.Error
		if _, err := NewSpeaker(SpeakerConfig{BaseURL: "nowhere"}).Speak(t.Context(), "x"); !errors.As(err, &e) || e.Class != llm.Permanent {
			t.Errorf("a bad base URL: %v", err)
		}
	})
}
