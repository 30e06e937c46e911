package tools_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/tools"
)

type orderInput struct {
	Dish   string   `json:"dish" jsonschema:"what to cook"`
	Count  int      `json:"count,omitempty"`
	Extras []string `json:"extras,omitempty"`
	Place  struct {
		Table int `json:"table"`
	} `json:"place,omitzero"`
}

func order(fn func(context.Context, tools.Env, orderInput) (tools.Result, error)) tools.Tool {
	return tools.New(tools.Spec{Tool: llm.Tool{Name: "order", Description: "Orders a dish."}}, fn)
}

func served(_ context.Context, _ tools.Env, in orderInput) (tools.Result, error) {
	return tools.Result{Text: in.Dish + " is served"}, nil
}

func set(t *testing.T, all ...tools.Tool) *tools.Set {
	t.Helper()
	s, err := tools.NewSet(all...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// do makes a call that must not wait.
func do(ctx context.Context, t testing.TB, s *tools.Set, env tools.Env, call claybot.ToolCall) claybot.Record {
	t.Helper()
	r, wait := s.Call(ctx, env, call)
	if wait != nil {
		t.Errorf("%s pauses the run: %+v", call.Name, wait)
	}
	return r
}

func TestCallGivesOneResult(t *testing.T) {
	s := set(t, order(func(ctx context.Context, env tools.Env, in orderInput) (tools.Result, error) {
		switch in.Dish {
		case "burnt":
			return tools.Result{}, errors.New("the kitchen burns")
		case "bomb":
			panic("boom: a secret detail")
		case "nothing":
			runtime.Goexit()
		case "big":
			return tools.Result{Text: strings.Repeat("é", 40<<10)}, nil
		case "dirty":
			return tools.Result{Text: "a\x00b\x1b[31mred\x1b[0m\xff\r\n\x1b]0;title\x07c\u009b"}, nil
		}
		return served(ctx, env, in)
	}))
	tests := []struct {
		name, tool, args string
		ok               bool
		want             string // in the text
	}{
		{"good", "order", `{"dish":"soup"}`, true, "soup is served"},
		{"blank before", "order", "\n {\"dish\":\"soup\"} ", true, "soup is served"},
		{"unknown tool", "cook", `{}`, false, `unknown tool "cook"`},
		{"no arguments", "order", ``, false, `missing properties: ["dish"]`},
		{"blank arguments", "order", ` `, false, `missing properties: ["dish"]`},
		{"not JSON", "order", `dish: soup`, false, "not JSON"},
		{"cut JSON", "order", `{"dish":"so`, false, "cut off after 11 bytes"},
		{"two values", "order", `{"dish":"soup"}{}`, false, "not JSON"},
		{"an array", "order", `[]`, false, `want "object"`},
		{"null", "order", `null`, false, `type: null has type "null"`},
		{"wrong type", "order", `{"dish":7}`, false, `field dish: type: 7 has type "integer", want "string"`},
		{"wrong nested type", "order", `{"dish":"a","place":{"table":"x"}}`, false, "field place.table:"},
		{"wrong item", "order", `{"dish":"a","extras":[1]}`, false, "field extras[]:"},
		{"unknown field", "order", `{"dish":"a","colour":1}`, false, `unexpected additional properties ["colour"]`},
		{"long complaint", "order", `{"dish":"a","count":"` + strings.Repeat("x", 9000) + `"}`, false, "..."},
		{"too long", "order", `{"dish":"` + strings.Repeat("x", 1<<20) + `"}`, false, "the limit is 1048576"},
		{"tool error", "order", `{"dish":"burnt"}`, false, "error: the kitchen burns"},
		{"panic", "order", `{"dish":"bomb"}`, false, "order failed inside"},
		{"goroutine ended", "order", `{"dish":"nothing"}`, false, "ended without a result"},
		{"long text", "order", `{"dish":"big"}`, true, "\n[… 65536 of 81920 bytes left out]\n"},
		{"control characters", "order", `{"dish":"dirty"}`, true, "abred\uFFFD\nc"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			call := claybot.ToolCall{ID: "c1", Name: tt.tool, Args: tt.args}
			r := do(t.Context(), t, s, tools.Env{Run: "r1", CallID: "c1"}, call)
			if r.Type != claybot.RecordTool || r.Run != "r1" || r.ToolCallID != "c1" || r.Name != tt.tool || r.At == 0 {
				t.Errorf("record %+v", r)
			}
			if r.OK != tt.ok || !strings.Contains(r.Text, tt.want) {
				t.Errorf("ok %v, text %.300q; want %v, %q", r.OK, r.Text, tt.ok, tt.want)
			}
			if strings.Contains(r.Text, "secret") {
				t.Error("the panic is shown")
			}
			if !tt.ok && len(r.Text) > 1000 {
				t.Errorf("an error of %d bytes", len(r.Text))
			}
		})
	}
}

func TestLongResults(t *testing.T) {
	text := ""
	s := set(t, tools.New(tools.Spec{Tool: llm.Tool{Name: "read"}}, func(context.Context, tools.Env, struct{}) (tools.Result, error) {
		return tools.Result{Text: text}, nil
	}), tools.New(tools.Spec{Tool: llm.Tool{Name: "fail"}}, func(context.Context, tools.Env, struct{}) (tools.Result, error) {
		return tools.Result{}, errors.New(text)
	}))
	saved := map[string]string{}
	save := func(_ context.Context, call, text string) (string, error) {
		saved[call] = text
		return "results/" + call + ".txt", nil
	}
	long := "begin" + strings.Repeat("é", 40<<10) + "end"
	huge := strings.Repeat("x", 64<<20+5)
	tests := []struct {
		name, tool, text string
		save             func(context.Context, string, string) (string, error)
		saved            int // bytes
		want             string
	}{
		{"at the limit", "read", strings.Repeat("x", llm.MaxResult), save, 0, ""},
		{"at the limit once it is clean", "read", "\x00" + strings.Repeat("x", llm.MaxResult), save, 0, ""},
		{"over it", "read", strings.Repeat("x", llm.MaxResult+1), save, llm.MaxResult + 1, "\n[… 16385 bytes left out; the whole result, 32769 bytes, is in results/c1.txt]\n"},
		{"at rune borders", "read", long, save, len(long), "\n[… 65546 bytes left out; the whole result, 81928 bytes, is in results/c1.txt]\n"},
		{"nowhere to keep it", "read", long, nil, 0, "\n[… 65546 of 81928 bytes left out]\n"},
		{"a full disk", "read", long, func(context.Context, string, string) (string, error) { return "x", errors.New("disk full") }, 0, "\n[… 65546 of 81928 bytes left out]\n"},
		{"a long error", "fail", long, save, len("error: " + long), "is in results/c1.txt]\n"},
		{"far too long", "read", huge, save, 64 << 20, "\n[the tool returned 67108869 bytes; what follows the first 67108864 was dropped]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			clear(saved)
			text = tt.text
			r := do(t.Context(), t, s, tools.Env{CallID: "c1", Save: tt.save}, claybot.ToolCall{ID: "c1", Name: tt.tool, Args: "{}"})
			if len(saved["c1"]) != tt.saved || (r.Saved == "results/c1.txt") != (tt.saved > 0) || r.Saved != "" && tt.saved == 0 {
				t.Errorf("%d bytes are saved, want %d; path %q", len(saved["c1"]), tt.saved, r.Saved)
			}
			if !strings.Contains(r.Text, tt.want) || !utf8.ValidString(r.Text) || len(r.Text) > llm.MaxResult || r.OK != (tt.tool == "read") {
				t.Errorf("%d bytes: %.20q … %q", len(r.Text), r.Text, r.Text[max(0, len(r.Text)-20):])
			}
			if tt.want != "" && len(r.Text) > 2*llm.ResultEdge+200 {
				t.Errorf("%d bytes are left", len(r.Text))
			}
		})
	}
}

