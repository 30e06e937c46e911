// The page: one conversation at a time, named in the address after the #.

import { Outbox, Stream, randomID, request } from "./api.js";
import { Thread } from "./thread.js";
import * as people from "./people.js";

const $ = (id) => document.getElementById(id);
const text = $("text");

let conversation = "";
let stream = null;

const thread = new Thread({
  thread: $("thread"), live: $("live"), scroll: $("scroll"), down: $("down"), empty: $("empty"),
  busy: (on) => ($("stop").hidden = !on),
});

const messageID = (m) => `web/${m.conversation}/${m.id}`;

const outbox = new Outbox((m, state, detail) => {
  if (m.conversation === conversation) thread.note(messageID(m), state, detail);
  if (state === "sent") list();
});

function say(words) {
  const m = { id: randomID(), text: words, conversation, at: Date.now() };
  thread.user({ id: messageID(m), text: words, at: m.at }, "sending");
  thread.bottom();
  label(conversation, words);
  outbox.add(m);
}

// state shows whether the page hears from the daemon.
function state(s) {
  $("state").dataset.state = s;
  $("state").textContent = s === "live" ? "connected" : "reconnecting…";
}

// merge shows what the store has; what is shown already stays.
async function merge(name) {
  const t = await request("GET", `/chat/transcript?${new URLSearchParams({ conversation: name, limit: 200 })}`);
  if (name !== conversation) return null;
  for (const e of t.entries) {
    if (e.user) {
      thread.user(e.user);
      if (e.user.type === "user") label(name, e.user.text);
    }
    if (e.message) thread.message(e.message);
  }
  return t;
}

// show turns to a conversation: first what the store has, then the stream from
// there on.
async function show(name) {
  conversation = name;
  stream?.close();
  stream = null;
  thread.clear();
  titles();
  for (let wait = 500; name === conversation; wait = Math.min(wait * 2, 10_000)) {
    try {
      const t = await merge(name);
      if (!t) return;
      for (const m of outbox.of(name)) thread.user({ ...m, id: messageID(m) }, "sending");
      thread.bottom();
      connect(name, t.after);
      return;
    } catch {
      state("wait");
      await new Promise((done) => setTimeout(done, wait));
    }
  }
}

function connect(name, after) {
  stream = new Stream(name, after, {
    state,
    open: (again) => {
      thread.endRun(); // a run that still works is told anew
      if (again) merge(name).catch(() => {});
    },
    message: (m) => thread.message(m),
    user: (u) => thread.user(u),
    preview: (p) => thread.preview(p),
    event: (e) => thread.event(e),
    typing: () => thread.typing(),
  });
}

// A hidden page gives its connection back; browsers allow few of them.
let hidden = 0;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hidden);
  if (document.visibilityState === "hidden") {
    hidden = setTimeout(() => {
      stream?.close();
      stream = null;
    }, 60_000);
  } else if (!stream && conversation) show(conversation);
});

// Names of conversations are the first words of each, kept in the browser.
const names = JSON.parse(localStorage.getItem("claybot.names") ?? "{}");

function label(id, words) {
  if (names[id] || words.startsWith("/")) return;
  names[id] = words.trim().replace(/\s+/g, " ").slice(0, 60);
  localStorage.setItem("claybot.names", JSON.stringify(names));
  titles();
}

const title = (id, at) =>
  names[id] ?? (id === "main" ? "Main conversation" : at ? `Conversation of ${new Date(at).toLocaleDateString()}` : "New conversation");

let known = [];

function titles() {
  $("title").textContent = title(conversation);
  document.title = `${title(conversation)} · claybot`;
  const rows = known.some((c) => c.id === conversation) ? known : [{ id: conversation }, ...known];
  $("list").replaceChildren(...rows.map(({ id, at }) => {
    const a = document.createElement("a");
    a.href = `#${id}`;
    a.textContent = title(id, at);
    if (id === conversation) a.setAttribute("aria-current", "page");
    const li = document.createElement("li");
    li.append(a);
    return li;
  }));
}

async function list() {
  try {
    known = (await request("GET", "/conversations")).conversations;
    titles();
  } catch {
    // the connection's state is shown elsewhere
  }
}

function fit() {
  text.style.height = "auto";
  text.style.height = `${Math.min(text.scrollHeight, 200)}px`;
  $("send").disabled = text.value.trim() === "";
}

function submit() {
  const words = text.value.replace(/^\n+|\s+$/g, "");
  if (words === "") return;
  text.value = "";
  fit();
  say(words);
}

function menu(open) {
  document.body.classList.toggle("open", open);
  $("veil").hidden = !open;
  $("menu").setAttribute("aria-expanded", open);
}

text.addEventListener("input", fit);
text.addEventListener("keydown", (e) => {
  if (e.key === "Enter" && !e.shiftKey && !e.isComposing) {
    e.preventDefault();
    submit();
  }
});
$("form").addEventListener("submit", (e) => {
  e.preventDefault();
  submit();
  text.focus();
});
$("stop").addEventListener("click", () => say("/stop"));
document.addEventListener("keydown", (e) => {
  if (e.key !== "Escape" || $("panel").open) return;
  if (document.body.classList.contains("open")) menu(false);
  else if (!$("stop").hidden) say("/stop");
});
$("new").addEventListener("click", () => {
  location.hash = randomID();
  menu(false);
  text.focus();
});
$("menu").addEventListener("click", () => menu(!document.body.classList.contains("open")));
$("veil").addEventListener("click", () => menu(false));
$("list").addEventListener("click", () => menu(false));
$("people").addEventListener("click", () => menu(false));
$("empty").addEventListener("click", (e) => e.target.dataset.say && say(e.target.dataset.say));
$("logout").addEventListener("click", async () => {
  await request("POST", "/logout").catch(() => {});
  location.href = "/login";
});
window.addEventListener("hashchange", () => show(current()));

function current() {
  const id = location.hash.slice(1);
  return /^[A-Za-z0-9_-]{1,64}$/.test(id) ? id : "main";
}

fit();
list();
show(current());
outbox.run();
people.start();
