// The chat page: one conversation at a time, named in the address after the #.

import { Outbox, Refusal, Stream, randomID, request, upload } from "./api.js";
import { forget, refresh, sure, toast } from "./dashboard.js";
import { Thread, plain } from "./thread.js";
import { say as texts } from "./words.js";

const $ = (id) => document.getElementById(id);
const text = $("text");

let conversation = "";
let stream = null;

// A run can be stopped when one is shown, or when the daemon knows of one: after
// its restart a run that waits for somebody is told of no more.
const works = { shown: false, known: false };

function stoppable(news) {
  Object.assign(works, news);
  $("stop").hidden = !works.shown && !works.known;
}

const thread = new Thread({
  thread: $("thread"), live: $("live"), scroll: $("scroll"), down: $("down"), empty: $("empty"),
  busy: (on) => stoppable({ shown: on }),
  edit: (id, words) => change(id, "PATCH", { id: editID(id, words), text: words }),
  remove: async (id) => (await sure(texts.removeSure, texts.removeYes)) && change(id, "DELETE"),
  left: () => text.focus(),
});

// change edits or deletes a message; false if that failed.
async function change(id, method, body) {
  const query = new URLSearchParams({ conversation });
  try {
    const m = await request(method, `/chat/messages/${id.split("/").at(-1)}?${query}`, body);
    if (query.get("conversation") === conversation) thread.user(m);
    return true;
  } catch (err) {
    toast(err instanceof Refusal ? err.message : texts.noConnectionTry, true);
    return false;
  }
}

// editID is the id of an edit. Where the same one is tried again, it is the same.
let tried = {};

function editID(of, words) {
  if (tried.of !== of || tried.words !== words) tried = { of, words, id: randomID() };
  return tried.id;
}

const messageID = (m) => `${$("talk").dataset.prefix}${m.conversation}/${m.id}`;

const outbox = new Outbox((m, state, detail) => {
  if (m.conversation === conversation) thread.note(messageID(m), state, detail);
  if (state === "sent") list();
});

function say(words, files = []) {
  const first = thread.seen.size === 0;
  const m = { id: randomID(), text: words, conversation, at: Date.now(), files };
  thread.user({ id: messageID(m), text: words, at: m.at, files }, "sending");
  thread.bottom();
  if (loaded === conversation && first) label(conversation, words || files[0].name);
  outbox.add(m);
}

// state shows whether the page hears from the daemon.
function state(s) {
  $("state").dataset.state = s;
  $("state").textContent = s === "live" ? texts.connected : texts.reconnecting;
}

// How many entries are shown at first, and how many at most: the page of the
// agent has all.
const few = 200;
const most = 500;
let loaded = ""; // the conversation that is shown from its beginning on

// merge shows what the store has; what is shown already stays.
async function merge(name, limit = few) {
  const t = await request("GET", `/chat/transcript?${new URLSearchParams({ conversation: name, limit })}`);
  if (name !== conversation) return null;
  for (const e of t.entries) {
    if (e.user) thread.user(e.user);
    if (e.message) thread.message(e.message);
  }
  if (!t.more) {
    loaded = name;
    const first = t.entries.find((e) => e.user?.type === "user" && e.user.text.trim());
    if (first) label(name, first.user.text);
  }
  older(t.more, limit);
  return t;
}

// older offers what came before the entries that are shown.
let shownLimit = few;

function older(more, limit) {
  if (limit < shownLimit) return; // the newest again, after a lost connection
  shownLimit = limit;
  const place = $("older");
  place.hidden = !more;
  if (!more) return;
  if (limit < most) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "button";
    button.textContent = texts.earlier;
    button.addEventListener("click", earlier);
    place.replaceChildren(button);
    return;
  }
  const link = document.createElement("a");
  link.textContent = texts.earlierThere;
  link.href = "/ui/agents";
  place.replaceChildren(link);
  toAgent();
}

// toAgent leads to the agent of the conversation, once it is known.
function toAgent() {
  const agent = $("talk-now")?.dataset.agent;
  const link = $("older").querySelector("a");
  if (agent && link) link.href = `/ui/agents/${encodeURIComponent(agent)}`;
}

// earlier shows more above what is read, which stays where it is.
async function earlier(e) {
  e.target.disabled = true;
  const scroll = $("scroll");
  const below = scroll.scrollHeight - scroll.scrollTop;
  thread.stick = false;
  try {
    await merge(conversation, most);
    scroll.scrollTop = scroll.scrollHeight - below;
  } catch (err) {
    toast(err.message, true);
    e.target.disabled = false;
  }
}

