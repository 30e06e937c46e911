package dashboard_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm/llmtest"
)

// tabTo presses Tab until the element with the focus is the one that the
// expression (of e) names; each stop on the way must be visible.
func (b *browser) tabTo(what, expr string) {
	b.Helper()
	for range 60 {
		b.do("press Tab to "+what, press("Tab"))
		state := is[string](b, `(() => { const e = document.activeElement; if (e === document.body) return "";
			const s = getComputedStyle(e), box = e.getBoundingClientRect();
			if (e.matches(":focus-visible") && s.outlineStyle === "none" && !e.closest(".box") && e.id !== "main") return "no outline: " + e.outerHTML;
			if (box.width === 0 || box.height === 0) return "nothing to see: " + e.outerHTML;
			return (`+expr+`) ? "here" : ""; })()`)
		switch state {
		case "here":
			return
		case "":
		default:
			b.Errorf("%s: %s", what, state)
		}
	}
	b.Fatalf("60 times Tab does not lead to %s", what)
}

// Everything can be reached and done by the keyboard alone.
func TestBrowserKeyboard(t *testing.T) {
	r := newRig(t)
	r.mind.plan("colour", use("q1", "ask_user", `{"question":"Which colour?","type":"select","options":["red","green"]}`), llmtest.Say("Noted."))
	r.start()
	r.ran(r.say("hello"), claybot.RunSucceeded)
	b := r.browse()
	b.open("/ui/runs")
	b.tabTo("the skip link", `e.matches(".skip")`)
	b.do("skip", press("Enter"), until(`document.activeElement.id === "main"`))
	b.tabTo("a run", `e.matches("#rows a")`)
	b.do("open it", press("Enter"), until(`location.pathname.startsWith("/ui/runs/") && document.body.dataset.connection === "on"`))
	b.do("the search box", press("/"), until(`document.activeElement.id === "why"`))
	b.do("ask why", chromedp.SendKeys("#why", "nothing of the kind"), press("Enter"), until(`location.pathname === "/ui/why"`))

	b.open("/")
	b.tabTo("Agents", `e.pathname === "/ui/agents"`)
	b.do("to the agents", press("Enter"), until(`location.pathname === "/ui/agents" && document.body.dataset.connection === "on"`))
	b.tabTo("the agent", `e.matches("#rows a")`)
	b.do("open it", press("Enter"), until(`document.querySelector("#reset-agent") && document.body.dataset.connection === "on"`))
	b.tabTo("reset", `e.id === "reset-agent"`)
	b.do("reset", press("Enter"), until(`document.querySelector("#confirm").open`))
	b.tabTo("yes", `e.id === "confirm-yes"`)
	b.do("yes", press("Enter"), until(`document.querySelector("#toasts").textContent.includes("New conversation")`),
		until(`document.activeElement.id === "reset-agent"`)) // and it is where it was
	b.tabTo("the prompt", `e.id === "set-prompt"`)
	b.do("write", chromedp.SendKeys("#set-prompt", "Be brief."))
	b.tabTo("save", `e.id === "save"`)
	b.do("save", press("Enter"), until(`document.querySelector("#toasts").textContent.includes("Saved")`))

	b.open("/")
	b.do("the message box has the focus", until(`document.activeElement.id === "text"`))
	b.do("write", typed("ask me for a colour"), until(`document.querySelector("#asks .question")`), until(`document.activeElement.id === "text"`))
	b.do("back to the question", chromedp.Evaluate[chromedp.Void](`document.querySelector("#scroll").focus()`))
	b.tabTo("the first option", `e.type === "radio"`)
	b.do("choose green", press("ArrowDown"), until(`document.querySelector("#asks input:checked").value === "green"`))
	b.tabTo("answer", `e.matches("#asks .primary")`)
	b.do("answer", press("Enter"), until(`[...document.querySelectorAll(".bot .bubble")].some((b) => b.textContent === "Noted.")`),
		until(`!document.querySelector("#asks .question") && document.activeElement.id === "text"`))
}