func TestWaitingCalls(t *testing.T) {
	there := &claybot.Awaiting{Answers: []claybot.MessageID{"a1"}, Until: 5}
	waits := func(name string, e tools.Effect, w *claybot.Awaiting, err error) tools.Tool {
		return tools.New(tools.Spec{Tool: llm.Tool{Name: name}, Effect: e}, func(context.Context, tools.Env, struct{}) (tools.Result, error) {
			return tools.Result{Text: "text", Wait: w}, err
		})
	}
	s := set(t, waits("ask", tools.Idempotent, there, nil), waits("look", tools.ReadOnly, there, nil),
		waits("pay", tools.Once, there, nil), waits("fail", tools.Idempotent, there, errors.New("the person is away")),
		waits("nothing", tools.Idempotent, &claybot.Awaiting{Until: 5}, nil))
	tests := []struct{ tool, want string }{
		{"ask", ""},
		{"look", ""},
		{"pay", "error: pay failed inside; the operator's log has the details"},
		{"fail", "error: the person is away"},
		{"nothing", "error: nothing failed inside; the operator's log has the details"},
	}
	for _, tt := range tests {
		r, wait := s.Call(t.Context(), tools.Env{}, claybot.ToolCall{ID: "c", Name: tt.tool})
		if tt.want == "" && (wait != there || r.Type != "") {
			t.Errorf("%s: %+v, %+v", tt.tool, wait, r)
		}
		if tt.want != "" && (wait != nil || r.OK || r.Text != tt.want || r.ToolCallID != "c") {
			t.Errorf("%s: %+v, %+v", tt.tool, wait, r)
		}
	}
}

