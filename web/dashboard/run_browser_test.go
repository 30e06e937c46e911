package dashboard_test

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm/llmtest"
)

// A run is watched while it goes on: its text grows, tools appear, it ends.
func TestBrowserTimeline(t *testing.T) {
	r := newRig(t)
	r.mind.plan("the time", both("Let me look at the clock.", "c1", "current_time", `{"zone":"UTC"}`),
		use("c2", "wait", `{"seconds":0.1,"`+`note":"<img src=x onerror=window.hacked=1>"}`), llmtest.Say("It is late, **very** late."))
	r.start()
	release := r.mind.pause()
	run := r.ran(r.say("tell me the time"), claybot.RunRunning)
	b := r.browse()
	b.open("/ui/runs")
	b.do("the list shows it at work", until(`document.querySelector("#run-`+string(run.ID)+` .badge").textContent === "running"`))
	b.do("open it", chromedp.Click("#run-"+string(run.ID)+" a"), until(`document.querySelector("#timeline .item b")?.textContent === "Started"`),
		until(`document.querySelector("#growing-text").textContent.startsWith("Let me look") && !document.querySelector("#growing").hidden`),
		chromedp.Evaluate[chromedp.Void](`window.stays = 1`))
	release()
	b.do("it goes on and ends", until(`document.querySelector("#timeline .item.end b")?.textContent === "Done"`),
		until(`document.querySelector("#top .badge").textContent === "done" && !document.querySelector("#cancel") && document.querySelector("#growing").hidden`),
		until(`[...document.querySelectorAll(".item .prose")].at(-1).innerHTML.includes("<strong>very</strong>")`))
	if !is[bool](b, `window.stays === 1 && window.hacked === undefined`) {
		t.Error("the page was loaded again, or a text ran as a script")
	}
	live := is[string](b, `[...document.querySelectorAll("#timeline .item")].map((i) => i.id + i.className).join()`)
	b.do("a reload shows the same", chromedp.Reload(), until(`document.querySelector("#timeline .item.end")`),
		until(`[...document.querySelectorAll("#timeline .item")].map((i) => i.id + i.className).join() === `+js(live)))
	b.do("what it sent", chromedp.Click("details.card summary"), until(`document.querySelector(".sent li")?.textContent.includes("It is late, very late.")`))
	b.do("to its agent", chromedp.Click("h1 a"), until(`location.pathname.startsWith("/ui/agents/")`))
}

// A run is stopped from its page, after a question.
func TestBrowserCancel(t *testing.T) {
	r := newRig(t)
	r.mind.plan("for ever", llmtest.Say("This takes for ever and ever."))
	r.start()
	defer r.mind.pause()()
	run := r.ran(r.say("go on for ever"), claybot.RunRunning)
	b := r.browse()
	b.open("/ui/runs/" + string(run.ID))
	b.do("not sure", chromedp.Click("#cancel"), until(`document.querySelector("#confirm").open`), press("Escape"), until(`!document.querySelector("#confirm").open`))
	if got, err := r.db.Run(t.Context(), run.ID); err != nil || got.State != claybot.RunRunning {
		t.Fatalf("the run is %s, %v", got.State, err)
	}
	b.do("sure", chromedp.Click("#cancel"), until(`document.querySelector("#confirm").open`), chromedp.Click("#confirm-yes"),
		until(`document.querySelector("#timeline .item.end b")?.textContent === "Canceled"`),
		until(`document.querySelector("#top .badge").textContent === "canceled"`), until(`document.querySelector("#toasts").textContent.includes("Canceling")`))
}

