package anthropic

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/anthropic/anthropictest"
	"github.com/claybot/claybot/llm/provider"
)

func TestRetry(t *testing.T) {
	type replies = []anthropictest.Reply
	fault := func(f anthropictest.Fault) anthropictest.Reply {
		return anthropictest.Reply{Fault: f, Text: "x", Calls: twoCalls}
	}
	after := func(f anthropictest.Fault, v string) anthropictest.Reply {
		return anthropictest.Reply{Fault: f, RetryAfter: v}
	}
	good := anthropictest.Reply{Text: "ok"}
	const least, tail = 500 * time.Millisecond, 5 * time.Second
	for _, tt := range []struct {
		name     string
		script   replies
		class    llm.Class // empty: success
		account  bool
		calls    int
		min, max time.Duration
	}{
		{"at once", replies{good}, "", false, 1, 0, 0},
		{"second try", replies{fault(anthropictest.FaultServer), good}, "", false, 2, least, 2 * time.Second},
		{"overloaded", replies{fault(anthropictest.FaultOverloaded), fault(anthropictest.FaultTimeout), good}, "", false, 3, 2 * least, 10 * time.Second},
		{"three failures", replies{fault(anthropictest.FaultServer), fault(anthropictest.FaultUnavailable), fault(anthropictest.FaultOverloaded)}, llm.Transient, false, 3, 2 * least, 10 * time.Second},
		{"dropped", replies{fault(anthropictest.FaultDrop), good}, "", false, 2, least, 2 * time.Second},
		{"no header", replies{fault(anthropictest.FaultHang), good}, "", false, 2, time.Minute, 62 * time.Second},
		{"idle stream", replies{{Fault: anthropictest.FaultStall, CutAt: 300, Text: "long"}, good}, "", false, 2, 2 * time.Minute, 122 * time.Second},
		{"nothing after the end", replies{{Fault: anthropictest.FaultStall, CutAt: len(transcript(t, good)) - 15, Text: "ok"}}, "", false, 1, tail, tail},
		{"cut", replies{{Fault: anthropictest.FaultCut, CutAt: 700, Calls: twoCalls}, good}, "", false, 2, least, 2 * time.Second},
		{"no reason of the end", replies{fault(anthropictest.FaultNoStop), good}, "", false, 2, least, 2 * time.Second},
		{"half a block", replies{{Fault: anthropictest.FaultHalfBlock, Text: "x"}, good}, "", false, 2, least, 2 * time.Second},
		{"web page", replies{fault(anthropictest.FaultHTML)}, llm.Permanent, false, 1, 0, 0},
		{"error as JSON", replies{fault(anthropictest.FaultJSONError), good}, "", false, 2, least, 2 * time.Second},
		{"empty", replies{fault(anthropictest.FaultEmpty), good}, "", false, 2, least, 2 * time.Second},
		{"error in the stream", replies{fault(anthropictest.FaultStreamError), good}, "", false, 2, least, 2 * time.Second},
		{"rate in the stream", replies{fault(anthropictest.FaultStreamRate), fault(anthropictest.FaultStreamRate), fault(anthropictest.FaultStreamRate)}, llm.Rate, false, 3, 2 * least, 10 * time.Second},
		{"bad request in the stream", replies{fault(anthropictest.FaultStreamBad)}, llm.Permanent, false, 1, 0, 0},
		{"garbage", replies{fault(anthropictest.FaultGarbage), good}, "", false, 2, least, 2 * time.Second},
		{"retry after seconds", replies{after(anthropictest.FaultRate, "7"), good}, "", false, 2, 7 * time.Second, 7 * time.Second},
		{"overloaded with a time", replies{after(anthropictest.FaultOverloaded, "30"), good}, "", false, 2, 30 * time.Second, 30 * time.Second},
		{"unavailable with a time", replies{after(anthropictest.FaultUnavailable, "60"), good}, "", false, 2, time.Minute, time.Minute},
		{"retry after more", replies{after(anthropictest.FaultRate, "61")}, llm.Rate, false, 1, 0, 0},
		{"retry after garbage", replies{after(anthropictest.FaultRate, "soon"), good}, "", false, 2, least, 2 * time.Second},
		{"a limit that lasts", replies{{Fault: anthropictest.FaultRate, Reset: 9 * time.Second}, good}, "", false, 2, 9 * time.Second, 9 * time.Second},
		{"a limit that lasts long", replies{{Fault: anthropictest.FaultRate, Reset: time.Hour}, good}, "", false, 2, time.Minute, time.Minute},
		{"a limit and a time", replies{{Fault: anthropictest.FaultRate, Reset: time.Hour, RetryAfter: "3"}, good}, "", false, 2, 3 * time.Second, 3 * time.Second},
		{"bad request", replies{fault(anthropictest.FaultBadRequest)}, llm.Permanent, false, 1, 0, 0},
		{"key", replies{fault(anthropictest.FaultAuth)}, llm.Permanent, true, 1, 0, 0},
		{"permission", replies{fault(anthropictest.FaultPermission)}, llm.Permanent, true, 1, 0, 0},
		{"billing", replies{fault(anthropictest.FaultBilling)}, llm.Permanent, true, 1, 0, 0},
		{"credit", replies{fault(anthropictest.FaultCredit)}, llm.Permanent, true, 1, 0, 0},
		{"unknown model", replies{fault(anthropictest.FaultNotFound)}, llm.Permanent, false, 1, 0, 0},
		{"told not to retry", replies{fault(anthropictest.FaultNotRetryable)}, llm.Permanent, false, 1, 0, 0},
		{"told to retry", replies{fault(anthropictest.FaultShouldRetry), good}, "", false, 2, least, 2 * time.Second},
		{"context", replies{fault(anthropictest.FaultContext)}, llm.Context, false, 1, 0, 0},
		{"too large", replies{fault(anthropictest.FaultTooLarge)}, llm.Context, false, 1, 0, 0},
		{"slow bytes", replies{{Text: strings.Repeat("slow", 20), Piece: 1, Gap: 10 * time.Second}}, llm.Transient, false, 1, 10 * time.Minute, 10 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := anthropictest.New(anthropictest.Config{})
				dial, stop := s.Pipe()
				tr := provider.NewTransport()
				tr.Proxy, tr.DialContext = nil, dial
				client := New(Config{BaseURL: "http://model.invalid", Model: "m", HTTP: tr})
				defer stop()
				defer client.CloseIdleConnections()
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
				resp, err := llm.Retried(client, llm.Retries{}).Chat(t.Context(), r)
				if took := time.Since(start); took < tt.min || took > tt.max+time.Millisecond {
					t.Errorf("took %v, want %v to %v", took, tt.min, tt.max)
				}
				if n := s.Calls(); n != tt.calls {
					t.Errorf("%d calls, want %d", n, tt.calls)
				}
				var e *llm.Error
				switch {
				case tt.class == "" && (err != nil || resp.Text != "ok" || shown.String() != "ok"):
					t.Errorf("got %+v, %v after showing %q", resp, err, shown.String())
				case tt.class != "" && (!errors.As(err, &e) || e.Class != tt.class || e.Account != tt.account):
					t.Errorf("got error %v (%+v), want class %s", err, e, tt.class)
				}
			})
		})
	}
}

