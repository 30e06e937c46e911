package dashboard_test

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/claybot/claybot/web"
	"github.com/claybot/claybot/web/webtest"
)

// Settings are found, changed after a confirmation that names both values, and undone; what
// is wrong stands at its field, and a change based on what another person changed is refused.
func TestBrowserConfig(t *testing.T) {
	file := webtest.NewConfiguration()
	r := newRig(t)
	r.desk = func(b *web.Backend) { b.Configuration = file }
	r.start()
	b := r.browse()
	b.open("/ui/config")
	b.do("search by keyboard", chromedp.SendKeys("#find", "model calls"), press("Enter"), until(`location.search.includes("find=model+calls") && document.querySelectorAll("#rows li").length === 1`))
	b.do("to the key", push("#rows li a"), until(`document.querySelector("#now")?.textContent === "64" && document.querySelector("#origin").textContent === "claybot.yaml:3" && document.body.dataset.connection === "on"`))
	asks := func(words string) chromedp.Action[chromedp.Void] {
		return until(`document.querySelector("#confirm").open && document.querySelector("#confirm-words").textContent === ` + js(words))
	}
	b.do("what is not valid", fill("#new-value", "13"), push("#set-key"), asks("Change agents.default.max_steps from 64 to 13?"), chromedp.Click("#confirm-yes"),
		until(`document.querySelector("#fault-value")?.textContent === "13 is not valid." && document.activeElement.id === "new-value"`))
	b.do("no", fill("#new-value", "32"), push("#set-key"), asks("Change agents.default.max_steps from 64 to 32?"), press("Escape"), until(`!document.querySelector("#confirm").open && document.querySelector("#now").textContent === "64"`))
	b.do("yes", push("#set-key"), asks("Change agents.default.max_steps from 64 to 32?"), chromedp.Click("#confirm-yes"), until(`document.querySelector("#now").textContent === "32" && document.querySelectorAll("#changes li").length === 1`))
	b.do("undo", push("#changes li .button"), until(`document.querySelector("#confirm").open`), chromedp.Click("#confirm-yes"), until(`document.querySelector("#now").textContent === "64"`))
	b.open("/ui/config/key?key=metrics")
	b.do("a switch", push("#new-value"), push("#set-key"), asks("Change metrics from true to false?"), chromedp.Click("#confirm-yes"), until(`document.querySelector("#now").textContent === "false"`))
	b.open("/ui/config/key?key=log_level")
	file.Rewrite()
	b.do("another person was faster", fill("#new-value", "debug"), push("#set-key"), asks("Change log_level from info to debug?"), chromedp.Click("#confirm-yes"),
		until(`document.querySelector("#set-form [data-error]").textContent.startsWith("The configuration file has been changed meanwhile")`))
	b.open("/ui/config/key?key=telegram.token")
	b.do("a secret is written, and never shown", chromedp.SendKeys("#new-value", "FAKE-token"), push("#set-key"), asks("Change telegram.token from (secret) to a new secret?"), chromedp.Click("#confirm-yes"),
		until(`document.querySelector("#now").textContent.startsWith("file:") && !document.body.innerHTML.includes("FAKE-token")`))
	b.open("/ui/config/history")
	b.do("all changes", until(`document.querySelectorAll("#history li").length === 5`))
	b.open("/ui/config?find=operators")
	if !is[bool](b, `window.hacked === undefined`) {
		t.Error("a text ran as a script")
	}
}

// The pages of the settings fit a phone.
func TestBrowserConfigOnPhone(t *testing.T) {
	r := newRig(t)
	r.desk = func(b *web.Backend) { b.Configuration = webtest.NewConfiguration() }
	r.start()
	b := r.browse()
	for _, width := range []int64{360, 1280} {
		b.do("size", screen(width, 740, width < 500))
		for _, path := range []string{"/ui/config?find=e", "/ui/config/key?key=agents.default.max_steps", "/ui/config/key?key=metrics", "/ui/config/history"} {
			b.open(path)
			b.do("fits "+path, until(fits))
			if small := is[string](b, `innerWidth > 500 ? "" : [...document.querySelectorAll("main button, main summary, main input:not([type=hidden], [type=checkbox])")].filter((e) => e.checkVisibility({visibilityProperty: true}) && e.offsetHeight > 0 && e.offsetHeight < 44).map((e) => e.outerHTML.slice(0, 120)).join("; ")`); small != "" {
				t.Errorf("%s has small targets: %s", path, small)
			}
		}
	}
}
