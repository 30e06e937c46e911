// What all pages share: times in the reader's zone, toasts, confirmations, the theme,
// and fragments that update without a reload.

import { merge } from "./merge.js";
import { say } from "./words.js";

const $ = (id) => document.getElementById(id);

// ---- times ----

const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const dated = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
const units = [["minute", 60], ["hour", 3600], ["day", 86400]];

function ago(ms) {
  const s = (ms - Date.now()) / 1000;
  const far = Math.abs(s);
  if (far < 45) return s <= 0 ? say.justNow : say.soon;
  if (far > 6 * 86400) return day.format(ms);
  const [unit, size] = units.findLast(([, size]) => far >= size * 0.75) ?? units[0];
  return relative.format(Math.round(s / size), unit);
}

// since is how long something has been going on.
function since(ms) {
  const s = Math.max(0, Math.round((Date.now() - ms) / 1000));
  if (s < 60) return `${s} s`;
  return s < 3600 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
}

// clockOf is a time of day, with its date unless it is today.
const clockOf = (ms) => (new Date(ms).toDateString() === new Date().toDateString() ? clock : dated).format(ms);

// times writes the times below an element for the reader.
export function times(root = document) {
  for (const t of root.querySelectorAll("time[datetime]")) {
    const ms = Date.parse(t.dateTime);
    if (Number.isNaN(ms)) continue;
    const said = t.dataset.form === "since" ? since(ms) : t.dataset.form === "clock" ? clockOf(ms) : t.dataset.form === "day" ? day.format(ms) : ago(ms);
    if (t.textContent !== said) t.textContent = said;
    t.title ||= full.format(ms);
  }
}

// ---- toasts ----

export function toast(words, bad = false) {
  const box = document.createElement("div");
  box.className = bad ? "toast bad" : "toast";
  box.textContent = words;
  const close = document.createElement("button");
  close.type = "button";
  close.textContent = "✕";
  close.setAttribute("aria-label", say.close);
  close.addEventListener("click", () => box.remove());
  box.append(close);
  $("toasts").append(box);
  while ($("toasts").children.length > 3) $("toasts").firstElementChild.remove();
  setTimeout(() => box.remove(), bad ? 12_000 : 5_000);
}

// reason is the message of an error response.
export function reason(status, body) {
  if (status === 0) return say.offline;
  try {
    const { message, fix } = JSON.parse(body).error;
    return fix ? `${message} ${fix}` : message;
  } catch {
    return say.failed(status);
  }
}

export const toLogin = () => (location.href = "/login");

// ---- what htmx does ----

const noted = (e) => toast(e.detail.value ?? String(e.detail));
document.addEventListener("toast", noted);

// blame shows what is wrong with single fields of a form at each of them, and
// goes to the first; false when there is none.
function blame(form, body) {
  let faults;
  try {
    faults = JSON.parse(body).error.fields;
  } catch {
    return false;
  }
  const bad = [...form.elements].filter((f) => f.name && faults?.[f.name] && f.type !== "hidden");
  const told = new Set();
  for (const field of bad) {
    field.setAttribute("aria-invalid", "true");
    if (told.has(field.name)) continue;
    told.add(field.name);
    const p = document.createElement("p");
    p.className = "wrong";
    p.dataset.fault = field.name;
    p.id = `fault-${field.name}`;
    p.textContent = faults[field.name];
    (field.closest(".field") ?? field.parentElement).append(p);
  }
  bad[0]?.focus();
  return bad.length > 0;
}

function failed(e) {
  const { xhr, elt } = e.detail;
  if (xhr?.status === 401) return toLogin();
  const words = reason(xhr?.status ?? 0, xhr?.responseText ?? "");
  const place = elt?.closest?.("form")?.querySelector("[data-error]");
  if (!place) return toast(words, true);
  place.textContent = words;
  place.hidden = false;
  if (blame(elt.closest("form"), xhr?.responseText ?? "")) return;
  const field = elt.closest("form").querySelector("input:not([type=hidden]), select, textarea");
  field?.setAttribute("aria-invalid", "true");
}
const faults = ["htmx:responseError", "htmx:sendError", "htmx:timeout"];
for (const name of faults) document.addEventListener(name, failed);

