package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/web"
)

// begin starts a workflow from its page, and returns the address that the page goes to.
func (v *visitor) begin(flow string, form url.Values) string {
	v.Helper()
	got := v.do(http.MethodPost, "/ui/flows/"+flow+"/runs", form)
	where := got.head.Get("HX-Redirect")
	if got.code != http.StatusNoContent || !strings.HasPrefix(where, "/ui/flows/"+flow+"?run=") {
		v.Fatalf("start = %d %q %s", got.code, where, got.body)
	}
	return where
}

// says fails unless a page has all of some texts, denies if it has one of them.
func says(t *testing.T, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(page, text) {
			t.Errorf("the page does not have %q", text)
		}
	}
}

func denies(t *testing.T, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(page, text) {
			t.Errorf("the page has %q", text)
		}
	}
}

// reached waits until a run is in a state.
func (s *shelf) reached(address string, state claybot.RunState) claybot.Run {
	s.Helper()
	_, id, _ := strings.Cut(address, "run=")
	var run claybot.Run
	s.eventually("the run is "+string(state), func() bool {
		var err error
		run, err = s.system.Overview.RunByID(s.Context(), claybot.RunID(id))
		return err == nil && run.State == state
	})
	return run
}

// The list has flows with their triggers and newest runs, and faults with their lines; the page of a
// flow has its graph, and of a chosen run what each node took in and put out.
func TestFlowPages(t *testing.T) {
	s := newShelf(t)
	s.start()
	v := s.visitor()
	s.faults = []web.FlowFault{{File: "flows/bad.yaml", Line: 7, Key: "nodes.x.next", Text: "no node is called y", Near: "z"}}
	says(t, v.page("/ui/flows"), "/ui/flows/order", "6 nodes", "web like /^order &lt;b&gt;/", "flows/bad.yaml:7", "did you mean z?", ">none<")
	page := v.page("/ui/flows/order")
	says(t, page, `id="node-what"`, `id="entry-chat"`, "No run yet.", "not entered", `<option value="shop">`)
	denies(t, page, `id="step"`)

	form := url.Values{"text": {"tea <b>now</b>"}, "payload": {`{"n": 7}`}, "trigger": {"shop"}, "key": {"k1"}}
	at := v.begin("order", form)
	if again := v.begin("order", form); again != at {
		t.Errorf("two presses are the runs %s and %s", at, again)
	}
	run := s.reached(at, claybot.RunAwaiting)
	says(t, v.page("/ui/flows"), "waiting for an answer")
	says(t, v.page(at), "It waits at ask.", `class="node seen waiting now"`, "Order tea &lt;b&gt;now&lt;/b&gt;?", "/ui/runs/"+string(run.ID))
	says(t, v.page(at+"&node="+url.QueryEscape("▸ shop")), "started the run", "tea &lt;b&gt;now", `&#34;n&#34;: 7`)
	says(t, v.page(at+"&node=ask"), `id="step"`, "Line 10", "Question")

	open, err := s.system.Questions.Answers.OpenQuestions(t.Context(), run.Agent)
	if err != nil || len(open) != 1 {
		t.Fatal(open, err)
	}
	if got := v.do(http.MethodPost, "/ui/questions/"+open[0].ID+"?verdict=approve", url.Values{}); got.code != http.StatusNoContent {
		t.Fatal(got.code, got.body)
	}
	run = s.reached(at, claybot.RunSucceeded)
	says(t, v.page(at), "It has come to its end, from done.")
	says(t, v.page(at+"&node=what"), "Output", "tea &lt;b&gt;now&lt;/b&gt;")
	says(t, v.page(at+"&node=ask"), "Answer: yes", "entered 2 times")
	says(t, v.page(at+"&node=clock"), "<code>current_time</code>", "Input", "&#34;zone&#34;: &#34;UTC&#34;", "Output")
	thanks := v.page(at + "&node=thanks")
	says(t, thanks, "Agents", "/ui/agents/")
	if strings.Count(thanks[strings.Index(thanks, "<h3>Agents and"):], "/ui/runs/") < 2 { // of the agent, and of the list below
		t.Error("the run of the agent is not linked")
	}
	says(t, v.page(at+"&node=sorry"), "not entered", "Not ordered &lt;script&gt;")

	// A run keeps its version; the page of a deleted flow still has its runs.
	s.put("order", strings.ReplaceAll(orderFlow, "sorry", "regret"))
	says(t, v.page(at), `id="flow-older"`, `id="node-sorry"`)
	other := *s.flow
	other.Name = "other"
	s.flow = &other
	says(t, v.page(at), `id="flow-gone"`, `id="node-sorry"`)
	denies(t, v.page(at), `id="start"`)
}

