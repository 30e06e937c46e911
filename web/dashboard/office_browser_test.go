package dashboard_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/storage"
)

// offices are the pages that this file looks at, without Why.
var offices = []string{"/ui/schedule", "/ui/schedule/tasks/kaaaaaaaaaaaaaaaaaaaaaaa", "/ui/schedule/new", "/ui/deliveries", "/ui/usage", "/ui/access", "/ui/health", "/ui/members", "/ui/why"}

// fits is true when nothing of the page is wider than the window.
const fits = `document.documentElement.scrollWidth <= innerWidth`

// inked is true when something is drawn on the first canvas below an element.
func inked(place string) string {
	return `(() => { const c = document.querySelector("` + place + ` canvas"); if (!c || !c.width) return false;
		return c.getContext("2d").getImageData(0, 0, c.width, c.height).data.some((v) => v !== 0); })()`
}

// A task is run by a button, and what became of it appears without a reload.
func TestBrowserSchedule(t *testing.T) {
	o := startOffice(t)
	b := o.browse()
	b.open("/ui/schedule")
	b.do("run now", chromedp.Evaluate[chromedp.Void](`window.stays = 1`),
		chromedp.Click(`#task-kaaaaaaaaaaaaaaaaaaaaaaa button[hx-post*="/run"]`),
		until(`document.querySelector("#toasts").textContent.includes("runs now")`),
		until(`document.querySelector("#task-kaaaaaaaaaaaaaaaaaaaaaaa").textContent.includes("succeeded")`),
		until(`window.stays === 1`))
	// The focus is still on the button, which runs the task again.
	b.do("and again", press("Enter"), until(`document.querySelector("#task-kaaaaaaaaaaaaaaaaaaaaaaa .badge.good, #task-kaaaaaaaaaaaaaaaaaaaaaaa") !== null`))
	b.eventually("the second run", func() bool {
		all, err := o.tasks.Ledger(o.Context(), "report", 10)
		return err == nil && len(all) == 2 && all[0].State == string(claybot.RunSucceeded)
	})
	b.do("switch off", chromedp.Click(`#task-kaaaaaaaaaaaaaaaaaaaaaaa button[hx-post*="to=off"]`),
		until(`document.querySelector("#task-kaaaaaaaaaaaaaaaaaaaaaaa").textContent.includes("Turned off")`))

	b.open("/ui/schedule/tasks/kaaaaaaaaaaaaaaaaaaaaaaa")
	b.do("two runs", until(`document.querySelectorAll("[id^='f-manual/']").length === 2`))
	b.do("a wrong schedule", fill("#t-when", "99 * * * *"), chromedp.Click("form .primary"),
		until(`!document.querySelector("form [data-error]").hidden && document.querySelector("form [data-error]").textContent.length > 10`))
	b.do("when would it fire", fill("#t-when", "15 6 * * *"), chromedp.Click(`form button[hx-post="/ui/schedule/preview"]`),
		until(`document.querySelectorAll("#instants li").length === 5 && document.querySelector("#instants").textContent.includes("06:15")`))
	b.do("save", chromedp.Click("form .primary"), until(`document.querySelector("#task-state").textContent.includes("15 6 * * *")`))
	b.excuse("what is shown is gone before the page is left")
	// By script, because the toast of the save may lie over the button.
	b.do("remove, or not", push("button.danger[hx-delete]"), chromedp.WaitVisible("#confirm"), press("Escape"),
		until(`!document.querySelector("#confirm").open`), push("button.danger[hx-delete]"), chromedp.Click("#confirm-yes"), chromedp.WaitVisible("#schedule-list"))
	b.do("it is gone", until(`location.pathname === "/ui/schedule" && !document.querySelector("#task-kaaaaaaaaaaaaaaaaaaaaaaa")`))
	b.do("a new one", chromedp.Click(`a[href="/ui/schedule/new"]`), chromedp.WaitVisible("#t-name"), chromedp.SendKeys("#t-name", hostile[1]),
		chromedp.SendKeys("#t-prompt", "Say "+hostile[0]), chromedp.Click("form .primary"), chromedp.WaitVisible("#task-state"))
	b.do("its page", until(`location.pathname.startsWith("/ui/schedule/tasks/") && document.querySelector("h1").textContent === `+js(hostile[1])))
}

