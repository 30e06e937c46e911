package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// chromium starts a real browser. Where none is installed the test is skipped
// with a line that says so; where CI=true that is a failure.
func chromium(t *testing.T) context.Context {
	t.Helper()
	exe := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			exe = path
			break
		}
	}
	if exe == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("no chromium here, and CI=true asks for it: apt-get install chromium")
		}
		t.Skip("SKIPPED, the page is not tested: no chromium here; apt-get install chromium")
	}
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(exe), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("no-first-run", true), chromedp.Flag("disable-dev-shm-usage", true),
	)...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// run does what a person does in the browser.
func run(t *testing.T, ctx context.Context, what string, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, actions...); err != nil {
		seen, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body.innerText`)) // only for the message below
		t.Fatalf("%s: %v; the page shows:\n%s", what, err, seen)
	}
}

// until waits until a JavaScript expression is true.
func until(expr string) chromedp.Action[chromedp.Void] {
	return chromedp.Poll[chromedp.Void](expr, chromedp.WithPollingTimeout(10*time.Second))
}

// js quotes a string for JavaScript.
func js(s string) string {
	b, _ := json.Marshal(s) // strings always marshal
	return string(b)
}

// typed writes a message and presses Enter.
func typed(text string) chromedp.Action[chromedp.Void] {
	return chromedp.Steps(chromedp.SendKeys("#text", text), chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		// A key that a page may cancel, unlike the "\n" of SendKeys.
		for _, typ := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeRawKeyDown, input.DispatchKeyEventTypeKeyUp} {
			if _, err := cdp.Call(ctx, tab, input.DispatchKeyEvent, input.DispatchKeyEventParams{
				Type: typ, Key: "Enter", Code: "Enter", WindowsVirtualKeyCode: 13, NativeVirtualKeyCode: 13,
			}); err != nil {
				return err
			}
		}
		return nil
	}))
}

// xss are texts that would run a script if anything but text was made of them.
var xss = []string{
	`<img src=x onerror="window.hacked=1">`,
	`<script>window.hacked=1</script>`,
	`[click](javascript:window.hacked=1)`,
	`<svg/onload=window.hacked=1>`,
	`"><iframe srcdoc="<script>parent.hacked=1</script>">`,
}

