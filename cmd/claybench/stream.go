package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/claybot/claybot"
)

// A door is how programs reach a daemon, which may be away and come back at
// another address.
type door struct {
	http  *http.Client
	token string
	base  atomic.Pointer[string]
}

func newDoor() *door {
	d := &door{http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}}}
	d.base.Store(new(string))
	return d
}

func (d *door) close() { d.http.CloseIdleConnections() }

// launch starts the daemon with its page on a free port and waits until it is
// ready.
func (d *door) launch(ctx context.Context, bin, dir, model string, env ...string) (*process, error) {
	p, err := start(ctx, bin, dir, append([]string{
		"OPENAI_API_KEY=sk-test-not-a-key", "OPENAI_BASE_URL=" + model, "CLAYBOT_HTTP_ADDR=127.0.0.1:0",
	}, env...)...)
	if err != nil {
		return nil, err
	}
	if err := p.waitReady(readyLimit); err != nil {
		return nil, errors.Join(err, p.kill())
	}
	base := "http://" + p.addr
	d.base.Store(&base)
	return p, nil
}

// login gets a token from a running daemon, as its owner does.
func (d *door) login(ctx context.Context, bin string, p *process, scope string) error {
	cmd := exec.CommandContext(ctx, bin, "token", "create", "bench-"+scope, "--scope", scope)
	var said bytes.Buffer
	cmd.Env, cmd.Dir, cmd.Stderr = p.cmd.Env, p.dir, &said
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("claybot token create: %w: %s", err, said.Bytes())
	}
	d.token = strings.TrimSpace(string(out))
	return nil
}

// request makes a request with the token.
func (d *door) request(ctx context.Context, method, path string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, *d.base.Load()+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+d.token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// call sends a request and returns the whole response. Any status other than
// success is an error that contains the response body.
func (d *door) call(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := d.request(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	resp, err := d.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		return nil, fmt.Errorf("%s %s: status %d: %.200s", method, path, resp.StatusCode, b)
	}
	return b, nil
}

// say gives an agent of the token something to do and returns the id of the
// run. A repeat under the same key does nothing new.
func (d *door) say(ctx context.Context, channel, key, text string) (claybot.RunID, error) {
	body, err := json.Marshal(map[string]any{
		"descriptor": map[string]string{"channelId": channel}, "idempotencyKey": key, "text": text,
	})
	if err != nil {
		return "", err
	}
	b, err := d.call(ctx, http.MethodPost, "/agents/runs", body)
	if err != nil {
		return "", err
	}
	var answer struct {
		RunID claybot.RunID `json:"runId"`
	}
	if err := json.Unmarshal(b, &answer); err != nil || answer.RunID == "" {
		return "", fmt.Errorf("POST /agents/runs says %.200s: %w", b, cmp.Or(err, errors.New("no run id")))
	}
	return answer.RunID, nil
}

// A note is an event that a reader was told: its seq, and a sum of its bytes.
type note struct {
	seq int64
	sum uint32
}

func newNote(seq int64, wire []byte) note { return note{seq, crc32.ChecksumIEEE(wire)} }

// errCut ends a stream that the other side ended before the last event.
var errCut = errors.New("the stream ended before the run")

// A follower reads the events of one run, and goes on by Last-Event-ID where a
// stream breaks.
type follower struct {
	door  *door
	run   claybot.RunID
	last  int64 // seq of the newest event
	got   []note
	ended bool // the last event has come
	whole bool // all of it was to be read
}

// follow reads until the last event, giving up each stream after some events:
// after is asked for how many, 0 for no limit. It outlives the daemon.
func (f *follower) follow(ctx context.Context, after func() int) error {
	f.whole = true
	for tries := 0; !f.ended; tries++ {
		had := f.last
		err := f.read(ctx, after())
		if ctx.Err() != nil {
			return fmt.Errorf("run %s after event %d: %w", f.run, f.last, cmp.Or(err, context.Cause(ctx)))
		}
		if err != nil && f.last == had && !pause(ctx, time.Millisecond+rand.N(10*time.Millisecond)) {
			return fmt.Errorf("run %s after event %d: %w", f.run, f.last, err)
		}
	}
	return nil
}

// read opens a stream and takes up to most events, or all when most is 0.
func (f *follower) read(ctx context.Context, most int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := f.door.request(ctx, http.MethodGet, f.path(), nil)
	if err != nil {
		return err
	}
	if f.last > 0 {
		req.Header.Set("Last-Event-ID", strconv.FormatInt(f.last, 10))
	}
	resp, err := f.door.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return f.take(resp, most)
}

func (f *follower) path() string { return "/agents/runs/" + string(f.run) + "/stream" }

// take reads the answer to the request for a stream.
func (f *follower) take(resp *http.Response, most int) error {
	if resp.StatusCode == http.StatusNoContent && f.last > 0 {
		f.ended = true // that was all
		return nil
	}
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || kind != "text/event-stream" {
		return fmt.Errorf("the stream of run %s: status %d, %s", f.run, resp.StatusCode, kind)
	}
	before := len(f.got)
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(make([]byte, 0, 8<<10), 1<<20)
	var id int64
	var event claybot.EventType
	var data []byte
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return fmt.Errorf("run %s: the event id %.20q is not a sequence number", f.run, value)
			}
			id = n
		case "event":
			event = claybot.EventType(value)
		case "data":
			data = []byte(value)
		case "": // the end of an event, or a comment
			if id == 0 {
				data = nil // growing text, which has no seq
				continue
			}
			f.got = append(f.got, newNote(id, data))
			f.last, f.ended, id = id, f.ended || event.Ends(), 0
			if most > 0 && len(f.got)-before >= most {
				return nil
			}
		}
	}
	if !f.ended {
		return errors.Join(errCut, lines.Err())
	}
	return lines.Err()
}