// A failed delivery is sent again by a button.
func TestBrowserDeliveries(t *testing.T) {
	o := startOffice(t)
	b := o.browse()
	b.open("/ui/deliveries")
	o.phone.cut(&connectors.PermanentError{Err: errors.New(hostile[0])})
	o.call(hostile[1])
	// The reply, and the notice that it failed.
	b.do("the failure appears by itself", until(`document.querySelector("#n-failed b").textContent === "2"`),
		until(`[...document.querySelectorAll("#delivery-rows .badge.bad")].every((e) => e.textContent === "failed")`),
		until(`document.querySelector("#delivery-rows .cause").textContent === `+js(hostile[0])))
	o.phone.cut(nil)
	b.do("send again", chromedp.Click(`#delivery-rows tr:last-child button[hx-post*="retry"]`),
		until(`document.querySelector("#delivery-rows tr:last-child .badge.good")?.textContent === "sent"`),
		until(`document.querySelector("#delivery-rows").textContent.includes("ring-1")`),
		until(`document.querySelector("#n-failed b").textContent === "1" && document.querySelector("#n-sent b").textContent === "1"`))
	b.do("why", chromedp.Click(`#delivery-rows tr:last-child a[href^="/ui/why"]`), chromedp.WaitVisible(".verdict"))
	b.do("why", until(`document.querySelector(".steps").textContent.includes("ring-1")`))
}

// A stranger asks, and is let in by one press; a token is shown once.
func TestBrowserAccess(t *testing.T) {
	o := startOffice(t)
	b := o.browse()
	b.open("/ui/access")
	o.post(claybot.User("phone", "dm-eve", "eve"), claybot.AgentMessage{ID: "m1", Type: claybot.MessageUser, Text: "hi", From: claybot.Sender{UserID: "eve", Name: hostile[0]}})
	b.do("the request appears by itself", until(`document.querySelector("#pairings tbody td")?.textContent.includes(`+js(hostile[0])+`)`))
	b.do("let in", chromedp.Click("#pairings .primary"), until(`document.querySelector("#grants tbody th")?.textContent.includes("eve")`),
		until(`document.querySelector("#pairings").textContent.includes("No pending requests")`))
	b.do("let out, or not", chromedp.Click("#grants .danger"), chromedp.WaitVisible("#confirm"), chromedp.Click(`#confirm button[value="no"]`))
	if n := is[int](b, `document.querySelectorAll("#grants tbody tr").length`); n != 1 {
		t.Errorf("%d people are let in after a no", n)
	}
	b.do("let out", chromedp.Click("#grants .danger"), chromedp.WaitVisible("#confirm"), chromedp.Click("#confirm-yes"),
		until(`document.querySelector("#grants").textContent.includes("No users were approved here.")`))
	b.do("by id", chromedp.SendKeys("#allow-connector", "phone"), chromedp.SendKeys("#allow-subject", "group <b>"), chromedp.Click("form[data-reset] .primary"),
		until(`document.querySelector("#grants tbody th")?.textContent.trim() === "group <b>" && document.querySelector("#allow-subject").value === ""`))

	b.do("tokens", until(`document.querySelectorAll("#tokens tr").length === 1 && document.querySelector("#tokens th").textContent.startsWith("owner")`))
	b.do("a token", chromedp.SendKeys("#token-name", "ci"), chromedp.Click("#new-token .primary"), chromedp.WaitVisible("#secret"),
		until(`document.querySelector("#secret-text").textContent.length > 20`))
	secret := is[string](b, `document.querySelector("#secret-text").textContent`)
	b.do("done", chromedp.Click(`#secret button[value="done"]`), until(`!document.querySelector("#secret").open && document.querySelectorAll("#tokens tr").length === 2`), until(`document.querySelector("#secret-text").textContent === ""`))
	if strings.Contains(is[string](b, `document.documentElement.outerHTML`), secret) {
		t.Error("the token is still in the page")
	}
	b.do("a name that is taken", chromedp.SendKeys("#token-name", "ci"), chromedp.Click("#new-token .primary"),
		until(`document.querySelector("#new-token [data-error]").textContent.includes("exists")`))
	b.do("replace", chromedp.Click(`#tokens button[aria-label="Replace ci"]`), chromedp.WaitVisible("#confirm"), chromedp.Click("#confirm-yes"), chromedp.WaitVisible("#secret"),
		until(`document.querySelector("#secret-text").textContent.length > 20 && document.querySelector("#secret-text").textContent !== `+js(secret)),
		chromedp.Click(`#secret button[value="done"]`))
	b.do("revoke", chromedp.Click(`#tokens button[aria-label="Revoke ci"]`), chromedp.WaitVisible("#confirm"), chromedp.Click("#confirm-yes"),
		until(`document.querySelectorAll("#tokens tr").length === 1`))
	b.excuse("the session ends")
	b.do("log out everywhere", chromedp.Click("#logout-all"), chromedp.WaitVisible("#confirm"), chromedp.Click("#confirm-yes"), chromedp.WaitVisible("#token"))
}

