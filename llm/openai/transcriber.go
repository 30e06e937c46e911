package openai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"mime/multipart"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/provider"
)

// DefaultTranscriber is the model that a Transcriber asks for when none is set.
const DefaultTranscriber = "whisper-1"

const speechPath = "/audio/transcriptions"

// A TranscriberConfig says where speech is turned into text. All fields may be
// left out.
type TranscriberConfig struct {
	BaseURL  string // DefaultBaseURL
	Key      string // sent as bearer token; none when empty
	Model    string // DefaultTranscriber
	Headers  map[string]string
	Timeouts provider.Timeouts
	HTTP     http.RoundTripper // provider.NewTransport() when nil
	Log      *slog.Logger      // discards when nil
}

// A Transcriber is an llm.Transcriber that uses OpenAI's API or one like it. It
// tries again as llm.Retried does.
type Transcriber struct {
	cfg TranscriberConfig
	*provider.Client
}

var _ llm.Transcriber = (*Transcriber)(nil)

// NewTranscriber returns a transcriber. It does not connect; with an unusable
// base URL every call fails.
func NewTranscriber(cfg TranscriberConfig) *Transcriber {
	cfg.Model, cfg.BaseURL = cmp.Or(cfg.Model, DefaultTranscriber), cmp.Or(cfg.BaseURL, DefaultBaseURL)
	address := ""
	if u, err := provider.Endpoint(cfg.BaseURL, speechPath); err == nil {
		address = u.String()
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Transcriber{cfg: cfg, Client: provider.New(provider.Config{
		URL: address, Key: cfg.Key, Headers: cfg.Headers, Timeouts: cfg.Timeouts, HTTP: cfg.HTTP,
	}, &api{cfg: Config{Key: cfg.Key}})}
}

// Transcribe returns what is said in audio: mp3, mp4, m4a, ogg, wav, webm or
// flac of at most llm.MaxAudio bytes.
func (t *Transcriber) Transcribe(ctx context.Context, name, mime string, audio []byte) (llm.Speech, error) {
	ending, ok := ending(name, mime)
	switch {
	case t.URL == "":
		return llm.Speech{}, llm.Failed(llm.Permanent, "the base URL of the transcription is not set properly")
	case len(audio) == 0:
		return llm.Speech{}, llm.Failed(llm.Permanent, "the recording is empty")
	case len(audio) > llm.MaxAudio:
		return llm.Speech{}, llm.Failed(llm.Permanent, "the recording has more than %d MiB", llm.MaxAudio>>20)
	case !ok:
		return llm.Speech{}, llm.Failed(llm.Permanent, "recordings of this form cannot be transcribed")
	}
	speech := spoken{t, "audio." + ending, audio}
	resp, err := llm.Retried(speech, llm.Retries{Route: "transcription", Log: t.cfg.Log}).Chat(ctx, llm.Request{})
	if err != nil {
		return llm.Speech{}, err
	}
	return llm.Speech{Text: resp.Text, Model: resp.Model, Usage: resp.Usage}, nil
}

// endings are the forms that the API knows, by the ending of a name.
var endings = []string{"flac", "m4a", "mp3", "mp4", "mpeg", "mpga", "oga", "ogg", "wav", "webm"}

// ending tells the form of a recording by its name, or else by its type.
func ending(name, kind string) (string, bool) {
	if e := strings.TrimPrefix(strings.ToLower(path.Ext(name)), "."); slices.Contains(endings, e) {
		return e, true
	} else if e == "opus" {
		return "ogg", true
	}
	kind, _, _ = mime.ParseMediaType(kind) // an unreadable one is none of these
	e, ok := map[string]string{
		"audio/ogg": "ogg", "application/ogg": "ogg", "audio/opus": "ogg", "audio/mpeg": "mp3", "audio/mp3": "mp3",
		"audio/mp4": "m4a", "audio/m4a": "m4a", "audio/x-m4a": "m4a", "audio/aac": "m4a", "video/mp4": "mp4",
		"audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav", "audio/webm": "webm", "video/webm": "webm",
		"audio/flac": "flac", "audio/x-flac": "flac",
	}[kind]
	return e, ok
}

type spoken struct {
	*Transcriber
	name  string
	audio []byte
}

func (s spoken) Chat(ctx context.Context, _ llm.Request) (llm.Response, error) {
	body, kind, err := s.form()
	if err != nil {
		return llm.Response{}, llm.Failed(llm.Permanent, "the request cannot be encoded")
	}
	step, cancel := s.Within(ctx)
	defer cancel()
	x, broken := s.Do(step, body, kind, "application/json")
	if broken != nil {
		return llm.Response{}, broken
	}
	defer x.Close()
	text, err := io.ReadAll(io.LimitReader(x, 1<<20)) // hours of speech
	if err != nil {
		return llm.Response{}, x.Broken(err)
	}
	return s.answer(text)
}

func (s spoken) form() (body []byte, kind string, err error) {
	var b bytes.Buffer
	b.Grow(len(s.audio) + 1<<10)
	w := multipart.NewWriter(&b)
	file, err := w.CreateFormFile("file", s.name)
	if err == nil {
		_, err = file.Write(s.audio)
	}
	err = errors.Join(err, w.WriteField("model", s.cfg.Model), w.WriteField("response_format", "json"), w.Close())
	return b.Bytes(), w.FormDataContentType(), err
}

func (s spoken) answer(body []byte) (llm.Response, error) {
	var out struct {
		Text  *string `json:"text"`
		Model string  `json:"model"`
		Usage struct {
			Input  int64 `json:"input_tokens"`
			Output int64 `json:"output_tokens"`
		} `json:"usage"`
	}
	if err := json.Unmarshal(body, &out); err != nil || out.Text == nil {
		return llm.Response{}, llm.Failed(llm.Transient, "the server sent no transcription; check the base URL")
	}
	return llm.Response{
		Text: strings.TrimSpace(strings.ToValidUTF8(*out.Text, "\uFFFD")), Model: cmp.Or(out.Model, s.cfg.Model), Stop: llm.StopEnd,
		Usage: claybot.Usage{Input: max(out.Usage.Input, 0), Output: max(out.Usage.Output, 0), LLMCalls: 1, Unpriced: 1},
	}, nil
}
