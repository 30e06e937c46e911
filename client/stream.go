package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot"
)

// A Frame is one Server-Sent Event.
type Frame struct {
	ID, Name string
	Data     []byte
}

// Stream opens a stream of Server-Sent Events. The channel is closed when the stream or ctx ends.
func (c *Client) Stream(ctx context.Context, path string) (<-chan Frame, error) {
	return c.stream(ctx, path, "")
}

// errNothing reports that there is nothing behind the last id, and never will be.
var errNothing = errors.New("nothing new")

// stream is Stream after the frame with the id last.
func (c *Client) stream(ctx context.Context, path, last string) (<-chan Frame, error) {
	req, err := c.Request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	resp, err := c.Do(req) //nolint:bodyclose // closed by the reader below
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusNoContent {
			return nil, errNothing
		}
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16)) // without a body there is the status
		return nil, refusal(resp, b)
	}
	frames := make(chan Frame)
	go func() { // ends with ctx or the stream, whichever is first
		defer close(frames)
		defer resp.Body.Close()
		read(ctx, resp.Body, frames)
	}()
	return frames, nil
}

// read reads the frames of the daemon, which have one line per field.
func read(ctx context.Context, r io.Reader, frames chan<- Frame) {
	var f Frame
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			f.ID = value
		case "event":
			f.Name = value
		case "data":
			f.Data = []byte(value)
		case "":
			if f.Name != "" {
				select {
				case frames <- f:
				case <-ctx.Done():
					return
				}
			}
			f = Frame{}
		}
	}
}

const (
	// followPause is how long Follow waits before it calls a daemon again that stopped.
	followPause = time.Second
	// followTries is how often it does so in a row without a new event, or a stream that was open for longer than
	// followPause: proxies end silent ones.
	followTries = 60
)

var errStopped = errors.New("the daemon stopped; it resumes the run after its next start")

// Follow yields the events of a run with a seq above after, each once and in order, up to its last, and texts that
// are still growing (TokenDelta), which have no seq. It goes on after a restart of the daemon, which it waits a minute
// for. A refusal of the daemon, the end of the wait and the end of ctx are yielded as an error, and end it.
func (c *Client) Follow(ctx context.Context, run claybot.RunID, after int64) iter.Seq2[claybot.Event, error] {
	return func(yield func(claybot.Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for lost := 0; ; {
			seen := after
			done, open, err := c.follow(ctx, run, &after, yield)
			if done {
				return
			}
			if lost++; after > seen || open > followPause {
				lost = 1
			}
			var refused *Error
			if errors.As(err, &refused) && refused.Status < 500 && refused.Status != http.StatusTooManyRequests || lost > followTries {
				yield(claybot.Event{}, err)
				return
			}
			if claybot.Sleep(ctx, followPause); ctx.Err() != nil {
				yield(claybot.Event{}, context.Cause(ctx))
				return
			}
		}
	}
}

// follow reads one stream. It reports whether there is nothing more to yield, and how long the stream was open.
func (c *Client) follow(ctx context.Context, run claybot.RunID, after *int64, yield func(claybot.Event, error) bool) (done bool, open time.Duration, err error) {
	last := ""
	if *after > 0 {
		last = strconv.FormatInt(*after, 10)
	}
	frames, err := c.stream(ctx, "/agents/runs/"+url.PathEscape(string(run))+"/stream", last)
	if err != nil {
		return errors.Is(err, errNothing), 0, err
	}
	began := time.Now()
	for f := range frames {
		var e claybot.Event
		if json.Unmarshal(f.Data, &e) != nil {
			continue // of a newer version
		}
		*after = max(*after, e.Seq)
		if !yield(e, nil) || e.Type.Ends() {
			return true, time.Since(began), nil
		}
	}
	return false, time.Since(began), errStopped
}
