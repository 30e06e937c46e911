package dashboard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/devices/scripted"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/runs"
	exploring "github.com/claybot/claybot/runs/explore"
	planning "github.com/claybot/claybot/runs/plan"
	"github.com/claybot/claybot/tools"
)

// A venue is where rooms and lunch are booked. The kitchen refuses the first
// order. It counts all that is done: a booking is no less a booking because it
// was made before.
type venue struct {
	gate chan struct{} // booking a room waits for it

	mu     sync.Mutex
	orders int // tries to order lunch
	did    []string
}

func (v *venue) journal() (did []string, orders int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.did), v.orders
}

func (v *venue) note(what string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.did = append(v.did, what)
}

// A wanted booking.
type wanted struct {
	Day    string `json:"day"`
	People int    `json:"people"`
}

// booked is the result of a booking, with the call that cancels it.
func (v *venue) booked(what string, in wanted) (tools.Result, error) {
	v.note(fmt.Sprintf("+%s %s %d", what, in.Day, in.People))
	args, err := json.Marshal(map[string]string{"what": what})
	return tools.Result{
		Text: what + " is booked", What: what + " for " + in.Day, Undo: &claybot.ToolCall{Name: "cancel_booking", Args: string(args)},
	}, err
}

func (v *venue) room(ctx context.Context, _ tools.Env, in wanted) (tools.Result, error) {
	select {
	case <-v.gate:
		return v.booked("room", in)
	case <-ctx.Done():
		return tools.Result{}, context.Cause(ctx)
	}
}

func (v *venue) lunch(_ context.Context, _ tools.Env, in wanted) (tools.Result, error) {
	v.mu.Lock()
	v.orders++
	first := v.orders == 1
	v.mu.Unlock()
	if first {
		return tools.Result{}, &tools.Fault{Code: "unavailable", Text: "the kitchen is not open yet", Retriable: true}
	}
	return v.booked("lunch", in)
}

func (v *venue) cancel(_ context.Context, _ tools.Env, in struct {
	What string `json:"what"`
},
) (tools.Result, error) {
	v.note("-" + in.What)
	return tools.Result{Text: "canceled"}, nil
}

func (v *venue) tools() []tools.Tool {
	spec := func(name string) tools.Spec {
		return tools.Spec{Tool: llm.Tool{Name: name, Description: "Works at the venue."}, Effect: tools.Idempotent}
	}
	room, lunch, cancel := spec("book_room"), spec("book_lunch"), spec("cancel_booking")
	room.Confirm, room.Undoes, lunch.Undoes, cancel.Hidden = true, true, true, true
	return []tools.Tool{tools.New(room, v.room), tools.New(lunch, v.lunch), tools.New(cancel, v.cancel)}
}

// What the model says, in this order: what is wanted, the plan, the summary.
var meeting = []llmtest.Reply{
	llmtest.Say(`{"intent": "meeting", "inputValues": {"people": 6}}`),
	llmtest.Say(`{"diff": "A room and lunch are booked.", "steps": [
		{"id": "step-01", "tool": "book_room", "what": "book the room", "args": {"day": "{{ inputs.day }}", "people": "{{ inputs.people }}"}, "risk": "low", "costEstimate": 0.02},
		{"id": "step-02", "tool": "book_lunch", "what": "order lunch", "args": {"day": "{{ inputs.day }}", "people": "{{ inputs.people }}"}, "risk": "low", "dependsOn": ["step-01"]}]}`),
	llmtest.Say("The room is booked and *lunch* is ordered."),
}

// approvedAction is what the person sees before the room is booked.
const approvedAction = `{
  "day": "2026-12-01",
  "people": 6
}`

// An engineRig is a rig whose agents plan at a venue, or explore a shop, by the
// engines that the daemon has.
type engineRig struct {
	*rig
	venue *venue
	model *llmtest.Script
	shop  *scripted.App
}

