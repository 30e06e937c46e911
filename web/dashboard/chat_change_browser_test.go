package dashboard_test

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/claybot/claybot/llm/llmtest"
)

// said waits until the n-th message of the person has such a text and what is below it says so.
func said(n int, text, below string) chromedp.Action[chromedp.Void] {
	return until(`((e) => e?.querySelector(".bubble")?.textContent === ` + js(text) + ` && e.querySelector(".meta").textContent.includes(` + js(below) +
		`))(document.querySelectorAll(".me")[` + num(n) + `])`)
}

// act presses a button of the n-th message of the person: edit or delete.
func act(n int, button string) chromedp.Action[chromedp.Void] {
	place := `[...document.querySelectorAll(".me")[` + num(n) + `].querySelectorAll(".act")].find((b) => b.textContent === ` + js(button) + `)`
	return chromedp.Steps(until(place), until(`(`+place+`.id = "act-now")`), chromedp.Click("#act-now"), chromedp.Evaluate[chromedp.Void](`document.getElementById("act-now")?.removeAttribute("id")`))
}

// instead replaces the text of the editor that has the keyboard.
func instead(text string) chromedp.Action[chromedp.Void] {
	return chromedp.Steps(until(`document.activeElement.matches(".editing textarea")`), until(`(document.activeElement.select(), true)`), chromedp.SendKeys(".editing textarea", text))
}

// People edit and delete their messages by keyboard and pointer; the other window follows, and
// a reload shows the same.
func TestBrowserChatChanges(t *testing.T) {
	r := newRig(t)
	for _, text := range []string{"first", "second", "secnod", "third"} {
		r.mind.plan(text, llmtest.Say("Reply to the "+text+"."))
	}
	r.start()
	b, other := r.browse(), r.browse()
	both := func(what string, actions ...chromedp.Action[chromedp.Void]) {
		t.Helper()
		b.do(what, actions...)
		other.do(what+" in the other window", actions...)
	}
	release := r.mind.pause()
	b.do("the first works", typed("first"), until(`document.querySelector("#live .growing")`))
	b.do("two wait", typed("secnod"), said(1, "secnod", "delete"), typed("third <b>"), said(2, "third <b>", "delete"))

	b.do("cancel an edit", chromedp.Focus("#text"), press("ArrowUp"), instead("nothing"), press("Escape"),
		until(`!document.querySelector(".editing") && document.activeElement.id === "text"`), said(2, "third <b>", "edit"))
	both("the run goes on", until(`!document.querySelector("#stop").hidden && document.querySelectorAll(".me").length === 3`))
	b.do("keep a message", act(2, "delete"), until(`document.querySelector("#confirm").open`), press("Enter"), until(`!document.querySelector("#confirm").open`), said(2, "third <b>", "edit"))
	b.do("delete by pointer", act(2, "delete"), until(`document.querySelector("#confirm").open`), chromedp.Click("#confirm-yes"))
	both("it is deleted", said(2, "Message deleted", "deleted"), until(`!document.querySelectorAll(".me")[2].querySelector(".acts")`))
	b.do("edit by keyboard", chromedp.Focus("#text"), press("ArrowUp"), instead("second <i>"), press("Enter"))
	both("it is edited", said(1, "second <i>", "edited"), until(`!document.querySelector(".editing")`))

	release()
	answers := until(`[...document.querySelectorAll(".bot .bubble")].map((e) => e.textContent).join() === "Reply to the first.,Reply to the second."`)
	both("the answers", answers)
	other.do("edit by pointer what was answered", act(0, "edit"), instead("first, changed"), until(`[...document.querySelectorAll(".editing .act")].at(-1).id = "save"`), chromedp.Click("#save"))
	both("it is edited too late", said(0, "first, changed", "claybot had read the earlier text"))
	other.do("an empty text is not taken", act(0, "edit"), instead(" "), press("Enter"),
		until(`[...document.querySelectorAll(".editing .act")].at(-1).disabled`), press("Escape"))
	b.do("delete what was answered by keyboard", until(`([...document.querySelectorAll(".me")[1].querySelectorAll(".act")].at(-1).focus(), true)`), press("Enter"),
		until(`document.querySelector("#confirm").open`), press("Tab", "Enter"))
	both("it is deleted too late", said(1, "Message deleted", "deleted; claybot had read it"), answers)
	both("a reload shows the same", chromedp.Reload(), said(0, "first, changed", "claybot had read the earlier text"), said(1, "Message deleted", "claybot had read it"),
		said(2, "Message deleted", "deleted"), answers, until(`!document.querySelector("#thread").textContent.includes("second <i>")`))

	b.rig.addr = b.srv.Addr()
	b.excuse("the daemon is down")
	other.excuse("the daemon is down")
	b.stop()
	b.do("the daemon is down", until(`document.querySelector("#state").dataset.state === "wait"`), act(0, "edit"), instead("once more"), press("Enter"),
		until(`document.querySelector(".editing textarea").value === "once more" && !document.querySelector(".editing .act:last-child").disabled`))
	b.start()
	b.do("the daemon is back", until(`document.querySelector("#state").dataset.state === "live"`), chromedp.Focus(".editing textarea"), press("Enter"))
	both("it is edited", said(0, "once more", "claybot had read the earlier text"))
	if is[bool](b, `window.hacked === 1`) {
		t.Error("a text ran as a script")
	}
}
