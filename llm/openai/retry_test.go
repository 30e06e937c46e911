package openai

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/openai/openaitest"
	"github.com/claybot/claybot/llm/provider"
)

// inBubble runs fn with an emulator and a client that are connected in memory,
// in simulated time.
func inBubble(t *testing.T, fn func(t *testing.T, s *openaitest.Server, c llm.Model)) {
	t.Helper()
	inBubbleOf(t, "", fn)
}

// inBubbleOf is inBubble with an emulator of a dialect.
func inBubbleOf(t *testing.T, dialect openaitest.Dialect, fn func(t *testing.T, s *openaitest.Server, c llm.Model)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := openaitest.New(openaitest.Config{Dialect: dialect})
		dial, stop := s.Pipe()
		tr := provider.NewTransport()
		tr.Proxy = nil
		tr.DialContext = dial
		c := New(Config{BaseURL: "http://model.invalid/v1", Model: "m", HTTP: tr})
		fn(t, s, llm.Retried(c, llm.Retries{}))
		c.CloseIdleConnections()
		stop()
	})
}

// What llm.Retried and the client promise together.
const (
	minBackoff = 500 * time.Millisecond
	tailTime   = 5 * time.Second
)

func TestRetry(t *testing.T) {
	type replies = []openaitest.Reply
	fault := func(f openaitest.Fault) openaitest.Reply {
		return openaitest.Reply{Fault: f, Text: "x", Calls: twoCalls}
	}
	after := func(f openaitest.Fault, v string) openaitest.Reply { return openaitest.Reply{Fault: f, RetryAfter: v} }
	good := openaitest.Reply{Text: "ok"}
	for _, tt := range []struct {
		name     string
		script   replies
		class    llm.Class // empty: success
		calls    int
		min, max time.Duration
	}{
		{"at once", replies{good}, "", 1, 0, 0},
		{"second try", replies{fault(openaitest.FaultServer), good}, "", 2, minBackoff, 2 * time.Second},
		{"third try", replies{fault(openaitest.FaultTimeout), fault(openaitest.FaultConflict), good}, "", 3, 2 * minBackoff, 10 * time.Second},
		{"three failures", replies{fault(openaitest.FaultServer), fault(openaitest.FaultGateway), fault(openaitest.FaultPlainError)}, llm.Transient, 3, 2 * minBackoff, 10 * time.Second},
		{"dropped", replies{fault(openaitest.FaultDrop), good}, "", 2, minBackoff, 2 * time.Second},
		{"no header", replies{fault(openaitest.FaultHang), good}, "", 2, time.Minute, 62 * time.Second},
		{"three hangs", replies{fault(openaitest.FaultHang), fault(openaitest.FaultHang), fault(openaitest.FaultHang)}, llm.Transient, 3, 3 * time.Minute, 190 * time.Second},
		{"idle stream", replies{{Fault: openaitest.FaultStall, CutAt: 300, Text: "long"}, good}, "", 2, 2 * time.Minute, 122 * time.Second},
		{"nothing after the end", replies{{Fault: openaitest.FaultStall, CutAt: len(transcript(t, good)) - 15, Text: "ok"}}, "", 1, tailTime, tailTime},
		{"cut", replies{{Fault: openaitest.FaultCut, CutAt: 700, Calls: twoCalls}, good}, "", 2, minBackoff, 2 * time.Second},
		{"no reason of the end", replies{fault(openaitest.FaultNoFinish), good}, "", 2, minBackoff, 2 * time.Second},
		{"web page", replies{fault(openaitest.FaultHTML)}, llm.Permanent, 1, 0, 0},
		{"no stream", replies{{Fault: openaitest.FaultJSON, Text: "ok"}}, "", 1, 0, 0},

		{"no reason of the end, and an end mark", replies{{Fault: openaitest.FaultDoneOnly, Text: "ok"}}, "", 1, 0, 0},
		{"error as JSON", replies{fault(openaitest.FaultJSONError), good}, "", 2, minBackoff, 2 * time.Second},
		{"wrong type", replies{fault(openaitest.FaultPlain), good}, "", 2, minBackoff, 2 * time.Second},
		{"empty", replies{fault(openaitest.FaultEmpty), fault(openaitest.FaultEarlyDone), good}, "", 3, 2 * minBackoff, 10 * time.Second},
		{"error in the stream", replies{fault(openaitest.FaultStreamError), good}, "", 2, minBackoff, 2 * time.Second},
		{"rate in the stream", replies{fault(openaitest.FaultStreamRate), fault(openaitest.FaultStreamRate), fault(openaitest.FaultStreamRate)}, llm.Rate, 3, 2 * minBackoff, 10 * time.Second},
		{"garbage", replies{fault(openaitest.FaultGarbage), good}, "", 2, minBackoff, 2 * time.Second},
		{"retry after seconds", replies{after(openaitest.FaultRate, "7"), good}, "", 2, 7 * time.Second, 7 * time.Second},
		{"retry after milliseconds", replies{after(openaitest.FaultRateMS, "1500"), good}, "", 2, 1500 * time.Millisecond, 1500 * time.Millisecond},
		{"retry after a minute", replies{after(openaitest.FaultUnavailable, "60"), good}, "", 2, time.Minute, time.Minute},
		{"retry after more", replies{after(openaitest.FaultRate, "61")}, llm.Rate, 1, 0, 0},
		{"unavailable for a year", replies{after(openaitest.FaultUnavailable, "31536000")}, llm.Rate, 1, 0, 0},
		{"retry after garbage", replies{after(openaitest.FaultRate, "soon"), good}, "", 2, minBackoff, 2 * time.Second},
		{"retry after the past", replies{after(openaitest.FaultRate, "Sat, 02 Jan 1999 15:04:05 GMT"), good}, "", 2, minBackoff, 2 * time.Second},
		{"quota", replies{fault(openaitest.FaultQuota)}, llm.Permanent, 1, 0, 0},
		{"bad request", replies{fault(openaitest.FaultBadRequest)}, llm.Permanent, 1, 0, 0},
		{"key", replies{fault(openaitest.FaultAuth)}, llm.Permanent, 1, 0, 0},
		{"unknown model", replies{fault(openaitest.FaultNotFound)}, llm.Permanent, 1, 0, 0},
		{"unprocessable", replies{fault(openaitest.FaultDetailError)}, llm.Permanent, 1, 0, 0},
		{"told not to retry", replies{fault(openaitest.FaultServerNoRetry)}, llm.Permanent, 1, 0, 0},
		{"told to retry", replies{fault(openaitest.FaultBadRetry), good}, "", 2, minBackoff, 2 * time.Second},
		{"context by code", replies{fault(openaitest.FaultContext)}, llm.Context, 1, 0, 0},
		{"context by words", replies{fault(openaitest.FaultContextText)}, llm.Context, 1, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *openaitest.Server, c llm.Model) {
				s.Script(tt.script...)
				var shown strings.Builder
				r := ask("x")
				r.Delta = func(offset int, text string) {
					if offset == 0 {
						shown.Reset()
					}
					shown.WriteString(text)
				}
				start := time.Now()
				resp, err := c.Chat(t.Context(), r)
				took := time.Since(start)
				if took < tt.min || took > tt.max+time.Millisecond {
					t.Errorf("took %v, want %v to %v", took, tt.min, tt.max)
				}
				if n := s.Calls(); n != tt.calls {
					t.Errorf("%d calls, want %d", n, tt.calls)
				}
				var e *llm.Error
				switch {
				case tt.class == "" && (err != nil || resp.Text != "ok" || shown.String() != "ok"):
					t.Errorf("got %+v, %v after showing %q", resp, err, shown.String())
				case tt.class != "" && (!errors.As(err, &e) || e.Class != tt.class):
					t.Errorf("got error %v, want class %s", err, tt.class)
				}
				if over := s.Overlaps(); len(over) > 0 {
					t.Errorf("two calls at once for %v", over)
				}
			})
		})
	}
}