// newEngines makes the rig, not started.
func newEngines(t *testing.T) *engineRig {
	e := &engineRig{rig: newRig(t), venue: &venue{gate: make(chan struct{})}, model: llmtest.NewScript(meeting...), shop: scripted.Demo()}
	set, err := tools.NewSet(e.venue.tools()...)
	if err != nil {
		t.Fatal(err)
	}
	fewest, most := 1.0, 20.0
	settings := planning.Config{
		Model:  func(claybot.Agent) llm.Model { return e.model },
		Tools:  func(claybot.Agent) *tools.Set { return set },
		Policy: func(claybot.Agent) planning.Policy { return planning.Policy{RetryBase: time.Millisecond} },
		Intents: func(claybot.Agent) []planning.Intent {
			return []planning.Intent{{Name: "meeting", Description: "a room and lunch for a meeting", Inputs: []claybot.Question{
				{Key: "people", Text: "For how many people?", Type: claybot.QuestionNumber, Min: &fewest, Max: &most, Required: true},
				{Key: "day", Text: "For which day?", Type: claybot.QuestionDate, Required: true},
			}}}
		},
		Approved: func(a claybot.Agent) []string { return e.system.Profiles.OwnSettings(a.ID).Approved },
	}
	e.engine = claybot.EnginePlan
	e.engines = map[string]runs.Engine{
		claybot.EnginePlan: planning.New(settings), claybot.EngineUndo: planning.NewUndo(settings),
		claybot.EngineExplore: exploring.New(exploring.Config{
			Open: e.shop.Open,
			Settings: func(*runs.Turn) exploring.Settings {
				return exploring.Settings{Hosts: []string{"shop.test"}, Screens: true}
			},
		}),
	}
	return e
}

// said waits until the chat shows a text of the bot, and follows the way from it
// to its run.
func (b *browser) said(text string) {
	b.Helper()
	bubble := `[...document.querySelectorAll(".bot")].find((e) => e.querySelector(".bubble")?.textContent.includes(` + js(text) + `))`
	b.do("the chat says "+text, until(bubble+`?.querySelector(".about")?.getAttribute("href").startsWith("/ui/runs/")`),
		chromedp.Evaluate[chromedp.Void](bubble+`.querySelector(".about").click()`),
		until(`location.pathname.startsWith("/ui/runs/") && document.body.dataset.connection === "on"`))
}

// A room with lunch is booked and given back by a person who has nothing but the
// page: what is missing is asked for, what is risky is approved, a step is tried
// again, and all of it is undone. In the middle the daemon is restarted.
func TestBrowserMeeting(t *testing.T) {
	e := newEngines(t)
	e.lasts()
	e.start()
	b := e.browse()
	b.do("what is missing is asked for", typed("book a room with lunch for six people"), until(`document.querySelector("#asks .question b")?.textContent === "For which day?"`),
		until(`document.querySelectorAll("#asks form").length === 1`), // six people were said
		fill("#asks input[name=value]", "12026-12-01"), chromedp.Click("#asks .primary"),
		until(`document.querySelector("#asks [data-error]")?.textContent.startsWith("Please give a day that exists")`))
	b.do("what fits", fill("#asks input[name=value]", "2026-12-01"), chromedp.Click("#asks .primary"),
		until(`document.querySelector("#asks .approval .asks")?.textContent.includes("book_room")`),
		chromedp.Click(`#asks .approval a[href^="/ui/runs/"]`), until(`document.querySelector("#plan") && document.body.dataset.connection === "on"`))

	b.do("it waits", step("step-01", "waiting"), step("step-02", "pending"), at("confirm"), until(`document.querySelector("#step-step-01 .badge.bad").textContent === "high risk"`))
	if shown := is[string](b, `document.querySelector("#questions .action").textContent`); shown != approvedAction {
		t.Errorf("what is to be approved is\n%s, want\n%s", shown, approvedAction)
	}
	if about := is[string](b, `document.querySelector("#questions .about:last-of-type").textContent`); about != "Why: It is step-01 of the plan: book the room." {
		t.Errorf("below it stands %q", about)
	}
	e.restarted(b)
	b.do("approve", chromedp.Click("#questions .primary"), until(`document.querySelector("#toasts").textContent.includes("Approved.")`),
		step("step-01", "running"), at("executor"), until(`!document.querySelector("#questions form")`))
	if did, _ := e.venue.journal(); len(did) > 0 {
		t.Errorf("before the room was booked, the venue saw %v", did)
	}
	close(e.venue.gate)
	b.do("one step is tried again", step("step-01", "ok"), step("step-02", "ok"), until(`document.querySelector("#step-step-02 .by").textContent.includes("2 attempts")`),
		until(`!document.querySelector("#step-step-01 .by").textContent.includes("attempts")`),
		until(`!document.querySelector(".flow .now") && document.querySelector("#node-END").matches(".seen") && document.querySelectorAll(".flow .edge.taken").length === 5 && !document.querySelector("#node-fallback").matches(".seen")`),
		until(`document.querySelector("#plan-summary em")?.textContent === "lunch"`))
	e.did("+room 2026-12-01 6", "+lunch 2026-12-01 6")

	b.open("/")
	b.said("The room is booked")
	b.do("what was said", until(`[...document.querySelectorAll("#asked .quote")].map((e) => e.textContent).join() === "book a room with lunch for six people,2026-12-01,yes"`))
	b.do("undo", chromedp.Click("#undo"), until(`document.querySelector("#confirm").open`), chromedp.Click("#confirm-yes"),
		until(`document.querySelector("#undo").disabled && document.querySelector("#undo-why .badge")?.textContent === "done"`), chromedp.Click("#undo-why a"),
		until(`document.querySelector("#undoes") && [...document.querySelectorAll(".plan .step")].map((e) => e.id + " " + e.dataset.status).join() === "step-step-02 ok,step-step-01 ok"`),
		until(`document.querySelector("#plan .head .dim").textContent.startsWith("2 of 2 steps done")`),
		until(`document.querySelector("#node-undo").matches(".seen") && document.querySelector("#node-END").matches(".seen")`))
	e.did("+room 2026-12-01 6", "+lunch 2026-12-01 6", "-lunch", "-room")
	b.open("/")
	b.said("Undone:")
}

