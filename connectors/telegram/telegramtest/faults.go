package telegramtest

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// A Fault makes calls go wrong. Method and Chat choose the calls, Skip lets
// the first of them pass and Times bounds the rest. Of what follows, the first
// that is set happens.
type Fault struct {
	Method string // empty is every method
	Chat   int64  // 0 is every chat
	Skip   int
	Times  int // 0 is once, below 0 for ever

	Delay time.Duration // before anything else; then the call goes on, well or wrong

	Hang bool // no answer until the client gives up; no work is done
	Drop bool // the connection ends; no work is done
	Lost bool // the work is done, the connection ends without an answer
	Cut  bool // the work is done, the answer ends in its middle

	// An answer instead of the work: Body as it is, of type ContentType
	// (default text/html), or else a refusal in Telegram's form.
	Status      int
	Body        string
	ContentType string
	Description string
	RetryAfter  int // seconds
}

// Fail adds a fault. Faults are tried in the order in which they were added.
func (s *Server) Fail(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Times == 0 {
		f.Times = 1
	}
	f.Method = lower(f.Method)
	s.faults = append(s.faults, &f)
}

// Heal removes all faults.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// begin counts a call and finds the fault that strikes it, if any.
func (s *Server) begin(c *call) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[c.method]++
	s.touch()
	if s.cfg.NoJournal && len(s.faults) == 0 {
		return nil
	}
	var p struct {
		ChatID integer `json:"chat_id"`
	}
	_ = json.Unmarshal(c.params, &p) // without a chat it is 0
	c.chat = int64(p.ChatID)
	for i, f := range s.faults {
		if f.Method != "" && f.Method != c.method || f.Chat != 0 && f.Chat != c.chat {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			continue
		}
		hit := *f
		if f.Times > 0 {
			if f.Times--; f.Times == 0 {
				s.faults = append(s.faults[:i:i], s.faults[i+1:]...)
			}
		}
		return &hit
	}
	return nil
}

// before is what happens before the work; true means that it is all.
func (f *Fault) before(s *Server, w http.ResponseWriter, r *http.Request, c *call) bool {
	if f.Delay > 0 {
		t := time.NewTimer(f.Delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-r.Context().Done():
		}
	}
	switch {
	case f.Hang:
		s.end(c, 0, nil)
		select {
		case <-r.Context().Done():
		case <-s.done:
		}
		panic(http.ErrAbortHandler)
	case f.Drop:
		s.end(c, 0, nil)
		panic(http.ErrAbortHandler)
	case f.Lost || f.Cut || f.Status == 0:
		return false
	}
	description := f.Description
	if description == "" {
		description = http.StatusText(f.Status)
	}
	status, body := encode(nil, &apiError{Code: f.Status, Description: description, RetryAfter: f.RetryAfter})
	contentType := "application/json"
	if f.Body != "" {
		body = []byte(f.Body)
		if contentType = f.ContentType; contentType == "" {
			contentType = "text/html"
		}
	}
	s.end(c, status, body)
	write(w, status, contentType, body)
	return true
}

// after is what happens to the answer once the work is done.
func (f *Fault) after(s *Server, w http.ResponseWriter, c *call, answer []byte) {
	switch {
	case f.Lost:
		s.end(c, 0, nil)
		panic(http.ErrAbortHandler)
	case f.Cut:
		s.end(c, 0, answer[:len(answer)/2])
		w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write(answer[:len(answer)/2]) // cut on purpose
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}