// Only content keeps a stream alive: pings and blanks end as stalled like
// silence. Slow content of any kind, reasoning included, does not.
func TestStalls(t *testing.T) {
	delta := func(d string) string {
		return `data: {"type":"content_block_delta","index":0,"delta":` + d + "}\n\n"
	}
	for name, tt := range map[string]struct {
		reply anthropictest.Reply
		calls int
		text  string
	}{
		"pings":      {anthropictest.Reply{Text: "begun", Fault: anthropictest.FaultDrip, Drip: "event: ping\ndata: {\"type\": \"ping\"}\n\n"}, 2, "ok"},
		"newlines":   {anthropictest.Reply{Text: "begun", Fault: anthropictest.FaultDrip, Drip: "\n"}, 2, "ok"},
		"blank text": {anthropictest.Reply{Text: "begun", Fault: anthropictest.FaultDrip, Drip: delta(`{"type":"text_delta","text":" \n"}`)}, 2, "ok"},
		"thinking":   {anthropictest.Reply{Text: "slow", Thinking: strings.Repeat("a", 20), Piece: 1}, 1, "slow"},
		"arguments":  {anthropictest.Reply{Text: "slow", Calls: twoCalls, Piece: 4}, 1, "slow"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := anthropictest.New(anthropictest.Config{})
				dial, stop := s.Pipe()
				tr := provider.NewTransport()
				tr.Proxy, tr.DialContext = nil, dial
				client := New(Config{BaseURL: "http://model.invalid", Model: "m", HTTP: tr})
				defer stop()
				defer client.CloseIdleConnections()
				tt.reply.Gap = 10 * time.Second
				s.Script(tt.reply, anthropictest.Reply{Text: "ok"})
				start := time.Now()
				resp, err := llm.Retried(client, llm.Retries{}).Chat(t.Context(), ask("x"))
				if err != nil || resp.Text != tt.text || s.Calls() != tt.calls {
					t.Errorf("got %+v, %v after %d calls", resp, err, s.Calls())
				}
				if took := time.Since(start); tt.calls == 2 && (took < 2*time.Minute || took > 122*time.Second) {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

// Every form of a good stream is understood.
func TestForms(t *testing.T) {
	for _, form := range []anthropictest.Fault{
		"", anthropictest.FaultNoEnd, anthropictest.FaultPings, anthropictest.FaultUnknown, anthropictest.FaultCRLF,
		anthropictest.FaultNoNames, anthropictest.FaultNoUsage, anthropictest.FaultWholeInput,
	} {
		for _, border := range []int{0, 1, 100} {
			s, c := serve(t, anthropictest.Config{}, Config{})
			s.Script(anthropictest.Reply{Thinking: "hm", Text: "hello 世界", Calls: twoCalls, Piece: 4, Border: border, Fault: form})
			resp, err := c.Chat(t.Context(), ask("x"))
			if err != nil || resp.Text != "hello 世界" || len(resp.Calls) != 2 || resp.Calls[1] != twoCalls[1] {
				t.Errorf("%s/%d: got %+v, %v", form, border, resp, err)
			}
		}
	}
}
