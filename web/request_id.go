package web

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"

	"github.com/claybot/claybot"
)

// requestHeader is the header with the id of a request. OpenAI's clients show it with errors.
const requestHeader = "X-Request-Id"

// maxRequestID is the maximum length of the id of a request.
const maxRequestID = 128

type requestKey struct{}

// RequestID returns the id of the request of a context: the one that its client or proxy gave
// it, or a random one.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestKey{}).(string)
	return id
}

// numbered gives each request an id and returns it with the response. It keeps the id that came
// with the request if that is 1 to 128 letters, digits and . _ : - Its context belongs to the trace
// of its header traceparent.
func numbered(next http.Handler) http.Handler {
	odd := func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("._:-", c))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(requestHeader)
		if id == "" || len(id) > maxRequestID || strings.ContainsFunc(id, odd) {
			id = rand.Text()
		}
		w.Header().Set(requestHeader, id)
		ctx := context.WithValue(r.Context(), requestKey{}, id)
		if caller := claybot.ParseTrace(r.Header.Get("Traceparent")); caller.ID != "" {
			ctx = claybot.WithTrace(ctx, caller)
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}
