// Requests, the event stream, and the outbox of messages.

import { say } from "./words.js";

export class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// request asks for JSON. A lost login leads to the login page.
export async function request(method, path, body) {
  const init = { method };
  if (body !== undefined) {
    init.headers = { "Content-Type": "application/json" };
    init.body = JSON.stringify(body);
  }
  const answer = await fetch(path, init);
  if (answer.status === 401) {
    location.href = "/login";
    throw new Refusal(401, say.login);
  }
  if (answer.status === 204) return null;
  const value = await answer.json().catch(() => null);
  if (!answer.ok) throw new Refusal(answer.status, value?.error?.message ?? say.answered(answer.status));
  return value;
}

// upload keeps a file for a message that is still to come.
export async function upload(conversation, file) {
  const answer = await fetch(`/chat/files?${new URLSearchParams({ conversation, name: file.name })}`, {
    method: "POST",
    headers: { "Content-Type": file.type || "application/octet-stream" },
    body: file,
  }).catch(() => null);
  if (answer === null) throw new Refusal(0, say.noConnectionTry);
  if (answer.status === 401) location.href = "/login";
  const value = await answer.json().catch(() => null);
  if (!answer.ok) throw new Refusal(answer.status, value?.error?.message ?? say.answered(answer.status));
  return value;
}

// randomID makes an id for a message or a conversation. (crypto.randomUUID is
// missing on pages without TLS.)
export function randomID() {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (b) => b.toString(16).padStart(2, "0")).join("");
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// An Outbox sends messages one after another and repeats what did not arrive:
// the id makes that harmless. It survives a reload of the page.
export class Outbox {
  constructor(report) {
    this.report = report; // (message, state, detail): sending, sent, waiting, refused
    this.key = "claybot.unsent";
    this.queue = JSON.parse(localStorage.getItem(this.key) ?? "[]");
    this.busy = false;
  }

  of(conversation) {
    return this.queue.filter((m) => m.conversation === conversation);
  }

  add(message) {
    this.queue.push(message);
    this.save();
    this.run();
  }

  save() {
    localStorage.setItem(this.key, JSON.stringify(this.queue));
  }

  async run() {
    if (this.busy) return;
    this.busy = true;
    try {
      await this.drain();
    } finally {
      this.busy = false;
    }
  }

  async drain() {
    for (let wait = 500; this.queue.length > 0; ) {
      const { id, text, conversation, files = [] } = this.queue[0];
      try {
        const sent = await request("POST", "/chat/messages", { id, text, conversation, files: files.map((f) => f.id) });
        this.report(this.queue.shift(), "sent", sent);
        wait = 500;
      } catch (err) {
        if (err instanceof Refusal && err.status >= 400 && err.status < 500) {
          if (err.status === 401) return; // after the login it goes on
          this.report(this.queue.shift(), "refused", err.message);
        } else {
          this.report(this.queue[0], "waiting", err instanceof Refusal ? err.message : say.noConnection);
          await pause(wait);
          wait = Math.min(wait * 2, 10_000);
        }
      }
      this.save();
    }
  }
}

// A Stream keeps one conversation's events coming until it is closed. It goes
// on after the last message it showed, so nothing is missing or double.
export class Stream {
  constructor(conversation, after, on) {
    this.conversation = conversation;
    this.after = after;
    this.on = on; // {open, state, message, user, preview, event, typing}
    this.wait = 500;
    this.opened = 0;
    this.connect();
  }

  connect() {
    const query = new URLSearchParams({ conversation: this.conversation, after: this.after });
    const source = new EventSource(`/chat/stream?${query}`);
    this.source = source;
    source.onopen = () => {
      this.wait = 500;
      this.on.state("live");
      this.on.open(this.opened++ > 0);
    };
    source.onerror = () => {
      this.on.state("wait");
      if (source.readyState === EventSource.CLOSED) this.again();
    };
    for (const kind of ["message", "user", "preview", "event", "typing"]) {
      source.addEventListener(kind, (e) => {
        const value = JSON.parse(e.data);
        if (kind === "message") this.after = Math.max(this.after, value.n);
        this.on[kind](value);
      });
    }
  }

  // again is for refusals, after which the browser does not come back itself.
  async again() {
    this.timer = setTimeout(async () => {
      await request("GET", "/session").catch(() => {});
      if (this.source) this.connect();
    }, this.wait);
    this.wait = Math.min(this.wait * 2, 10_000);
  }

  close() {
    clearTimeout(this.timer);
    this.source.close();
    this.source = null;
  }
}