// A question of a run is answered on its page.
func TestBrowserAnswer(t *testing.T) {
	r := newRig(t)
	r.mind.plan("how many", use("q1", "ask_user", `{"question":"How many?","type":"number","min":1,"max":9}`), llmtest.Say("Thank you."))
	r.start()
	run := r.ran(r.say("ask how many"), claybot.RunAwaiting)
	b := r.browse()
	b.open("/ui/runs/" + string(run.ID))
	b.do("what does not fit", chromedp.SendKeys("#questions input[name=value]", "10"), press("Enter"),
		until(`document.querySelector("#questions [data-error]")?.textContent.includes("at most 9")`))
	// What is typed stays while the page is renewed around it.
	b.do("typing", chromedp.Evaluate[chromedp.Void](`void document.querySelector("#questions input[name=value]").select()`), chromedp.SendKeys("#questions input[name=value]", "7"))
	other := claybot.User("web", "other", "operator")
	r.post(other, claybot.AgentMessage{ID: "web/other/1", Type: claybot.MessageUser, Text: "hello", From: claybot.Sender{UserID: "operator"}})
	r.ran("web/other/1", claybot.RunSucceeded)
	b.do("nothing is lost", until(`document.querySelector("#questions input[name=value]").value === "7" && document.activeElement.name === "value"`))
	if !is[bool](b, `document.querySelector("#asked .quote").textContent === "ask how many"`) {
		t.Error("the page does not show what was asked")
	}
	b.open("/ui/agents/" + string(r.agent(main)))
	b.do("the page of the agent asks, too", until(`document.querySelector("#questions form b").textContent === "How many?"`))
	b.open("/ui/runs/" + string(run.ID))
	b.do("what fits", chromedp.SendKeys("#questions input[name=value]", "7"), press("Enter"), until(`document.querySelector("#timeline .item.end b")?.textContent === "Done"`),
		until(`document.querySelector("#questions").childElementCount === 0`), until(`[...document.querySelectorAll(".item b")].some((b) => b.textContent === "Question answered")`))
}

// The settings of an agent apply at once; an edit is not overwritten by news.
func TestBrowserSettings(t *testing.T) {
	r := startRig(t)
	r.ran(r.say("hello"), claybot.RunSucceeded)
	id := r.agent(main)
	b := r.browse()
	b.open("/ui/agents/" + string(id))
	b.do("edit", chromedp.SendKeys("#set-model", "second"), chromedp.SendKeys("#set-debounce", "x"), chromedp.SendKeys("#set-prompt", "Be <b>brief</b>."))
	r.ran(r.say("news"), claybot.RunSucceeded)
	b.do("news comes, the edit stays", until(`document.querySelector("#lines").textContent.includes("news")`),
		until(`document.querySelector("#set-model").value === "second"`))
	b.do("what is wrong", chromedp.Click("#save"), until(`document.querySelector("#settings-form [data-error]").textContent.startsWith("Debounce: must be")`),
		until(`document.querySelector("#set-debounce").closest(".field").querySelector("[data-fault]").textContent.startsWith("must be a whole number")`),
		until(`document.activeElement.id === "set-debounce" && document.querySelectorAll("[aria-invalid]").length === 1`))
	b.do("what is out of bounds", chromedp.Evaluate[chromedp.Void](`document.querySelector("#set-debounce").value = ""`), fill("#set-steps", "5000"), chromedp.Click("#save"),
		until(`document.querySelector("[data-fault=maxSteps]")?.textContent.includes("within 1 and 1000") && document.activeElement.id === "set-steps"`),
		until(`!document.querySelector("[data-fault=debounceMs]") && document.querySelectorAll("[aria-invalid]").length === 1`),
		chromedp.Evaluate[chromedp.Void](`document.querySelector("#set-steps").value = ""`))
	b.do("save", fill("#set-debounce", "25"), chromedp.Click("#save"),
		until(`document.querySelector("#toasts").textContent.includes("Saved")`), until(`document.querySelector("#hint-model").textContent === "current: second"`))
	own := r.system.Profiles.OwnSettings(id)
	if own.Model != "second" || own.DebounceMS == nil || *own.DebounceMS != 25 || own.Prompt != "Be <b>brief</b>." || own.Tools != nil {
		t.Errorf("the settings are %+v", own)
	}
	b.do("reset", chromedp.Click("#reset-agent"), until(`document.querySelector("#confirm").open`), chromedp.Click("#confirm-yes"),
		until(`document.querySelector("#lines .empty, #lines .reset")`))
	b.excuse("what is shown is gone before the page is left")
	b.do("delete", chromedp.Click("#delete-agent"), until(`document.querySelector("#confirm").open`), chromedp.Click("#confirm-yes"),
		until(`location.pathname === "/ui/agents" && document.querySelector("#rows .empty")`))
}
