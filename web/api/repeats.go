package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

const (
	// repeatWindow is how long after the end of a run a retry of its request gets its answer.
	repeatWindow = 10 * time.Minute
	// settleWait bounds how long a response waits for the record that it is delivered.
	settleWait = 5 * time.Second
	// holdWait bounds how long a request waits for the end of another one with the same content.
	holdWait = 2 * time.Second
	// retryCount is the header with the retry number of the OpenAI libraries.
	retryCount = "X-Stainless-Retry-Count"
)

// A repeat recognizes the retry of a request without Idempotency-Key. All requests of one
// token with the same content share a base id; each resulting message has its own id below
// it. The mark contains, separated by spaces, the id of the next message, that of the last
// delivered message and, while that answer is being sent, the sending process. A process
// that finds another one there does not know whether the answer arrived.
//
// A request is a retry, and gets the answer of the same run:
//   - while that run is active or waits for an answer,
//   - within repeatWindow of its end, unless a client received the whole answer,
//   - within repeatWindow of its end, if the process that sent the answer crashed before it
//     had written all of it,
//   - within repeatWindow of its end, if the client marks it as a retry.
//
// A request that begins a conversation may be of another person of the same program. It is a retry only if
// no other request is connected for that answer, if it does not say that it is the first try, and not after the
// whole answer was written.
//
// Every other request is a new message.
type repeat struct {
	notes  *notes
	base   string // of the ids; name of the mark
	which  string // id of the message, below the base
	set    string // the last written mark
	sent   bool   // set marks the answer as being sent
	begins bool   // the request begins a conversation
	held   string // the key of the message that the request holds; see hold
}

// notes records which answers this process delivered. The mutex guards the time from
// reading a mark to writing it.
type notes struct {
	mu      sync.Mutex
	marks   storage.Checkpoints // nil: no records
	process string              // name of this process in marks
	runs    web.Runs
	log     *slog.Logger
	held    sync.Map // the keys of the messages that requests of this process hold; a channel is closed at the end
}

// readMark returns the ids of the next and the last message, and the sender of its answer.
func readMark(mark string) (next, last, sender string) {
	next, rest, _ := strings.Cut(mark, " ")
	last, sender, _ = strings.Cut(rest, " ")
	return next, last, sender
}

