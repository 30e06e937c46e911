package dashboard_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/claybot/claybot"
)

// step is what the page says of a step.
func step(id, status string) chromedp.Action[chromedp.Void] {
	return until(`document.querySelector("#step-` + id + `")?.dataset.status === "` + status + `"`)
}

// at waits until the graph shows the run at a node.
func at(node string) chromedp.Action[chromedp.Void] {
	return until(`document.querySelectorAll(".flow .now").length === 1 && document.querySelector(".flow .now").id === "node-` + node + `"`)
}

// A plan is approved, ticked off as it goes, and taken back; all without a
// reload.
func TestBrowserPlan(t *testing.T) {
	w := newWorks(t)
	w.action = hostile[0] + hostile[4] + "\u202egnp.exe"
	w.start()
	next, all := w.hold()
	defer all()
	run, q := w.asks(claybot.EnginePlan, "write to Ann")
	b := w.browse()
	b.open("/ui/runs/" + string(run.ID))
	b.do("it waits", step("step-02", "waiting"), step("step-01", "pending"), at("confirm"), chromedp.Evaluate[chromedp.Void](`window.stays = 1`))
	if got := is[string](b, `"**" + document.querySelector("#questions .asks b").textContent + "**\n`+"```"+`\n" + document.querySelector("#questions .action").textContent + "\n`+"```"+`\n" + [...document.querySelectorAll("#questions .about")].map((p) => [...p.childNodes].map((n) => n.nodeName == "CODE" ? "\x60" + n.textContent + "\x60" : n.textContent).join("")).join("\n")`); got != q.Text {
		t.Errorf("what is shown is\n%s\nand what is asked\n%s", got, q.Text)
	}
	if !is[bool](b, `(() => { const p = document.querySelector("#questions .action"), f = getComputedStyle(p); return p.scrollHeight <= p.clientHeight + 1 && p.scrollWidth <= p.clientWidth + 1 && f.fontFamily.includes("mono"); })()`) {
		t.Error("a part of the action is cut off, or it has letters of different widths")
	}
	if got := is[int](b, `document.querySelectorAll(".flow .edge.taken").length`); got != 2 {
		t.Errorf("%d edges are marked, want 2", got)
	}
	b.do("approve by keyboard", chromedp.Evaluate[chromedp.Void](`document.querySelector("#main").focus()`))
	b.tabTo("approve", `e.matches("#questions .primary")`)
	b.do("approve", press("Enter"), until(`document.querySelector("#toasts").textContent.includes("Approved.")`), at("executor"),
		step("step-01", "running"), step("step-02", "pending"), until(`!document.querySelector("#questions form")`))
	next()
	b.do("one is done", step("step-01", "ok"), step("step-02", "running"), until(`document.querySelector("#plan .head .dim").textContent.startsWith("1 of 3 steps done")`))
	b.do("a result is unfolded", chromedp.Evaluate[chromedp.Void](`document.querySelector("#step-step-02 details").open = true`))
	all()
	b.do("all is done", step("step-02", "ok"), step("step-03", "ok"), until(`document.querySelector("#plan-summary em")?.textContent === "done"`),
		until(`!document.querySelector(".flow .now") && document.querySelector("#node-END").matches(".seen") && document.querySelectorAll(".flow .edge.taken").length === 5`),
		until(`document.querySelector("#node-confirm text.times").textContent === "2"`)) // before the wait and after it
	if !is[bool](b, `window.stays === 1 && window.hacked === undefined && document.querySelector("#step-step-02 details").open`) {
		t.Error("the page was loaded again, a text ran as a script, or what was unfolded is folded")
	}

	b.do("undo, or not", chromedp.Click("#undo"), until(`document.querySelector("#confirm").open`), press("Escape"), until(`!document.querySelector("#confirm").open`))
	if again, err := w.system.Overview.Why(t.Context(), "undo/"+string(run.ID)); err == nil {
		t.Errorf("a no is a yes: %v", again)
	}
	b.do("undo", chromedp.Click("#undo"), until(`document.querySelector("#confirm").open`), chromedp.Click("#confirm-yes"),
		until(`document.querySelector("#undo").disabled && document.querySelector("#undo-why").textContent.startsWith("Already undone")`),
		until(`document.querySelector("#undo-why .badge")?.textContent === "done"`))
	b.do("the run that undid it", chromedp.Click("#undo-why a"), until(`document.querySelector("#undoes a")?.pathname === "/ui/runs/`+string(run.ID)+`"`),
		step("step-03", "ok"), step("step-02", "failed"), until(`!document.querySelector("#undo")`))
	b.do("and back", chromedp.Click("#undoes a"), until(`location.pathname === "/ui/runs/`+string(run.ID)+`" && document.querySelector("#undo")?.disabled`))
}

