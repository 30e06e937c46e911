package api_test

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/web"
)

// A press is a tool that counts its calls and holds each one until it is let go.
type press struct {
	calls  atomic.Int64
	called chan struct{} // one for each call
	gate   chan struct{} // closed to go on
	letGo  func()
}

func newPress() *press {
	p := &press{called: make(chan struct{}, 64), gate: make(chan struct{})}
	p.letGo = sync.OnceFunc(func() { close(p.gate) })
	return p
}

func (p *press) tool() tools.Tool {
	spec := tools.Spec{Tool: llm.Tool{Name: "press", Description: "Presses the button."}, Effect: tools.ReadOnly, Timeout: patience}
	return tools.New(spec, func(ctx context.Context, _ tools.Env, _ struct{}) (tools.Result, error) {
		p.calls.Add(1)
		p.called <- struct{}{}
		select {
		case <-p.gate:
			return tools.Result{Text: "pressed"}, nil
		case <-ctx.Done():
			return tools.Result{}, context.Cause(ctx)
		}
	})
}

// pressing is a plan that uses the press once.
func pressing(said string) []llmtest.Reply {
	return []llmtest.Reply{llmtest.Use(claybot.ToolCall{ID: "p", Name: "press", Args: `{}`}), llmtest.Say(said)}
}

// withPress starts a rig whose model presses the button when it is asked to.
func withPress(t *testing.T, change ...func(*rig)) (*rig, *press) {
	p := newPress()
	r := start(t, append(change, func(r *rig) { r.tools = append(r.tools, p.tool()) })...)
	t.Cleanup(p.letGo) // before the daemon stops
	r.mind.plan("press", pressing("pressed it")...)
	return r, p
}

func (p *press) wait(t *testing.T) {
	t.Helper()
	select {
	case <-p.called:
	case <-time.After(patience):
		t.Fatal("the tool was not called")
	}
}

// A lost request is one whose client goes away before it is answered.
func (r *rig) lost(body string, when func()) {
	r.Helper()
	r.lostAt("/v1/chat/completions", body, when)
}

func (r *rig) lostAt(path, body string, when func()) {
	r.Helper()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", "http://"+r.addr+path, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.token)
	req.Header.Set("Content-Type", "application/json")
	ended := make(chan error, 1)
	go func() {
		resp, err := r.http.Do(req)
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		ended <- err
	}()
	when()
	r.until("the client waits", func() bool { return r.watches.Load() > 0 })
	cancel()
	if err := <-ended; err == nil {
		r.Fatal("the request was answered before it was lost")
	}
	r.unwatched()
}

// unwatched waits until the daemon has noticed that its clients are gone.
func (r *rig) unwatched() {
	r.Helper()
	r.until("no request waits for an answer", func() bool { return r.watches.Load() == 0 })
}

// A watched desk counts who watches a run.
type watched struct {
	web.Runs
	watches *atomic.Int64
}

func (d watched) Watch(ctx context.Context, id claybot.RunID, after int64) iter.Seq2[runs.Update, error] {
	return func(yield func(runs.Update, error) bool) {
		d.watches.Add(1)
		defer d.watches.Add(-1)
		d.Runs.Watch(ctx, id, after)(yield)
	}
}

func saidIn(t *testing.T, g got) string {
	t.Helper()
	var out struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if err := json.Unmarshal([]byte(g.body), &out); err != nil || len(out.Choices) != 1 || g.code != http.StatusOK {
		t.Fatalf("%d %s (%v)", g.code, g.body, err)
	}
	return out.Choices[0].Message.Content
}

// streamedIn is the text of a streamed completion, which comes in any number of pieces.
func streamedIn(t *testing.T, body string) (text string) {
	t.Helper()
	for e := range events(strings.NewReader(body)) {
		if e.data == "" || e.data == "[DONE]" {
			continue
		}
		var piece struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		if err := json.Unmarshal([]byte(e.data), &piece); err != nil {
			t.Fatalf("%s: %v", e.data, err)
		}
		for _, c := range piece.Choices {
			text += c.Delta.Content
		}
	}
	return text
}

const pressBody = `{"model":"claybot","user":"t","messages":[{"role":"user","content":"press"}]}`