// TestPage is one visit of a person: login, messages, streaming, tools, stop,
// hostile texts, reload, pairing, a restart of the daemon, logout.
func TestPage(t *testing.T) {
	ctx := chromium(t)
	dir := t.TempDir()
	w, stop := start(t, dir, nil)
	main := claybot.User("web", "main", web.Operator)
	route := main.Route()

	problems := make(chan string, 100)
	if err := chromedp.Listen(ctx, func(ev any) {
		if e, ok := ev.(*runtime.EventExceptionThrown); ok && len(problems) < cap(problems) {
			problems <- fmt.Sprint(e.ExceptionDetails.Text, " ", e.ExceptionDetails.Exception)
		}
	}); err != nil {
		t.Fatal(err)
	}
	run(t, ctx, "log in", chromedp.Navigate(<-w.links), chromedp.WaitVisible("#text"),
		until(`document.querySelector("#state").dataset.state === "live"`),
		until(`!document.querySelector("#empty").hidden`))
	run(t, ctx, "write", typed("hello <b>there</b>"),
		until(`document.querySelector(".me .bubble")?.textContent === "hello <b>there</b>"`),
		until(`document.querySelector(".me").dataset.state === "sent"`))
	if got := w.posted(); len(got) != 1 || got[0].Text != "hello <b>there</b>" {
		t.Fatalf("posted %+v", got)
	}

	w.chat.Observe(route, claybot.Event{Run: "r1", Type: claybot.EventRunStarted})
	run(t, ctx, "a run starts", until(`!document.querySelector("#stop").hidden && !!document.querySelector("#live .dots")`))
	w.chat.Preview(route, "r1", 1, "Let me l")
	run(t, ctx, "the first step's text grows", until(`document.querySelector("#live .growing")?.textContent === "Let me l"`))
	w.chat.Observe(route, claybot.Event{Run: "r1", Type: claybot.EventAssistantMessage, Data: json.RawMessage(`{"step":1,"text":"Let me *look*.","calls":[{"callId":"c1"}]}`)})
	run(t, ctx, "the first step's text is whole", until(`document.querySelector("#live .thought")?.innerHTML === "<p>Let me <em>look</em>.</p>"`))
	w.chat.Observe(route, claybot.Event{Run: "r1", Type: claybot.EventToolCalled, Data: json.RawMessage(`{"callId":"c1","tool":"current_time","argsPreview":"{\"zone\":\"UTC\"}"}`)})
	run(t, ctx, "a tool runs", until(`document.querySelector("#live .tool")?.dataset.state === "running"`))
	w.chat.Observe(route, claybot.Event{Run: "r1", Type: claybot.EventToolSucceeded, Data: json.RawMessage(`{"callId":"c1","tool":"current_time","ms":12}`)})
	w.chat.Preview(route, "r1", 2, "It is **ear")
	run(t, ctx, "the second step's text grows", until(`document.querySelector("#live .growing")?.textContent === "It is **ear"`))
	run(t, ctx, "a reload shows the same", chromedp.Reload(),
		until(`document.querySelector("#live .growing")?.textContent === "It is **ear"`),
		until(`document.querySelector("#live .tool")?.dataset.state === "ok"`),
		until(`document.querySelector("#live .thought")?.textContent === "Let me look."`),
		until(`document.querySelectorAll(".me").length === 1`))
	run(t, ctx, "stop", chromedp.Click("#stop"), until(`document.querySelectorAll(".me.command, .me").length === 2`))
	w.waitPosts(t, 2)
	if got := w.posted()[1]; got.Type != claybot.MessageCancel {
		t.Errorf("the stop button posted %+v", got)
	}
	w.chat.Observe(route, claybot.Event{Run: "r1", Type: claybot.EventRunFinished})
	w.say(t, main, "r1", "It is **early**.")
	run(t, ctx, "the answer", until(`document.querySelector(".bot .bubble")?.innerHTML === "<p>It is <strong>early</strong>.</p>"`),
		until(`document.querySelector("#live").hidden && document.querySelector("#stop").hidden`),
		until(`document.querySelector("details.tools summary").textContent === "Used 1 tool"`))

	todos := claybot.Outgoing{ID: "t1", Kind: claybot.OutgoingAnswer, Run: "r2", Shown: "todos", Text: "- ☐ tea"}
	w.chat.Observe(route, claybot.Event{Run: "r2", Type: claybot.EventRunStarted})
	w.put(t, main, todos)
	run(t, ctx, "todos", until(`document.querySelector("[data-shown=todos] li")?.textContent === "☐ tea"`),
		until(`!document.querySelector("#live").hidden`)) // the run still works
	for i, text := range []string{"- ◐ tea", "- ☑ tea " + xss[0]} {
		todos.ID, todos.EditOf, todos.Text = fmt.Sprintf("t%d", i+2), fmt.Sprintf("t%d", i+1), text
		w.put(t, main, todos)
	}
	newest := `document.querySelectorAll("[data-shown=todos]").length === 1 && document.querySelector("[data-shown=todos] li").textContent === ` + js("☑ tea "+xss[0]) +
		` && document.querySelector("[data-shown=todos] .meta").textContent.includes("updated")`
	run(t, ctx, "newer todos take their place", until(newest), chromedp.Reload(), until(newest),
		until(`!document.querySelector("#live").hidden`))
	todos.ID, todos.EditOf, todos.Text = "t4", "t1", "- ☑ all"
	w.put(t, main, todos)
	run(t, ctx, "and after a reload", until(`document.querySelectorAll("[data-shown=todos]").length === 1 && document.querySelector("[data-shown=todos] li").textContent === "☑ all"`))
	w.chat.Observe(route, claybot.Event{Run: "r2", Type: claybot.EventRunCanceled})

	for _, text := range xss {
		run(t, ctx, "hostile text in", typed(text))
		w.say(t, main, "x", text)
	}
	w.mu.Lock()
	w.pairings = []storage.Pairing{{Code: "K7Q2", Connector: "telegram", UserID: "4711", Name: xss[0]}}
	w.mu.Unlock()
	run(t, ctx, "hostile text shown",
		until(`document.querySelectorAll(".bot").length === 7 && [...document.querySelectorAll(".me")].every((m) => (m.dataset.state ?? "sent") === "sent")`),
		until(`document.querySelectorAll(".me").length === 7`),
		until(`[...document.querySelectorAll(".me .bubble")].some((b) => b.textContent === `+js(xss[1])+`)`),
		until(`[...document.querySelectorAll(".bot .bubble")].some((b) => b.textContent === `+js(xss[0])+`)`),
		until(`!document.querySelector("#thread img, #thread script, #thread iframe, #thread svg, #thread a[href^=javascript]")`))

	run(t, ctx, "let somebody in", chromedp.Click("#people"),
		until(`document.querySelector("#pending strong")?.textContent === `+js(xss[0])),
		until(`document.querySelector("#connectors li[data-state=stopped] small")?.textContent === "the token was refused"`),
		chromedp.Click("#pending .primary"), until(`document.querySelector("#grants strong")?.textContent === "4711"`),
		chromedp.Click("#panel-close"))

	addr := w.srv.Addr()
	old := w
	stop()
	run(t, ctx, "the daemon is down", until(`document.querySelector("#state").dataset.state === "wait"`), typed("are you back?"),
		until(`document.querySelector("[data-state=waiting] .meta")?.textContent.startsWith("not sent yet")`))
	w, _ = start(t, dir, func(c *web.Config) { c.Addr = addr })
	w.mu.Lock()
	w.posts, w.outbox = append(old.posts, w.posts...), old.outbox // the page may have been quicker
	w.mu.Unlock()
	w.waitPosts(t, 8)
	run(t, ctx, "the daemon is back", until(`document.querySelector("#state").dataset.state === "live"`),
		until(`!document.querySelector("[data-state=waiting]")`))
	w.say(t, main, "r9", "I am.")
	run(t, ctx, "nothing is missing or double", until(`document.querySelectorAll(".bot").length === 8`),
		until(`document.querySelectorAll(".me").length === 8`))

	run(t, ctx, "a new conversation", chromedp.Click("#new"), until(`!document.querySelector("#empty").hidden && location.hash.length > 10`))
	run(t, ctx, "log out", chromedp.Click("#logout"), chromedp.WaitVisible("#token"))
	hacked, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`window.hacked === 1`))
	if err != nil || hacked {
		t.Errorf("hacked %v, %v", hacked, err)
	}
	for len(problems) > 0 {
		t.Errorf("a script of the page failed: %s", <-problems)
	}
}

func (w *world) posted() []claybot.Message {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]claybot.Message(nil), w.posts...)
}

// waitPosts waits until n messages were posted.
func (w *world) waitPosts(t *testing.T, n int) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.After(20 * time.Second)
	for len(w.posted()) < n {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("%d of %d messages came; log: %s", len(w.posted()), n, w.logged())
		}
	}
}
