package dashboard_test

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/web"
	"github.com/claybot/claybot/web/webtest"
)

// The map shows each node with its state and leads to it by keyboard; a node is stopped after a
// confirmation, started and tested, and a test that fails says so.
func TestBrowserNodes(t *testing.T) {
	r := newRig(t)
	r.desk = func(b *web.Backend) { b.Nodes = webtest.NewNodes() }
	r.start()
	b := r.browse()
	b.open("/ui/nodes")
	b.do("all nodes", until(`document.querySelectorAll("#map a").length === 8 && document.querySelectorAll("#nodes li").length === 8 && document.querySelectorAll("#map .use").length === 6`))
	b.do("by keyboard", chromedp.Focus(`#map a[aria-label^="mcp/files"]`), press("Enter"), until(`location.pathname === "/ui/nodes/mcp/files" && document.body.dataset.connection === "on" && document.querySelector("#state").textContent.includes("the server ended with code 7")`))
	b.open("/ui/nodes")
	row := func(name, what string) string {
		return `[aria-label="` + what + ` ` + name + `"]`
	}
	b.do("stop", push(row("telegram", "Stop")), until(`document.querySelector("#confirm").open && document.querySelector("#confirm-words").textContent === "Stop telegram until it is started again?"`), chromedp.Click("#confirm-yes"),
		until(`document.querySelector('[aria-label="Start telegram"]') !== null && document.querySelector('#map a[aria-label="connector/telegram: stopped by an operator"]') !== null`))
	b.do("start", push(row("telegram", "Start")), until(`document.querySelector('[aria-label="Stop telegram"]') !== null`))
	b.do("only the calls that it has", until(`document.querySelector('[aria-label="Stop default"]') !== null && document.querySelector('[aria-label="Restart default"]') === null && document.querySelector('[aria-label="Restart telegram"]') !== null`))
	b.do("a test that fails", push(row("files", "Test")), until(`document.body.textContent.includes("mcp/files: it was asked")`))
	b.do("a name with a slash", push(row("vendor/large", "Test")), until(`document.body.textContent.includes("model/vendor/large: it was asked")`))
	if !is[bool](b, `window.hacked === undefined`) {
		t.Error("a text ran as a script")
	}
	for _, width := range []int64{360, 1280} {
		b.do("size", screen(width, 740, width < 500))
		b.open("/ui/nodes")
		b.do("fits", until(fits))
	}
}

// An admin adds a node of a kind by a form, by keyboard: what is wrong is said at its field, and the change is in
// the history, which undoes it.
func TestBrowserNodeAdd(t *testing.T) {
	r := newRig(t)
	r.desk = func(b *web.Backend) { b.Nodes, b.Configuration = webtest.NewNodes(), webtest.NewConfiguration() }
	r.start()
	b := r.browse()
	b.open("/ui/nodes")
	b.do("to the form", chromedp.Focus("#add-node"), press("Enter"), until(`document.querySelectorAll("#kinds a").length === 4 && document.body.dataset.connection === "on"`))
	b.do("a kind", chromedp.Focus("#kinds a"), press("Enter"), until(`document.querySelector("#add-form") && document.body.dataset.connection === "on"`))
	b.do("a value that is wrong", fill("#new-name", "sales"), fill(`[name="f.token"]`, "13"), press("Enter"),
		until(`document.querySelector('[data-fault="f.token"]')?.textContent === "13 is no reference." && document.querySelector("#add-form [data-error]").textContent.includes("token: 13 is no reference.")`),
		until(`document.activeElement.name === "f.token"`))
	b.do("a value for the machine alone", fill(`[name="f.token"]`, "env:OTHER"), chromedp.Focus(`[name="f.token"]`), press("Enter"), until(`document.querySelector('[data-fault="f.token"]')?.textContent === "Set this on the machine."`))
	b.do("a value that is right", fill(`[name="f.token"]`, "env:SALES_TOKEN"), chromedp.Focus(`[name="f.token"]`), press("Enter"), until(`location.pathname === "/ui/nodes" && document.body.dataset.connection === "on"`),
		until(`document.querySelector("#toasts .toast:not(.bad)") !== null`))
	b.open("/ui/config/history")
	b.do("in the history", until(`document.body.textContent.includes("connectors.sales") && document.body.textContent.includes("telegram env:SALES_TOKEN")`))
	b.open("/ui/nodes/add?kind=mcp")
	b.do("another kind", until(`document.querySelector('[name="f.url"]') && document.querySelectorAll('[name="f.trusted"] option').length === 3`))
	b.open("/ui/nodes/add?kind=relay")
	b.do("an entry of a list", until(`!document.querySelector("#new-name")`), fill(`[name="f.name"]`, "log"), chromedp.Focus(`[name="f.name"]`), press("Enter"), until(`document.querySelector('[data-fault="f.name"]')?.textContent === "It wants a file."`),
		fill(`[name="f.file"]`, "events.log"), chromedp.Focus(`[name="f.file"]`), press("Enter"), until(`location.pathname === "/ui/nodes" && document.body.dataset.connection === "on"`))
	b.open("/ui/config/history")
	b.do("in the history", until(`document.body.textContent.includes("relay events.log")`))
	b.open("/ui/nodes/add")
	b.do("what is set elsewhere", until(`[...document.querySelectorAll("#elsewhere a")].some((a) => a.pathname === "/ui/flows") && document.querySelector('#elsewhere a[href="/ui/schedule/new"]') !== null`))
	if !is[bool](b, `window.hacked === undefined`) {
		t.Error("a text ran as a script")
	}
	b.do("size", screen(360, 740, true))
	b.open("/ui/nodes/add?kind=telegram")
	b.do("fits", until(fits))
}

