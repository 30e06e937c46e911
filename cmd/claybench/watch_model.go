package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// toolModel is a cheap server that speaks the streaming chat API, for runs that
// have something to show: it says a sentence and calls a tool, as often as it
// shall, and then ends. told gets, without waiting, the time of each answer; it
// may be nil.
func toolModel(steps int, thought time.Duration, told chan<- time.Time) http.Handler {
	answers := make([]string, steps+1)
	for i := range answers {
		answers[i] = toolAnswer(i, i == steps)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		// What stands in a text has its quotes escaped, so this counts messages.
		since := body[max(0, bytes.LastIndex(body, []byte(`"role":"user"`))):]
		step := min(steps, bytes.Count(since, []byte(`"role":"tool"`)))
		select {
		case <-time.After(thought):
		case <-r.Context().Done():
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, answers[step]) // a caller that is gone needs no answer
		tell(told, time.Now())
	})
}

// toolAnswer is what the model says at a step. Each call differs from the one
// before, as they do where something is got done.
func toolAnswer(step int, last bool) string {
	const chunk = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"bench","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}` + "\n\n"
	const usage = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"bench","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":20,"total_tokens":30}}` + "\n\n"
	var b strings.Builder
	for _, words := range []string{"This is what I do ", "while a person watches, ", fmt.Sprintf("for the time number %d.", step+1)} {
		fmt.Fprintf(&b, chunk, fmt.Sprintf(`{"role":"assistant","content":%q}`, words), "null")
	}
	if last {
		fmt.Fprintf(&b, chunk, "{}", `"stop"`)
	} else {
		call := fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"call-%d","type":"function","function":{"name":"wait","arguments":"{\"seconds\":0.%03d}"}}]}`, step, step%20)
		fmt.Fprintf(&b, chunk, call, "null")
		fmt.Fprintf(&b, chunk, "{}", `"tool_calls"`)
	}
	return b.String() + usage + "data: [DONE]\n\n"
}
