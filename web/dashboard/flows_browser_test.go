package dashboard_test

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// chosen waits until the page shows a node with a text, and is live.
func chosen(node, text string) chromedp.Action[chromedp.Void] {
	return until(`document.body.dataset.connection === "on" && document.querySelector("#step-head")?.textContent === ` + js(node) +
		` && document.querySelector("#step").textContent.includes(` + js(text) + `) && document.querySelector("#node-" + ` + js(node) + `).matches(".chosen")`)
}

// A workflow is started from its page after bad JSON was refused, seen to wait, answered, and seen to
// end, all live; a node is looked at by keyboard; and all of it fits a phone.
func TestBrowserFlow(t *testing.T) {
	s := newShelf(t)
	s.start()
	b := s.browse()
	b.open("/ui/flows")
	b.do("the list leads there", chromedp.Click(`#flow-order a`), until(`location.pathname === "/ui/flows/order" && document.body.dataset.connection === "on"`),
		until(`document.querySelector("#graph-where").textContent === "No run yet."`))
	b.do("bad JSON", chromedp.Click("#start summary"), chromedp.SendKeys("#f-text", "tea <img src=x onerror=window.hacked=1>"), chromedp.SendKeys("#f-payload", `{"n": }`),
		push("#start .primary"), until(`document.querySelector("#f-payload").getAttribute("aria-invalid") === "true" && document.querySelector("#start").textContent.includes("line 1, column 7")`))
	if !is[bool](b, `document.querySelector("#f-text").value.startsWith("tea") && location.search === ""`) {
		t.Error("what was typed is gone, or a run was started")
	}
	b.do("good JSON", fill("#f-payload", `{"n": 7}`), push("#start .primary"),
		until(`location.search.startsWith("?run=") && document.body.dataset.connection === "on"`), at("ask"),
		until(`document.querySelector("#flow-run .badge").textContent === "waiting for an answer"`),
		chromedp.Evaluate[chromedp.Void](`window.stays = 1`))
	b.do("the answer", push("#questions .primary"),
		until(`document.querySelector("#flow-run .badge").textContent === "done" && !document.querySelector(".flow .now") && document.querySelector("#node-END").matches(".seen")`),
		until(`[...document.querySelectorAll("#steps .badge")].map((x) => x.textContent).join() === "started the run,not entered,done,done,done,done,done,not entered"`))
	if !is[bool](b, `window.stays === 1 && window.hacked === undefined`) {
		t.Error("the page was loaded again, or a text ran as a script")
	}
	b.do("a node by keyboard", chromedp.Focus("#node-ask"), press("Enter"), chosen("ask", "Answer: yes"))
	b.do("the tool", chromedp.Click("#node-clock"), chosen("clock", "current_time"))
	b.do("its agent", chromedp.Click("#node-thanks"), chosen("thanks", "Agents"), until(`document.querySelectorAll('#step a[href^="/ui/runs/"]').length === 1`))
	for _, width := range []int64{360, 1280} {
		b.do("size", screen(width, 740, width < 500))
		b.do("back", chromedp.Click("#node-done"), chosen("done", "Output"), until(fits))
		b.do("a tap on a node", chromedp.Click("#node-what"), chosen("what", "tea <img"),
			until(`(() => { const r = document.querySelector("#step").getBoundingClientRect(); return r.top < innerHeight && r.bottom > 0 && r.right <= innerWidth + 1; })()`))
	}
	b.do("to its run", chromedp.Click("#flow-run a"), until(`location.pathname.startsWith("/ui/runs/") && document.querySelector("#node-thanks")`))
}
