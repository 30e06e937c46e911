package metrics

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A stuckWriter is the connection of a scraper that does not read.
type stuckWriter struct {
	*httptest.ResponseRecorder
	began, free chan struct{}
}

func (w stuckWriter) Write(b []byte) (int, error) {
	close(w.began)
	<-w.free
	return w.ResponseRecorder.Write(b)
}

// A scraper that did not read its page held the turn of all others.
func TestSlowScraper(t *testing.T) {
	h := oneByOne(New(Config{Serve: yes}).render)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	slow := stuckWriter{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.ServeHTTP(slow, httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil))
	}()
	<-slow.began
	quick := httptest.NewRecorder()
	h.ServeHTTP(quick, httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil))
	close(slow.free)
	<-ended
	for who, w := range map[string]*httptest.ResponseRecorder{"quick": quick, "slow": slow.ResponseRecorder} {
		if !strings.Contains(w.Body.String(), "claybot_build_info") {
			t.Errorf("the %s scraper got %q", who, w.Body.String())
		}
	}
}
