package dashboard_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm/llmtest"
)

// both is a reply with a text and a call.
func both(text, id, tool, args string) llmtest.Reply {
	r := use(id, tool, args)
	r.Text = text
	return r
}

// TestChat is one visit of a person: messages, streaming, tools, stop, files, a
// question, hostile texts, reload, a restart of the daemon, logout.
func TestChat(t *testing.T) {
	r := newRig(t)
	r.lasts()
	r.start()
	r.mind.plan("hello", both("Let me *look* at it.", "c1", "current_time", `{"zone":"UTC"}`), llmtest.Say("It is **early**."))
	r.mind.plan("for ever", llmtest.Say("This takes for ever and ever."))
	b := r.browse()
	b.do("nothing was said yet", until(`document.querySelector("#state").dataset.state === "live"`), until(`!document.querySelector("#empty").hidden`))

	release := r.mind.pause()
	b.do("write", typed("hello <b>there</b>"),
		until(`document.querySelector(".me .bubble")?.textContent === "hello <b>there</b>"`),
		until(`document.querySelector(".me").dataset.state === "sent"`))
	b.do("the first step grows", until(`document.querySelector("#live .growing")?.textContent.startsWith("Let me")`), until(`!document.querySelector("#stop").hidden`))
	b.do("a reload shows the same", chromedp.Reload(), until(`document.querySelector("#live .growing")?.textContent.startsWith("Let me")`),
		until(`document.querySelectorAll(".me").length === 1`))
	release()
	b.do("the answer", until(`document.querySelector(".bot .bubble")?.innerHTML === "<p>It is <strong>early</strong>.</p>"`),
		until(`document.querySelector("#live").hidden && document.querySelector("#stop").hidden`),
		until(`document.querySelector("details.tools summary").textContent === "Used 1 tool"`),
		until(`document.querySelector(".bot .about").getAttribute("href").startsWith("/ui/runs/")`))

	release = r.mind.pause()
	b.do("stop", typed("go on for ever"), until(`document.querySelector("#live .growing")?.textContent.startsWith("This takes")`),
		chromedp.Click("#stop"), until(`document.querySelector("#live").hidden && document.querySelector("#stop").hidden`))
	kept := `[...document.querySelectorAll(".bot.answer .bubble")].some((b) => b.textContent.startsWith("This takes") && b.textContent.endsWith("(stopped)"))`
	tools := `[...document.querySelectorAll("details.tools summary")].map((e) => e.textContent).join() === "Used 1 tool" && document.querySelector("details.tools .tool .name").textContent === "current_time"`
	b.do("what was written stays", until(kept), until(tools), chromedp.Reload(), until(kept), until(tools))
	release()
	if run, err := r.db.LastRun(t.Context(), r.agent(main)); err != nil || run.State != claybot.RunCanceled {
		t.Errorf("the run that was stopped is %s, %v", run.State, err)
	}
	chatTodos(b)
	chatFile(b)
	chatQuestion(b)
	chatHostile(b)
	chatRestart(b)

	b.do("begin anew", chromedp.Click("#over"), until(`document.querySelector("#confirm").open`), chromedp.Click("#confirm-yes"),
		until(`[...document.querySelectorAll(".me .bubble")].some((b) => b.textContent === "/new")`))
	b.do("another conversation", chromedp.Click("#new"), until(`!document.querySelector("#empty").hidden && location.hash.length > 10`))
	b.excuse("the session ends")
	b.do("log out", chromedp.Click("#logout"), chromedp.WaitVisible("#token"))
	if is[bool](b, `window.hacked === 1`) {
		t.Error("a text ran as a script")
	}
}

