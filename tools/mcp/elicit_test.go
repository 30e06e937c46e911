package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/mcp"
)

// A person answers questions, some time after they were asked.
type person struct {
	mu      sync.Mutex
	asked   []claybot.Question
	answers map[string]string // by the id of the question, JSON
	gone    bool
}

func (p *person) Ask(_ context.Context, env tools.Env, qs []claybot.Question) (tools.Result, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return tools.Result{}, errors.New("no person reads along")
	}
	wait := claybot.Awaiting{Reason: claybot.AwaitInfo}
	given := make(map[string]json.RawMessage)
	for i, q := range qs {
		if q.ID = env.UID(i); q.Valid() != nil {
			return tools.Result{}, q.Valid()
		}
		if a, ok := p.answers[q.ID]; ok {
			given[q.Key] = json.RawMessage(a)
			continue
		}
		p.asked = append(p.asked, q)
		wait.Questions, wait.Answers = append(wait.Questions, q), append(wait.Answers, q.AnswerID())
	}
	if len(wait.Answers) > 0 {
		return tools.Result{Wait: &wait}, nil
	}
	b, err := json.Marshal(given)
	return tools.Result{Text: string(b)}, err
}

// reply answers what was asked, in order.
func (p *person) reply(all ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, q := range p.asked {
		p.answers[q.ID] = all[i]
	}
	p.asked = nil
}

func (p *person) texts() (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range p.asked {
		all = append(all, string(q.Type)+" "+q.Text+" "+strings.Join(q.Options, "/"))
	}
	return all
}

// booking has tools that ask for what is in their argument, and tell the answer. hold keeps
// two calls of pair together, before they ask and when they are answered.
func booking(version string, hold *[2]sync.WaitGroup) http.Handler {
	s := sdk.NewServer(&sdk.Implementation{Name: "booking", Version: "1"}, &sdk.ServerOptions{SupportedProtocolVersions: []string{version}})
	for _, name := range []string{"book", "buy", "pair"} {
		sdk.AddTool(s, &sdk.Tool{Name: name, Description: "Does " + name + "."}, func(_ context.Context, r *sdk.CallToolRequest, in textArgs) (*sdk.CallToolResult, any, error) {
			if got, ok := r.Params.InputResponses["form"].(*sdk.ElicitResult); ok {
				if name == "pair" {
					hold[1].Done()
					hold[1].Wait()
				}
				b, err := json.Marshal(got.Content)
				return words("%s %s", got.Action, b), nil, err
			}
			if name == "pair" {
				hold[0].Done()
				hold[0].Wait()
			}
			form := new(sdk.ElicitParams)
			if err := json.Unmarshal([]byte(in.Text), form); err != nil {
				return nil, nil, err
			}
			return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"form": form}, RequestState: "s"}, nil, nil
		})
	}
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: version >= "2026"})
}

const orderForm = `{"mode":"form","message":"What to \u001b[31mbook?","requestedSchema":{"type":"object","required":["guest","room","nights","meals"],"properties":{
	"guest":{"type":"string","title":"Guest","minLength":2},"room":{"type":"string","oneOf":[{"const":"s","title":"Small"},{"const":"l","title":"Large"}]},
	"nights":{"type":"integer","minimum":1},"meals":{"type":"boolean","description":"With meals?"},"note":{"type":"string"}}}}`

func TestServerAsksThePerson(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			var hold [2]sync.WaitGroup
			web := httptest.NewServer(booking(version, &hold))
			t.Cleanup(web.Close)
			t.Cleanup(web.CloseClientConnections)
			kim := &person{answers: make(map[string]string)}
			s := mcp.Server{
				Name: "srv", URL: web.URL, Trusted: true,
				Effects: map[string]tools.Effect{"book": tools.Idempotent, "pair": tools.ReadOnly},
			}
			r := run(t, mcp.Config{Servers: []mcp.Server{s}, HTTP: open, Questions: func() tools.Questions { return kim }})
			r.up("srv")
			arg := func(form string) string {
				b, _ := json.Marshal(textArgs{form})
				return string(b)
			}
			checkOrder(t, r, kim, arg)
			checkRefused(t, r, kim, arg)
			if version >= "2026" {
				return // it says of which call a form is
			}
			hold[0].Add(2)
			hold[1].Add(2)
			var calls sync.WaitGroup
			for range 2 {
				calls.Go(func() { r.want("srv_pair", arg(orderForm), "cancel null") })
			}
			calls.Wait()
			if got := kim.texts(); len(got) != 0 {
				t.Errorf("asked %q", got)
			}
		})
	}
}

