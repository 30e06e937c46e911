package main

import (
	"encoding/json"
	"io"
	"net/http"
	"time"
)

// modelServer is the cheapest server that speaks the streaming chat API: it
// answers "ok" after a while. It does not check requests, so that the figures
// are those of its callers.
func modelServer(latency time.Duration) http.Handler {
	const body = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"bench","choices":[{"index":0,"delta":{"role":"assistant","content":"ok"},"finish_reason":null}]}

data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"bench","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"bench","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":1,"total_tokens":11}}

data: [DONE]

`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		if latency > 0 {
			select {
			case <-time.After(latency):
			case <-r.Context().Done():
				return
			}
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, body) // a caller that is gone needs no answer
	})
}

// update is what the bare loop reads of a Telegram update.
type update struct {
	ID      int64 `json:"update_id"`
	Message struct {
		Text string `json:"text"`
		Chat struct {
			ID int64 `json:"id"`
		} `json:"chat"`
	} `json:"message"`
}

func decodeUpdates(body []byte) ([]update, error) {
	var answer struct {
		Result []update `json:"result"`
	}
	err := json.Unmarshal(body, &answer)
	return answer.Result, err
}