// Who types a reason and presses Enter denies, in the chat as on the page of the
// run; the step is skipped and says why.
func TestBrowserDeny(t *testing.T) {
	w := newWorks(t)
	w.start()
	b := w.browse()
	b.open("/")
	w.ran(w.ask(claybot.EnginePlan, "write to Ann"), claybot.RunAwaiting)
	b.do("the chat asks", until(`document.querySelector("#asks .approval .asks")?.textContent.includes("send_mail")`),
		until(`document.querySelectorAll("#asks .approval button").length === 5`))
	b.do("a reason", chromedp.SendKeys("#asks input[name=reason]", hostile[1]), press("Enter"),
		until(`!document.querySelector("#asks form") && document.querySelector("#toasts").textContent.includes("Denied.")`),
		until(`[...document.querySelectorAll(".bot .bubble")].some((e) => e.textContent.includes("All of it is done."))`))
	if got := w.carried(); !slices.Equal(got, []string{"step-01", "step-03"}) {
		t.Errorf("%v were carried out", got)
	}
	run, _ := w.asks(claybot.EnginePlan, "write to Ann again")
	b.open("/ui/runs/" + string(run.ID))
	b.do("typing while news come", chromedp.SendKeys("#questions input[name=reason]", "not no"))
	other := claybot.User("web", "other", "operator")
	w.post(other, claybot.AgentMessage{ID: "web/other/1", Type: claybot.MessageUser, Text: "hello", From: claybot.Sender{UserID: "operator"}})
	w.ran("web/other/1", claybot.RunSucceeded)
	b.do("nothing is lost", chromedp.SendKeys("#questions input[name=reason]", "w"), until(`document.querySelector("#questions input[name=reason]").value === "not now"`),
		press("Enter"), step("step-02", "skipped"), until(`document.querySelector("#step-step-02 .cause").textContent === "not approved: not now"`),
		until(`document.querySelector("#node-END")?.matches(".seen") && !document.querySelector("#questions form")`))
	if got := w.carried(); slices.Contains(got, "step-02") {
		t.Errorf("%v were carried out", got)
	}

	// Always asks again before it is meant.
	run, _ = w.asks(claybot.EnginePlan, "write to Ann at last")
	b.open("/ui/runs")
	b.do("the page of all runs asks, too", until(`document.querySelector("#waiting .approval .push a")?.pathname === "/ui/agents/`+string(run.Agent)+`"`),
		chromedp.Click(`#waiting button[hx-post*="always"]`), until(`document.querySelector("#confirm").open`), press("Escape"), until(`!document.querySelector("#confirm").open`))
	if got, err := w.db.Run(t.Context(), run.ID); err != nil || got.State != claybot.RunAwaiting {
		t.Fatalf("the run is %s, %v", got.State, err)
	}
	b.do("always", chromedp.Click(`#waiting button[hx-post*="always"]`), until(`document.querySelector("#confirm").open`), chromedp.Click("#confirm-yes"),
		until(`!document.querySelector("#waiting form")`))
	w.ran(run.Messages[0], claybot.RunSucceeded)
	b.open("/ui/agents/" + string(run.Agent))
	b.do("it is undone", chromedp.Click("#set-approved input[type=checkbox]"), fill("#set-engine", "plan"), chromedp.Click("#save"),
		until(`document.querySelector("#toasts").textContent.includes("Saved") && !document.querySelector("#set-approved")`),
		until(`document.querySelector("#hint-engine").textContent === "current: plan: plans, asks for approval, then acts"`))
	if is[bool](b, `window.hacked !== undefined`) {
		t.Error("a text ran as a script")
	}
}

