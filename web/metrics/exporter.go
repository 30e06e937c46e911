package metrics

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// The bounds of the exporter.
const (
	defaultInterval = 5 * time.Second
	maxQueue        = 2048 // items; the oldest are dropped
	batchSpans      = 512  // after which a request is not made larger
	requestTime     = 10 * time.Second
	lastTime        = 3 * time.Second // for what is left at the end
	firstBackoff    = time.Second
	longBackoff     = time.Minute
	maxRunEvents    = 50_000    // that are read of one run
	maxAnswer       = 256 << 10 // bytes of an answer that are read
)

// An item is what to send: a run that has ended, or a span of one.
type item struct {
	run   claybot.RunID
	agent claybot.AgentID
	span  *span // nil: the run as a whole
}

// exported are the counts of an exporter.
type exported struct {
	queue                        int
	sent, dropped, refused, lost int // items
	spans, requests, failed      int
}

// An exporter sends traces from a bounded queue. Adding to it never blocks.
type exporter struct {
	cfg    Config // its OTLP is that of the start, see to
	log    *slog.Logger
	client *http.Client
	pause  time.Duration // after the first failure
	last   time.Duration // for what is left at the end
	full   chan struct{} // there is enough for a request

	mu    sync.Mutex
	to    OTLP          // where traces are sent to now; without an endpoint, nothing is kept
	moved chan struct{} // closed by the next change of to
	queue []item
	count exported
	ill   string // what was logged as wrong last
}

func newExporter(cfg Config, log *slog.Logger) *exporter {
	if cfg.OTLP.Provider == "" {
		cfg.OTLP.Provider = "openai"
	}
	pool := connectors.NewPool(&http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConns: 1, IdleConnTimeout: 90 * time.Second, ForceAttemptHTTP2: true}, cfg.OTLP.Off)
	pool.Wake()
	return &exporter{
		cfg: cfg, log: log, to: cfg.OTLP, moved: make(chan struct{}),
		client: &http.Client{
			Transport: pool,
			Timeout:   requestTime,
			// The headers are for this receiver alone.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		pause: firstBackoff, last: lastTime, full: make(chan struct{}, 1),
	}
}

// sendTo changes where traces are sent to. What waits goes there, and is dropped without an endpoint.
func (x *exporter) sendTo(o OTLP) {
	x.mu.Lock()
	x.to = o
	if o.Endpoint == "" {
		x.count.dropped += len(x.queue)
		x.queue = nil
	}
	close(x.moved)
	x.moved = make(chan struct{})
	x.mu.Unlock()
	x.client.CloseIdleConnections()
}

// target returns where traces are sent to, and a channel that is closed when that changes.
func (x *exporter) target() (to OTLP, moved <-chan struct{}) {
	x.mu.Lock()
	defer x.mu.Unlock()
	to = x.to
	if to.Interval <= 0 {
		to.Interval = defaultInterval
	}
	return to, x.moved
}

// wanted reports whether traces are sent.
func (x *exporter) wanted() bool {
	to, _ := x.target()
	return to.Endpoint != ""
}

// add queues an item; the oldest makes room for it. It never blocks.
func (x *exporter) add(it item) {
	x.mu.Lock()
	if x.to.Endpoint == "" {
		x.mu.Unlock()
		return
	}
	if len(x.queue) >= maxQueue {
		x.queue = x.queue[1:]
		x.count.dropped++
	}
	x.queue = append(x.queue, it)
	enough := len(x.queue) >= batchSpans
	x.mu.Unlock()
	if enough {
		select {
		case x.full <- struct{}{}:
		default:
		}
	}
}

func (x *exporter) figures() exported {
	x.mu.Lock()
	defer x.mu.Unlock()
	f := x.count
	f.queue = len(x.queue)
	return f
}