// The pictures of the usage are drawn, and drawn anew when something was spent.
func TestBrowserUsage(t *testing.T) {
	r := startRig(t)
	r.mind.plan("price", llmtest.Say("It cost something."))
	b := r.browse()
	b.open("/ui/usage")
	b.do("nothing yet", until(`document.querySelector("#plot-cost .nothing")?.textContent.includes("No cost in this period")`))
	r.ran(r.say("price"), claybot.RunSucceeded)
	b.do("the pictures come by themselves", until(inked("#plot-cost")), until(inked("#plot-tokens")), until(inked("#plot-took")),
		until(`document.querySelector("#usage-figures b").textContent === "$0.0025"`))
	if first := is[string](b, `document.querySelector("#took-what option").textContent`); first != "runs, including pauses" {
		t.Errorf("the first duration is that of %s", first)
	}
	b.do("the legend shows the last day", until(`document.querySelector("#plot-tokens .u-legend").textContent.includes(new Date().toISOString().slice(0, 10))`),
		chromedp.Evaluate[chromedp.Void](`for (const kind of ["mouseenter", "mousemove", "mouseleave"]) document.querySelector("#plot-tokens .u-over").dispatchEvent(new MouseEvent(kind, {clientX: 200, clientY: 300, bubbles: true}))`),
		until(`document.querySelector("#plot-tokens .u-legend").textContent.includes(new Date().toISOString().slice(0, 10))`))
	b.do("another look", chromedp.Click("#theme"), chromedp.Click("#theme"), until(inked("#plot-cost")))
	b.do("a smaller window", screen(360, 740, true), until(inked("#plot-cost")), until(fits))
}

// The question why is answered from the box that every page has.
func TestBrowserWhy(t *testing.T) {
	o := startOffice(t)
	b := o.browse()
	id := o.call("hello " + hostile[1])
	o.ran(id, claybot.RunSucceeded)
	o.eventually("the reply was sent", func() bool {
		all, err := o.system.Overview.OutgoingPage(o.Context(), storage.OutgoingQuery{State: claybot.SendSent})
		return err == nil && len(all) == 1
	})
	b.open("/ui/health")
	b.do("ask", press("/"), until(`document.activeElement.id === "why"`), chromedp.SendKeys("#why", string(id)), press("Enter"), chromedp.WaitVisible(".verdict"))
	b.do("the story", until(`document.querySelector(".verdict .badge").textContent === "answered"`),
		until(`document.querySelector("blockquote.said").textContent === `+js("hello "+hostile[1])),
		until(`document.querySelectorAll(".steps li").length > 5`))
	b.do("ask for nothing", fill("#q", "r404"), chromedp.Click(".ask-form .primary"))
	b.do("nothing", until(`document.querySelector("#why-nothing")?.textContent.includes("r404") && !!document.querySelector("#why-help")`))
}

// All pages fit a phone, have one heading, a name for every control, and can be
// used by the keyboard alone.
func TestBrowserOffices(t *testing.T) {
	o := startOffice(t)
	b := o.browse()
	for i, x := range hostile {
		o.call(x)
		o.post(claybot.User("phone", fmt.Sprint("dm-", i), fmt.Sprint("u", i)), claybot.AgentMessage{ID: claybot.MessageID(fmt.Sprint("s", i)), Type: claybot.MessageUser, Text: x, From: claybot.Sender{UserID: fmt.Sprint("u", i), Name: x + strings.Repeat("W", 300)}})
	}
	var run claybot.RunID
	o.eventually("all is quiet", func() bool {
		all, err := o.system.Overview.RunPage(o.Context(), storage.RunQuery{})
		if err != nil || len(all) == 0 || !all[0].State.Ended() {
			return false
		}
		run = all[0].ID
		return true
	})
	for _, path := range append(offices, "/ui/why?q="+string(run)) {
		b.do("a phone", screen(360, 740, true))
		b.open(path)
		b.do("fits "+path, until(fits))
		for what, expr := range map[string]string{
			"has one first heading":               `document.querySelectorAll("h1").length === 1`,
			"has a name for each control":         `[...document.querySelectorAll("main input:not([type=hidden]), main select, main textarea")].every((e) => e.labels.length > 0 || e.ariaLabel)`,
			"has words on each button":            `[...document.querySelectorAll("main button, main a")].every((e) => (e.ariaLabel || e.textContent).trim() !== "")`,
			"has room to touch each button":       `[...document.querySelectorAll("main button, main .tabs a")].filter((e) => e.offsetParent).every((e) => e.getBoundingClientRect().height >= 44)`,
			"has a caption or name for each list": `[...document.querySelectorAll("main table:not(.u-legend)")].every((e) => e.caption)`,
			"has each id once":                    `new Set([...document.querySelectorAll("[id]")].map((e) => e.id)).size === document.querySelectorAll("[id]").length`,
			"was not taken over":                  `window.hacked === undefined && !document.querySelector("main script, main iframe, main img")`,
		} {
			if !is[bool](b, expr) {
				t.Errorf("on a phone it is not so that %s %s", path, what)
			}
		}
		b.do("a desk", screen(1280, 860, false), until(fits))
	}
	b.open("/ui/access")
	b.do("by keyboard", chromedp.Evaluate[chromedp.Void](`document.querySelector("#pairings .primary").focus()`), press("Enter"),
		until(`!!document.querySelector("#grants tbody tr")`))
}
