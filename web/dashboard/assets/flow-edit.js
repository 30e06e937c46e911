// The editor of a workflow: nodes of the graph open their forms, and the ends of edges are dragged to
// other nodes. All of it are steps of the one form, which the server answers with the form anew.

const editor = () => document.getElementById("editor");
const at = (id) => document.getElementById(id);
let focus = "";

// A node is chosen by a click or with Enter; what was typed goes with the step.
document.addEventListener("click", (e) => {
  const link = e.target.closest?.("#editor a[href*='/edit?node=']");
  if (link) {
    e.preventDefault();
    at("e-node").value = new URLSearchParams(link.getAttribute("href").split("?")[1]).get("node");
    focus = "edit-node";
    at("e-show").click();
  }
  const view = e.target.closest?.("#editor [data-view]");
  if (view) at("e-view").value = view.dataset.view;
}, true);

document.addEventListener("htmx:afterSwap", (e) => {
  if (e.detail.target?.id !== "editor" || !focus) return;
  at(focus)?.focus();
  focus = "";
});

// place is a position of the pointer in the drawing.
function place(svg, e) {
  const p = new DOMPoint(e.clientX, e.clientY).matrixTransform(svg.getScreenCTM().inverse());
  return [p.x, p.y];
}

// nodeAt is the node under the pointer; null for none.
function nodeAt(e) {
  const node = document.elementsFromPoint(e.clientX, e.clientY).map((x) => x.closest?.(".node")).find(Boolean);
  return node?.id.startsWith("node-") && !node.matches(".part") ? node : null;
}

document.addEventListener("pointerdown", (e) => {
  const grip = e.target.closest?.("#editor .grip");
  if (!grip || e.button !== 0) return;
  e.preventDefault();
  const svg = grip.ownerSVGElement;
  const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
  line.setAttribute("class", "dragged");
  svg.append(line);
  const from = [grip.dataset.x, grip.dataset.y];
  let over = null;
  const move = (e) => {
    const [x, y] = place(svg, e);
    line.setAttribute("d", `M${from[0]} ${from[1]}L${x} ${y}`);
    const node = nodeAt(e);
    if (node === over) return;
    over?.classList.remove("target");
    (over = node)?.classList.add("target");
  };
  const end = (e) => {
    for (const [kind, what] of [["pointermove", move], ["pointerup", end], ["pointercancel", end]]) document.removeEventListener(kind, what);
    const node = e.type === "pointerup" ? nodeAt(e) : null;
    over?.classList.remove("target");
    line.remove();
    if (!node || !editor()) return;
    at("e-edge").value = grip.dataset.edge;
    at("e-to").value = node.id.slice("node-".length);
    at("e-drag").click();
  };
  document.addEventListener("pointermove", move);
  document.addEventListener("pointerup", end);
  document.addEventListener("pointercancel", end);
});