func TestCheckRefusesWhatCallWould(t *testing.T) {
	s := set(t, order(served))
	for args, refused := range map[string]bool{`{"dish":"a"}`: false, `{}`: true, `{"dish`: true} {
		if err := s.Check(claybot.ToolCall{Name: "order", Args: args}); (err != nil) != refused {
			t.Errorf("Check(%s) = %v", args, err)
		}
	}
	if s.Check(claybot.ToolCall{Name: "none"}) == nil {
		t.Error("an unknown tool passes")
	}
}

func TestPanicIsLogged(t *testing.T) {
	s := set(t, order(func(context.Context, tools.Env, orderInput) (tools.Result, error) { panic("boom") }))
	var log bytes.Buffer
	s.Log = slog.New(slog.NewTextHandler(&log, nil))
	do(t.Context(), t, s, tools.Env{}, claybot.ToolCall{Name: "order", Args: `{"dish":"a"}`})
	for _, want := range []string{"boom", "set_test.go"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q: %s", want, log.String())
		}
	}
}

func TestTimeLimit(t *testing.T) {
	tests := []struct {
		name     string
		limit    time.Duration
		stubborn time.Duration // goes on after its context ended
		stop     time.Duration // of the run
		took     time.Duration
		want     string
	}{
		{"listens", 5 * time.Second, 0, 0, 5 * time.Second, "took longer than 5s"},
		{"default", 0, 0, 0, time.Minute, "took longer than 1m0s"},
		{"slow to stop", 5 * time.Second, time.Second, 0, 6 * time.Second, "took longer than 5s"},
		{"stops far too late", 5 * time.Second, time.Hour, 0, 7 * time.Second, "took longer than 5s"},
		{"run stopped", 5 * time.Second, 0, time.Second, time.Second, "interrupted: the run was stopped"},
		{"run stopped, stops far too late", 5 * time.Second, time.Hour, time.Second, 3 * time.Second, "interrupted: the run was stopped"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				spec := tools.Spec{Tool: llm.Tool{Name: "hang"}, Timeout: tt.limit}
				s := set(t, tools.New(spec, func(ctx context.Context, _ tools.Env, _ struct{}) (tools.Result, error) {
					<-ctx.Done()
					time.Sleep(tt.stubborn)
					return tools.Result{}, ctx.Err()
				}))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.stop > 0 {
					time.AfterFunc(tt.stop, cancel)
				}
				start := time.Now()
				r := do(ctx, t, s, tools.Env{}, claybot.ToolCall{Name: "hang"})
				if took := time.Since(start); took != tt.took || r.MS != tt.took.Milliseconds() {
					t.Errorf("took %v (%d ms), want %v", took, r.MS, tt.took)
				}
				if r.OK || !strings.Contains(r.Text, tt.want) {
					t.Errorf("ok %v, text %q, want %q", r.OK, r.Text, tt.want)
				}
				time.Sleep(tt.stubborn) // a tool left behind ends by itself
			})
		})
	}
}

