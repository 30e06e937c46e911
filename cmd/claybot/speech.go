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

// settleTime bounds the settlement of a recording whose run may have ended.
const settleTime = 30 * time.Second

// hear is a hearing.
func (l listener) hear(ctx context.Context, run claybot.Run, f claybot.FileReference, open func() (io.ReadCloser, error)) (speech llm.Speech, err error) {
	// The cost is known neither before nor afterwards.
	held, err := l.limiter().Reserve(ctx, llm.Charge{Agent: run.Agent, Run: run.ID, Model: l.model})
	if limit, ok := errors.AsType[*llm.LimitError](err); ok && limit.Key == "" {
		said := *limit
		said.Text = fmt.Sprintf("The price of a transcription is unknown, so %s could not be kept.", limit.Name)
		return speech, &said
	}
	if err != nil {
		return speech, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
		defer cancel()
		_ = held.Settle(ctx, speech.Usage) // the Limiter logs what it cannot record
	}()
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
