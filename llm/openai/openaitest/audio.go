package openaitest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/claybot/claybot/llm"
)

// An Audio is a recording that the emulator accepted.
type Audio struct {
	Name  string // of the file
	Model string
	Data  []byte
}

var audioEndings = []string{".flac", ".m4a", ".mp3", ".mp4", ".mpeg", ".mpga", ".oga", ".ogg", ".wav", ".webm"}

// ScriptAudio sets how the next recordings are answered: with the text, or the
// fault, of a reply. Others are answered with "heard <n> bytes".
func (s *Server) ScriptAudio(replies ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.audioScript = append(s.audioScript, replies...)
}

// Audios returns the accepted recordings, oldest first.
func (s *Server) Audios() []Audio {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.audios)
}

func (s *Server) transcriptions(w http.ResponseWriter, hr *http.Request) {
	a, err := s.decodeAudio(w, hr)
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
	s.audios = append(s.audios, a)
	reply := Reply{Text: "heard " + strconv.Itoa(len(a.Data)) + " bytes"}
	if len(s.audioScript) > 0 {
		reply, s.audioScript = s.audioScript[0], s.audioScript[1:]
	}
	s.mu.Unlock()
	if !reply.free(hr.Context()) || !pause(hr.Context(), s.cfg.Latency+reply.Delay) {
		return
	}
	if e := reply.Fault.status(Request{}, reply); e != nil {
		e.write(w)
		return
	}
	if status, kind, body, ok := reply.Fault.raw(); ok {
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
	out := map[string]any{"text": reply.Text}
	if u := reply.Usage; u != nil {
		out["usage"] = map[string]any{"type": "tokens", "input_tokens": u.Prompt, "output_tokens": u.Completion}
	}
	writeJSON(w, http.StatusOK, out)
}

// decodeAudio reads and checks a recording.
func (s *Server) decodeAudio(w http.ResponseWriter, hr *http.Request) (a Audio, err error) {
	if bad := s.authorize(hr); bad != nil {
		return a, bad
	}
	hr.Body = http.MaxBytesReader(w, hr.Body, llm.MaxAudio+1<<20)
	parts, err := hr.MultipartReader()
	if err != nil {
		return a, refuse("", "the body is not multipart/form-data")
	}
	for {
		p, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return a, err
		}
		data, err := io.ReadAll(p)
		if err != nil {
			return a, err
		}
		switch name := p.FormName(); name {
		case "file":
			a.Name, a.Data = p.FileName(), data
		case "model":
			a.Model = string(data)
		case "response_format":
			if string(data) != "json" {
				return a, refuse(name, "this emulator knows json only")
			}
		default:
			return a, refuse(name, "Unrecognized request argument supplied: %s", name)
		}
	}
	switch {
	case len(bytes.TrimSpace(a.Data)) == 0:
		return a, refuse("file", "Audio file might be corrupted or unsupported")
	case len(a.Data) > llm.MaxAudio:
		return a, &apiError{status: http.StatusRequestEntityTooLarge, Type: "server_error", Message: "Maximum content size limit exceeded"}
	case !slices.Contains(audioEndings, strings.ToLower(path.Ext(a.Name))):
		return a, refuse("file", "Unrecognized file format. Supported formats: %s", strings.Join(audioEndings, ", "))
	}
	if bad := s.checkModel(a.Model); bad != nil {
		return a, bad
	}
	return a, nil
}
