package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/openai/openaitest"
)

// A wallet is a Limiter with one hard budget in money that has enough.
type wallet struct {
	charges []llm.Charge
	booked  []claybot.Usage
	soft    bool
}

func (w *wallet) Reserve(_ context.Context, c llm.Charge) (llm.Reservation, error) {
	w.charges = append(w.charges, c)
	if !c.Priced && !w.soft {
		return nil, llm.PriceMissing(c.Model, "your budget for today")
	}
	return w, nil
}

func (w *wallet) Settle(_ context.Context, u claybot.Usage) error {
	w.booked = append(w.booked, u)
	return nil
}

func (w *wallet) Binding() bool { return !w.soft }

// The bound that the configuration sets for a route holds where a budget pays.
func TestBudgetKeepsTheBoundOfTheRoute(t *testing.T) {
	s := openaitest.New(openaitest.Config{})
	url, stop, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for _, tt := range []struct{ set, asked, want int64 }{{300, 0, 300}, {300, 5000, 300}, {5000, 300, 300}, {0, 0, 16_384}} {
		w := new(wallet)
		m := newRoute(configs.Model{Name: "gpt-4o", BaseURL: url, MaxTokens: tt.set}, w, slog.New(slog.DiscardHandler))
		r := llm.Request{MaxTokens: tt.asked, Messages: []llm.Message{{Role: llm.RoleUser, Content: "hi"}}}
		if _, err := m.Chat(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		all := s.Requests()
		if got := int64(all[len(all)-1].MaxTokens); got != tt.want || w.charges[0].Tokens != llm.MostInput("gpt-4o", r)+tt.want {
			t.Errorf("set to %d, asked for %d: bounded to %d, charged %+v", tt.set, tt.asked, got, w.charges[0])
		}
	}
}

// A reply is not spoken where a hard budget in money must hold, and counted elsewhere.
func TestSpokenRepliesArePaidFor(t *testing.T) {
	s := openaitest.New(openaitest.Config{})
	url, stop, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	w := new(wallet)
	x := speaker{newSpeaker(configs.Speech{BaseURL: url, Voice: "onyx"}, slog.New(slog.DiscardHandler)), "gpt-4o-mini-tts", func() llm.Limiter { return w }}
	run := claybot.Run{ID: "r", Agent: "a"}
	_, err = x.say(t.Context(), run, "hello")
	limit, ok := errors.AsType[*llm.LimitError](err)
	if !ok || !strings.Contains(limit.Text, "your budget for today") || len(s.Spoken()) != 0 {
		t.Errorf("got %v, %d were sent", err, len(s.Spoken()))
	}
	if c := w.charges[0]; c.Run != "r" || c.Agent != "a" || c.Model != "gpt-4o-mini-tts" {
		t.Errorf("charged %+v", c)
	}
	w.soft = true
	spoken, err := x.say(t.Context(), run, "hello")
	want := claybot.Usage{LLMCalls: 1, Unpriced: 1}
	if err != nil || string(spoken.Audio) != openaitest.SpeechOf("hello") || s.Spoken()[0].Voice != "onyx" || len(w.booked) != 1 || w.booked[0] != want {
		t.Errorf("got %+v, %v; booked %+v", spoken, err, w.booked)
	}
	s.ScriptSpeech(openaitest.Reply{Fault: openaitest.FaultAuth})
	if _, err = x.say(t.Context(), run, "hello"); err == nil || len(w.booked) != 2 || w.booked[1] != (claybot.Usage{}) {
		t.Errorf("%v; booked %+v", err, w.booked)
	}
}

// A transcription is refused where a hard budget in money must hold, before
// anything is read or sent, and counted elsewhere.
func TestRecordingsArePaidFor(t *testing.T) {
	s := openaitest.New(openaitest.Config{})
	url, stop, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	opened := 0
	open := func() (io.ReadCloser, error) {
		opened++
		return io.NopCloser(bytes.NewReader([]byte("OggS"))), nil
	}
	run := claybot.Run{ID: "r", Agent: "a"}
	f := claybot.FileReference{Name: "a.ogg", MIMEType: "audio/ogg"}
	w := new(wallet)
	log := slog.New(slog.DiscardHandler)
	l := listener{newTranscriber(configs.Transcription{BaseURL: url}, log), "whisper-1", func() llm.Limiter { return w }}
	_, err = l.hear(t.Context(), run, f, open)
	limit, ok := errors.AsType[*llm.LimitError](err)
	if !ok || !strings.Contains(limit.Text, "your budget for today") || opened != 0 || len(s.Audios()) != 0 {
		t.Errorf("got %v, opened %d times, %d were sent", err, opened, len(s.Audios()))
	}
	if c := w.charges[0]; c.Run != "r" || c.Agent != "a" || c.Model != "whisper-1" {
		t.Errorf("charged %+v", c)
	}
	w.soft = true
	s.ScriptAudio(openaitest.Reply{Text: "hello", Usage: &openaitest.Usage{Prompt: 30, Completion: 4}})
	speech, err := l.hear(t.Context(), run, f, open)
	want := claybot.Usage{Input: 30, Output: 4, LLMCalls: 1, Unpriced: 1}
	if err != nil || speech.Text != "hello" || speech.Usage != want || len(w.booked) != 1 || w.booked[0] != want {
		t.Errorf("heard %+v, %v; booked %+v", speech, err, w.booked)
	}
	broken := errors.New("disk")
	_, err = l.hear(t.Context(), run, f, func() (io.ReadCloser, error) { return nil, broken })
	if !errors.Is(err, broken) || len(w.booked) != 2 || w.booked[1] != (claybot.Usage{}) {
		t.Errorf("%v; booked %+v", err, w.booked)
	}
}
