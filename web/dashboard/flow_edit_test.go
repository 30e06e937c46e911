package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/claybot/claybot/flows"
)

// Each step of the editor changes the draft alone; what is saved keeps the rest of the file.
func TestFlowEditSteps(t *testing.T) {
	s := newShelf(t)
	e := s.editable()
	s.start()
	v := s.visitor()
	says(t, v.page("/ui/flows/order"), `id="edit-flow"`)
	says(t, v.page("/ui/flows/order/edit"), `id="no-node"`, `id="no-diff"`, "Takes orders &lt;img")
	says(t, v.page("/ui/flows/order/edit?node=ask"), `id="f-text"`, "Order {{ what.output }}?", `name="f.options"`, "disabled>Save")
	step := func(want int, draft string, more url.Values) answer {
		t.Helper()
		form := url.Values{"version": {flows.HashOf(orderFlow)}, "text": {draft}}
		for k, x := range more {
			form[k] = x
		}
		got := v.do(http.MethodPost, "/ui/flows/order/edit", form)
		if got.code != want {
			t.Fatalf("%v = %d %s", more, got.code, got.body)
		}
		return got
	}
	for name, c := range map[string]struct {
		form url.Values
		want []string
	}{
		"a text":  {url.Values{"shown": {"ask"}, "node": {"clock"}, "f.text": {"Really?"}, "f.by": {"web/operator"}}, []string{`+     text: "Really?"`, `id="f-tool"`}},
		"a list":  {url.Values{"shown": {"ask"}, "node": {"ask"}, "f.by": {"web/operator\r\nweb/ann"}}, []string{`+     by: [web/operator, web/ann]`}},
		"a key":   {url.Values{"shown": {"ask"}, "f.denied": {""}}, []string{`-     denied: sorry`}},
		"a value": {url.Values{"shown": {"clock"}, "f.args": {"zone: Europe/Berlin\n"}}, []string{`args: {zone: Europe/Berlin}`}},
		"a number": {
			url.Values{"shown": {"what"}, "f.max_visits": {"3"}},
			[]string{`max_visits: 3}`},
		},
		"an edge":       {url.Values{"action": {"edge"}, "edge": {`["clock","error"]`}, "to": {"END"}}, []string{`error: END}`}},
		"a new node":    {url.Values{"action": {"add"}, "new-name": {"look"}, "new-kind": {"template"}, "new-after": {"what"}}, []string{`next: look}`, `+   look: {kind: template, next: ask}`, "nodes.look.value", "is missing", "disabled>Save"}},
		"a first node":  {url.Values{"action": {"add"}, "new-name": {"look"}, "new-kind": {"switch"}}, []string{`+ start: look`, `+   look: {kind: switch, else: what}`}},
		"a node less":   {url.Values{"action": {"remove"}, "node": {"thanks"}}, []string{`next: done, error`, `-   thanks:`}},
		"another name":  {url.Values{"action": {"rename"}, "node": {"sorry"}, "name": {"regret"}}, []string{`+     denied: regret`, `error: regret}`, `+   regret:`}},
		"a fault":       {url.Values{"action": {"edge"}, "edge": {`["what","next"]`}, "to": {"nothing"}}, []string{`there is no node`, "disabled>Save"}},
		"the whole":     {url.Values{"view": {"text"}}, []string{`wrap="off"`, `Asks before it buys.`}},
		"a place":       {url.Values{"moves": {`{"ask":{"x":40,"y":90000}}`}, "action": {"move"}}, []string{`value="{"ask":{"x":40,"y":20000}}"`, `id="moved"`, `id="e-tidy"`, `data-x="40" data-y="20000"`, `value="save">Save`}},
		"a place kept":  {url.Values{"layout": {`{"sorry":{"x":40,"y":90}}`}, "action": {"rename"}, "node": {"sorry"}, "name": {"regret"}}, []string{`value="{"regret":{"x":40,"y":90}}"`}},
		"no place":      {url.Values{"layout": {`{"sorry":{"x":40,"y":90}}`}, "moves": {`{"ask":{"x":1,"y":1}}`}, "action": {"tidy"}}, []string{`id="no-diff"`, `value="{}"`, "disabled>Save"}},
		"what is no id": {url.Values{"node": {"<b>"}}, []string{`id="no-node"`}},
	} {
		got := step(http.StatusOK, orderFlow, c.form)
		body := strings.NewReplacer("&#34;", `"`, "&#39;", "'", "&lt;", "<", "&gt;", ">", "&#43;", "+").Replace(got.body)
		for _, want := range c.want {
			if !strings.Contains(body, want) {
				t.Errorf("%s: no %q in %s", name, want, body[strings.Index(body, `id="preview"`):])
			}
		}
		if e.text() != orderFlow {
			t.Fatalf("%s changed the file", name)
		}
	}
	for name, c := range map[string]struct {
		form url.Values
		want string
	}{
		"a name twice":  {url.Values{"action": {"add"}, "new-name": {"ask"}, "new-kind": {"reply"}}, "a node of that name already"},
		"no name":       {url.Values{"action": {"rename"}, "node": {"ask"}, "name": {"a b"}}, "A name of a node has"},
		"no kind":       {url.Values{"action": {"add"}, "new-name": {"x"}, "new-kind": {"x"}}, "Choose a kind"},
		"no edge":       {url.Values{"action": {"edge"}, "edge": {"x"}, "to": {"ask"}}, "no such edge"},
		"a bad place":   {url.Values{"moves": {`{"ask":"here"}`}}, "There is no such position"},
		"bad YAML":      {url.Values{"shown": {"clock"}, "f.args": {"{a"}}, "nodes.clock.args"},
		"an empty file": {url.Values{"text": {" "}}, "The file is empty"},
	} {
		if got := step(http.StatusBadRequest, orderFlow, c.form); !strings.Contains(got.body, c.want) {
			t.Errorf("%s: %s", name, got.body)
		}
	}
	got := step(http.StatusNoContent, orderFlow, url.Values{"action": {"save"}, "shown": {"done"}, "f.note": {"the end"}})
	if got.head.Get("HX-Redirect") != "/ui/flows/order" || e.text() != strings.Replace(orderFlow, `"{{ thanks.output }}", next: END}`, `"{{ thanks.output }}", next: END, note: the end}`, 1) || len(e.by) != 1 {
		t.Errorf("saved by %q:\n%s", e.by, e.text())
	}
	if got := step(http.StatusConflict, orderFlow, nil); !strings.Contains(got.body, "changed meanwhile") {
		t.Error(got.body)
	}
	if got := v.do(http.MethodGet, "/ui/flows/nothing/edit", nil); got.code != http.StatusNotFound {
		t.Errorf("no flow = %d", got.code)
	}
}