// What came of a button is told also when news has taken the button off the page
// before its answer is there: nothing bubbles from it to the document then.
const heard = new WeakSet();
function hear(elt) {
  if (heard.has(elt)) return;
  heard.add(elt);
  const alone = (tell) => (e) => {
    if (e.target === elt && !elt.isConnected) tell(e);
  };
  elt.addEventListener("toast", alone(noted));
  for (const name of faults) elt.addEventListener(name, alone(gone));
}

// gone tells why a button that is off the page failed: its form is no place for it.
function gone(e) {
  const { xhr } = e.detail;
  if (xhr?.status === 401) return toLogin();
  toast(reason(xhr?.status ?? 0, xhr?.responseText ?? ""), true);
}

// carry has the next page say what the answer says, which this page has no time for.
function carry(xhr) {
  try {
    sessionStorage.setItem("said", JSON.parse(xhr.getResponseHeader("HX-Trigger")).toast);
  } catch {} // it says nothing, or the browser keeps nothing
}

try {
  const said = sessionStorage.getItem("said");
  sessionStorage.removeItem("said");
  if (said) toast(said);
} catch {} // the browser keeps nothing

document.addEventListener("htmx:beforeRequest", (e) => {
  if (e.detail.requestConfig?.verb !== "get") hear(e.detail.elt);
  const form = e.detail.elt.closest?.("form");
  const place = form?.querySelector("[data-error]");
  if (place) place.hidden = true;
  for (const p of form?.querySelectorAll("[data-fault]") ?? []) p.remove();
  for (const field of form?.querySelectorAll("[aria-invalid]") ?? []) field.removeAttribute("aria-invalid");
});
document.addEventListener("htmx:afterRequest", (e) => {
  const { elt, successful, requestConfig } = e.detail;
  if (!successful || requestConfig?.verb === "get" || "asks" in elt.dataset) return; // what only asks leaves its form to the reader
  const form = elt.closest?.("form");
  if (form) {
    delete form.dataset.dirty;
    form.dataset.settled = "true";
  }
  if (elt.dataset.then) {
    carry(e.detail.xhr);
    location.href = elt.dataset.then;
  }
  else refresh();
});
document.addEventListener("htmx:afterSwap", (e) => times(e.detail.target?.parentElement ?? document));

let asked = 0;

// sure asks before what cannot be undone, in a dialog that the keyboard reaches.
export function sure(words, yes = "Yes") {
  const mine = ++asked;
  const dialog = $("confirm");
  $("confirm-words").textContent = words;
  $("confirm-yes").textContent = yes;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((done) => {
    const closed = () => {
      if (mine === asked && dialog.open) return; // late news of the question before
      dialog.removeEventListener("close", closed);
      done(mine === asked && dialog.returnValue === "yes");
    };
    dialog.addEventListener("close", closed);
  });
}

document.addEventListener("htmx:confirm", async (e) => {
  if (!e.detail.question) return;
  e.preventDefault();
  if (await sure(e.detail.question, e.detail.elt.dataset.yes)) e.detail.issueRequest(true);
});

// ---- forms that were edited are not overwritten ----

for (const kind of ["input", "change"]) {
  document.addEventListener(kind, (e) => {
    const form = e.target.closest("form");
    if (!form || form.matches("[role=search], [data-clean]")) return;
    form.dataset.dirty = "true";
    delete form.dataset.settled;
  });
}
document.addEventListener("reset", (e) => delete e.target.dataset.dirty);

// ---- live ----

const etags = new WeakMap();

// forget has a part fetched whole the next time: what it showed was taken off the page.
export const forget = (place) => etags.delete(place);

async function fetchPart(place) {
  const url = place.dataset.live;
  if (!url.startsWith("/ui/")) return; // parts come from our own pages only
  const head = { Accept: "text/html" };
  const seen = etags.get(place);
  if (seen?.url === url) head["If-None-Match"] = seen.etag;
  const answer = await fetch(url, { headers: head, cache: "no-store" });
  if (answer.status === 401) return toLogin();
  if (answer.status === 304 || !answer.ok || !place.isConnected || place.dataset.live !== url) return;
  etags.set(place, { url, etag: answer.headers.get("ETag") });
  const html = await answer.text();
  const inside = place.contains(document.activeElement);
  merge(place, html);
  // Who was in a form that is gone goes on where there is something to do.
  if (inside && document.activeElement === document.body) ($("text") ?? $("main")).focus({ preventScroll: true });
  times(place);
  globalThis.htmx?.process(place);
  place.dispatchEvent(new CustomEvent("fresh", { bubbles: true }));
}

