// The timeline of a run while it goes on: events are fetched as they come, in
// order, and the text of the step that is being written grows.

import { refresh, times, toLogin } from "./dashboard.js";
import { morph } from "./merge.js";

const list = document.getElementById("timeline");
const growing = document.getElementById("growing");
const base = `/ui/runs/${encodeURIComponent(list.dataset.run)}`;
let last = Number(list.dataset.last);
let fetching = null;
let wanted = 0;

// place puts an item where its seq belongs, or renews the one that is there.
function place(item) {
  const known = document.getElementById(item.id);
  if (known) return morph(known, item);
  const seq = Number(item.dataset.seq);
  let before = null;
  for (let e = list.lastElementChild; e && Number(e.dataset.seq) > seq; e = e.previousElementSibling) before = e;
  list.insertBefore(document.importNode(item, true), before);
}

// more fetches what is new until nothing is.
async function more() {
  const bottom = innerHeight + scrollY >= document.documentElement.scrollHeight - 120;
  const answer = await fetch(`${base}/events?after=${last}`, { cache: "no-store" });
  if (answer.status === 401) return toLogin();
  if (!answer.ok) return;
  const parsed = document.createElement("template");
  parsed.innerHTML = await answer.text(); // made by our own templates
  const items = parsed.content.querySelectorAll("li.item");
  if (items.length === 0) return;
  for (const item of items) place(item);
  last = Math.max(last, ...[...items].map((i) => Number(i.dataset.last)));
  document.getElementById("nothing")?.remove();
  times(list);
  if (bottom) scrollTo({ top: document.documentElement.scrollHeight });
}

async function fresh(seq) {
  wanted = Math.max(wanted, seq);
  if (fetching) return;
  fetching = true;
  try {
    for (let before = -1; last < wanted && last !== before; ) {
      before = last;
      await more();
    }
  } catch {
    // the next event, or the next look, tries again
  } finally {
    fetching = null;
  }
}

// ---- the text that grows ----

const text = { step: 0, attempt: 0, whole: "" };

function grow(d) {
  if (d.step < text.step || (d.step === text.step && d.attempt < text.attempt)) return;
  if (d.step !== text.step || d.attempt !== text.attempt) Object.assign(text, { step: d.step, attempt: d.attempt, whole: new Uint8Array() });
  const piece = new TextEncoder().encode(d.text); // offsets count bytes
  if (d.offset > text.whole.length) return; // a piece is missing: the next one has it, or the event does
  const joined = new Uint8Array(d.offset + piece.length);
  joined.set(text.whole.subarray(0, d.offset));
  joined.set(piece, d.offset);
  text.whole = joined;
  document.getElementById("growing-step").textContent = d.step;
  document.getElementById("growing-text").textContent = new TextDecoder().decode(joined);
  growing.hidden = false;
}

function grown(step) {
  if (step < text.step) return;
  growing.hidden = true;
  Object.assign(text, { step: step + 1, attempt: 0, whole: new Uint8Array() });
}

// ---- the stream ----

const ends = new Set(["RunFinished", "RunFailed", "RunCanceled"]);
let source = null;
let wait = 500;
let ended = false;

function watch() {
  if (ended || source) return;
  source = new EventSource(`/agents/runs/${encodeURIComponent(list.dataset.run)}/stream?fromSeq=${last}`);
  source.addEventListener("open", () => (wait = 500));
  source.addEventListener("TokenDelta", (e) => grow(JSON.parse(e.data).data ?? JSON.parse(e.data)));
  for (const kind of list.dataset.kinds.split(" ")) {
    source.addEventListener(kind, (e) => {
      const event = JSON.parse(e.data);
      if (kind === "AssistantMessage") grown(event.data?.step ?? text.step);
      if (ends.has(kind)) end();
      fresh(event.seq);
    });
  }
  source.addEventListener("error", () => {
    if (source?.readyState !== EventSource.CLOSED) return; // the browser comes back itself
    source = null;
    setTimeout(watch, wait);
    wait = Math.min(wait * 2, 15_000);
  });
}

function end() {
  ended = true;
  growing.hidden = true;
  source?.close();
  source = null;
  refresh();
}

function rest() {
  source?.close();
  source = null;
}

if (list.dataset.liveRun === "true") {
  watch();
  document.addEventListener("visibilitychange", () => (document.visibilityState === "hidden" ? rest() : watch()));
  addEventListener("pagehide", rest);
  // The stream may be late or refused; what the page is told elsewhere counts, too.
  document.addEventListener("fresh", (e) => {
    const top = e.target.querySelector?.("[data-seqs]");
    if (top) fresh(Number(top.dataset.seqs));
  });
}
