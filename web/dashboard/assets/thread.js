// The visible conversation: its messages and the active run.

import { actions, changeable, editor, fate } from "./mine.js";
import { say } from "./words.js";

// plain shows characters that change the direction of writing by their number: with
// one, "gnp.exe" is read as "exe.png".
export const plain = (text) =>
  text.replace(/[\u202a-\u202e]/g, (c) => `[U+${c.charCodeAt(0).toString(16).toUpperCase()}]`);

const el = (name, className, text) => {
  const e = document.createElement(name);
  if (className) e.className = className;
  if (text !== undefined) e.textContent = plain(text);
  return e;
};

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });

// about is a link to what became of something.
function about(words, href) {
  const a = el("a", "about", words);
  a.href = href;
  return a;
}

const why = (ref) => about(say.trace, `/ui/why?${new URLSearchParams({ q: ref })}`);

// markdown shows text that the server made safe HTML of. The server allows a
// fixed list of tags and escapes everything else.
function markdown(target, html, text) {
  if (html === undefined) {
    target.textContent = plain(text);
    return;
  }
  target.innerHTML = plain(html);
  for (const pre of target.querySelectorAll("pre")) {
    const copy = el("button", "copy", say.copy);
    copy.type = "button";
    copy.addEventListener("click", async () => {
      const done = await navigator.clipboard?.writeText(pre.querySelector("code").textContent).then(() => true, () => false);
      copy.textContent = done ? say.copied : say.selectAndCopy;
      setTimeout(() => (copy.textContent = "Copy"), 1500);
    });
    pre.append(copy);
  }
}

export class Thread {
  constructor({ thread, live, scroll, down, empty, busy, edit, remove, left }) {
    Object.assign(this, { thread, live, scroll, down, empty });
    this.busy = busy; // told whether a run works
    Object.assign(this, { edit, remove, left }); // change a message by its id; left: the keyboard is free
    this.mine = new Map(); // id → what its person wrote, as the store has it
    this.seen = new Map(); // id → element
    this.done = new Set(); // runs that were answered
    this.asked = new Set(); // ids of the questions that have a form
    this.folded = new Set(); // runs whose tools stand in the thread
    this.stick = true;
    scroll.addEventListener("scroll", () => {
      this.stick = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 80;
      if (this.stick) down.hidden = true;
    });
    down.addEventListener("click", () => this.bottom(true));
    new ResizeObserver(() => this.stick && this.bottom()).observe(scroll);
    this.clear();
  }

  clear(conversation) {
    this.conversation = conversation;
    this.thread.replaceChildren();
    this.seen.clear();
    this.mine.clear();
    this.done.clear();
    this.asked.clear();
    this.folded.clear();
    this.stick = true;
    this.down.hidden = true;
    this.endRun();
    this.check();
  }

  check() {
    this.empty.hidden = this.seen.size > 0 || this.run !== null;
  }

  bottom(smooth) {
    this.stick = true;
    this.down.hidden = true;
    this.scroll.scrollTo({ top: this.scroll.scrollHeight, behavior: smooth ? "smooth" : "instant" });
  }

  // grown keeps the newest in view, or offers it to who reads further up.
  grown(isNew) {
    if (this.stick) this.bottom();
    else if (isNew) this.down.hidden = false;
  }

  // place puts an entry where its time belongs, with a line for a new day.
  place(entry, at) {
    entry.dataset.at = at;
    let before = null;
    for (let e = this.thread.lastElementChild; e && Number(e.dataset.at) > at; e = e.previousElementSibling) before = e;
    this.thread.insertBefore(entry, before);
    const date = new Date(at).toDateString();
    let prev = entry.previousElementSibling;
    if (prev?.className === "tools") prev = prev.previousElementSibling;
    if (!prev || (prev.className !== "day" && new Date(Number(prev.dataset.at)).toDateString() !== date)) {
      const line = el("div", "day", date === new Date().toDateString() ? say.today : day.format(at));
      line.dataset.at = at;
      this.thread.insertBefore(line, entry);
    }
    this.check();
  }

  // user shows what was typed, here or in another window, and how it was changed since.
  user(m, state) {
    const { id, at, type } = m;
    const known = this.seen.get(id);
    const was = this.mine.get(id);
    const age = (x) => x?.deleted ?? x?.edited ?? 0;
    if (known && (state || age(m) < age(was))) return; // a transcript from before the change
    this.mine.set(id, known ? { ...m, at: was.at } : m);
    if (known) {
      if (age(m) !== age(was)) this.written(known, m);
      this.note(id, "sent", { at });
      return;
    }
    const entry = el("article", type && type !== "user" ? "msg me command" : "msg me");
    entry.append(el("div", "meta"));
    this.written(entry, m);
    this.seen.set(id, entry);
    this.place(entry, at);
    this.note(id, state);
    this.grown(true);
  }