// A node is changed in its form by mouse and keyboard, an edge by dragging its end, and the file as a
// text; only a save writes, and what was not changed stays as it was. All of it fits a phone.
func TestBrowserFlowEdit(t *testing.T) {
	s := newShelf(t)
	e := s.editable()
	s.start()
	b := s.browse()
	b.open("/ui/flows/order")
	b.do("to the editor", chromedp.Click("#edit-flow"), until(`location.pathname === "/ui/flows/order/edit" && document.body.dataset.connection === "on"`))
	b.do("a node by keyboard", chromedp.Focus("#node-ask"), press("Enter"), until(`document.querySelector("#edit-head")?.textContent === "ask" && document.activeElement.id === "edit-node"`))
	b.do("its text", fill("#f-text", "Buy {{ what.output }}?"), chromedp.Click("#node-clock"), until(`document.querySelector("#edit-head")?.textContent === "clock"`),
		until(`document.querySelector("#diff ins").textContent.includes("Buy {{ what.output }}?")`))
	drag := `(() => {
		const grip = document.querySelector('.grip[data-edge=\'["clock","error"]\']'), end = document.querySelector("#node-END");
		const at = (x) => { const r = x.getBoundingClientRect(); return { clientX: r.x + r.width / 2, clientY: r.y + r.height / 2, button: 0, bubbles: true, cancelable: true, pointerId: 1 }; };
		grip.dispatchEvent(new PointerEvent("pointerdown", at(grip)));
		document.dispatchEvent(new PointerEvent("pointermove", at(end)));
		const lit = end.matches(".target");
		document.dispatchEvent(new PointerEvent("pointerup", at(end)));
		return lit;
	})()`
	if !is[bool](b, drag) {
		t.Error("the node under the pointer is not lit")
	}
	b.do("the edge is moved", until(`document.querySelector("#f-error")?.value === "END" && [...document.querySelectorAll("#diff ins")].some((x) => x.textContent.includes("error: END}"))`))
	b.do("a fault", fill("#f-max_visits", "x"), push("#e-preview"), until(`document.querySelector("#edit-faults")?.textContent.includes("nodes.clock.max_visits") && document.querySelector("#e-save").disabled && document.querySelector("#node-clock").matches(".failed")`))
	b.do("mended", fill("#f-max_visits", ""), push("#e-preview"), until(`!document.querySelector("#edit-faults") && !document.querySelector("#e-save").disabled`))
	b.do("as a text", push("#as-text"), until(`document.querySelector("#e-text").checkVisibility() && document.querySelector("#e-text").value.includes("error: END}")`))
	for _, width := range []int64{360, 1280} {
		b.do("size", screen(width, 740, width < 500))
		b.do("the text fits", until(fits))
		b.do("as forms", push("#as-form"), until(`document.querySelector("#edit-head")?.textContent === "clock"`), until(fits))
		b.do("as a text again", push("#as-text"), until(`!document.querySelector("#edit-head")`))
	}
	if e.text() != orderFlow {
		t.Fatal("the file was changed before it was saved")
	}
	b.do("save", push("#as-form"), until(`document.querySelector("#edit-head")`), push("#e-save"), until(`location.pathname === "/ui/flows/order" && document.body.dataset.connection === "on"`))
	want := strings.NewReplacer("Order {{ what.output }}?", "Buy {{ what.output }}?", "next: thanks, error: sorry", "next: thanks, error: END").Replace(orderFlow)
	if got := e.text(); got != want {
		t.Errorf("the file is\n%s\nwant\n%s", got, want)
	}
	if is[bool](b, `window.hacked !== undefined`) {
		t.Error("a text ran as a script")
	}

	// Another hand has changed the file meanwhile.
	b.open("/ui/flows/order/edit?node=done")
	if err := os.WriteFile(e.path, []byte(want+"# more\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.excuse("the draft is stale")
	b.do("a stale draft", fill("#f-note", "x"), push("#e-preview"), until(`document.querySelector("#editor [data-error]").textContent.includes("changed meanwhile")`))
}

// A node is dragged to another place, moved with the arrow keys, and put back by the button. Only the layout
// is saved, and the page of the workflow shows it.
func TestBrowserFlowLayout(t *testing.T) {
	s := newShelf(t)
	e := s.editable()
	s.start()
	b := s.browse()
	ready := until(`document.body.dataset.connection === "on"`)
	at := func(node string, x, y int) chromedp.Action[chromedp.Void] {
		return until(fmt.Sprintf(`document.querySelector("#node-%s").dataset.x === "%d" && document.querySelector("#node-%[1]s").dataset.y === "%[3]d"`, node, x, y))
	}
	b.open("/ui/flows/order/edit")
	b.do("ready", ready, at("ask", 0, 62))
	drag := `(() => {
		const node = document.querySelector("#node-ask"), r = node.getBoundingClientRect(), svg = node.ownerSVGElement;
		const scale = svg.getScreenCTM().a;
		const press = (x, y) => ({ clientX: r.x + r.width / 2 + x * scale, clientY: r.y + r.height / 2 + y * scale, button: 0, bubbles: true, cancelable: true, pointerId: 1, pointerType: "mouse" });
		node.focus();
		node.dispatchEvent(new PointerEvent("pointerdown", press(0, 0)));
		document.dispatchEvent(new PointerEvent("pointermove", press(100, 10)));
		const moved = node.getAttribute("transform");
		document.dispatchEvent(new PointerEvent("pointerup", press(121, 38)));
		node.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, detail: 1 }));
		return moved !== null;
	})()`
	if !is[bool](b, drag) {
		t.Error("the node does not follow the pointer")
	}
	b.do("the node is placed", at("ask", 120, 100), until(`document.querySelector("#moved") && !document.querySelector("#diff") && document.querySelector("#no-node") && !document.querySelector("#e-save").disabled`))
	b.do("by keyboard", chromedp.Focus("#node-ask"), press("ArrowRight"), press("ArrowDown"), at("ask", 130, 110), until(`document.activeElement.id === "node-ask"`))
	b.do("the end by keyboard", chromedp.Focus("#node-END"), press("ArrowLeft"), until(`"END" in JSON.parse(document.querySelector("#e-layout").value) && document.activeElement.id === "node-END"`))
	b.do("Enter opens the form", chromedp.Focus("#node-ask"), press("Enter"), until(`document.querySelector("#edit-head")?.textContent === "ask"`))
	b.do("another name", until(`document.querySelector("#more-node").open = true`), fill("#node-name", "question"), push("#rename-node"), until(`document.querySelector("#edit-head")?.textContent === "question"`), at("question", 130, 110))
	for _, width := range []int64{360, 1280} {
		b.do("size", screen(width, 740, width < 500), until(fits))
	}
	b.do("save", push("#e-save"), until(`location.pathname === "/ui/flows/order" && document.body.dataset.connection === "on"`))
	if got := e.places["question"]; got != (flows.Position{X: 130, Y: 110}) || len(e.places) != 2 || len(e.by) != 1 {
		t.Errorf("saved: %v by %q", e.places, e.by)
	}
	saved := e.text()
	b.open("/ui/flows/order/edit")
	b.do("tidy", ready, at("question", 130, 110), until(`document.querySelector("#e-save").disabled`), push("#e-tidy"), at("question", 0, 62), until(`!document.querySelector("#e-tidy") && document.querySelector("#moved")`),
		push("#e-save"), until(`location.pathname === "/ui/flows/order" && document.body.dataset.connection === "on"`))
	if len(e.places) > 0 || e.text() != saved {
		t.Errorf("after tidying: %v\n%s", e.places, e.text())
	}
}