// X1: the retry of a request whose answer never came is the same message, while
// its run is at work and after its end, also on another start of the daemon.
func TestRetryWithoutAKeyIsTheSameMessage(t *testing.T) {
	for name, between := range map[string]func(r *rig, p *press){
		"at work": func(*rig, *press) {},
		"ended":   func(r *rig, p *press) { p.letGo(); r.ended(r.newest()) },
		"restarted": func(r *rig, p *press) {
			p.letGo()
			r.ended(r.newest())
			r.restart()
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, p := withPress(t)
			r.lost(pressBody, func() { p.wait(t) })
			between(r, p)
			var again got
			var wg sync.WaitGroup
			wg.Go(func() { again = r.do("POST", "/v1/chat/completions", pressBody) })
			p.letGo()
			wg.Wait()
			if said := saidIn(t, again); said != "pressed it" {
				t.Errorf("the retry is answered with %q", said)
			}
			if n, m := r.runs(), p.calls.Load(); n != 1 || m != 1 {
				t.Errorf("%d runs with %d calls of the tool, want one of each", n, m)
			}
		})
	}
}

// newest is the id of the newest run.
func (r *rig) newest() string {
	r.Helper()
	var list struct{ Runs []runRow }
	r.ask("GET", "/agents/runs", "", http.StatusOK, &list)
	if len(list.Runs) == 0 {
		r.Fatal("there is no run")
	}
	return list.Runs[0].RunID
}

// A request whose answer was received is a new message when it comes again; only a
// client that says it retries gets the same answer.
func TestSameRequestAfterItsAnswer(t *testing.T) {
	r := start(t)
	body := `{"model":"claybot","user":"t","messages":[{"role":"user","content":"flip a coin"}]}`
	for i, c := range []struct {
		head []string
		runs int
	}{
		{nil, 1},
		{nil, 2},
		{[]string{"X-Stainless-Retry-Count", "0"}, 3},
		{[]string{"X-Stainless-Retry-Count", "1"}, 3},
		{[]string{"X-Stainless-Retry-Count", "2"}, 3},
		{nil, 4},
		{[]string{"Idempotency-Key", "mine"}, 5},
		{[]string{"Idempotency-Key", "mine"}, 5},
	} {
		saidIn(t, r.do("POST", "/v1/chat/completions", body, c.head...))
		if n := r.runs(); n != c.runs {
			t.Errorf("request %d (%v): %d runs, want %d", i, c.head, n, c.runs)
		}
	}
	// The token, the thread and every other part of the request tell it from others.
	other := r.scoped("other", "operate")
	for i, c := range []struct{ body, token string }{
		{body, other},
		{strings.Replace(body, `"t"`, `"u"`, 1), r.token},
		{strings.Replace(body, `"user"`, `"temperature":1,"user"`, 1), r.token},
	} {
		saidIn(t, r.do("POST", "/v1/chat/completions", c.body, "Authorization", "Bearer "+c.token, "X-Stainless-Retry-Count", "1"))
		if n := r.runs(); n != 6+i {
			t.Errorf("other request %d: %d runs, want %d", i, n, 6+i)
		}
	}
}

// Dying marks are those of a process that dies between the note that it sends an answer
// and the note that it has handed over all of it.
type dyingMarks struct{ storage.Checkpoints }

func (m dyingMarks) SetCheckpoint(ctx context.Context, key, value string) error {
	before, err := m.Checkpoint(ctx, key)
	if err == nil && strings.HasPrefix(before, value+" ") {
		return nil // it was dead by then
	}
	return m.Checkpoints.SetCheckpoint(ctx, key, value)
}

// A process that dies before it has handed over an answer leaves a retry the same
// message; after that, the same request is a new one.
func TestKillWhileAnAnswerLeaves(t *testing.T) {
	for _, streams := range []string{"false", "true"} {
		for died, want := range map[bool][]int{true: {1, 1, 2, 3}, false: {1, 2, 3, 4}} {
			r := start(t, func(r *rig) {
				r.marks = func(m storage.Checkpoints) storage.Checkpoints { return m }
				if died {
					r.marks = func(m storage.Checkpoints) storage.Checkpoints { return dyingMarks{m} }
				}
			})
			body := `{"model":"claybot","stream":` + streams + `,"user":"t","messages":[{"role":"user","content":"hello"}]}`
			for i, n := range want {
				g := r.do("POST", "/v1/chat/completions", body)
				said := ""
				if g.code == http.StatusOK && streams == "true" {
					said = streamedIn(t, g.body)
				} else {
					said = saidIn(t, g)
				}
				if said != "re: hello" {
					t.Fatalf("%d %s", g.code, g.body)
				}
				if got := r.runs(); got != n {
					t.Errorf("stream %s, died %v: %d runs after request %d, want %d", streams, died, got, i, n)
				}
				if i == 0 {
					r.marks = nil
					r.restart()
				}
			}
		}
	}
}