  // written shows the text and the files of a message of a person.
  written(entry, m) {
    const editing = entry.querySelector(".editing");
    if (editing && !m.deleted) return; // they are shown when it ends
    entry.toggleAttribute("data-deleted", Boolean(m.deleted));
    for (const old of entry.querySelectorAll(".bubble, .files, .editing")) old.remove();
    const meta = entry.querySelector(".meta");
    if (m.deleted) meta.before(el("div", "bubble", say.messageDeleted));
    if (m.text) meta.before(el("div", "bubble", m.text));
    if (m.files?.length) meta.before(this.files(m.files));
    if (editing) this.left();
  }

  // acts are the buttons of a person's message.
  acts(id, entry) {
    return actions(this.mine.get(id), { edit: () => this.rewrite(id), remove: async () => {
      if (await this.remove(id)) this.left();
      else entry.querySelector(".acts button:last-child")?.focus();
    } });
  }

  // rewrite lets a person edit a message in its place.
  rewrite(id) {
    const entry = this.seen.get(id);
    const bubble = entry.querySelector(".bubble");
    if (!bubble || entry.querySelector(".editing")) return;
    const { form, focus } = editor(this.mine.get(id).text, (text) => this.edit(id, text), () => {
      form.remove();
      this.written(entry, this.mine.get(id));
      this.left();
    });
    bubble.replaceWith(form);
    focus();
    form.scrollIntoView({ block: "nearest" });
  }

  // rewriteLast lets a person edit the newest message; false if there is none.
  rewriteLast() {
    const last = [...this.thread.querySelectorAll(".me")].findLast((e) => e.querySelector(".acts") && e.querySelector(".bubble"));
    const found = [...this.mine.keys()].find((id) => this.seen.get(id) === last && this.mine.get(id).text);
    if (found) this.rewrite(found);
    return Boolean(found);
  }

  // files are links to what came with a message.
  files(files) {
    const list = el("ul", "files");
    for (const { id, name } of files) {
      const a = el("a", "", name);
      a.href = `/chat/files/${encodeURIComponent(id)}?${new URLSearchParams({ conversation: this.conversation })}`;
      a.download = name;
      const li = el("li");
      li.append(a);
      list.append(li);
    }
    return list;
  }

  // note shows how far a message of this window has come.
  note(id, state, detail) {
    const entry = this.seen.get(id);
    if (!entry) return;
    if (state) entry.dataset.state = state;
    if (state === "sent" && detail?.at) entry.dataset.at = detail.at;
    const meta = entry.querySelector(".meta");
    const focused = meta.contains(document.activeElement) ? document.activeElement.textContent : "";
    const m = this.mine.get(id);
    const stored = !state || state === "sent";
    meta.textContent =
      state === "sending" ? say.sending
      : state === "waiting" ? say.notSentYet(detail)
      : state === "refused" ? say.notSent(detail)
      : [clock.format(Number(entry.dataset.at)), fate(m)].filter(Boolean).join(" · ");
    if (stored) meta.append(why(id));
    if (stored && changeable(m)) meta.append(this.acts(id, entry));
    if (focused) [...meta.querySelectorAll("a, button")].find((e) => e.textContent === focused)?.focus();
    this.grown();
  }

  // message shows what claybot said. A newer version of a text that is kept up
  // to date takes the place of the older one.
  message(m) {
    if (this.seen.has(m.id)) return;
    const replaces = m.replaces ?? [];
    const older = replaces.map((id) => this.seen.get(id)).find(Boolean);
    if (older) {
      for (const id of [m.id, ...replaces]) this.seen.set(id, older);
      if (Number(older.dataset.n) < m.n) this.fill(older, m, m.edited ?? m.at);
      this.grown();
      return;
    }
    if (m.run && m.kind === "answer" && !m.shown) { // the others come while it works
      this.done.add(m.run);
      if (m.run === this.run) this.endRun(m.at);
    }
    if (m.tools?.length && m.run !== this.run && !this.folded.has(m.run)) this.foldTools(m.run, m.tools.map((t) => this.used(t)), m.at);
    const entry = el("article", `msg bot ${m.kind}`);
    entry.append(el("div", "bubble"), el("div", "meta"));
    if (m.shown) entry.dataset.shown = m.shown;
    for (const id of [m.id, ...replaces]) this.seen.set(id, entry);
    this.fold(m.id, entry);
    this.place(entry, m.at);
    this.fill(entry, m, m.edited);
    this.grown(true);
  }

  // fill writes a version of a message into its place.
  fill(entry, { n, html, text, run, id, file }, edited) {
    entry.dataset.n = n;
    const bubble = entry.querySelector(".bubble");
    bubble.hidden = Boolean(file) && !text;
    markdown(bubble, html, text);
    entry.querySelector(".files")?.remove();
    if (file) bubble.after(this.files([file]));
    const at = clock.format(Number(entry.dataset.at));
    const meta = entry.querySelector(".meta");
    meta.textContent = edited ? say.updated(at, clock.format(edited)) : at;
    meta.append(run ? about("run", `/ui/runs/${encodeURIComponent(run)}`) : why(id));
  }