func TestStoppedRunStartsNoTool(t *testing.T) {
	ran := false
	s := set(t, order(func(context.Context, tools.Env, orderInput) (tools.Result, error) {
		ran = true
		return tools.Result{}, nil
	}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := do(ctx, t, s, tools.Env{}, claybot.ToolCall{Name: "order", Args: `{"dish":"a"}`}); r.OK || ran {
		t.Errorf("ran %v, %+v", ran, r)
	}
}

func TestNewSet(t *testing.T) {
	named := func(name, text string) tools.Tool {
		return tools.New(tools.Spec{Tool: llm.Tool{Name: name}, Effect: tools.ReadOnly},
			func(context.Context, tools.Env, struct{}) (tools.Result, error) {
				return tools.Result{Text: text}, nil
			})
	}
	broken := tools.New(tools.Spec{Tool: llm.Tool{Name: "broken", Parameters: []byte(`{"type":`)}},
		func(context.Context, tools.Env, struct{}) (tools.Result, error) { return tools.Result{}, nil })
	s, err := tools.NewSet(named("b", "first"), named("a", ""), named("b", "second"), named("no blanks", ""),
		named("", ""), named(strings.Repeat("x", 65), ""), broken)
	if err == nil {
		t.Fatal("nothing reported")
	}
	for _, want := range []string{`"b": the name is taken`, `"no blanks"`, `""`, `"xxx`, `"broken": schema`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %s: %v", want, err)
		}
	}
	offered := s.Tools()
	if len(offered) != 2 || offered[0].Name != "b" || offered[1].Name != "a" {
		t.Errorf("offered %v", offered)
	}
	if r := do(t.Context(), t, s, tools.Env{}, claybot.ToolCall{Name: "b"}); r.Text != "first" {
		t.Errorf("b says %q", r.Text)
	}
	if got := s.Effect("b"); got != tools.ReadOnly {
		t.Errorf("effect %v", got)
	}
	if got := s.Effect("none"); got != tools.Once {
		t.Errorf("effect of an unknown tool %v", got)
	}
}

func TestOnly(t *testing.T) {
	var all []tools.Tool
	for _, name := range []string{"a", "b", "c"} {
		all = append(all, tools.New(tools.Spec{Tool: llm.Tool{Name: name}},
			func(context.Context, tools.Env, struct{}) (tools.Result, error) { return tools.Result{}, nil }))
	}
	s := set(t, all...)
	tests := []struct {
		names []string
		want  string
	}{
		{nil, "abc"},
		{[]string{}, ""},
		{[]string{"c", "a", "c", "none"}, "ac"},
	}
	for _, tt := range tests {
		part := s.Only(tt.names)
		got := ""
		for _, tool := range part.Tools() {
			got += tool.Name
		}
		if got != tt.want {
			t.Errorf("Only(%q) offers %q, want %q", tt.names, got, tt.want)
		}
		for _, name := range []string{"a", "b", "c", "none"} {
			r := do(t.Context(), t, part, tools.Env{}, claybot.ToolCall{Name: name})
			if r.OK != strings.Contains(tt.want, name) {
				t.Errorf("Only(%q): %s came to %+v", tt.names, name, r)
			}
		}
	}
}

func TestSchemaComesFromTheType(t *testing.T) {
	got := string(order(served).Spec().Parameters)
	for _, want := range []string{`"required":["dish"]`, `"description":"what to cook"`, `"additionalProperties":false`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
	own := tools.New(tools.Spec{Tool: llm.Tool{Name: "own", Parameters: []byte(`{"type":"object"}`)}}, served)
	if got := string(own.Spec().Parameters); got != `{"type":"object"}` {
		t.Errorf("own schema replaced by %s", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("a type without a schema passes")
		}
	}()
	tools.New(tools.Spec{}, func(context.Context, tools.Env, struct{ F func() }) (tools.Result, error) {
		return tools.Result{}, nil
	})
}

func FuzzCheck(f *testing.F) {
	for _, seed := range []string{``, `{}`, `{"dish":"a"}`, `{"dish":`, `[1]`, `{"dish":1e999}`, "\xff", `{"place":null}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, args string) {
		s := set(t, order(served))
		call := claybot.ToolCall{ID: "c", Name: "order", Args: args}
		r := do(t.Context(), t, s, tools.Env{}, call)
		if refused := s.Check(call) != nil; refused == r.OK {
			t.Fatalf("%q: refused %v, record %+v", args, refused, r)
		}
	})
}
