package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs/webhook"
)

// sinkSecret is what the emulated receiver shares with the daemon.
const sinkSecret = "not-a-secret-of-anybody"

// holdFor is the longest that the receiver takes for an answer.
const holdFor = 30 * time.Millisecond

// A receiver is a webhook outside. It keeps what it got as it came. Half of the
// time it has stored a request before its sender can know, half of the time it
// stores nothing when the sender has gone away meanwhile.
type receiver struct {
	asked chan time.Time // told, without waiting, when a request has come that is held
	open  atomic.Int64   // requests without an answer
	hold  atomic.Bool    // requests that come get no answer: their sender is about to be killed

	mu  sync.Mutex
	got map[claybot.RunID][]note
	bad []string
}

func newReceiver() *receiver {
	return &receiver{asked: make(chan time.Time, 1), got: make(map[claybot.RunID][]note)}
}

func (s *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.open.Add(1)
	defer s.open.Add(-1)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender has gone
	}
	var in struct{ Events []json.RawMessage }
	err = webhook.Verify(sinkSecret, r.Header, body, time.Now(), time.Minute)
	if err == nil {
		err = json.Unmarshal(body, &in)
	}
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.bad = append(s.bad, fmt.Sprintf("%v: %.200s", err, body))
		http.Error(w, "no", http.StatusUnauthorized)
		return
	}
	early := rand.IntN(2) == 0
	if early {
		s.keep(in.Events)
	}
	answer := time.After(rand.N(holdFor))
	if s.hold.Load() {
		answer = nil
		tell(s.asked, time.Now())
	}
	select {
	case <-answer:
	case <-r.Context().Done():
		return
	}
	if !early {
		s.keep(in.Events)
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *receiver) keep(events []json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		if err := keepWire(s.got, e); err != nil {
			s.bad = append(s.bad, err.Error())
		}
	}
}

// keepWire adds an event in its wire form to what is known of its run.
func keepWire(to map[claybot.RunID][]note, wire []byte) error {
	var e struct {
		RunID claybot.RunID
		Seq   int64
	}
	if err := json.Unmarshal(wire, &e); err != nil {
		return fmt.Errorf("%w: %.200q", err, wire)
	}
	to[e.RunID] = append(to[e.RunID], newNote(e.Seq, wire))
	return nil
}

// readLines reads the file of a sink. Every line must be an event, and whole.
func readLines(path string) (map[claybot.RunID][]note, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(b) > 0 && !bytes.HasSuffix(b, []byte("\n")) {
		return nil, errors.New("the last line of the file is cut")
	}
	got := make(map[claybot.RunID][]note)
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if err := keepWire(got, lines.Bytes()); err != nil {
			return nil, err
		}
	}
	return got, lines.Err()
}