// A stream that broke is read again from its beginning, with or without streaming.
func TestBrokenStreamIsReadAgain(t *testing.T) {
	for _, streams := range []bool{true, false} {
		r := start(t)
		letGo := r.mind.hold("slow", true)
		body := `{"model":"claybot","stream":true,"messages":[{"role":"user","content":"slow"}]}`
		resp := r.open("POST", "/v1/chat/completions", body)
		for e := range events(resp.Body) {
			if strings.Contains(e.data, "re: ") {
				break
			}
		}
		resp.Body.Close()
		r.unwatched()
		letGo()
		r.ended(r.newest())
		if !streams {
			if said := saidIn(t, r.do("POST", "/v1/chat/completions", strings.Replace(body, "true", "false", 1))); said != "re: slow" {
				t.Errorf("without streaming: %q", said)
			}
		} else {
			resp := r.open("POST", "/v1/chat/completions", body)
			b, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || streamedIn(t, string(b)) != "re: slow" || !strings.HasSuffix(string(b), "data: [DONE]\n\n") {
				t.Errorf("%s, %v", b, err)
			}
		}
		if n := r.runs(); n != 1 {
			t.Errorf("%d runs", n)
		}
	}
}

// The same words answer two questions when the first answer was followed by the
// second question; the retry of an answer is not the answer to the next question.
func TestSameAnswerTwice(t *testing.T) {
	r := start(t)
	r.mind.plan("ask me", llmtest.Use(claybot.ToolCall{ID: "q", Name: "ask_user", Args: `{"question":"Really?"}`}),
		llmtest.Use(claybot.ToolCall{ID: "p", Name: "ask_user", Args: `{"question":"Sure?"}`}), llmtest.Say("thanks"))
	for _, c := range [][3]string{
		{"ask me", "0", "Really?"}, {"ask me", "1", "Really?"}, {"yes", "0", "Sure?"}, {"yes", "1", "Sure?"}, {"yes", "0", "thanks"}, {"yes", "1", "thanks"},
	} {
		g := r.do("POST", "/v1/chat/completions", `{"model":"claybot","user":"t","messages":[{"role":"user","content":"`+c[0]+`"}]}`, "X-Stainless-Retry-Count", c[1])
		if said := saidIn(t, g); said != c[2] {
			t.Errorf("%s, retry %s, is answered with %q, want %q", c[0], c[1], said, c[2])
		}
	}
	if n := r.runs(); n != 1 {
		t.Errorf("%d runs", n)
	}
}

// Every error says whether the same request is worth a retry.
func TestErrorsSayWhetherToRetry(t *testing.T) {
	busy := &refusing{}
	r, p := withPress(t, func(r *rig) { r.wrap = func(d *web.Backend) { busy.Starter = d.Starter; d.Starter = busy } })
	r.mind.plan("fail", llmtest.Reply{Err: &llm.Error{Class: llm.Permanent, Text: "the account is closed"}})
	check := func(what string, g got, status int, retry, after bool, kind string) {
		t.Helper()
		var e struct {
			Error struct{ Type, Message string }
		}
		r.read(g.body, &e)
		if g.code != status || (g.head.Get("X-Should-Retry") == "true") != retry || g.head.Get("X-Should-Retry") == "" || (g.head.Get("Retry-After") != "") != after || e.Error.Type != kind || e.Error.Message == "" {
			t.Errorf("%s = %d %s, retry %q after %q", what, g.code, g.body, g.head.Get("X-Should-Retry"), g.head.Get("Retry-After"))
		}
	}
	post := func(text string, head ...string) got {
		return r.do("POST", "/v1/chat/completions", `{"model":"claybot","user":"t","messages":[{"role":"user","content":"`+text+`"}]}`, head...)
	}
	const unknown = "Unknown token; create one with `claybot token create`."
	if g := post("hello", "Authorization", "Bearer wrong"); !strings.Contains(g.body, unknown) || strings.Contains(g.body, "Log in") {
		t.Errorf("a wrong token reads %s", g.body)
	}
	reader := r.scoped("reader", "read")
	check("a wrong token", post("hello", "Authorization", "Bearer wrong"), 401, false, false, "invalid_request_error")
	check("no token", post("hello", "Authorization", "Basic x"), 401, false, false, "invalid_request_error")
	check("a scope that is too small", post("hello", "Authorization", "Bearer "+reader), 403, false, false, "invalid_request_error")
	check("another site", post("hello", "Origin", "https://evil.example"), 403, false, false, "invalid_request_error")
	check("no JSON", post("hello", "Content-Type", "text/plain"), 415, false, false, "invalid_request_error")
	check("another method", r.do("PUT", "/v1/models", `{}`), 405, false, false, "invalid_request_error")
	check("another path", r.do("POST", "/v1/embeddings", `{}`), 404, false, false, "invalid_request_error")
	check("a failed run", post("fail"), 400, false, false, "run_failed")
	check("a request that is wrong", post(" "), 400, false, false, "invalid_request_error")
	var wg sync.WaitGroup
	wg.Go(func() { check("a canceled run", post("press"), 400, false, false, "run_canceled") })
	p.wait(t)
	r.ask("DELETE", "/agents/runs/"+r.newest(), "", http.StatusAccepted, nil)
	wg.Wait()
	for err, after := range map[error]bool{storage.ErrBusy: true, storage.ErrFull: true} {
		busy.err.Store(&err)
		check(err.Error(), post("hello"), 503, true, after, "server_error")
	}
	busy.err.Store(nil)
	if said := saidIn(t, post("hello")); said != "re: hello" {
		t.Errorf("then: %q", said)
	}
	if n := r.runs(); n != 3 {
		t.Errorf("%d runs", n)
	}
}