// chatTodos: a list that is kept up to date is one message.
func chatTodos(b *browser) {
	b.Helper()
	b.mind.plan("tidy", use("t1", "write_todos", `{"todos":[{"id":"1","text":"tea","status":"pending"}]}`),
		use("t2", "write_todos", `{"todos":[{"id":"1","text":"tea <img src=x onerror=window.hacked=1>","status":"done"}]}`), llmtest.Say("Tidied."))
	newest := `document.querySelectorAll("[data-shown=todos]").length === 1 && document.querySelector("[data-shown=todos] li").textContent.includes("tea <img") && document.querySelector("[data-shown=todos] .meta").textContent.includes("updated")`
	b.do("todos", typed("tidy up"), until(`[...document.querySelectorAll(".bot .bubble")].some((b) => b.textContent === "Tidied.")`), until(newest),
		chromedp.Reload(), until(newest))
}

// chatFile: a file goes with a message and can be loaded again.
func chatFile(b *browser) {
	b.Helper()
	name := filepath.Join(b.TempDir(), "list <b>.txt")
	if err := os.WriteFile(name, []byte("eggs"), 0o600); err != nil {
		b.Fatal(err)
	}
	b.do("a file", chromedp.SetUploadFiles("#file", []string{name}), until(`document.querySelector("#files li")?.textContent.includes("list")`),
		typed("here is my list"), until(`document.querySelector(".me .files a")?.textContent.includes("list")`),
		until(`[...document.querySelectorAll(".me")].at(-1).dataset.state === "sent" && document.querySelector("#files").hidden`),
		until(`fetch(document.querySelector(".me .files a").href).then((a) => a.text()).then((t) => t === "eggs")`))
}

// chatQuestion: a question is a form, and what does not fit is said at once.
func chatQuestion(b *browser) {
	b.Helper()
	b.mind.plan("colour", use("q1", "ask_user", `{"question":"Which colour <script>window.hacked=1</script>?","type":"select","options":["red","green","<i>blue</i>"]}`), llmtest.Say("Noted."))
	b.do("a question", typed("ask me for a colour"), until(`document.querySelector("#asks .question b")?.textContent.startsWith("Which colour <script>")`),
		until(`[...document.querySelectorAll("#asks .choice")].map((c) => c.textContent.trim()).join() === "red,green,<i>blue</i>"`),
		chromedp.Click("#asks .button.primary"), until(`document.querySelector("#asks [data-error]")?.textContent.startsWith("Please give an answer")`),
		chromedp.Click("#asks .choice:nth-of-type(2) input"), chromedp.Click("#asks .button.primary"),
		until(`[...document.querySelectorAll(".bot .bubble")].some((b) => b.textContent === "Noted.")`),
		until(`!document.querySelector("#asks .question")`))
}

// chatHostile: whatever is written stays text.
func chatHostile(b *browser) {
	b.Helper()
	for _, text := range hostile[:5] {
		b.mind.plan(text, llmtest.Say(text))
		before := is[int](b, `document.querySelectorAll(".bot").length`)
		b.do("hostile text", typed(text), until(`document.querySelectorAll(".bot").length > `+num(before)),
			until(`[...document.querySelectorAll(".me .bubble")].at(-1).textContent === `+js(text)))
	}
	b.do("hostile text is text",
		until(`[...document.querySelectorAll(".bot .bubble")].some((b) => b.textContent === `+js(hostile[0])+`)`),
		until(`!document.querySelector("#thread img, #thread script, #thread iframe, #thread svg, #thread a[href^=javascript]")`))
}

// chatRestart: what is written while the daemon is down arrives when it is back.
func chatRestart(b *browser) {
	b.Helper()
	b.mind.plan("are you back", llmtest.Say("I am."))
	mine := is[int](b, `document.querySelectorAll(".me").length`)
	b.rig.addr = b.srv.Addr()
	b.excuse("the daemon is down")
	b.stop()
	b.do("the daemon is down", until(`document.querySelector("#state").dataset.state === "wait"`), until(`!document.querySelector("#lost").hidden`),
		typed("are you back?"), until(`document.querySelector("[data-state=waiting] .meta")?.textContent.startsWith("not sent yet")`))
	b.start()
	b.do("the daemon is back", until(`document.querySelector("#state").dataset.state === "live"`), until(`document.querySelector("#lost").hidden`),
		until(`!document.querySelector("#thread [data-state=waiting]")`),
		until(`[...document.querySelectorAll(".bot .bubble")].at(-1).textContent === "I am."`),
		until(`document.querySelectorAll(".me").length === `+num(mine+1)))
	b.excuse("")
}