// restarted stops the daemon and starts it again, with the same page open.
func (e *engineRig) restarted(b *browser) {
	e.Helper()
	e.addr = e.srv.Addr()
	b.excuse("the daemon is down")
	e.stop()
	b.do("the daemon is down", until(`!document.querySelector("#lost").hidden`))
	e.start()
	b.do("the daemon is back", until(`document.querySelector("#lost").hidden && document.body.dataset.connection === "on"`))
	b.excuse("")
}

// did compares what was done at the venue, and what the model was asked for.
func (e *engineRig) did(want ...string) {
	e.Helper()
	got, orders := e.venue.journal()
	if !slices.Equal(got, want) || orders != 2 {
		e.Errorf("the venue saw %v and %d orders of lunch, want %v and 2", got, orders, want)
	}
	var asked []string
	for _, r := range e.model.Requests() {
		asked = append(asked, r.Messages[0].ID)
	}
	if want := []string{llm.ClassifyRequest, llm.PlanRequest, llm.PlanSummaryRequest}; !slices.Equal(asked, want) {
		e.Errorf("the model was asked for %v, want %v", asked, want)
	}
}

// An agent is told to explore, and its map is a picture.
func TestBrowserExplore(t *testing.T) {
	e := newEngines(t)
	e.start()
	b := e.browse()
	b.do("an agent", typed("/status"), until(`document.querySelector(".bot .bubble")`))
	b.open("/ui/agents")
	b.do("it is to explore", chromedp.Click("#rows a"), until(`document.querySelector("#set-engine") && document.body.dataset.connection === "on"`),
		fill("#set-engine", claybot.EngineExplore), chromedp.Click("#save"), until(`document.querySelector("#hint-engine").textContent.startsWith("current: explore")`))
	b.open("/")
	b.do("explore", typed("explore "+scripted.DemoURL))
	b.said("screens")
	b.do("the map", until(`document.querySelector(".map img").naturalWidth > 300`), until(`document.querySelectorAll(".screens li").length === 10`),
		chromedp.Evaluate[chromedp.Void](`document.querySelectorAll(".screens img").forEach((e) => e.loading = "eager")`),
		until(`[...document.querySelectorAll(".screens img")].filter((e) => e.naturalWidth > 0).length === 10`))
	b.do("what it found", until(`document.querySelector("#dead-ends").textContent === "Imprint"`), until(`document.querySelector("#explored .plain").textContent === "Something broke: the server answered with error 500"`),
		until(`document.querySelector("#node-Act text.times").textContent === "20" && document.querySelector("#node-Stop").matches(".seen") && document.querySelector("#node-END").matches(".seen") && !document.querySelector(".flow .now")`))
	if got, want := e.shop.Effects(), map[string]int{"order/Send the order": 1}; !maps.Equal(got, want) {
		t.Errorf("the shop took %v, want %v", got, want)
	}
}