// The page of a node removes its entry after a confirmation, and the history brings it back. What a variable sets says
// where it is removed, and what is no entry has no such button.
func TestBrowserNodeRemove(t *testing.T) {
	r := newRig(t)
	r.desk = func(b *web.Backend) { b.Nodes, b.Configuration = webtest.NewNodes(), webtest.NewConfiguration() }
	r.start()
	b := r.browse()
	b.open("/ui/nodes/connector/telegram")
	b.do("where it is removed", until(`document.querySelector("#away")?.textContent.includes("TELEGRAM_BOT_TOKEN") && !document.querySelector("#remove-node")`))
	b.open("/ui/nodes/profile/default")
	b.do("what is always there", until(`document.querySelector("#settings") && !document.querySelector("#removal")`))
	b.open("/ui/nodes/profile/sales")
	b.do("ask", push("#remove-node"), until(`document.querySelector("#confirm").open && document.querySelector("#confirm-words").textContent.includes("agents.sales")`))
	b.do("keep", chromedp.Click(`#confirm [value="no"]`), until(`!document.querySelector("#confirm").open && location.pathname === "/ui/nodes/profile/sales"`))
	b.do("remove", push("#remove-node"), until(`document.querySelector("#confirm").open`), chromedp.Click("#confirm-yes"), until(`location.pathname === "/ui/config/history" && document.body.dataset.connection === "on"`),
		until(`document.body.textContent.includes("agents.sales")`))
	b.open("/ui/nodes/profile/sales")
	b.do("it is gone from the file", until(`document.querySelector("#settings") && !document.querySelector("#remove-node")`))
	b.open("/ui/config/history")
	b.do("undo", push("#change-1 button"), until(`document.querySelector("#confirm").open`), chromedp.Click("#confirm-yes"), until(`document.querySelector("#change-2") !== null`))
	b.open("/ui/nodes/profile/sales")
	b.do("it is back", until(`document.querySelector("#remove-node")`))
	b.do("size", screen(360, 740, true))
	b.open("/ui/nodes/profile/sales")
	b.do("fits", until(fits))
}

