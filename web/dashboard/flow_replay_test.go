package dashboard_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/claybot/claybot"
)

const plainFlow = "owner: web/operator\nstart: one\nnodes:\n  one: {kind: template, value: gold, next: two}\n  two: {kind: reply, text: \"{{ one.output }}\", next: END}\n"

// A dry run is started from the page and marked in all lists; a run that has ended is replayed from a
// node that it came to, and only administrators replay live.
func TestFlowReplayPage(t *testing.T) {
	s := newShelf(t)
	s.put("order", plainFlow)
	s.start()
	v := s.visitor()
	at := v.begin("order", url.Values{"key": {"k1"}})
	run := s.reached(at, claybot.RunSucceeded)
	page := v.page(at + "&node=two")
	says(t, page, "Replay from two, dry", `id="replay-live"`, "Replay from two</button>")
	denies(t, page, `>dry<`)
	says(t, v.page(at), ">Replay, dry<")

	dry := v.begin("order", url.Values{"key": {"k1"}, "dry": {"true"}}) // another run than the real one, though the key is the same
	s.reached(dry, claybot.RunSucceeded)
	says(t, v.page(dry), `id="flow-dry"`)
	denies(t, v.page(dry), `id="replay"`) // it has no results
	says(t, v.page("/ui/flows"), ">dry<")
	says(t, v.page("/ui/runs"), ">dry<")
	if id := strings.TrimPrefix(dry, "/ui/flows/order?run="); !strings.Contains(v.page("/ui/runs/"+id), ">dry<") {
		t.Error("the page of the run does not say that it is dry")
	}

	form := url.Values{"run": {string(run.ID)}, "from": {"two"}, "key": {"k2"}}
	got := v.do(http.MethodPost, "/ui/flows/order/replay", form)
	again := v.do(http.MethodPost, "/ui/flows/order/replay", form)
	if where := got.head.Get("HX-Redirect"); !strings.HasPrefix(where, "/ui/flows/order?run=") || where != again.head.Get("HX-Redirect") || s.replayed[0].From != "two" || s.replayed[0].Live {
		t.Errorf("the replay = %d %s to %q, then to %q; %+v", got.code, got.body, where, again.head.Get("HX-Redirect"), s.replayed)
	}
	form.Set("live", "true")
	before := len(s.replayed)
	var made struct {
		Token string `json:"token"`
	}
	if err := json.Unmarshal([]byte(v.send(http.MethodPost, "/tokens", "application/json", `{"name":"operator","scope":"operate"}`).body), &made); err != nil {
		t.Fatal(err)
	}
	stranger := &visitor{s.rig, &http.Client{}}
	if got := stranger.do(http.MethodPost, "/ui/flows/order/replay", form, "Authorization", "Bearer "+made.Token); got.code != http.StatusForbidden || len(s.replayed) != before {
		t.Errorf("a live replay by an operator = %d %s", got.code, got.body)
	}
	live := v.do(http.MethodPost, "/ui/flows/order/replay", form)
	if live.code != http.StatusNoContent || !s.replayed[len(s.replayed)-1].Live {
		t.Errorf("a live replay = %d %s", live.code, live.body)
	}
	where := live.head.Get("HX-Redirect")
	s.reached(where, claybot.RunSucceeded)
	says(t, v.page(where), `id="replay-dry"`)
	denies(t, v.page(where), `id="replay-live"`) // only the first run knows what has acted
	form.Set("run", "nothing")
	if got := v.do(http.MethodPost, "/ui/flows/order/replay", form); got.code != http.StatusNotFound {
		t.Errorf("a replay of nothing = %d %s", got.code, got.body)
	}
}

// The branches of a node and the agents of a list are drawn between it and the node behind it.
func TestFlowParts(t *testing.T) {
	s := newShelf(t)
	s.put("order", `owner: web/operator
start: look
nodes:
  look: {kind: parallel, branches: {web: {kind: agent, prompt: a}, notes: {kind: agent, prompt: b}}, next: all, error: sorry}
  all: {kind: each, over: "{{ [1] }}", prompt: "{{ item }}", next: sorry}
  sorry: {kind: template, value: x, next: END}
`)
	e := s.editable()
	s.start()
	v := s.visitor()
	for _, path := range []string{"/ui/flows/order", "/ui/flows/order/edit"} {
		says(t, v.page(path), `class="node part" id="node-look.web"`, `id="node-look.notes"`, `id="node-all.item"`)
	}
	page := v.page("/ui/flows/order/edit")
	if n := strings.Count(page, "[&#34;look&#34;,&#34;next&#34;]"); n != 2 { // by each of its branches
		t.Errorf("the edge behind the branches has %d grips", n)
	}
	at := v.begin("order", url.Values{"key": {"k1"}})
	s.reached(at, claybot.RunSucceeded)
	says(t, v.page(at), `class="node seen done part" id="node-look.web"`, `class="node seen done part" id="node-all.item"`)
	_ = e
}

// A dry run and a replay from a node, as a person does them.
func TestBrowserFlowReplay(t *testing.T) {
	s := newShelf(t)
	s.put("order", plainFlow)
	s.start()
	b := s.browse()
	b.open("/ui/flows/order")
	b.do("a dry run", chromedp.Click("#start summary"), chromedp.Click("#f-dry"), push("#start .primary"),
		until(`location.search.startsWith("?run=") && document.body.dataset.connection === "on" && document.querySelector("#flow-dry") && document.querySelector("#flow-run .badge").textContent === "done"`))
	if is[bool](b, `document.querySelector("#replay") !== null`) {
		t.Error("a dry run can be replayed")
	}
	b.open("/ui/flows/order")
	b.do("a real run", chromedp.Click("#start summary"), push("#start .primary"), until(`location.search.startsWith("?run=") && document.body.dataset.connection === "on" && document.querySelector("#replay") && document.querySelector("#flow-run .badge").textContent === "done"`))
	b.do("from a node", chromedp.Click("#node-two"), until(`document.body.dataset.connection === "on" && document.querySelector("#replay-dry")?.textContent === "Replay from two, dry"`),
		chromedp.Evaluate[chromedp.Void](`window.was = location.search`), push("#replay-dry"), until(`window.was === undefined && document.body.dataset.connection === "on" && document.querySelector("#flow-dry")`))
	for _, width := range []int64{360, 1280} {
		b.do("size", screen(width, 740, width < 500), until(fits))
	}
	if len(s.replayed) != 1 || s.replayed[0].From != "two" || s.replayed[0].Live {
		t.Errorf("replayed %+v", s.replayed)
	}
}