// run sends what is queued until ctx is done.
func (x *exporter) run(ctx context.Context) error {
	defer x.client.CloseIdleConnections()
	// A request that is under way at the end is brought to its own end.
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(x.last, cancel) })()
	for {
		to, moved := x.target()
		next := time.NewTimer(to.Interval)
		select {
		case <-ctx.Done():
			for x.flush(sending, ctx) {
			}
			next.Stop()
			return context.Cause(ctx)
		case <-next.C:
		case <-x.full:
		case <-moved:
		}
		next.Stop()
		for x.flush(sending, ctx) {
		}
	}
}

// flush sends the oldest items in one request, and reports whether it is done with
// them and more may wait. It retries until the receiver responds or life is done, but
// tries at least once before ctx is; items that it could not send stay queued.
func (x *exporter) flush(ctx, life context.Context) (more bool) {
	items, spans := x.batch(ctx)
	if len(spans) == 0 {
		return len(items) > 0
	}
	body := otlpBody(x.cfg.Version, spans)
	wait := x.pause
	for {
		to, moved := x.target()
		if to.Endpoint == "" {
			x.counted(func(c *exported) { c.dropped += len(items) })
			return false
		}
		after, err := x.post(ctx, to, body)
		var no *refusal
		if err == nil || ctx.Err() == nil || errors.As(err, &no) {
			x.report(err)
		}
		switch {
		case err == nil:
			x.counted(func(c *exported) { c.sent += len(items); c.spans += len(spans); c.requests++ })
			return true
		case errors.As(err, &no):
			x.counted(func(c *exported) { c.refused += len(items); c.requests++ })
			return true
		}
		x.counted(func(c *exported) { c.requests++; c.failed++ })
		if !rest(life, max(after, wait/2+rand.N(wait/2+1)), moved) {
			x.back(items)
			return false
		}
		wait = min(2*wait, longBackoff)
	}
}

// batch takes items out of the queue and makes their spans.
func (x *exporter) batch(ctx context.Context) (items []item, spans []tracedSpan) {
	for len(spans) < batchSpans && ctx.Err() == nil {
		x.mu.Lock()
		if len(x.queue) == 0 {
			x.queue = nil // and the array it was in
			x.mu.Unlock()
			break
		}
		it := x.queue[0]
		x.queue = x.queue[1:]
		x.mu.Unlock()
		made, err := x.spans(ctx, it)
		if err != nil {
			if ctx.Err() != nil {
				x.back([]item{it})
				break
			}
			x.log.Warn("failed to read the events of a run, skipping its trace", "run", it.run, "agent", it.agent, "err", err)
			x.counted(func(c *exported) { c.lost++ })
			continue
		}
		items, spans = append(items, it), append(spans, made...)
	}
	return items, spans
}

// spans are those of an item.
func (x *exporter) spans(ctx context.Context, it item) ([]tracedSpan, error) {
	t := newTracer(it.run, it.agent, x.cfg.OTLP.Provider)
	if it.span != nil {
		next, stop := iter.Pull2(x.cfg.Events(ctx, it.run, 0))
		defer stop()
		if e, err, ok := next(); ok && err == nil { // the first event says which trace the run belongs to
			t.add(e)
		}
		return []tracedSpan{{t.trace, *it.span}}, nil
	}
	n := 0
	for e, err := range x.cfg.Events(ctx, it.run, 0) {
		if err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		if n++; n > maxRunEvents && !e.Type.Ends() {
			continue
		}
		t.add(e)
	}
	if n == 0 {
		return nil, errors.New("it has none any more")
	}
	all := t.all()
	out := make([]tracedSpan, len(all))
	for i, s := range all {
		out[i] = tracedSpan{t.trace, s}
	}
	return out, nil
}

// back puts items where they were, in front of the queue. Those that do not fit
// any more are dropped, the oldest first.
func (x *exporter) back(items []item) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.to.Endpoint == "" {
		x.count.dropped += len(items)
		return
	}
	over := min(max(len(items)+len(x.queue)-maxQueue, 0), len(items))
	x.count.dropped += over
	x.queue = append(append([]item(nil), items[over:]...), x.queue...)
}