// The page of a node says how it does, who stopped it, what it uses and what uses it, its log and its settings with
// their origins, and has its calls; it follows changes, also the end of the node.
func TestBrowserNode(t *testing.T) {
	r := newRig(t)
	shown, config := webtest.NewNodes(), webtest.NewConfiguration()
	r.desk = func(b *web.Backend) { b.Nodes, b.Configuration = shown, config }
	r.start()
	b := r.browse()
	b.open("/ui/nodes/profile/default")
	b.do("its ports", until(`document.querySelector("#uses-model a").pathname === "/ui/nodes/model/vendor%2Flarge" && document.querySelector("#uses-tools").textContent.includes("files") && document.querySelector("#uses-memory").textContent.includes("None.")`))
	b.do("what uses it", until(`document.querySelectorAll("#used-by a").length === 3`))
	b.do("its log", until(`document.querySelector("#log").textContent.includes("profile/default has failed: <script>") && document.querySelector("#log").textContent.includes("12 times")`))
	b.do("stop", push(`[aria-label="Stop default"]`), until(`document.querySelector("#confirm").open`), chromedp.Click("#confirm-yes"), until(`document.querySelector("#stopped")?.textContent.startsWith("Stopped by ")`))
	b.do("start", push(`[aria-label="Start default"]`), until(`document.querySelector('[aria-label="Stop default"]') !== null && !document.querySelector("#stopped")`))
	b.do("a link to what it uses", chromedp.Focus("#uses-model a"), press("Enter"), until(`location.pathname === "/ui/nodes/model/vendor%2Flarge" && document.body.dataset.connection === "on"`))
	b.do("a test", push(`[aria-label="Test vendor/large"]`), until(`document.body.textContent.includes("model/vendor/large: it was asked")`))
	b.open("/ui/nodes/profile/sales")
	b.do("its settings", until(`document.querySelector("#settings li").textContent.includes("claybot.yaml:5") && document.querySelector("#unset").textContent.includes("agents.sales.max_steps")`))
	b.do("a key that is not set", chromedp.Evaluate[chromedp.Void](`document.querySelector("#unset").open = true`), chromedp.Click("#unset a"), until(`location.search === "?key=agents.sales.max_steps" && document.body.dataset.connection === "on"`))
	b.do("has the value of the default profile", until(`document.querySelector("#now").textContent === "64" && document.querySelector("#origin").textContent === "default" && document.querySelector("#new-value").inputMode === "decimal"`))
	b.open("/ui/nodes/connector/telegram")
	shown.Remove(nodes.Key{Kind: nodes.Connector, Name: "telegram"})
	b.do("it goes", until(`document.querySelector("#node-now").textContent.includes("not configured any more")`))
	if !is[bool](b, `window.hacked === undefined`) {
		t.Error("a text ran as a script")
	}
	for _, width := range []int64{360, 1280} {
		b.do("size", screen(width, 740, width < 500))
		b.open("/ui/nodes/profile/default")
		b.do("fits", until(fits))
	}
}

// The map shows on which lines messages flow while they do; the arrow keys go from node to node; its names can be read
// on a phone.
func TestBrowserMapLive(t *testing.T) {
	r := newRig(t)
	shown := webtest.NewNodes()
	r.desk = func(b *web.Backend) { b.Nodes = shown }
	r.start()
	b := r.browse()
	b.open("/ui/nodes")
	b.do("nothing flows", until(`document.querySelectorAll("#map .use").length === 6 && document.querySelectorAll("#map .flowing").length === 0`))
	profile := nodes.Key{Kind: nodes.Profile, Name: "default"}
	shown.Flow(web.NodeLink{From: nodes.Key{Kind: nodes.Connector, Name: "web"}, To: profile}, web.NodeLink{From: profile, To: nodes.Key{Kind: nodes.Model, Name: "vendor/large"}}, web.NodeLink{From: profile, To: nodes.Key{Kind: nodes.Tools, Name: "gone"}})
	b.do("messages flow", until(`document.querySelectorAll("#map .flowing").length === 2 && document.querySelector("#map .model.flowing title").textContent === "messages flow from profile/default to model/vendor/large"`),
		until(`document.querySelector('#map a[aria-label="connector/web: running, messages flow"]') !== null && document.querySelectorAll("#nodes .badge.busy").length >= 3`))
	shown.Flow()
	b.do("and end", until(`document.querySelectorAll("#map .flowing").length === 0`))
	b.do("ports", until(`document.querySelectorAll("#map .port").length === 6 && document.querySelectorAll("#map .port.hollow").length === 4`))
	at := func(label string) chromedp.Action[chromedp.Void] {
		return until(`document.activeElement.getAttribute("aria-label")?.startsWith("` + label + `")`)
	}
	b.do("by arrows", chromedp.Focus("#map"), press("ArrowRight"), at("connector/telegram"), press("ArrowDown"), at("connector/web"), press("ArrowRight"), at("flow/order"), press("ArrowRight"), at("profile/default"),
		press("ArrowRight"), at("model/vendor/large"), press("ArrowDown"), at("mcp/files"), press("ArrowDown"), at("mcp/files"), press("ArrowLeft"), at("profile/"))
	b.do("size", screen(390, 740, true))
	b.open("/ui/nodes")
	b.do("readable", until(`document.querySelector("#map a text").getBoundingClientRect().height >= 12`), until(fits))
}