// A map is a picture that does nothing, and plans, graphs and approvals fit a
// phone, and fingers, in both looks.
func TestBrowserWorkOnPhone(t *testing.T) {
	w := newWorks(t)
	w.action = hostile[0] + strings.Repeat("Donaudampfschifffahrt", 40)
	w.start()
	explored := w.ran(w.ask(claybot.EngineExplore, "look around"), claybot.RunSucceeded)
	run, _ := w.asks(claybot.EnginePlan, "write to Ann")
	b := w.browse()
	b.open("/ui/runs/" + string(explored.ID))
	b.do("the pictures are there", until(`document.querySelector(".map img").naturalWidth === 300`), chromedp.Evaluate[chromedp.Void](`document.querySelector(".screens").scrollIntoView()`),
		until(`document.querySelector(".screens img").naturalWidth === 1`))
	ground := make(map[string]string)
	for _, look := range []string{"light", "dark"} {
		b.do("look", chromedp.Evaluate[chromedp.Void](`localStorage.setItem("claybot.look", `+js(look)+`)`), screen(360, 740, true))
		for _, path := range []string{"/ui/runs/" + string(run.ID), "/ui/runs/" + string(explored.ID), "/ui/runs", "/"} {
			b.open(path)
			b.do("fits", until(fits))
			small := is[string](b, `[...document.querySelectorAll("main button, main summary, main input:not([type=hidden], [type=file])")].filter((e) => e.checkVisibility({visibilityProperty: true}) && e.offsetHeight > 0 && !e.closest(".chips, .copy") && e.offsetHeight < 44).map((e) => e.outerHTML.slice(0, 90)).join("; ")`)
			if small != "" {
				t.Errorf("%s has small targets: %s", path, small)
			}
		}
		b.open("/ui/runs/" + string(run.ID))
		ground[look] = is[string](b, `getComputedStyle(document.querySelector(".flow .now rect")).fill + getComputedStyle(document.querySelector(".flow .edge .line")).stroke`)
	}
	if ground["light"] == ground["dark"] {
		t.Errorf("the graph looks the same by day and by night: %s", ground["light"])
	}
	if is[bool](b, `window.hacked !== undefined`) {
		t.Error("a picture ran a script")
	}
}

// What came of a button is told also when the button is off the page by then.
func TestBrowserGoneButton(t *testing.T) {
	w := newWorks(t)
	w.start()
	b := w.browse()
	run, _ := w.asks(claybot.EnginePlan, "write to Ann")
	b.open("/ui/runs/" + string(run.ID))
	press := chromedp.Evaluate[chromedp.Void](`{ const gone = document.querySelector("#questions .primary"), also = gone.cloneNode(true);
gone.after(also); htmx.process(also); window.also = also; gone.click(); gone.remove(); }`)
	b.do("approve", press, until(`document.querySelector("#toasts").textContent.includes("Approved.")`))
	w.ran(run.Messages[0], claybot.RunSucceeded)
	b.do("approve again", until(`!window.also.isConnected`), chromedp.Evaluate[chromedp.Void](`document.body.append(window.also); htmx.process(window.also); window.also.click(); window.also.remove();`),
		until(`document.querySelector("#toasts .bad")?.textContent.includes("Not possible any more")`))
}
