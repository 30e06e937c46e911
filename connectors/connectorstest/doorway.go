package connectorstest

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
)

// A Doorway carries requests to a connector that takes them, without a network. Its zero value leads
// nowhere.
type Doorway struct {
	mu sync.Mutex
	to http.Handler
}

// Lead makes requests go to a connector, or nowhere if it is nil.
func (d *Doorway) Lead(to http.Handler) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.to = to
}

// RoundTrip implements http.RoundTripper.
func (d *Doorway) RoundTrip(r *http.Request) (*http.Response, error) {
	d.mu.Lock()
	to := d.to
	d.mu.Unlock()
	if to == nil {
		return nil, errors.New("no route to host")
	}
	w := httptest.NewRecorder()
	to.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err // its sender is gone
	}
	return w.Result(), nil
}
