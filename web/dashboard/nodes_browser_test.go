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
