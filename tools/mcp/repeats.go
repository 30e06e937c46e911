package mcp

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

const (
	// repeatWindow is how long after the end of a run a repeated request gets its answer.
	repeatWindow = 10 * time.Minute
	// settleWait bounds the time to record that an answer is delivered.
	settleWait = 5 * time.Second
	// maxOpen is how many requests with the same content are remembered.
	maxOpen = 8
)

// repeats recognizes the retry of a request of ask_agent without a name. A request is a
// retry, and gets the run of the first, if it has the same caller and the same content
// while that run works, waits for a person, or ended within repeatWindow, unless its
// answer was delivered. A request that begins a conversation may be of another person who
// uses the same program: it is no retry of a request of another session that is connected.
//
// The mark of a content has the time and, for each request without a delivered answer, the
// key of its message and the session. It is written before the agent gets the message. The
// mark of a run and a caller leads to the request of that caller.
type repeats struct {
	mu      sync.Mutex // from reading a mark to writing it
	marks   Pins
	sending sync.Map // the keys of requests whose answer is being written; a channel is closed at the end
}

// A request is a request of ask_agent without a name: its content and the key of its message.
type request struct{ base, key string }

func (p *repeats) mark(of string) string { return storage.CheckpointRepeats + of }

// stamped is a mark with the time in front, see storage.CheckpointRepeats.
func stamped(words ...string) string {
	return fmt.Sprintf("%013d %s", int64(claybot.Now()), strings.Join(words, " "))
}

// read returns the words of a mark after its time.
func (p *repeats) read(ctx context.Context, of string) ([]string, error) {
	text, err := p.marks.Checkpoint(ctx, p.mark(of))
	_, words, _ := strings.Cut(text, " ")
	return strings.Fields(words), err
}

// find returns the request of a content, and whether it may have been asked before: by the
// same session, or by one that free allows.
func (p *repeats) find(ctx context.Context, base, session string, free func(session string) bool) (r request, known bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	open, err := p.read(ctx, base)
	if err != nil {
		return r, false, err
	}
	session = sessionMark(session)
	for _, word := range open {
		if key, of, _ := strings.Cut(word, "/"); of == session || free(of) {
			return request{base, key}, true, nil
		}
	}
	r = request{base, base + "." + rand.Text()}
	open = append(open, r.key+"/"+session)
	return r, false, p.marks.SetCheckpoint(ctx, p.mark(base), stamped(open[max(0, len(open)-maxOpen):]...))
}

// forget records that the answer to a request is delivered, or of no use.
func (p *repeats) forget(log *slog.Logger, r request) {
	if r.key == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), settleWait)
	defer cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	open, err := p.read(ctx, r.base)
	var left []string
	for _, word := range open {
		if key, _, _ := strings.Cut(word, "/"); key != r.key {
			left = append(left, word)
		}
	}
	if err == nil && len(left) < len(open) {
		err = p.marks.SetCheckpoint(ctx, p.mark(r.base), stamped(left...))
	}
	if err != nil {
		log.Warn("failed to record a delivered answer of MCP; the same request gets it for 10 minutes", "err", err)
	}
}

// runOf names the mark of a run and a caller.
func runOf(who string, run claybot.RunID) string { return "mcp-run/" + hashed(who, string(run)) }

// remember records to which request of a caller a run belongs whose answer is still to come.
func (p *repeats) remember(ctx context.Context, log *slog.Logger, who string, run claybot.RunID, r request) {
	if err := p.marks.SetCheckpoint(ctx, p.mark(runOf(who, run)), stamped(r.base, r.key)); err != nil {
		log.Warn("failed to record the request of a run of MCP; the same request gets its answer for 10 minutes", "run", run, "err", err)
	}
}

// of returns the request of a caller for a run whose answer was still to come; empty if
// there is none.
func (p *repeats) of(ctx context.Context, log *slog.Logger, who string, run claybot.RunID) request {
	words, err := p.read(ctx, runOf(who, run))
	if err != nil {
		log.Warn("failed to look up the request of a run of MCP; the same request gets its answer for 10 minutes", "run", run, "err", err)
	}
	if len(words) != 2 {
		return request{}
	}
	return request{words[0], words[1]}
}

// send forgets a request once its answer is written to c. Until that is known, the same
// request waits.
func (p *repeats) send(c *line, log *slog.Logger, r request) {
	if r.key == "" {
		return
	}
	known := make(chan struct{})
	p.sending.Store(r.key, known)
	c.atEnd(func(written bool) {
		if written {
			p.forget(log, r)
		}
		p.sending.CompareAndDelete(r.key, known)
		close(known)
	})
}

// sent waits until it is known whether the answer that is being sent to a request was
// written, and reports whether one was being sent.
func (p *repeats) sent(ctx context.Context, key string) bool {
	known, sending := p.sending.Load(key)
	if !sending {
		return false
	}
	select {
	case <-known.(chan struct{}):
		return true
	case <-ctx.Done():
	case <-time.After(settleWait):
	}
	return false
}