func checkOrder(t *testing.T, r *rig, kim *person, arg func(string) string) {
	t.Helper()
	for range 2 { // a crash in between repeats the call
		if o := r.call(t.Context(), "srv_book", arg(orderForm)); o.Wait == nil || len(o.Wait.Answers) != 4 {
			t.Fatalf("%+v", o)
		}
	}
	const intro = "The MCP server srv asks: What to book?\n"
	want := []string{"text " + intro + "Guest ", "select " + intro + "room Small/Large", "number " + intro + "nights ", "boolean " + intro + "With meals? "}
	if got := kim.texts(); !slices.Equal(got, slices.Concat(want, want)) {
		t.Errorf("asked %q", got)
	}
	kim.reply(`"Kim"`, `"Large"`, `2`, `true`, `"Kim"`, `"Large"`, `2`, `true`)
	r.want("srv_book", arg(orderForm), `accept {"guest":"Kim","meals":true,"nights":2,"room":"l"}`)
	if o := r.call(t.Context(), "srv_book", arg(strings.Replace(orderForm, "book?", "cancel?", 1))); o.Wait == nil {
		t.Errorf("another form has the answers of the first: %+v", o)
	}
	kim.reply(`"Kim"`, `"Small"`, `1`, `false`)
	for _, yes := range []bool{true, false} {
		agree := `{"message":"Agree` + map[bool]string{true: "", false: " to all"}[yes] + `?","requestedSchema":{"type":"object","properties":{}}}`
		if o := r.call(t.Context(), "srv_book", arg(agree)); o.Wait == nil || len(o.Wait.Answers) != 1 {
			t.Fatalf("%+v", o)
		}
		kim.reply(map[bool]string{true: "true", false: "false"}[yes])
		r.want("srv_book", arg(agree), map[bool]string{true: "accept null", false: "decline null"}[yes])
	}
}

func checkRefused(t *testing.T, r *rig, kim *person, arg func(string) string) {
	t.Helper()
	type refusal struct{ tool, form string }
	all := []refusal{
		{"srv_book", strings.Replace(orderForm, `"Guest"`, `"API key"`, 1)},
		{"srv_book", strings.Replace(orderForm, "What to", "Your password to", 1)},
		{"srv_book", `{"mode":"url","message":"Log in","url":"https://example.org/login","elicitationId":"e"}`},
		{"srv_book", `{"message":"All of it","requestedSchema":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"},"d":{"type":"string"},"e":{"type":"string"},"f":{"type":"string"}}}}`},
		{"srv_buy", orderForm}, // it may act only once
	}
	for _, secret := range []string{
		"Passwort", "Kennwort", "pass\u200bword", `Pass\nword`, "pin_code", "cardNumber", "Seed phrase", "seed-phrase", "6-digit verification code", "Bestätigungscode",
	} {
		all = append(all, refusal{"srv_book", strings.Replace(orderForm, "What to", "Your "+secret+" to", 1)}, refusal{"srv_book", strings.Replace(orderForm, `"Guest"`, `"`+secret+`"`, 1)})
	}
	for _, tt := range all {
		o := r.call(t.Context(), tt.tool, arg(tt.form))
		if o.Wait != nil || o.Fault == nil && !strings.Contains(o.Record.Text, "decline") && !strings.Contains(o.Record.Text, "cancel") {
			t.Errorf("%s: %+v", tt.form, o)
		}
	}
	kim.gone = true
	if o := r.call(t.Context(), "srv_book", arg(strings.Replace(orderForm, "What", "Once more, what", 1))); o.Wait != nil {
		t.Errorf("%+v", o)
	}
	kim.gone = false
	if got := kim.texts(); len(got) != 0 {
		t.Errorf("asked %q", got)
	}
}

// A server that is not trusted cannot ask.
func TestUntrustedServerAsksNothing(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		web := httptest.NewServer(booking(version, nil))
		t.Cleanup(web.Close)
		t.Cleanup(web.CloseClientConnections)
		kim := new(person)
		s := mcp.Server{Name: "srv", URL: web.URL, Effects: map[string]tools.Effect{"book": tools.Idempotent}}
		r := run(t, mcp.Config{Servers: []mcp.Server{s}, HTTP: open, Questions: func() tools.Questions { return kim }})
		r.up("srv")
		b, _ := json.Marshal(textArgs{orderForm})
		if o := r.call(t.Context(), "srv_book", string(b)); o.Wait != nil || o.Fault == nil || len(kim.texts()) != 0 {
			t.Errorf("%+v", o)
		}
		r.stop()
	}
}