// show turns to a conversation: first what the store has, then the stream from
// there on.
async function show(name) {
  conversation = name;
  stream?.close();
  stream = null;
  thread.clear(name);
  loaded = "";
  shownLimit = few;
  $("older").hidden = true;
  stoppable({ known: false });
  unattach();
  titles();
  $("asks").replaceChildren();
  forget($("asks")); // news may have filled it before this script ran
  $("asks").dataset.live = `/ui/chats/questions?${new URLSearchParams({ conversation: name })}`;
  refresh();
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

// Names of conversations are the first words of each, kept in the browser. Those
// that it does not know it asks for.
const names = JSON.parse(localStorage.getItem("claybot.titles") ?? "{}");

function label(id, words) {
  if (names[id] || words.startsWith("/") || words.trim() === "") return;
  names[id] = [...words.trim().replace(/\s+/g, " ")].slice(0, 60).join("");
  localStorage.setItem("claybot.titles", JSON.stringify(names));
  titles();
}

const title = (id, at) =>
  names[id] ?? (id === "main" ? texts.mainConversation : at ? texts.conversationOf(at) : texts.newConversation);

let known = [];
const askedFor = new Set(); // conversations whose names were asked for

function titles() {
  $("title").textContent = plain(title(conversation));
  document.title = `${plain(title(conversation))} · claybot`;
  const rows = known.some((c) => c.id === conversation) ? known : [{ id: conversation }, ...known];
  $("list").replaceChildren(...rows.map(({ id, at }) => {
    const a = document.createElement("a");
    a.href = `#${id}`;
    a.textContent = plain(title(id, at));
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
    const unnamed = known.map((c) => c.id).filter((id) => !names[id] && !askedFor.has(id)).slice(0, 30);
    if (unnamed.length === 0) return;
    for (const id of unnamed) askedFor.add(id);
    const answer = await request("GET", `/ui/chats/titles?${new URLSearchParams(unnamed.map((id) => ["conversation", id]))}`);
    for (const [id, words] of Object.entries(answer.titles)) label(id, words);
  } catch {
    // the connection's state is shown elsewhere
  }
}

function fit() {
  text.style.height = "auto";
  text.style.height = `${Math.min(text.scrollHeight, 200)}px`;
  $("send").disabled = uploads > 0 || (text.value.trim() === "" && attached.length === 0);
}

// ---- files that go with the next message ----

let attached = []; // {id, name, size}
let uploads = 0; // under way

function chips() {
  $("files").hidden = attached.length === 0 && uploads === 0;
  $("files").replaceChildren(...attached.map((f) => {
    const li = document.createElement("li");
    const drop = document.createElement("button");
    drop.type = "button";
    drop.textContent = "✕";
    drop.setAttribute("aria-label", texts.removeFile(f.name));
    drop.addEventListener("click", () => {
      attached = attached.filter((other) => other !== f);
      chips();
      text.focus();
    });
    li.append(f.name, drop);
    return li;
  }));
  if (uploads > 0) {
    const li = document.createElement("li");
    li.textContent = "sending…";
    $("files").append(li);
  }
  fit();
}

function unattach() {
  attached = [];
  chips();
}

// attach sends files ahead of the message that they belong to.
async function attach(files) {
  const name = conversation;
  for (const file of files) {
    uploads++;
    chips();
    try {
      const kept = await upload(name, file);
      if (name === conversation) attached.push(kept);
    } catch (err) {
      toast(`${file.name}: ${err.message}`, true);
    }
    uploads--;
    chips();
  }
}

$("choose").addEventListener("click", () => $("file").click());
$("file").addEventListener("change", () => {
  attach([...$("file").files]);
  $("file").value = "";
  text.focus();
});
text.addEventListener("paste", (e) => {
  if (e.clipboardData.files.length === 0) return;
  e.preventDefault();
  attach([...e.clipboardData.files]);
});
for (const kind of ["dragover", "drop"]) {
  $("talk").addEventListener(kind, (e) => {
    if (!e.dataTransfer.types.includes("Files")) return;
    e.preventDefault();
    if (kind === "drop") attach([...e.dataTransfer.files]);
  });
}

function submit() {
  const words = text.value.replace(/^\n+|\s+$/g, "");
  if (uploads > 0 || (words === "" && attached.length === 0)) return;
  const files = attached;
  text.value = "";
  unattach();
  say(words, files);
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
  } else if (e.key === "ArrowUp" && text.value === "" && thread.rewriteLast()) e.preventDefault();
});
$("form").addEventListener("submit", (e) => {
  e.preventDefault();
  submit();
  text.focus();
});
$("stop").addEventListener("click", () => say("/stop"));
document.addEventListener("keydown", (e) => {
  if (e.key !== "Escape" || document.querySelector("dialog[open]")) return;
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
$("empty").addEventListener("click", (e) => e.target.dataset.say && say(e.target.dataset.say));
$("over")?.addEventListener("click", async () => {
  if (await sure(texts.forget, texts.newConversation)) say("/new");
  text.focus();
});
// A question that comes is brought into view, as a message is.
$("asks").addEventListener("fresh", () => {
  const now = $("talk-now");
  thread.pause([...$("asks").querySelectorAll("form.question")].map((f) => f.id.slice("question-".length)));
  stoppable({ known: now?.dataset.busy === "true" });
  toAgent();
  thread.grown();
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