// repeatOf returns the repeat of a request, or nil if deliveries are not recorded. The body
// is a JSON object.
func (n *notes) repeatOf(r *http.Request, body []byte) (*repeat, error) {
	if n.marks == nil {
		return nil, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, fmt.Errorf("read the fields of a request: %w", err)
	}
	delete(fields, "stream") // does not change the question
	delete(fields, "stream_options")
	same, err := json.Marshal(fields) // sorted, without spaces
	if err != nil {
		return nil, fmt.Errorf("order the fields of a request: %w", err)
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%q\n", web.CallerOf(r).Name)
	sum.Write(same)
	return &repeat{notes: n, base: "same=" + hex.EncodeToString(sum.Sum(nil)[:16])}, nil
}

// key returns the last part of the id of the message; clients cannot choose such an id.
func (p *repeat) key() string {
	if p.which == "" {
		return p.base
	}
	return p.base + "." + p.which
}

func (p *repeat) mark() string {
	return storage.CheckpointRepeats + strings.TrimPrefix(p.base, "same=")
}

// find looks for the message that the request repeats; otherwise it sets the id of the new
// message. known looks up a message.
func (p *repeat) find(r *http.Request, known func(key string) (agentsystem.Accepted, bool, error)) (agentsystem.Accepted, bool, error) {
	none := agentsystem.Accepted{}
	if p.begins {
		return p.findAlone(r, known)
	}
	mark, err := p.notes.marks.Checkpoint(r.Context(), p.mark())
	if err != nil {
		return none, false, err
	}
	next, last, sender := readMark(mark)
	tries := []string{next}
	lost := sender != "" && sender != p.notes.process
	if n, _ := strconv.Atoi(r.Header.Get(retryCount)); lost || n > 0 && mark != "" {
		tries = append(tries, last)
	}
	taken := false
	for i, which := range tries {
		p.which = which
		got, found, err := known(p.key())
		if err != nil && !errors.Is(err, agentsystem.ErrUsed) {
			return none, false, err
		}
		if err == nil && found {
			if fresh, err := p.fresh(r.Context(), got); err != nil || fresh {
				return got, fresh, err
			}
		}
		if i == 0 {
			taken = found || err != nil
			if taken {
				break // it is over; earlier ones are older still
			}
		}
	}
	p.which = next
	if taken {
		return none, false, p.advance(r.Context(), next, "")
	}
	return none, false, nil
}

// findAlone is find for a request that begins a conversation. It holds the message.
func (p *repeat) findAlone(r *http.Request, known func(key string) (agentsystem.Accepted, bool, error)) (none agentsystem.Accepted, _ bool, _ error) {
	first := r.Header.Get(retryCount) == "0"
	for r.Context().Err() == nil {
		mark, err := p.notes.marks.Checkpoint(r.Context(), p.mark())
		if err != nil {
			return none, false, err
		}
		next, last, sender := readMark(mark)
		got, state, err := p.try(r.Context(), next, first, known)
		if err != nil || state == tryFound {
			return got, state == tryFound, err
		}
		if state == tryTaken {
			if err := p.advance(r.Context(), next, ""); err != nil {
				return none, false, err
			}
			continue
		}
		if first || sender == "" || sender == p.notes.process {
			return none, false, nil
		}
		p.release() // the process that sent the last answer has crashed
		if got, state, err = p.try(r.Context(), last, false, known); err != nil || state == tryFound {
			return got, state == tryFound, err
		}
		p.release()
		if _, state, err = p.try(r.Context(), next, true, known); err != nil || state == tryFree {
			return none, false, err
		}
	}
	return none, false, context.Cause(r.Context())
}

// What a message is for a request: not there, another one, or that which the request repeats.
const (
	tryFree = iota
	tryTaken
	tryFound
)

// try looks at one message, and holds it if it is free or found.
func (p *repeat) try(ctx context.Context, which string, first bool, known func(key string) (agentsystem.Accepted, bool, error)) (got agentsystem.Accepted, state int, err error) {
	p.which = which
	if !p.hold(ctx, first) {
		return got, tryTaken, nil
	}
	got, found, err := known(p.key())
	used := errors.Is(err, agentsystem.ErrUsed)
	switch {
	case used:
		err = nil
	case err == nil && !found:
		return got, tryFree, nil
	case err == nil && !first:
		if found, err = p.fresh(ctx, got); found && err == nil {
			return got, tryFound, nil
		}
	}
	p.release()
	return got, tryTaken, err
}

// hold reports whether no other request is connected for the message. The connection of a client that tries again
// may be seen to end only after its next request came: for holdWait, a request that may be that one waits for it.
func (p *repeat) hold(ctx context.Context, first bool) bool {
	ctx, cancel := context.WithTimeout(ctx, holdWait)
	defer cancel()
	for {
		other, taken := p.notes.held.LoadOrStore(p.key(), make(chan struct{}))
		if !taken {
			p.held = p.key()
			return true
		}
		if first {
			return false
		}
		select {
		case <-other.(chan struct{}):
		case <-ctx.Done():
			return false
		}
	}
}

// release lets another request of the same content follow the message.
func (p *repeat) release() {
	if p == nil || p.held == "" {
		return
	}
	if c, ok := p.notes.held.LoadAndDelete(p.held); ok {
		close(c.(chan struct{}))
	}
	p.held = ""
}

// fresh reports whether a request may still be a retry of got.
func (p *repeat) fresh(ctx context.Context, got agentsystem.Accepted) (bool, error) {
	if !got.State.Ended() {
		return true, nil
	}
	run, err := p.notes.runs.Run(ctx, got.Run)
	if errors.Is(err, storage.ErrNotFound) { // it ended long ago
		return false, nil
	}
	return err == nil && run.Ended > claybot.At(time.Now().Add(-repeatWindow)), err
}

// advance moves the mark to the next message, unless that is done. sender is the process
// that sends the answer to the message from, or empty.
func (p *repeat) advance(ctx context.Context, from, sender string) error {
	p.notes.mu.Lock()
	defer p.notes.mu.Unlock()
	mark, err := p.notes.marks.Checkpoint(ctx, p.mark())
	if err != nil {
		return err
	}
	next, last, other := readMark(mark)
	p.which = next
	switch {
	case next == from:
		before, _ := strconv.ParseInt(from, 10, 64) // the first has no number
		p.which = fmt.Sprintf("%013d", max(int64(claybot.Now()), before+1))
	case sender == "" || last != from || other == "" || other == sender:
		return nil
	} // otherwise this process sends the answer that the other one may not have sent
	p.set, p.sent = strings.TrimSuffix(p.which+" "+from+" "+sender, " "), sender != ""
	return p.notes.marks.SetCheckpoint(ctx, p.mark(), p.set)
}

// answered records that the answer is about to be sent: from now on the same request is a
// new message, unless the client marks it as a retry. A nil repeat does nothing.
func (p *repeat) answered(ctx context.Context) {
	if p == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleWait)
	defer cancel()
	which := p.which
	if err := p.advance(ctx, which, p.notes.process); err != nil {
		p.notes.log.Warn("failed to record a delivered answer; a retry returns it for 10 minutes", "err", err)
	}
	p.which = which
}

// delivered records that the whole answer was written. Until then, a process that starts
// after a crash of this one treats the same request as a retry.
func (p *repeat) delivered(ctx context.Context) {
	if p == nil || !p.sent {
		return
	}
	next, last, _ := readMark(p.set)
	if err := p.replace(ctx, next+" "+last); err != nil {
		p.notes.log.Warn("failed to record a delivered answer; after a restart, a retry returns it for 10 minutes", "err", err)
	}
}

// unanswered undoes answered: the connection broke while the answer was being sent.
func (p *repeat) unanswered(ctx context.Context) {
	if p == nil || p.set == "" {
		return
	}
	if err := p.replace(ctx, p.which+" "); err != nil {
		p.notes.log.Warn("lost answer not noted; a retry that does not say so is another message", slog.Any("err", err))
	}
}

// replace replaces the last written mark, if it is unchanged.
func (p *repeat) replace(ctx context.Context, with string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleWait)
	defer cancel()
	p.notes.mu.Lock()
	defer p.notes.mu.Unlock()
	mark, err := p.notes.marks.Checkpoint(ctx, p.mark())
	if err == nil && mark == p.set {
		err = p.notes.marks.SetCheckpoint(ctx, p.mark(), with)
	}
	return err
}