// A run that waits for a person looks so after a reload, and can be stopped
// after a restart of the daemon.
func TestBrowserChatWaits(t *testing.T) {
	r := newRig(t)
	r.mind.plan("colour", use("q1", "ask_user", `{"question":"Which colour?","type":"select","options":["red","green"]}`), llmtest.Say("Noted."))
	r.lasts()
	r.start()
	run := r.ran(r.say("ask me for a \u202ecolour"), claybot.RunAwaiting)
	b := r.browse()
	quiet := until(`document.querySelector("#live .tool")?.dataset.state === "waiting" && document.querySelector("#live .dots").hidden && document.querySelector("#live .tool .args").textContent === ""`)
	once := until(`document.querySelector("[data-asked] .bubble") && getComputedStyle(document.querySelector("[data-asked] .bubble")).display === "none"`)
	stop := until(`!document.querySelector("#stop").hidden && document.querySelector("#asks .question b").textContent === "Which colour?"`)
	b.do("it waits", quiet, once, stop, until(`document.querySelector(".me .bubble").textContent === "ask me for a [U+202E]colour"`))
	b.do("a reload shows the same", chromedp.Reload(), quiet, once, stop)
	b.rig.addr = b.srv.Addr()
	b.excuse("the daemon is down")
	b.stop()
	b.do("the daemon is down", until(`document.querySelector("#state").dataset.state === "wait"`))
	b.start()
	b.do("it can be stopped after a restart", chromedp.Reload(), stop, once, chromedp.Click("#stop"),
		until(`!document.querySelector("#asks .question") && document.querySelector("#stop").hidden`),
		until(`!document.querySelector("[data-asked]")`))
	if got, err := r.db.Run(t.Context(), run.ID); err != nil || got.State != claybot.RunCanceled {
		t.Errorf("the run is %s, %v", got.State, err)
	}
}

// A long conversation has its first words as its name, and what came before the
// newest entries can be read.
func TestBrowserLongChat(t *testing.T) {
	r := startRig(t)
	first := r.say("the very first words")
	r.ran(first, claybot.RunSucceeded)
	var last claybot.MessageID
	for n := range 120 {
		last = r.say("more " + num(n))
		r.ran(last, claybot.RunSucceeded)
	}
	b := r.browse()
	b.do("the name", until(`document.querySelector("#title").textContent === "the very first words"`))
	b.do("the newest", until(`document.querySelectorAll(".msg").length >= 190 && !document.querySelector("#older").hidden`),
		until(`!document.querySelector("#thread").textContent.includes("the very first words")`))
	b.do("the earlier ones", chromedp.Click("#older button"), until(`document.querySelector(".me .bubble").textContent === "the very first words" && document.querySelector("#older").hidden`),
		until(`document.querySelector("#scroll").scrollTop > 0`))
}

// A question is shown also when news has fetched it before the script of the chat
// begins: the next fetch is a whole one.
func TestBrowserChatAsksAfterNews(t *testing.T) {
	r := newRig(t)
	r.mind.plan("colour", use("q1", "ask_user", `{"question":"Which colour?","type":"select","options":["red","green"]}`), llmtest.Say("Noted."))
	r.start()
	r.ran(r.say("ask me for a colour"), claybot.RunAwaiting)
	b := r.browse()
	shown := until(`document.querySelector("#asks .question b")?.textContent === "Which colour?"`)
	b.do("the question is there", shown)
	b.do("the conversation is shown anew", chromedp.Evaluate[chromedp.Void](`void dispatchEvent(new HashChangeEvent("hashchange"))`), shown)
}
