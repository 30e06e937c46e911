// The operator's panel: who waits to be let in, who is in, how connectors do.

import { request } from "./api.js";

const $ = (id) => document.getElementById(id);

function row(main, sub, ...buttons) {
  const li = document.createElement("li");
  const text = document.createElement("div");
  const strong = document.createElement("strong");
  strong.textContent = main;
  const small = document.createElement("small");
  small.textContent = sub;
  text.append(strong, small);
  li.append(text, ...buttons);
  return li;
}

function button(label, className, fn) {
  const b = document.createElement("button");
  b.textContent = label;
  b.className = className;
  b.addEventListener("click", async () => {
    b.disabled = true;
    $("panel-error").hidden = true;
    try {
      await fn();
    } catch (err) {
      $("panel-error").textContent = err.message;
      $("panel-error").hidden = false;
    }
    await refresh();
  });
  return b;
}

function fill(list, rows, none) {
  list.replaceChildren(...rows);
  if (rows.length === 0) {
    const li = document.createElement("li");
    li.className = "none";
    li.textContent = none;
    list.append(li);
  }
}

// refresh shows the present state; the badge counts who waits.
export async function refresh() {
  let people;
  try {
    people = await request("GET", "/pairing");
  } catch {
    return; // the connection's state is shown elsewhere
  }
  $("badge").textContent = people.pairings.length;
  $("badge").hidden = people.pairings.length === 0;
  if (!$("panel").open) return;
  const decide = (code, approve) => () => request("POST", "/pairing", { code, approve });
  fill($("pending"), people.pairings.map((p) => row(
    p.name || p.userId,
    `${p.connector} · user ${p.userId} · code ${p.code}`,
    button("Deny", "small", decide(p.code, false)),
    button("Approve", "small primary", decide(p.code, true)),
  )), "Nobody. Strangers who write get a code, and appear here.");
  fill($("grants"), people.grants.map((g) => row(
    g.name || g.subject,
    `${g.connector} · ${g.subject}`,
    button("Remove", "small", () => request("DELETE", `/pairing?${new URLSearchParams({ connector: g.connector, subject: g.subject })}`)),
  )), "Nobody yet.");
  const status = await request("GET", "/status").catch(() => null);
  fill($("connectors"), (status?.connectors ?? []).map((c) => {
    const li = row(c.name, c.error || c.state);
    li.dataset.state = c.state;
    return li;
  }), "None.");
}

export function start() {
  $("people").addEventListener("click", () => {
    $("panel").showModal();
    refresh();
  });
  $("panel-close").addEventListener("click", () => $("panel").close());
  $("panel").addEventListener("click", (e) => e.target === $("panel") && $("panel").close());
  refresh();
  setInterval(() => document.visibilityState === "visible" && refresh(), 15_000);
}
