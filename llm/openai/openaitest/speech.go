package openaitest

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/claybot/claybot/llm"
)

// A Spoken is a text that the emulator accepted to say.
type Spoken struct {
	Model, Text, Voice, Format string
}

// What the service takes: developers.openai.com/api/reference/resources/audio/subresources/speech/methods/create,
// read 2026-11-28. Servers like it have voices of their own.
var (
	speechFormats = []string{"mp3", "opus", "aac", "flac", "wav", "pcm"}
	speechFields  = []string{"model", "input", "voice", "instructions", "response_format", "speed", "stream_format"}
)

// ScriptSpeech sets how the next texts are answered: with the text of a reply as the audio, or
// its fault. Others are answered with SpeechOf the text.
func (s *Server) ScriptSpeech(replies ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.speechScript = append(s.speechScript, replies...)
}

// SpeechOf is the recording of a text: it begins like Ogg, and contains the text.
func SpeechOf(text string) string { return "OggS\x00 opus of: " + text }

// Spoken returns the accepted texts, oldest first.
func (s *Server) Spoken() []Spoken {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.spoken)
}

func (s *Server) speech(w http.ResponseWriter, hr *http.Request) {
	said, err := s.decodeSpeech(w, hr)
	if err != nil {
		var bad *apiError
		if !errors.As(err, &bad) {
			bad = refuse("", "the body cannot be read: %v", err)
		}
		s.journal.refuse(bad.Message)
		bad.write(w)
		return
	}
	s.mu.Lock()
	s.spoken = append(s.spoken, said)
	reply := Reply{Text: SpeechOf(said.Text)}
	if len(s.speechScript) > 0 {
		reply, s.speechScript = s.speechScript[0], s.speechScript[1:]
	}
	s.mu.Unlock()
	if !reply.free(hr.Context()) || !pause(hr.Context(), s.cfg.Latency+reply.Delay) {
		return
	}
	if e := reply.Fault.status(Request{}, reply); e != nil {
		e.write(w)
		return
	}
	kind, body := "audio/ogg", reply.Text
	if status, k, b, ok := reply.Fault.raw(); ok {
		kind, body = k, b
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body)) // the client may have left
		return
	}
	switch reply.Fault {
	case FaultHang:
		<-hr.Context().Done()
		return
	case FaultDrop:
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write([]byte(body)) // the client may have left
}

// decodeSpeech reads and checks a text to say.
func (s *Server) decodeSpeech(w http.ResponseWriter, hr *http.Request) (said Spoken, err error) {
	if bad := s.authorize(hr); bad != nil {
		return said, bad
	}
	if kind := hr.Header.Get("Content-Type"); !strings.HasPrefix(kind, "application/json") {
		return said, refuse("", "the body is %q, not application/json", kind)
	}
	var fields map[string]json.RawMessage
	if err := json.NewDecoder(http.MaxBytesReader(w, hr.Body, 1<<20)).Decode(&fields); err != nil {
		return said, err
	}
	for name := range fields {
		if !slices.Contains(speechFields, name) {
			return said, refuse(name, "Unrecognized request argument supplied: %s", name)
		}
	}
	said.Format = "mp3"
	for name, field := range map[string]*string{"model": &said.Model, "input": &said.Text, "voice": &said.Voice, "response_format": &said.Format} {
		if v, ok := fields[name]; ok && json.Unmarshal(v, field) != nil {
			return said, refuse(name, "Invalid type for '%s': expected a string", name)
		}
	}
	switch {
	case said.Text == "":
		return said, refuse("input", "Missing required parameter: 'input'")
	case utf8.RuneCountInString(said.Text) > llm.MaxSpoken:
		return said, refuse("input", "Invalid 'input': string too long. Expected a string with maximum length %d", llm.MaxSpoken)
	case said.Voice == "":
		return said, refuse("voice", "Missing required parameter: 'voice'")
	case !slices.Contains(speechFormats, said.Format):
		return said, refuse("response_format", "Invalid value: '%s'", said.Format)
	}
	if bad := s.checkModel(said.Model); bad != nil {
		return said, bad
	}
	return said, nil
}
