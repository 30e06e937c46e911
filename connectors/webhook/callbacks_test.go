package webhook

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A call is acknowledged only if what is stored of it, as JSON, is within the limit.
func TestCallbackLimit(t *testing.T) {
	for body, want := range map[string]int{
		`"` + strings.Repeat("x", 98) + `"`: http.StatusAccepted,
		strings.Repeat("x", 98):             http.StatusAccepted,
		strings.Repeat("x", 99):             http.StatusRequestEntityTooLarge, // with its quotes
		strings.Repeat("<", 17):             http.StatusRequestEntityTooLarge, // each as \u003c
		strings.Repeat("\n", 60):            http.StatusBadRequest,
		"\xff":                              http.StatusBadRequest,
	} {
		var stored json.RawMessage
		c := &Callbacks{
			Limit: 100,
			Known: func(context.Context, string, string, string) (bool, error) { return true, nil },
			Take:  func(_ context.Context, _, _ string, value json.RawMessage) error { stored = value; return nil },
		}
		w := httptest.NewRecorder()
		c.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body)))
		if w.Code != want || (stored != nil) != (want == http.StatusAccepted) || len(stored) > 100 {
			t.Errorf("%q: %d, want %d; stored %d bytes: %s", body, w.Code, want, len(stored), w.Body)
		}
	}
}