// never gives up no stream.
func never() int { return 0 }

// often gives each up after some events.
func often(least, most int) func() int {
	return func() int { return least + rand.IntN(most-least+1) }
}

// faults counts what must not be.
type faults struct {
	gaps     int // events that were left out
	doubled  int // that came twice where once was promised
	disorder int // that came after a later one
	altered  int // that say something else than the store, or are not there
	stories  []string
}

func (f *faults) broken() int { return f.gaps + f.doubled + f.disorder + f.altered }

func (f *faults) String() string {
	return fmt.Sprintf("gaps %d, duplicates %d, out of order %d, altered %d", f.gaps, f.doubled, f.disorder, f.altered)
}

func (f *faults) story(count *int, n int, format string, args ...any) {
	if n == 0 {
		return
	}
	*count += n
	if len(f.stories) < 20 {
		f.stories = append(f.stories, fmt.Sprintf(format, args...))
	}
}

// add puts other faults to these.
func (f *faults) add(g faults) {
	f.gaps, f.doubled, f.disorder, f.altered = f.gaps+g.gaps, f.doubled+g.doubled, f.disorder+g.disorder, f.altered+g.altered
	f.stories = append(f.stories, g.stories[:min(len(g.stories), 20-min(20, len(f.stories)))]...)
}

// compare checks what a reader was told of a run against the store, whose seqs
// count from 1 without gaps. With whole, all of it must have come; else nothing
// may be left out before the newest. With again, events may come more than once;
// compare returns how many did.
func (f *faults) compare(who string, got, want []note, whole, again bool) (repeats int) {
	var gaps, disorder, altered int
	seen := make([]bool, len(want)+1)
	var newest int64
	for _, n := range got {
		if n.seq < 1 || n.seq > int64(len(want)) || n.sum != want[n.seq-1].sum {
			altered++
			continue
		}
		switch {
		case seen[n.seq]:
			repeats++
		case n.seq < newest:
			disorder++
		}
		seen[n.seq] = true
		newest = max(newest, n.seq)
	}
	if whole {
		newest = int64(len(want))
	}
	for _, s := range seen[1 : newest+1] {
		if !s {
			gaps++
		}
	}
	if !again {
		f.story(&f.doubled, repeats, "%s: %d of %d events came twice: %v", who, repeats, len(want), seqs(got))
	}
	f.story(&f.gaps, gaps, "%s: %d of %d events are missing: %v", who, gaps, len(want), seqs(got))
	f.story(&f.disorder, disorder, "%s: %d of %d events are out of order: %v", who, disorder, len(want), seqs(got))
	f.story(&f.altered, altered, "%s: %d of %d events are others than those in the store: %v", who, altered, len(want), seqs(got))
	return repeats
}

// seqs are the numbers of some events, as far as one wants to read them.
func seqs(got []note) []int64 {
	var all []int64
	for n := range slices.Values(got[:min(len(got), 200)]) {
		all = append(all, n.seq)
	}
	return all
}
