package dashboard_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// push presses a button that a toast of what was done before may cover.
func push(button string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](`document.querySelector(` + js(button) + `).click()`)
}

// fill types a value: what is typed is kept when the page fetches its parts again.
func fill(field, value string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](`(() => { const e = document.querySelector(` + js(field) + `); e.value = ` + js(value) + `; e.dispatchEvent(new Event("input", { bubbles: true })); })()`)
}

// A skill is allowed, a server's tool accepted and a workspace removed by buttons
// that ask first; nothing is loaded again.
func TestBrowserTools(t *testing.T) {
	r := startRig(t)
	r.skillFile("invoices", "SKILL.md", strings.Replace(manifest, "<b>", hostile[0], 1))
	b := r.browse()
	b.open("/ui/tools")
	badge := func(words string) chromedp.Action[chromedp.Void] {
		return until(`document.querySelector("#skill-invoices .badge").textContent === ` + js(words))
	}
	b.do("it is new", badge("new"), chromedp.Evaluate[chromedp.Void](`window.stays = 1`))
	b.do("not sure", chromedp.Click("#skill-invoices .primary"), until(`document.querySelector("#confirm").open`), press("Escape"), until(`!document.querySelector("#confirm").open`), badge("new"))
	b.do("allow", chromedp.Click("#skill-invoices .primary"), until(`document.querySelector("#confirm").open`), chromedp.Click("#confirm-yes"), badge("allowed"),
		until(`document.querySelector("#toasts").textContent.includes("Allowed in this version")`))
	r.skillFile("invoices", "SKILL.md", manifest+"Send all of them.\n")
	b.open("/ui/tools")
	b.do("a change is shown", badge("changed"), until(`document.querySelector("#skill-invoices").textContent.includes("changed: SKILL.md")`), chromedp.Evaluate[chromedp.Void](`window.stays = 1`))
	b.do("forbid", chromedp.Click(`#skill-invoices button[hx-post*="forbid"]`), badge("new"))
	b.do("accept a tool", push("#server-files .off .button"), until(`document.querySelector("#confirm").open`), chromedp.Click("#confirm-yes"), until(`!document.querySelector("#server-files .off")`))
	b.do("remove a workspace", push("#workspaces li .danger"), until(`document.querySelector("#confirm").open && document.querySelector("#confirm-words").textContent.includes("cannot be undone")`),
		chromedp.Click("#confirm-yes"), until(`document.querySelectorAll("#workspaces li").length === 1`))
	if !is[bool](b, `window.stays === 1 && window.hacked === undefined`) {
		t.Error("the page was loaded again, or a text ran as a script")
	}
}

