// The states of nodes are not stored, so no note comes when they change: this page looks by itself,
// as that of health does.

import "./health.js";

// The arrow keys go from node to node: to the nearest in the column, or in the next column.
const steps = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };

function middle(el) {
  const box = el.getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2];
}

document.getElementById("map")?.addEventListener("keydown", (e) => {
  const step = steps[e.key];
  if (!step || e.ctrlKey || e.metaKey || e.altKey) return;
  const all = [...e.currentTarget.querySelectorAll("a")];
  const from = e.target.closest("a");
  if (!from) {
    if (e.key !== "ArrowRight" || !all.length) return; // the others scroll
    e.preventDefault();
    return all[0].focus();
  }
  e.preventDefault();
  const [x, y] = middle(from);
  const far = (el) => { // none for those that lie elsewhere
    const [dx, dy] = [middle(el)[0] - x, middle(el)[1] - y];
    const along = dx * step[0] + dy * step[1];
    const aside = Math.abs(step[0] ? dy : dx);
    return along < 2 || (step[1] && aside > 2) ? Infinity : along * (step[0] ? 10 : 1) + aside;
  };
  const to = all.reduce((best, el) => (far(el) < far(best) ? el : best), from);
  if (to !== from && far(to) < Infinity) to.focus();
});
