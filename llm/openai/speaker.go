package openai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/provider"
)

// What a Speaker asks for when nothing else is set.
const (
	DefaultSpeaker = "gpt-4o-mini-tts"
	DefaultVoice   = "alloy"
)

const speakPath = "/audio/speech"

// A SpeakerConfig says where text is turned into speech. All fields may be left out.
type SpeakerConfig struct {
	BaseURL  string // DefaultBaseURL
	Key      string // sent as bearer token; none when empty
	Model    string // DefaultSpeaker
	Voice    string // DefaultVoice
	Timeouts provider.Timeouts
	HTTP     http.RoundTripper // provider.NewTransport() when nil
	Log      *slog.Logger      // discards when nil
}

// A Speaker is an llm.Speaker that uses OpenAI's API or one like it. It tries again as
// llm.Retried does.
type Speaker struct {
	cfg SpeakerConfig
	*provider.Client
}

var _ llm.Speaker = (*Speaker)(nil)

// NewSpeaker returns a speaker. It does not connect; with an unusable base URL every call fails.
func NewSpeaker(cfg SpeakerConfig) *Speaker {
	cfg.Model, cfg.Voice, cfg.BaseURL = cmp.Or(cfg.Model, DefaultSpeaker), cmp.Or(cfg.Voice, DefaultVoice), cmp.Or(cfg.BaseURL, DefaultBaseURL)
	address := ""
	if u, err := provider.Endpoint(cfg.BaseURL, speakPath); err == nil {
		address = u.String()
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Speaker{cfg: cfg, Client: provider.New(provider.Config{
		URL: address, Key: cfg.Key, Timeouts: cfg.Timeouts, HTTP: cfg.HTTP,
	}, &api{cfg: Config{Key: cfg.Key}})}
}

// Speak returns a recording of a text of at most llm.MaxSpoken characters.
func (s *Speaker) Speak(ctx context.Context, text string) (llm.Recording, error) {
	switch {
	case s.URL == "":
		return llm.Recording{}, llm.Failed(llm.Permanent, "the base URL of speech is not set properly")
	case strings.TrimSpace(text) == "":
		return llm.Recording{}, llm.Failed(llm.Permanent, "there is nothing to say")
	case utf8.RuneCountInString(text) > llm.MaxSpoken:
		return llm.Recording{}, llm.Failed(llm.Permanent, "the text has more than %d characters", llm.MaxSpoken)
	}
	u := &utterance{Speaker: s, text: text}
	resp, err := llm.Retried(u, llm.Retries{Route: "speech", Log: s.cfg.Log}).Chat(ctx, llm.Request{})
	if err != nil {
		return llm.Recording{}, err
	}
	return llm.Recording{Audio: u.audio, Model: resp.Model, Usage: resp.Usage}, nil
}

// An utterance is one text to say; audio is what the last call returned.
type utterance struct {
	*Speaker
	text  string
	audio []byte
}

// speakRequest is the body of a call
// (developers.openai.com/api/reference/resources/audio/subresources/speech/methods/create, read 2026-11-28).
type speakRequest struct {
	Model  string `json:"model"`
	Input  string `json:"input"`
	Voice  string `json:"voice"`
	Format string `json:"response_format"`
}

func (u *utterance) Chat(ctx context.Context, _ llm.Request) (llm.Response, error) {
	body, err := json.Marshal(speakRequest{Model: u.cfg.Model, Input: u.text, Voice: u.cfg.Voice, Format: "opus"})
	if err != nil {
		return llm.Response{}, llm.Failed(llm.Permanent, "the request cannot be encoded")
	}
	step, cancel := u.Within(ctx)
	defer cancel()
	x, broken := u.Do(step, body, "application/json", "audio/ogg")
	if broken != nil {
		return llm.Response{}, broken
	}
	defer x.Close()
	audio, err := io.ReadAll(io.LimitReader(x, llm.MaxAudio+1))
	switch {
	case err != nil:
		return llm.Response{}, x.Broken(err)
	case len(audio) > llm.MaxAudio:
		return llm.Response{}, llm.Failed(llm.Permanent, "the recording has more than %d MiB", llm.MaxAudio>>20)
	case !bytes.HasPrefix(audio, []byte("OggS")):
		return llm.Response{}, llm.Failed(llm.Transient, "the server sent no Ogg Opus audio; check the base URL, and whether the server knows response_format opus")
	}
	u.audio = audio
	return llm.Response{Model: u.cfg.Model, Stop: llm.StopEnd, Usage: claybot.Usage{LLMCalls: 1, Unpriced: 1}}, nil
}
