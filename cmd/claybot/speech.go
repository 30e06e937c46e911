package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/budgets"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/openai"
)

// A hearing turns a recording that came with a run into text.
type hearing = func(ctx context.Context, run claybot.Run, f claybot.FileReference, open func() (io.ReadCloser, error)) (llm.Speech, error)

// newHearing returns what turns recordings into text; nil if that is not configured. It
// refuses recordings while a bad setting says where they would go.
func newHearing(config *settings, log *slog.Logger, limiter func() *budgets.Limiter) hearing {
	c := config.began.Transcription
	if !c.Wanted() {
		return nil
	}
	l := listener{newTranscriber(c, log), cmp.Or(c.Model, openai.DefaultTranscriber), func() llm.Limiter { return limiter() }}
	return func(ctx context.Context, run claybot.Run, f claybot.FileReference, open func() (io.ReadCloser, error)) (llm.Speech, error) {
		if why := config.Load().Transcription.Off(); why != "" {
			return llm.Speech{}, llm.Failed(llm.Off, "%s", why)
		}
		return l.hear(ctx, run, f, open)
	}
}

func newTranscriber(c configs.Transcription, log *slog.Logger) llm.Transcriber {
	return openai.NewTranscriber(openai.TranscriberConfig{BaseURL: c.BaseURL, Key: c.Key.Value(), Model: c.Model, Log: log})
}

// A listener transcribes recordings unless a budget forbids it.
type listener struct {
	llm.Transcriber
	model   string
	limiter func() llm.Limiter // asked with each recording
}

// A speaking turns the reply of a run into speech.
type speaking = func(ctx context.Context, run claybot.Run, text string) (llm.Recording, error)

// newSpeaking returns what speaks replies; nil if that is not configured. Nothing is sent while a
// bad setting says where it would go.
func newSpeaking(config *settings, log *slog.Logger, limiter func() *budgets.Limiter) speaking {
	c := config.began.Speech
	if !c.Wanted() {
		return nil
	}
	s := speaker{newSpeaker(c, log), cmp.Or(c.Model, openai.DefaultSpeaker), func() llm.Limiter { return limiter() }}
	return func(ctx context.Context, run claybot.Run, text string) (llm.Recording, error) {
		if why := config.Load().Speech.Off(); why != "" {
			return llm.Recording{}, llm.Failed(llm.Off, "%s", why)
		}
		return s.say(ctx, run, text)
	}
}

func newSpeaker(c configs.Speech, log *slog.Logger) llm.Speaker {
	return openai.NewSpeaker(openai.SpeakerConfig{BaseURL: c.BaseURL, Key: c.Key.Value(), Model: c.Model, Voice: c.Voice, Log: log})
}

// A speaker speaks replies unless a budget forbids it.
type speaker struct {
	llm.Speaker
	model   string
	limiter func() llm.Limiter // asked with each reply
}

// say is a speaking.
func (s speaker) say(ctx context.Context, run claybot.Run, text string) (spoken llm.Recording, err error) {
	settle, err := reserve(ctx, s.limiter(), run, s.model, "speech")
	if err != nil {
		return spoken, err
	}
	defer func() { settle(ctx, spoken.Usage) }()
	return s.Speak(ctx, text)
}

// settleTime bounds the settlement of a recording whose run may have ended.
const settleTime = 30 * time.Second

// hear is a hearing.
func (l listener) hear(ctx context.Context, run claybot.Run, f claybot.FileReference, open func() (io.ReadCloser, error)) (speech llm.Speech, err error) {
	settle, err := reserve(ctx, l.limiter(), run, l.model, "a transcription")
	if err != nil {
		return speech, err
	}
	defer func() { settle(ctx, speech.Usage) }()
	r, err := open()
	if err != nil {
		return speech, fmt.Errorf("open the recording: %w", err)
	}
	defer r.Close()
	audio, err := io.ReadAll(io.LimitReader(r, llm.MaxAudio+1))
	if err != nil {
		return speech, fmt.Errorf("read the recording: %w", err)
	}
	return l.Transcribe(ctx, f.Name, f.MIMEType, audio)
}

// reserve asks the budgets of a run for a call whose cost is known neither before nor afterwards; what
// names it. settle must be called with what it used.
func reserve(ctx context.Context, limiter llm.Limiter, run claybot.Run, model, what string) (settle func(context.Context, claybot.Usage), err error) {
	held, err := limiter.Reserve(ctx, llm.Charge{Agent: run.Agent, Run: run.ID, Model: model})
	if limit, ok := errors.AsType[*llm.LimitError](err); ok && limit.Key == "" {
		said := *limit
		said.Text = fmt.Sprintf("The price of %s is unknown, so %s could not be kept.", what, limit.Name)
		return nil, &said
	}
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, used claybot.Usage) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
		defer cancel()
		_ = held.Settle(ctx, used) // the Limiter logs what it cannot record
	}, nil
}
