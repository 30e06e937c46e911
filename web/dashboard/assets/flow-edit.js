// The editor of a workflow: nodes of the graph open their forms and are dragged to other places, and the
// ends of edges are dragged to other nodes. All of it are steps of the one form, which the server answers
// with the form anew.

const editor = () => document.getElementById("editor");
const at = (id) => document.getElementById(id);
let focus = "";
let dropped = false; // the last press moved a node, and is no click

// A node is chosen by a click or with Enter; what was typed goes with the step.
document.addEventListener("click", (e) => {
  const link = e.target.closest?.("#editor a[href*='/edit?node=']");
  if (link && dropped && e.detail) { // Enter is no press
    e.preventDefault();
    e.stopPropagation();
  } else if (link) {
    e.preventDefault();
    at("e-node").value = new URLSearchParams(link.getAttribute("href").split("?")[1]).get("node");
    focus = "edit-node";
    at("e-show").click();
  }
  if (e.target.closest?.("#e-tidy")) [moves, sent] = [{}, {}];
  const view = e.target.closest?.("#editor [data-view]");
  if (view) at("e-view").value = view.dataset.view;
}, true);

document.addEventListener("htmx:afterSwap", (e) => {
  if (e.detail.target?.id !== "editor") return;
  if (focus) at(focus)?.focus();
  focus = "";
  [sent, busy] = [{}, false];
  for (const name of Object.keys(moves)) shift(at("node-" + name), moves[name]);
  if (Object.keys(moves).length) later(0);
});
document.addEventListener("htmx:afterRequest", (e) => {
  if (e.detail.elt?.closest?.("#editor")) busy = false;
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

// Moves are positions of nodes that the server does not know yet; those that were sent come back drawn.
const grid = 10, settle = 250;
let moves = {}, sent = {}, timer = 0, busy = false;

const nameOf = (node) => node.id.slice("node-".length);
const drawn = (node) => ({ x: Number(node.dataset.x), y: Number(node.dataset.y) });
const where = (node) => moves[nameOf(node)] ?? sent[nameOf(node)] ?? drawn(node);
const snap = (v) => Math.round(v / grid) * grid;

function shift(node, to) {
  if (!node) return;
  const from = drawn(node);
  node.setAttribute("transform", `translate(${to.x - from.x} ${to.y - from.y})`);
}

function move(node, to) {
  moves[nameOf(node)] = to;
  at("e-moves").value = JSON.stringify({ ...sent, ...moves }); // for any step
  shift(node, to);
}

// later sends the moves, once no request is under way.
function later(ms) {
  clearTimeout(timer);
  timer = setTimeout(() => {
    if (busy) return later(settle);
    if (!at("e-move")) return;
    [sent, moves, busy] = [moves, {}, true];
    focus = document.activeElement?.closest?.("#editor .node")?.id ?? "";
    at("e-move").click();
  }, ms);
}

const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
document.addEventListener("keydown", (e) => {
  const node = e.target.closest?.("#editor .node[data-x]");
  const by = arrows[e.key];
  if (!node || !by || e.altKey || e.ctrlKey || e.metaKey) return;
  e.preventDefault();
  const now = where(node), step = e.shiftKey ? 5 * grid : grid;
  move(node, { x: snap(now.x + by[0] * step), y: snap(now.y + by[1] * step) });
  later(settle);
});

// A finger scrolls over nodes, except for the chosen one.
document.addEventListener("pointerdown", (e) => {
  const node = e.target.closest?.("#editor .node[data-x]");
  dropped = false;
  if (!node || e.button !== 0 || (e.pointerType === "touch" && !node.matches(".chosen"))) return;
  const svg = node.ownerSVGElement, from = place(svg, e), start = where(node);
  const to = (e) => {
    const [x, y] = place(svg, e);
    if (!dropped && Math.hypot(x - from[0], y - from[1]) < 4) return;
    dropped = true;
    move(node, { x: snap(start.x + x - from[0]), y: snap(start.y + y - from[1]) });
  };
  const end = (e) => {
    for (const [kind, what] of [["pointermove", to], ["pointerup", end], ["pointercancel", end]]) document.removeEventListener(kind, what);
    if (!dropped) return;
    if (e.type === "pointerup") to(e);
    later(0);
  };
  document.addEventListener("pointermove", to);
  document.addEventListener("pointerup", end);
  document.addEventListener("pointercancel", end);
});
document.addEventListener("dragstart", (e) => {
  if (e.target.closest?.("#editor .node")) e.preventDefault();
});

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