  // begin makes room for the run that works.
  begin(run) {
    if (this.run === run) return;
    this.endRun();
    this.run = run;
    this.tools = new Map();
    this.text = el("div", "bubble");
    this.step = 0;
    this.complete = 0; // the last step whose text is whole
    this.dots = el("div", "dots");
    this.dots.append(el("i"), el("i"), el("i"));
    this.dots.setAttribute("aria-label", say.working);
    this.live.replaceChildren(this.dots);
    this.live.hidden = false;
    this.dots.hidden = this.waits;
    this.busy(true);
    this.check();
  }

  preview({ run, step, html, text }) {
    if (this.done.has(run)) return;
    this.begin(run);
    if (step <= this.complete) return;
    this.write(step, html, text);
    this.text.classList.add("growing");
    this.dots.hidden = true;
    this.grown();
  }

  // write shows the text of a step; that of earlier ones stays above it.
  write(step, html, text) {
    if (step !== this.step || !this.text.isConnected) {
      this.text.className = "bubble thought";
      this.text = el("div", "bubble");
      this.step = step;
      this.live.insertBefore(this.text, this.dots);
    }
    markdown(this.text, html, text);
  }

  // completed shows the whole text of a step. That of the last one comes as the
  // message itself.
  completed(run, { step, text, calls }, html) {
    this.begin(run);
    this.complete = step;
    if (!text || !calls?.length) return;
    this.write(step, html, text);
    this.text.className = "bubble thought";
    this.dots.hidden = this.waits;
  }

  event({ type, runId, data, html, ts }) {
    if (type === "RunFinished" || type === "RunFailed" || type === "RunCanceled") {
      const wasLive = this.run === runId;
      if (type !== "RunFinished") this.done.add(runId);
      if (wasLive && type === "RunFinished") {
        this.busy(false); // the text stays until the message replaces it
        this.dots.hidden = true;
        setTimeout(() => this.run === runId && this.endRun(), 5000);
      } else if (wasLive) this.endRun(ts);
      return;
    }
    if (this.done.has(runId)) return;
    if (type === "RunStarted" || type === "RunResumed") this.begin(runId);
    if (type === "AssistantMessage") this.completed(runId, data, html);
    if (type === "ToolCalled") this.tool(runId, data, "running");
    if (type === "ToolSucceeded") this.tool(runId, data, "ok");
    if (type === "ToolFailed") this.tool(runId, data, "failed");
    this.grown();
  }

  get waits() {
    return this.asked.size > 0;
  }

  // pause is told the questions that have a form: while there is one the run
  // waits, and the message that asks the same is folded.
  pause(ids) {
    this.asked = new Set(ids);
    for (const [id, entry] of this.seen) this.fold(id, entry);
    if (!this.run) return;
    const waits = this.waits;
    const [from, to] = waits ? ["running", "waiting"] : ["waiting", "running"];
    for (const line of this.tools.values()) if (line.dataset.state === from) line.dataset.state = to;
    this.dots.hidden = waits;
  }

  // fold takes the message of a question together while a form asks the same.
  fold(id, entry) {
    const [kind, question] = id.split("/");
    if (kind !== "question") return;
    if (this.asked.has(question)) entry.dataset.asked = "true";
    else delete entry.dataset.asked;
  }

  tool(run, data, state) {
    this.begin(run);
    if (this.waits && state === "running") state = "waiting"; // it is told anew
    let line = this.tools.get(data.callId);
    if (!line) {
      line = this.toolLine(data);
      this.tools.set(data.callId, line);
      this.live.insertBefore(line, this.dots);
    }
    this.toolState(line, data, state);
    this.dots.hidden = this.waits;
  }

  // toolLine is the line of one call of a tool.
  toolLine(data) {
    const line = el("div", "tool");
    line.append(el("span", "mark"), el("span", "name", data.tool ?? "tool"), el("span", "args", data.tool === "ask_user" ? "" : data.argsPreview ?? ""), el("span", "ms"));
    line.querySelector(".mark").setAttribute("aria-hidden", "true");
    return line;
  }

  toolState(line, data, state) {
    line.dataset.state = state;
    if (data.ms !== undefined) line.querySelector(".ms").textContent = data.ms < 1000 ? `${data.ms} ms` : `${(data.ms / 1000).toFixed(1)} s`;
    if (state === "failed") line.title = data.error ?? say.toolFailed;
  }

  // used is the line of a call that the store knows.
  used(data) {
    const line = this.toolLine(data);
    this.toolState(line, data, data.ok ? "ok" : "failed");
    return line;
  }

  // foldTools puts the tools of a run into the thread.
  foldTools(run, lines, at) {
    this.folded.add(run);
    const fold = el("details", "tools");
    fold.append(el("summary", "", say.usedTools(lines.length)), ...lines);
    this.place(fold, at);
  }

  typing() {
    if (!this.run) this.begin("?");
    clearTimeout(this.quiet);
    this.quiet = setTimeout(() => this.run === "?" && this.endRun(), 8000);
  }

  // endRun takes the working run away; its tools stay, folded.
  endRun(at) {
    if (this.tools?.size && at !== undefined && !this.folded.has(this.run)) this.foldTools(this.run, [...this.tools.values()], at);
    this.run = null;
    this.tools = null;
    this.live.replaceChildren();
    this.live.hidden = true;
    this.busy(false);
    this.check();
  }
}