let refreshing = null;
let again = false;

// refresh fetches what may have changed; calls that come meanwhile are one more.
export function refresh() {
  if (refreshing) {
    again = true;
    return refreshing;
  }
  refreshing = (async () => {
    do {
      again = false;
      await Promise.all([...document.querySelectorAll("[data-live]")].map((p) => fetchPart(p).catch(() => {})));
    } while (again);
    refreshing = null;
  })();
  return refreshing;
}

const live = { source: null, wait: 500, timer: 0, lost: 0 };

function connection(ok) {
  document.body.dataset.connection = ok ? "on" : "off";
  if (ok) {
    clearTimeout(live.lost);
    live.lost = 0;
    $("lost").hidden = true;
    return;
  }
  live.lost ||= setTimeout(() => { // a blink is not worth words
    $("lost").textContent = say.lost;
    $("lost").hidden = false;
  }, 1500);
}

function listen() {
  clearTimeout(live.timer);
  live.source?.close();
  const source = new EventSource("/ui/live");
  live.source = source;
  source.addEventListener("open", () => {
    live.wait = 500;
    connection(true);
  });
  source.addEventListener("changed", () => refresh());
  source.addEventListener("error", () => {
    connection(false);
    if (source.readyState !== EventSource.CLOSED) return; // the browser comes back itself
    live.timer = setTimeout(async () => {
      const answer = await fetch("/session").catch(() => null);
      if (answer?.status === 401) return toLogin();
      if (live.source === source) listen();
    }, live.wait);
    live.wait = Math.min(live.wait * 2, 15_000);
  });
}

function pause() {
  clearTimeout(live.timer);
  clearTimeout(live.lost);
  live.lost = 0;
  live.source?.close();
  live.source = null;
}

// A hidden page asks for nothing and gives its connection back.
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "hidden") pause();
  else if (!live.source) listen();
});
addEventListener("pagehide", pause);
addEventListener("pageshow", (e) => e.persisted && listen());

// ---- the frame ----

const showLook = () => ($("theme-now").textContent = say.looks[document.documentElement.dataset.look ?? ""]);
$("theme").addEventListener("click", () => {
  const order = Object.keys(say.looks);
  const next = order[(order.indexOf(document.documentElement.dataset.look ?? "") + 1) % order.length];
  if (next) document.documentElement.dataset.look = next;
  else delete document.documentElement.dataset.look;
  if (next) localStorage.setItem("claybot.look", next);
  else localStorage.removeItem("claybot.look");
  showLook();
});
showLook();

$("logout").addEventListener("click", async () => {
  await fetch("/logout", { method: "POST" }).catch(() => {});
  toLogin();
});

function more(open) {
  document.body.classList.toggle("more-open", open);
  $("more").setAttribute("aria-expanded", String(open));
}
$("more").addEventListener("click", () => more(!document.body.classList.contains("more-open")));
document.addEventListener("keydown", (e) => {
  if (e.key === "Escape" && document.body.classList.contains("more-open")) {
    more(false);
    $("more").focus();
  }
  // "/" goes to the search box, as in many tools.
  if (e.key === "/" && !e.ctrlKey && !e.metaKey && !e.altKey && !e.target.closest("input, textarea, select, [contenteditable]")) {
    e.preventDefault();
    $("why").focus();
  }
});
document.addEventListener("click", (e) => {
  if (document.body.classList.contains("more-open") && !e.target.closest(".places")) more(false);
});

times();
setInterval(() => document.visibilityState === "visible" && times(), 15_000);
setInterval(() => { // what goes on is counted by the second
  if (document.visibilityState !== "visible") return;
  for (const t of document.querySelectorAll('time[data-form="since"]')) t.textContent = since(Date.parse(t.dateTime));
}, 1000);
if (document.visibilityState !== "hidden") listen();
fetch("/session").then((a) => a.status === 401 && toLogin()).catch(() => {}); // renews an old session, too
