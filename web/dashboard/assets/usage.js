// The charts of the usage page, drawn with uPlot from /ui/usage/data. The tables on
// the page have the same values.

import { reason, toLogin } from "./dashboard.js";
import { say } from "./words.js";

const $ = (id) => document.getElementById(id);
const uPlot = globalThis.uPlot;
const charts = $("charts");
let data = null;
let plots = [];

// colour resolves a name of the style sheet to what a canvas understands.
function colour(name) {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  charts.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

const money = (v) => (v === null ? "–" : v !== 0 && v < 0.01 ? `$${v.toFixed(4)}` : `$${v.toFixed(2)}`);
const compact = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });
const count = (v) => (v === null ? "–" : compact.format(v));
function took(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

const seconds = () => data.days.map((d) => Date.parse(`${d}T00:00:00Z`) / 1000);
const zone = (ts) => uPlot.tzDate(new Date(ts * 1000), "Etc/UTC");
// bars stand on their day, two of them side by side.
const bars = {
  alone: uPlot.paths.bars({ size: [0.7, 40], align: 0, radius: 0.15 }),
  left: uPlot.paths.bars({ size: [0.36, 24], align: -1, radius: 0.15 }),
  right: uPlot.paths.bars({ size: [0.36, 24], align: 1, radius: 0.15 }),
};

function draw(place, series, values, say) {
  const box = $(place);
  const dim = colour("--dim");
  const line = colour("--line");
  const top = Math.max(0, ...values.flat().filter((v) => v !== null));
  const axis = { stroke: dim, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: "12px system-ui, sans-serif" };
  const plot = new uPlot({
    width: Math.max(box.clientWidth, 200),
    height: 190,
    tzDate: zone,
    cursor: { points: { size: 7 }, drag: { x: false, y: false } },
    legend: { live: true },
    hooks: { setLegend: [latest] },
    scales: { x: { range: (_, min, max) => [min - 43_200, max + 43_200] }, y: { range: [0, top > 0 ? top * 1.08 : 1] } },
    axes: [
      { ...axis, grid: { show: false }, values: (_, ticks) => ticks.map((t) => new Date(t * 1000).toLocaleDateString(undefined, { day: "numeric", month: "short", timeZone: "UTC" })), incrs: [1, 2, 3, 7, 14, 28].map((d) => d * 86_400), space: 64 },
      { ...axis, size: 64, values: (_, ticks) => ticks.map(say) },
    ],
    series: [
      { label: say.day, value: (_, t) => (t === null ? "–" : new Date(t * 1000).toISOString().slice(0, 10)) },
      ...series.map((s) => ({ width: 2, ...s, spanGaps: false, value: (_, v) => say(v) })),
    ],
  }, [seconds(), ...values], box);
  plots.push({ plot, box });
  latest(plot);
}

// latest shows the figures of the last day that has any while no day is pointed
// at.
function latest(plot) {
  if (plot.legend.idx !== null && plot.legend.idx !== undefined) return;
  const last = plot.data[0].findLastIndex((_, i) => plot.data.some((values, s) => s > 0 && values[i]));
  if (last >= 0) plot.setLegend({ idx: last }, false);
}

// bar and line give a series its look.
const bar = (label, name, paths = bars.alone) => ({ label, stroke: colour(name), fill: colour(name), width: 0, paths, points: { show: false } });
const line = (label, name) => ({ label, stroke: colour(name), points: { show: true, size: 6, fill: colour(name) } });

function note(place, words) {
  const p = document.createElement("p");
  p.className = "dim nothing";
  p.textContent = words;
  $(place).append(p);
}

function summed(values) {
  return values.reduce((sum, v) => sum + v, 0);
}

function show() {
  for (const { plot } of plots) plot.destroy();
  plots = [];
  for (const id of ["plot-cost", "plot-tokens", "plot-took"]) $(id).replaceChildren();

  const unpriced = summed(data.unpriced);
  if (summed(data.cost) > 0) {
    draw("plot-cost", [bar(say.cost, "--accent")], [data.cost], money);
    if (unpriced) note("plot-cost", say.unpriced(count(unpriced)));
  } else {
    note("plot-cost", unpriced ? say.onlyUnpriced(count(unpriced)) : say.nothingSpent);
  }

  if (summed(data.input) + summed(data.output) > 0) {
    draw("plot-tokens", [bar(say.input, "--accent", bars.left), bar(say.output, "--good", bars.right)], [data.input, data.output], count);
  } else {
    note("plot-tokens", say.noUsage);
  }

  const choice = $("took-what");
  const before = choice.value;
  choice.replaceChildren(...data.durations.map((d) => new Option(d.name, d.what, false, d.what === before)));
  choice.hidden = data.durations.length === 0;
  const chosen = data.durations.find((d) => d.what === choice.value) ?? data.durations[0];
  if (chosen) {
    draw("plot-took", [line("p50", "--good"), line("p90", "--warn"), line("p99", "--bad")], [chosen.p50, chosen.p90, chosen.p99], took);
  } else {
    note("plot-took", say.noDurations);
  }
  charts.dataset.drawn = "true";
}

async function load() {
  let answer;
  try {
    answer = await fetch(charts.dataset.source, { cache: "no-store" });
  } catch {
    return; // the frame says that the connection is lost
  }
  if (answer.status === 401) return toLogin();
  const text = await answer.text();
  if (!answer.ok) {
    for (const id of ["plot-cost", "plot-tokens", "plot-took"]) {
      $(id).replaceChildren();
      note(id, reason(answer.status, text));
    }
    return;
  }
  const fresh = JSON.stringify(data) !== text.trim();
  data = JSON.parse(text);
  if (fresh) show();
}

$("took-what").addEventListener("change", () => data && show());
document.addEventListener("fresh", (e) => e.target.id === "usage-now" && load());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => data && show());
new MutationObserver(() => data && show()).observe(document.documentElement, { attributeFilter: ["data-look"] });
new ResizeObserver(() => {
  for (const { plot, box } of plots) {
    const width = Math.max(box.clientWidth, 200);
    if (width !== plot.width) plot.setSize({ width, height: plot.height });
  }
}).observe(charts);

load();
