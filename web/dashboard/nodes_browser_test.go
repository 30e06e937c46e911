package dashboard_test

import (
	"testing"

	"github.com/chromedp/chromedp"

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
	b.do("all nodes", until(`document.querySelectorAll("#map a").length === 7 && document.querySelectorAll("#nodes li").length === 7 && document.querySelectorAll("#map .use").length === 6`))
	b.do("by keyboard", chromedp.Focus(`#map a[aria-label^="mcp/files"]`), press("Enter"), until(`location.hash !== "" && document.querySelector(location.hash).textContent.includes("the server ended with code 7")`))
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
	b.do("to the form", chromedp.Focus("#add-node"), press("Enter"), until(`document.querySelectorAll("#kinds a").length === 2 && document.body.dataset.connection === "on"`))
	b.do("a kind", chromedp.Focus("#kinds a"), press("Enter"), until(`document.querySelector("#add-form") && document.body.dataset.connection === "on"`))
	b.do("a value that is wrong", fill("#new-name", "sales"), fill(`[name="f.token"]`, "13"), press("Enter"),
		until(`document.querySelector('[data-fault="f.token"]')?.textContent === "13 is no reference." && document.querySelector("#add-form [data-error]").textContent.includes("token: 13 is no reference.")`),
		until(`document.activeElement.name === "f.token"`))
	b.do("a value for the machine alone", fill(`[name="f.token"]`, "env:OTHER"), chromedp.Focus(`[name="f.token"]`), press("Enter"), until(`document.querySelector('[data-fault="f.token"]')?.textContent === "Set this on the machine."`))
	b.do("a value that is right", fill(`[name="f.token"]`, "env:SALES_TOKEN"), chromedp.Focus(`[name="f.token"]`), press("Enter"), until(`location.pathname === "/ui/nodes" && document.body.dataset.connection === "on"`))
	b.open("/ui/config/history")
	b.do("in the history", until(`document.body.textContent.includes("connectors.sales") && document.body.textContent.includes("telegram env:SALES_TOKEN")`))
	b.open("/ui/nodes/add?kind=mcp")
	b.do("another kind", until(`document.querySelector('[name="f.url"]') && document.querySelectorAll('[name="f.trusted"] option').length === 3`))
	if !is[bool](b, `window.hacked === undefined`) {
		t.Error("a text ran as a script")
	}
	b.do("size", screen(360, 740, true))
	b.open("/ui/nodes/add?kind=telegram")
	b.do("fits", until(fits))
}