// A node that waits for its next try says so; one whose error another node took has failed, and so has the one in
// which the run ended.
func TestTriesOnFlowPage(t *testing.T) {
	s := newShelf(t)
	s.put("order", `owner: web/operator
start: ask
nodes:
  ask: {kind: agent, prompt: count, output: {n: integer}, tries: 2, next: END, error: last}
  last: {kind: agent, prompt: count, output: {n: integer}, tries: 1, next: END}
`)
	s.start()
	v := s.visitor()
	at := v.begin("order", url.Values{"key": {"k1"}})
	s.eventually("the node waits for its next try", func() bool { return strings.Contains(v.page(at), "It waits for its next try at ask.") })
	says(t, v.page(at+"&node=ask"), `class="node seen retrying`, `<span class="badge warn">retrying</span>`)
	close(s.tries)
	s.reached(at, claybot.RunFailed)
	says(t, v.page(at), `class="node seen failed"`)
	says(t, v.page(at+"&node=ask"), `<span class="badge bad">failed</span>`, "no JSON object")
	says(t, v.page(at+"&node=last"), `<span class="badge bad">failed</span>`, "no JSON object")
}

// A workflow that a node started is shown below the node, with its run on its own page.
func TestNestedFlowPage(t *testing.T) {
	s := newShelf(t)
	s.put("inner", "owner: web/operator\nstart: one\nnodes: {one: {kind: template, value: gold, next: END}}\n")
	s.inner = s.flow
	s.put("outer", "owner: web/operator\nstart: dig\nnodes:\n  dig: {kind: flow, flow: inner, next: END}\n")
	s.start()
	v := s.visitor()
	at := v.begin("outer", url.Values{"key": {"k1"}})
	s.reached(at, claybot.RunSucceeded)
	page := v.page(at + "&node=dig")
	says(t, page, "Agents and workflows", "gold", "/ui/flows/inner?run=")
	_, rest, _ := strings.Cut(page, "/ui/flows/inner?run=")
	id, _, _ := strings.Cut(rest, `"`)
	says(t, v.page("/ui/flows/inner?run="+id), `id="node-one"`, "It has come to its end, from one.")
}

// What cannot be shown or started says why.
func TestFlowRefusals(t *testing.T) {
	s := newShelf(t)
	s.start()
	v := s.visitor()
	chat := s.ran(s.say("hello"), claybot.RunSucceeded)
	for path, want := range map[string]string{
		"/ui/flows/nothing":                            "No such workflow.",
		"/ui/flows/order?run=r404":                     "Not found.",
		"/ui/flows/order?run=" + string(chat.ID):       "That run is not one of this workflow.",
		"/ui/flows/nothing/now?run=" + string(chat.ID): "That run is not one of this workflow.",
	} {
		if got := v.do(http.MethodGet, path, nil); got.code != http.StatusNotFound || !strings.Contains(got.body, want) {
			t.Errorf("GET %s = %d %s, want %s", path, got.code, got.body, want)
		}
	}
	for _, c := range []struct{ flow, text, payload, want string }{
		{"order", "", "{\n  \"a\": 1,\n  b}", `The payload is not valid JSON: line 3, column 3: invalid character`},
		{"order", "", `{"a":`, "unexpected end of JSON input"},
		{"order", "", `{} {}`, "column 4: invalid character"},
		{"order", strings.Repeat("x", 100_001), "", "The text is too long."},
		{"nothing", "x", "", "No such workflow."},
	} {
		got := v.do(http.MethodPost, "/ui/flows/"+c.flow+"/runs", url.Values{"text": {c.text}, "payload": {c.payload}})
		if got.code/100 != 4 || !strings.Contains(got.body, c.want) || got.head.Get("HX-Redirect") != "" {
			t.Errorf("%.40q is answered with %d %s, want %s", c.payload, got.code, got.body, c.want)
		}
	}
	bare := startRig(t)
	for _, path := range []string{"/ui/flows", "/ui/flows/order"} {
		if got := bare.visitor().do(http.MethodGet, path, nil); got.code != http.StatusNotFound {
			t.Errorf("GET %s without workflows = %d", path, got.code)
		}
	}
}