// Only content keeps a stream alive: what a provider sends to keep the
// connection open, and blanks, end as stalled like silence. Slow content of any
// kind, reasoning included, does not.
func TestStalls(t *testing.T) {
	chunk := func(delta string) string {
		return `data: {"choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}]}` + "\n\n"
	}
	drip := func(s string) openaitest.Reply {
		return openaitest.Reply{Text: "begun", Fault: openaitest.FaultDrip, Drip: s, Gap: 10 * time.Second}
	}
	good := openaitest.Reply{Text: "ok"}
	for name, first := range map[string]openaitest.Reply{
		"newlines":            drip("\n"),
		"comments":            drip(": keep-alive\n\n"),
		"events without data": drip("event: ping\n\n"),
		"empty pieces":        drip(chunk(`{"content":""}`)),
		"no choices":          drip(`data: {"choices":[]}` + "\n\n"),
		"blank text":          drip(chunk(`{"content":" \n"}`)),
		"blank arguments":     drip(chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"  "}}]}`)),
		"blank reasoning":     drip(chunk(`{"reasoning":" ","reasoning_content":" ","reasoning_details":[]}`)),
		"one byte at a time":  {Text: "slow", Fault: openaitest.FaultSlow, Gap: 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *openaitest.Server, c llm.Model) {
				s.Script(first, good)
				start := time.Now()
				resp, err := c.Chat(t.Context(), ask("x"))
				if took := time.Since(start); err != nil || resp.Text != "ok" || took < 2*time.Minute || took > 122*time.Second {
					t.Errorf("got %q, %v after %v", resp.Text, err, took)
				}
				if n := s.Calls(); n != 2 {
					t.Errorf("%d calls", n)
				}
			})
		})
	}
	long := strings.Repeat("a", 8)
	for name, reply := range map[string]openaitest.Reply{
		"text":              {Text: long},
		"arguments":         {Calls: []claybot.ToolCall{{ID: "c1", Name: "look", Args: `{"a":12}`}}},
		"reasoning_content": {Text: "ok", Thinking: long},
		"reasoning":         {Text: "ok", Thinking: long, ThinkingField: "reasoning"},
	} {
		t.Run("slow "+name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *openaitest.Server, c llm.Model) {
				reply.Piece, reply.Gap = 1, 40*time.Second
				s.Script(reply)
				resp, err := c.Chat(t.Context(), ask("x"))
				if err != nil || resp.Text != reply.Text || len(resp.Calls) != len(reply.Calls) || s.Calls() != 1 {
					t.Errorf("got %+v, %v after %d calls", resp, err, s.Calls())
				}
			})
		})
	}
}

// How long a limit lasts is obeyed in the form that each provider has for it, not only in Retry-After. What only says when a limit
// is whole again delays the next try by a minute at most; what says when to come back ends the call beyond that.
func TestRateLimits(t *testing.T) {
	for _, tt := range []struct {
		dialect openaitest.Dialect
		reset   time.Duration
		want    time.Duration // until the answer; the end of the call after one request when it is 0
	}{
		{"", 7 * time.Second, 7 * time.Second},
		{"", 6 * time.Minute, time.Minute},
		{openaitest.Azure, 26 * time.Second, 26 * time.Second},
		{openaitest.Gemini, 34070 * time.Millisecond, 34070 * time.Millisecond},
		{openaitest.Gemini, 34 * time.Second, 35 * time.Second}, // without the fraction that was cut off
		{openaitest.Gemini, time.Hour, 0},
		{openaitest.OpenRouter, 20 * time.Second, 20 * time.Second},
		{openaitest.OpenRouter, 12 * time.Hour, 0},
	} {
		t.Run(fmt.Sprintf("%s/%s", tt.dialect, tt.reset), func(t *testing.T) {
			inBubbleOf(t, tt.dialect, func(t *testing.T, s *openaitest.Server, c llm.Model) {
				s.Script(openaitest.Reply{Fault: openaitest.FaultRate, Reset: tt.reset}, openaitest.Reply{Text: "ok"})
				start := time.Now()
				resp, err := c.Chat(t.Context(), ask("x"))
				took := time.Since(start)
				if e, limited := errors.AsType[*llm.Error](err); tt.want == 0 {
					if !limited || e.Class != llm.Rate || s.Calls() != 1 || e.RetryAfter < tt.reset-time.Second || e.RetryAfter > tt.reset+time.Second {
						t.Errorf("got %+v after %d calls", err, s.Calls())
					}
				} else if err != nil || resp.Text != "ok" || s.Calls() != 2 || took < tt.want || took > tt.want+time.Millisecond {
					t.Errorf("got %+v, %v after %d calls in %v, want %v", resp, err, s.Calls(), took, tt.want)
				}
			})
		})
	}
}

// A date is the third form of Retry-After.
func TestRetryAfterDate(t *testing.T) {
	inBubble(t, func(t *testing.T, s *openaitest.Server, c llm.Model) {
		at := time.Now().Add(20 * time.Second).UTC().Truncate(time.Second)
		s.Script(openaitest.Reply{Fault: openaitest.FaultRate, RetryAfter: at.Format(http.TimeFormat)})
		if _, err := c.Chat(t.Context(), ask("x")); err != nil || time.Since(at).Abs() > time.Second {
			t.Errorf("answered %v at %v, want at %v", err, time.Now(), at)
		}
	})
}

// The step's time covers waiting: a wait that cannot fit is not begun.
func TestDeadlineOfTheCaller(t *testing.T) {
	inBubble(t, func(t *testing.T, s *openaitest.Server, c llm.Model) {
		s.Script(openaitest.Reply{Fault: openaitest.FaultRate, RetryAfter: "30"}, openaitest.Reply{Fault: openaitest.FaultHang})
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var e *llm.Error
		if _, err := c.Chat(ctx, ask("x")); !errors.As(err, &e) || e.Class != llm.Rate || e.RetryAfter != 30*time.Second {
			t.Errorf("got %v", err)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("waited %v for nothing", took)
		}
		if _, err := c.Chat(ctx, ask("x")); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 20*time.Second {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
	})
}

// Every form of a good stream is understood.
func TestForms(t *testing.T) {
	for _, form := range []openaitest.Fault{
		"", openaitest.FaultBOM, openaitest.FaultCRLF, openaitest.FaultCR, openaitest.FaultComments, openaitest.FaultNoSpace,
		openaitest.FaultManyLines, openaitest.FaultKeepAlive, openaitest.FaultEventNames, openaitest.FaultNoDone,
		openaitest.FaultNoLastBlank, openaitest.FaultNoUsage,
	} {
		for _, border := range []int{0, 1, 100} {
			t.Run(fmt.Sprintf("%s/%d", form, border), func(t *testing.T) {
				inBubble(t, func(t *testing.T, s *openaitest.Server, c llm.Model) {
					s.Script(openaitest.Reply{Text: "hello 世界", Calls: twoCalls, Piece: 4, Border: border, Fault: form})
					resp, err := c.Chat(t.Context(), ask("x"))
					if err != nil || resp.Text != "hello 世界" || len(resp.Calls) != 2 || resp.Calls[1] != twoCalls[1] {
						t.Errorf("got %+v, %v", resp, err)
					}
				})
			})
		}
	}
}

// Answers without end are ended by their size, in bounded memory.
func TestGiants(t *testing.T) {
	for fault, want := range map[openaitest.Fault]error{openaitest.FaultGiantLine: provider.ErrLineTooLong, openaitest.FaultEndless: provider.ErrTooLarge} {
		t.Run(string(fault), func(t *testing.T) {
			s, c := serve(t, openaitest.Config{}, Config{})
			s.Script(openaitest.Reply{Fault: fault})
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			var e *llm.Error
			if _, err := c.Chat(t.Context(), ask("x")); !errors.As(err, &e) || e.Class != llm.Permanent || e.Text != want.Error() {
				t.Errorf("got %v, want %v", err, want)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			if held := after.HeapAlloc; held > before.HeapAlloc+8<<20 {
				t.Errorf("%d bytes are held, %d before", held, before.HeapAlloc)
			}
		})
	}
}

// What cannot be reached is said in words and without an address.
func TestUnreachable(t *testing.T) {
	for want, dialErr := range map[string]error{
		"connection to the provider broke": errors.New("dial tcp 10.1.2.3:443: something"),
		"cannot be resolved":               &net.DNSError{Err: "no such host", Name: "secret.example"},
		"timeout":                          &net.OpError{Op: "dial", Err: context.DeadlineExceeded},
	} {
		synctest.Test(t, func(t *testing.T) {
			tr := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, dialErr }}
			_, err := New(Config{BaseURL: "http://secret.example", Model: "m", HTTP: tr}).Chat(t.Context(), ask("x"))
			var e *llm.Error
			if !errors.As(err, &e) || e.Class != llm.Transient || !strings.Contains(e.Text, want) || strings.Contains(e.Text, "secret") {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}