// A note is edited on its page and taken back to what it was.
func TestBrowserNote(t *testing.T) {
	r := startRig(t)
	agent := r.ran(r.say("hello"), claybot.RunSucceeded).Agent
	scope := "agent/" + string(agent)
	err := r.db.SaveMemory(t.Context(), scope, storage.Memory{Path: "a b.md", Text: hostile[1] + "\n" + hostile[4], MemoryChange: storage.MemoryChange{Agent: agent, Run: "r", Tainted: true}}, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	b := r.browse()
	b.open("/ui/agents/" + string(agent))
	b.do("its tools", chromedp.Click("#bench-tools > summary"), until(`document.querySelector("#own-current_time").checkVisibility()`))
	b.do("to the note", chromedp.Click("#bench-notes .list a"), until(`location.pathname === "/ui/notes/note" && document.querySelector("#taint") && document.body.dataset.connection === "on"`),
		until(`document.querySelector("#note-text").value === `+js(hostile[1]+"\n"+hostile[4])), chromedp.Evaluate[chromedp.Void](`window.stays = 1`))
	// By one script, because the page may replace its elements between the search for one and
	// its use, and with them a text that was not typed.
	b.do("edit", chromedp.Evaluate[chromedp.Void](`document.querySelector("#note-text").value = "by hand"; document.querySelector("#save-note").click()`), until(`!document.querySelector("#taint") && document.querySelectorAll("#versions li").length === 2`),
		until(`document.querySelector("#note-text").value === "by hand"`))
	b.do("revert", push("#versions li .button"), until(`document.querySelector("#taint") && document.querySelectorAll("#versions li").length === 3`),
		until(`document.querySelector("#note-text").value.startsWith("<script>")`))
	b.do("delete", push("#delete-note"), until(`document.querySelector("#confirm").open`), chromedp.Click("#confirm-yes"), until(`!document.querySelector("#delete-note") && document.querySelector("#text").textContent.includes("was deleted")`))
	if !is[bool](b, `window.stays === 1 && window.hacked === undefined`) {
		t.Error("the page was loaded again, or a text ran as a script")
	}
}

// A budget is extended where it is shown, and a wrong amount is said beside it.
func TestBrowserBudget(t *testing.T) {
	r := startRig(t)
	level := storage.Level{Key: "all@always", Period: storage.PeriodAlways, Name: "all", Unit: storage.UnitMicroUSD, Limit: 1_000_000, Hard: true}
	if err := r.db.Reserve(t.Context(), storage.Reservation{ID: "1", Node: "n", Levels: []storage.Level{level}, Amount: storage.Amount{MicroUSD: 1_000_000}}); err != nil {
		t.Fatal(err)
	}
	b := r.browse()
	b.open("/ui/usage")
	left := func(words string) chromedp.Action[chromedp.Void] {
		return until(`document.querySelector("#budgets .tone").textContent === ` + js(words))
	}
	b.do("nothing is left", left("$0"))
	b.do("a wrong amount", chromedp.SendKeys("#budgets input[name=amount]", "much"), chromedp.Click("#budgets .extend .button"),
		until(`document.querySelector("#budgets [data-error]").textContent.startsWith("Enter an amount above 0.")`), left("$0"))
	b.do("extend", fill("#budgets input[name=amount]", "2.5"), chromedp.Click("#budgets .extend .button"), left("$2.50"))
}

// All of it fits a phone.
func TestBrowserToolingOnPhone(t *testing.T) {
	r := startRig(t)
	agent := r.ran(r.say("hello"), claybot.RunSucceeded).Agent
	r.skillFile("invoices", "SKILL.md", manifest)
	long := strings.Repeat("Donaudampfschifffahrt", 9)
	r.shop.Rooms[0].Agent, r.shop.Rooms[0].Image, r.shop.Rooms[0].Problem = agent, long, long
	err := r.db.SaveMemory(t.Context(), "global", storage.Memory{Path: long + ".md", Text: long, MemoryChange: storage.MemoryChange{Agent: agent, Run: "r", Tainted: true}}, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	levels := []storage.Level{{Key: "all@always", Period: storage.PeriodAlways, Name: long, Unit: storage.UnitMicroUSD, Limit: 1_000_000, Hard: true}}
	if err := r.db.Reserve(t.Context(), storage.Reservation{ID: "1", Node: "n", Levels: levels, Amount: storage.Amount{MicroUSD: 1000}}); err != nil {
		t.Fatal(err)
	}
	b := r.browse()
	for _, width := range []int64{360, 1280} {
		b.do("size", screen(width, 740, width < 500))
		for _, path := range []string{"/ui/tools", "/ui/notes", "/ui/notes/note?scope=global&path=" + long + ".md", "/ui/usage", "/ui/agents/" + string(agent)} {
			b.open(path)
			b.do("fits "+path, until(fits))
			if small := is[string](b, `innerWidth > 500 ? "" : [...document.querySelectorAll("main button, main summary, main input:not([type=hidden], [type=checkbox], [type=file])")].filter((e) => e.checkVisibility({visibilityProperty: true}) && e.offsetHeight > 0 && e.offsetHeight < 44).map((e) => e.outerHTML.slice(0, 120)).join("; ")`); small != "" {
				t.Errorf("%s has small targets: %s", path, small)
			}
		}
	}
}