// A refusing desk has a store that does not work.
type refusing struct {
	web.Starter
	err atomic.Pointer[error]
}

func (d *refusing) Known(ctx context.Context, to agentsystem.Address, m claybot.AgentMessage) (agentsystem.Accepted, bool, error) {
	if err := d.err.Load(); err != nil {
		return agentsystem.Accepted{}, false, *err
	}
	return d.Starter.Known(ctx, to, m)
}

// A client that waits for one JSON value receives blanks meanwhile, because proxies cut
// silent connections. A later error arrives in the value.
func TestWaitingClientIsKeptAlive(t *testing.T) {
	for text, want := range map[string]string{"press": `"content":"pressed it"`, "push": `{"error":{"message":"The run failed: `} {
		t.Run(text, func(t *testing.T) {
			r, p := withPress(t, func(r *rig) { r.alive = time.Millisecond })
			r.mind.plan("push", pressing("")[0], llmtest.Reply{Err: &llm.Error{Class: llm.Permanent, Text: "the account is closed"}})
			resp := r.open("POST", "/v1/chat/completions", strings.Replace(pressBody, `"press"`, `"`+text+`"`, 1))
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/json" || resp.Header.Get("X-Accel-Buffering") != "no" {
				t.Errorf("%d %v", resp.StatusCode, resp.Header)
			}
			blank := make([]byte, 3)
			if _, err := io.ReadFull(resp.Body, blank); err != nil || strings.TrimSpace(string(blank)) != "" {
				t.Errorf("it begins with %q, %v", blank, err)
			}
			p.letGo()
			b, err := io.ReadAll(resp.Body)
			if err != nil || !strings.Contains(string(b), want) || !json.Valid(b) {
				t.Errorf("%s, %v", b, err)
			}
		})
	}
}

// A daemon that stops tells waiting clients to retry, and answers the retry from the
// same run. A connection that already carries blanks or a stream is cut, so that its end
// is not mistaken for an answer.
func TestStopWhileAClientWaits(t *testing.T) {
	for _, c := range []struct {
		name  string
		alive time.Duration
		body  string
	}{
		{"nothing sent", time.Hour, pressBody},
		{"kept alive", time.Millisecond, pressBody},
		{"stream", time.Hour, strings.Replace(pressBody, `"user":`, `"stream":true,"user":`, 1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, p := withPress(t, func(r *rig) { r.alive = c.alive })
			head, rest := make(chan *http.Response, 1), make(chan error, 1)
			go func() {
				resp := r.open("POST", "/v1/chat/completions", c.body)
				head <- resp
				b, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err == nil && resp.StatusCode == http.StatusOK {
					t.Errorf("the answer ends in order with %q", b)
				}
				rest <- err
			}()
			p.wait(t)
			if c.name != "nothing sent" {
				resp := <-head
				head <- resp
			}
			r.stop()
			if resp := <-head; c.name == "nothing sent" && (resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("X-Should-Retry") != "true" || resp.Header.Get("Retry-After") == "") {
				t.Errorf("%d %v", resp.StatusCode, resp.Header)
			}
			<-rest
			p.letGo()
			r.addr = net.JoinHostPort("127.0.0.1", "0")
			r.begin()
			t.Cleanup(func() { r.stop() })
			r.alive = time.Hour
			if said := saidIn(t, got{http.StatusOK, nil, r.do("POST", "/v1/chat/completions", pressBody).body}); said != "pressed it" {
				t.Errorf("after the start: %q", said)
			}
			if n := r.runs(); n != 1 {
				t.Errorf("%d runs", n)
			}
		})
	}
}