func (x *exporter) counted(change func(*exported)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	change(&x.count)
}

// A refusal is an answer that makes trying again useless.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

// post makes one request. after is how long the receiver asks to wait. An error
// that is no refusal may be over later.
func (x *exporter) post(ctx context.Context, to OTLP, body []byte) (after time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(to.Endpoint, "/")+"/v1/traces", bytes.NewReader(body))
	if err != nil {
		return 0, &refusal{"the address of the receiver is invalid"}
	}
	for name, value := range to.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "claybot/"+x.cfg.Version)
	resp, err := x.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }() // only read from
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch code := resp.StatusCode; {
	case code >= 200 && code < 300:
		return 0, partly(answer)
	case code == http.StatusTooManyRequests || code == http.StatusBadGateway || code == http.StatusServiceUnavailable || code == http.StatusGatewayTimeout:
		return retryAfter(resp.Header), fmt.Errorf("the receiver answers %d", code)
	case err != nil:
		return 0, fmt.Errorf("read the answer: %w", err)
	default:
		return 0, &refusal{fmt.Sprintf("the receiver answers %d", code)}
	}
}

// partly is a refusal when the receiver took a part only. What it says is not
// repeated: it may quote anything.
func partly(answer []byte) error {
	var a struct {
		PartialSuccess struct {
			Rejected json.RawMessage `json:"rejectedSpans"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(answer, &a) != nil {
		return nil // some answer nothing, or in words
	}
	n, err := strconv.ParseInt(strings.Trim(string(a.PartialSuccess.Rejected), `"`), 10, 64)
	if err != nil || n <= 0 {
		return nil
	}
	return &refusal{fmt.Sprintf("the receiver rejected %d spans", n)}
}

// retryAfter is the wait that an answer asks for, at most five minutes.
func retryAfter(h http.Header) time.Duration {
	s, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || s < 0 {
		return 0
	}
	return time.Duration(min(s, 300)) * time.Second
}

// report logs a problem of the export, and its end, once.
func (x *exporter) report(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	x.mu.Lock()
	was := x.ill
	x.ill = text
	x.mu.Unlock()
	switch {
	case was == text:
	case err != nil:
		x.log.Warn("traces cannot be sent", "err", text)
	default:
		x.log.Info("traces are sent again")
	}
}

// rest waits for d, or until wake is closed, and reports whether ctx lasted so long.
func rest(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-wake:
	case <-timer.C:
	}
	return true
}

// exporterFamilies are the metrics of the exporter itself, 0 where no traces are sent.
func exporterFamilies() []*family {
	read := func(name string, k kind, help string, f func(exported) int) *family {
		return &family{name: name, kind: k, help: help, read: func(s *snapshot, set func(float64, ...string)) { set(float64(f(s.exporter))) }}
	}
	return []*family{
		read("claybot_otlp_queue", gauge, "Ended runs, and sends, whose spans wait to be sent.", func(e exported) int { return e.queue }),
		{
			name: "claybot_otlp_exports_total", kind: counter, labels: []string{"outcome"},
			help: "Ended runs, and sends, by what became of their spans: sent, dropped because the queue was full, refused by the receiver, lost because their events could not be read.",
			read: func(s *snapshot, set func(float64, ...string)) {
				set(float64(s.exporter.sent), "sent")
				set(float64(s.exporter.dropped), "dropped")
				set(float64(s.exporter.refused), "refused")
				set(float64(s.exporter.lost), "lost")
			},
		},
		read("claybot_otlp_spans_sent_total", counter, "Spans that the receiver took.", func(e exported) int { return e.spans }),
		read("claybot_otlp_requests_total", counter, "Requests to the receiver.", func(e exported) int { return e.requests }),
		read("claybot_otlp_requests_failed_total", counter, "Requests to the receiver that will be made again.", func(e exported) int { return e.failed }),
	}
}
