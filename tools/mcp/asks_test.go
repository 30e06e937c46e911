package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/mcp"
)

// A job is a tool of desk, which may ask with ask.
type job func(ctx context.Context, ask func(context.Context, string) (string, error)) (*sdk.CallToolResult, error)

// desk connects a trusted server with tools of one run each; pay may act only once.
func desk(t *testing.T, token string, jobs map[string]job) (*rig, *person) {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "desk", Version: "1"}, &sdk.ServerOptions{SupportedProtocolVersions: []string{"2025-11-25"}})
	for name, do := range jobs {
		sdk.AddTool(s, &sdk.Tool{Name: name, Description: "Does " + name + "."}, func(ctx context.Context, r *sdk.CallToolRequest, _ textArgs) (*sdk.CallToolResult, any, error) {
			out, err := do(ctx, func(ctx context.Context, message string) (string, error) {
				p := new(sdk.ElicitParams)
				raw := fmt.Sprintf(`{"mode":"form","message":%q,"requestedSchema":{"type":"object","required":["it"],"properties":{"it":{"type":"string","enum":["a","b"],"enumNames":["A",%q]}}}}`, message, message)
				if err := json.Unmarshal([]byte(raw), p); err != nil {
					return "", err
				}
				got, err := r.Session.Elicit(ctx, p)
				if err != nil {
					return "", err
				}
				return got.Action, nil
			})
			return out, nil, err
		})
	}
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil))
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections)
	kim := &person{answers: make(map[string]string)}
	server := mcp.Server{Name: "srv", URL: web.URL, Trusted: true, Token: token, Effects: map[string]tools.Effect{"book": tools.Idempotent, "slow": tools.Idempotent}}
	r := run(t, mcp.Config{Servers: []mcp.Server{server}, HTTP: open, Questions: func() tools.Questions { return kim }})
	r.up("srv")
	return r, kim
}

const newsletter = `{"jsonrpc":"2.0","id":"ask","method":"elicitation/create","params":{"message":"Newsletter?","requestedSchema":{"type":"object","properties":{}}}}`

// asksLate connects a trusted server that a script is, whose tools may all ask but pay.
func asksLate(t *testing.T, call func(s *script, m message)) (*rig, *person) {
	t.Helper()
	kim := &person{answers: make(map[string]string)}
	r := run(t, mcp.Config{
		Servers:   []mcp.Server{{Name: "srv", Command: []string{"x"}, Trusted: true, Effects: map[string]tools.Effect{"book": tools.Idempotent, "slow": tools.Idempotent}}},
		Questions: func() tools.Questions { return kim },
		Pipe: pipes(func(_ int, s *script) {
			s.serve(always(listed("book", "", "slow", "", "pay", "")), func(m message) { call(s, m) })
		}),
	})
	r.up("srv")
	return r, kim
}

// A form of a call that was stopped is not asked to the person of the next call.
func TestLateFormIsNotAsked(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, kim := asksLate(t, func(s *script, m message) {
		if m.Params.Name == "slow" {
			cancel()
			return
		}
		s.say("%s", newsletter)
		for {
			line, err := s.in.ReadString('\n')
			if err != nil {
				return
			}
			if _, action, ok := strings.Cut(line, `"action":"`); ok {
				action, _, _ = strings.Cut(action, `"`)
				s.answer(m, `{"content":[{"type":"text","text":"heard `+action+`"}]}`)
				return
			}
		}
	})
	if o := r.call(ctx, "srv_slow", `{}`); o.Fault == nil {
		t.Fatalf("%+v", o)
	}
	r.want("srv_book", `{}`, "heard cancel")
	if got := kim.texts(); len(got) != 0 {
		t.Errorf("asked %q", got)
	}
}

// What a call that was refused a question came to is told as it is.
func TestRefusedQuestionIsANote(t *testing.T) {
	r, _ := desk(t, "", map[string]job{
		"pay": func(ctx context.Context, ask func(context.Context, string) (string, error)) (*sdk.CallToolResult, error) {
			action, err := ask(ctx, "Newsletter?")
			if err != nil {
				return nil, err
			}
			out := words("paid, without a receipt: %s", action)
			out.IsError = true
			return out, nil
		},
	})
	o := r.call(t.Context(), "srv_pay", `{"text":""}`)
	if o.Fault == nil || o.Fault.Code != tools.FaultFailed || !strings.Contains(o.Fault.Text, "paid, without a receipt: cancel") || !strings.Contains(o.Fault.Text, "set `effects: {pay: idempotent}`") {
		t.Errorf("%+v", o.Fault)
	}
}

// A server that exits during a call may have acted, whatever it asked before.
func TestLostAfterRefusedQuestion(t *testing.T) {
	r, _ := asksLate(t, func(s *script, _ message) {
		s.say("%s", newsletter)
		for {
			line, err := s.in.ReadString('\n')
			if err != nil || strings.Contains(line, `"action":"cancel"`) {
				_ = s.out.(io.Closer).Close() // as the program ends
				return
			}
		}
	})
	if o := r.call(t.Context(), "srv_pay", `{}`); o.Fault == nil || o.Fault.Code != mcp.FaultLost || !strings.Contains(o.Fault.Text, "may have acted") {
		t.Errorf("%+v", o.Fault)
	}
}

// A call asks five forms in all, however often it is made again.
func TestEndlessQuestionsEnd(t *testing.T) {
	n := 0
	r, kim := desk(t, "", map[string]job{
		"book": func(ctx context.Context, ask func(context.Context, string) (string, error)) (*sdk.CallToolResult, error) {
			n++
			action, err := ask(ctx, fmt.Sprintf("Book at the price of %d?", n))
			return words("%s", action), err
		},
	})
	for range 5 {
		if o := r.call(t.Context(), "srv_book", `{"text":""}`); o.Wait == nil {
			t.Fatalf("after %d: %+v", n, o)
		}
		kim.reply(`"A"`)
	}
	r.want("srv_book", `{"text":""}`, "decline")
}

// What claybot knows as a secret is in no question.
func TestFormsAreRedacted(t *testing.T) {
	const token = "fake-0123456789abcdef"
	r, kim := desk(t, token, map[string]job{
		"book": func(ctx context.Context, ask func(context.Context, string) (string, error)) (*sdk.CallToolResult, error) {
			action, err := ask(ctx, "Go on as "+token+"?")
			return words("%s", action), err
		},
	})
	if o := r.call(t.Context(), "srv_book", `{"text":""}`); o.Wait == nil {
		t.Fatalf("%+v", o)
	}
	if got := fmt.Sprint(kim.texts()); strings.Contains(got, token) || strings.Count(got, "[redacted]") != 2 {
		t.Errorf("asked %s", got)
	}
}
