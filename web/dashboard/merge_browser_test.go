package dashboard_test

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// Fresh fragments leave alone what the reader is at.
func TestBrowserMerge(t *testing.T) {
	b := startRig(t).browse()
	b.do("the module", until(`import("/assets/merge.js").then((m) => { window.merge = m.merge; return true; })`))
	for _, tt := range []struct{ name, old, act, fresh, want string }{
		{
			"rows are added and removed around one that has the focus",
			`<ul><li id="a">1</li><li id="b"><button>x</button></li><li id="c">3</li></ul>`, `box.querySelector("button").focus(); kept = box.querySelector("#b")`,
			`<ul><li id="n">0</li><li id="b"><button>y</button></li><li id="d">4</li></ul>`,
			`box.textContent === "0y4" && document.activeElement === box.querySelector("button") && kept === box.querySelector("#b")`,
		},
		{
			"rows change places with the focus",
			`<ul><li id="a">1</li><li id="b"><button>x</button></li></ul>`, `box.querySelector("button").focus()`,
			`<ul><li id="b"><button>x</button></li><li id="a">1</li></ul>`,
			`box.textContent === "x1" && document.activeElement === box.querySelector("button")`,
		},
		{
			"what was opened stays open, what is in it is fresh",
			`<details id="d"><summary>s</summary><p>old</p></details>`, `box.querySelector("details").open = true`,
			`<details id="d"><summary>s</summary><p>new</p></details>`,
			`box.querySelector("details").open && box.querySelector("p").textContent === "new"`,
		},
		{
			"a form that was edited stays",
			`<form id="f"><input value="a"></form><p>1</p>`, `box.querySelector("form").dataset.dirty = "true"; box.querySelector("input").value = "mine"`,
			`<form id="f"><input value="b"></form><p>2</p>`, `box.querySelector("input").value === "mine" && box.querySelector("p").textContent === "2"`,
		},
		{
			"a form whose field has the focus stays, even when it is gone",
			`<form id="f"><input value="a"></form><p>1</p>`, `box.querySelector("input").focus()`,
			`<p>2</p>`, `document.activeElement === box.querySelector("input") && box.querySelector("p").textContent === "2"`,
		},
		{
			"a form that was sent and taken is renewed",
			`<form id="f" data-dirty="true" data-settled="true"><input value="a"></form>`, `box.querySelector("input").focus()`,
			``, `box.childElementCount === 0`,
		},
		{
			"an untouched form is renewed",
			`<form id="f"><input name="i" value="a"><input type="checkbox" checked><select><option>1</option></select><textarea>x</textarea></form>`, ``,
			`<form id="f"><input name="i" value="b"><input type="checkbox"><select><option>2</option></select><textarea>y</textarea></form>`,
			`box.querySelector("[name=i]").value === "b" && !box.querySelector("[type=checkbox]").checked && box.querySelector("select").value === "2" && box.querySelector("textarea").value === "y"`,
		},
		{
			"times keep the reader's words",
			`<time datetime="2026-01-01T00:00:00Z">long ago</time>`, ``, `<time datetime="2026-01-01T00:00:00Z">2026-01-01 00:00 UTC</time>`, `box.textContent === "long ago"`,
		},
		{
			"classes and attributes are renewed",
			`<p id="p" class="good" data-x="1" title="kept">a</p>`, ``, `<p id="p" class="bad" data-y="2">a</p>`,
			`box.firstElementChild.className === "bad" && !("x" in box.firstElementChild.dataset) && box.firstElementChild.dataset.y === "2" && box.firstElementChild.title === "kept"`,
		},
		{"another element takes the id", `<p id="p">a</p>`, ``, `<h2 id="p">b</h2>`, `box.innerHTML === '<h2 id="p">b</h2>'`},
		{"texts", `a<b>b</b>c`, ``, `x<b>y</b>z<i>!</i>`, `box.innerHTML === "x<b>y</b>z<i>!</i>"`},
		{"nothing becomes something", ``, ``, `<p>1</p>`, `box.innerHTML === "<p>1</p>"`},
	} {
		b.do(tt.name, chromedp.Evaluate[chromedp.Void](`{ document.querySelector("#box")?.remove(); window.box = document.createElement("div"); box.id = "box"; document.querySelector("main").append(box);
			box.innerHTML = `+js(tt.old)+`; let kept; `+tt.act+`; merge(box, `+js(tt.fresh)+`); window.right = `+tt.want+`; void 0; }`))
		if !is[bool](b, `window.right`) {
			t.Errorf("%s: the page has %s", tt.name, is[string](b, `box.innerHTML`))
		}
	}
	b.do("a list of rows", chromedp.Evaluate[chromedp.Void](`{ box.innerHTML = "<table><tbody><tr id=r1><td>1</td></tr></tbody></table>";
		merge(box.querySelector("tbody"), '<tr id="r2"><td>2</td></tr><tr id="r1"><td>1</td></tr>'); void 0; }`))
	if got := is[string](b, `box.textContent`); got != "21" {
		t.Errorf("the table has %q", got)
	}
}