// The pages fit a phone, and fingers.
func TestBrowserPhone(t *testing.T) {
	r := newRig(t)
	long := strings.Repeat("Donaudampfschifffahrtsgesellschaft", 20) + "<script>"
	r.mind.plan("wide", both(long, "c1", "wait", `{"seconds":0,"`+long+`":"x"}`), llmtest.Say(long+"\n\n```\n"+long+"\n```\n\n| a | b |\n|---|---|\n| "+long+" | x |"))
	r.mind.plan("asking", use("q1", "ask_user", `{"question":"`+strings.ReplaceAll(long, "<", "")+`?","type":"multiselect","options":["`+strings.Repeat("o", 90)+`","b"]}`))
	r.start()
	run := r.ran(r.say("wide "+long), claybot.RunSucceeded)
	r.ran(r.say("asking"), claybot.RunAwaiting)
	b := r.browse()
	b.do("a phone", screen(360, 740, true))
	for _, path := range []string{"/", "/ui/agents", "/ui/agents/" + string(r.agent(main)), "/ui/runs", "/ui/runs/" + string(run.ID), "/ui/schedule", "/ui/deliveries", "/ui/usage", "/ui/access", "/ui/health", "/ui/why?q=" + string(run.ID)} {
		b.open(path)
		b.do("it has what it shows", until(`document.fonts.ready.then(() => true)`))
		if wide := is[int](b, `Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)`); wide > 360 {
			who := is[string](b, `[...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > 361 && !e.closest("pre")).map((e) => e.tagName + "." + e.className + "#" + e.id).slice(0, 8).join(" ")`)
			t.Errorf("%s is %d pixels wide: %s", path, wide, who)
		}
		small := is[string](b, `[...document.querySelectorAll("button, select, textarea, input:not([type=checkbox], [type=radio], [type=hidden], [type=file]), .places a, label.choice")]
			.filter((e) => e.checkVisibility({visibilityProperty: true}) && e.offsetHeight > 0 && !e.closest(".copy, .chips, .toast, .files") && !e.matches(".copy") && (e.offsetHeight < 44 && e.id !== "text"))
			.map((e) => e.tagName + "." + e.className + "#" + e.id + " " + e.offsetHeight).join("; ")`)
		if small != "" {
			t.Errorf("%s has small targets: %s", path, small)
		}
	}
	b.open("/ui/runs")
	b.do("more", chromedp.Click("#more"), until(`document.querySelector("#more").getAttribute("aria-expanded") === "true" && document.querySelector('.rest a[href="/ui/health"]').checkVisibility()`),
		press("Escape"), until(`!document.querySelector('.rest a[href="/ui/health"]').checkVisibility() && document.activeElement.id === "more"`),
		chromedp.Click("#more"), chromedp.Click(`.rest a[href="/ui/health"]`), until(`location.pathname === "/ui/health"`))
	b.open("/")
	b.do("conversations", chromedp.Click("#menu"), until(`document.querySelector("#conversations").getBoundingClientRect().left === 0`), chromedp.Click("#new"), until(`!document.body.classList.contains("open") && location.hash.length > 10`))
}

// The look is kept, a lost session leads to the login, a hidden page is quiet.
func TestBrowserFrame(t *testing.T) {
	r := startRig(t)
	b := r.browse()
	b.open("/ui/runs")
	ground := `getComputedStyle(document.body).backgroundColor`
	b.do("light", chromedp.Click("#theme"), until(`document.documentElement.dataset.look === "light"`))
	light := is[string](b, ground)
	b.do("dark", chromedp.Click("#theme"), until(`document.documentElement.dataset.look === "dark"`), until(ground+` !== `+js(light)),
		chromedp.Reload(), until(`document.documentElement.dataset.look === "dark" && document.querySelector("#theme-now").textContent === "dark"`))
	b.do("nothing is asked for while nothing changes", until(`document.body.dataset.connection === "on"`),
		until(`(() => { const n = () => performance.getEntriesByType("resource").length, was = n(); return new Promise((done) => setTimeout(() => done(n() === was), 600)); })()`),
		chromedp.Evaluate[chromedp.Void](`window.quiet = performance.now()`), until(`new Promise((done) => setTimeout(() => done(true), 1500))`))
	if n := is[int](b, `performance.getEntriesByType("resource").filter((e) => e.startTime > window.quiet && e.name.includes("/ui/")).length`); n != 0 {
		t.Errorf("%d requests while nothing changed", n)
	}
	r.ran(r.say("hello"), claybot.RunSucceeded)
	b.do("what changes appears", until(`document.querySelectorAll("#rows tr[id]").length === 1`))
	b.excuse("the session has ended")
	b.do("the session ends elsewhere", until(`fetch("/logout", {method: "POST"}).then((a) => a.ok)`))
	r.say("hello again")
	b.do("to the login", until(`location.pathname === "/login"`))
}
