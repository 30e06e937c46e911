// API tokens, and logging out all browsers.

import { reason, times, toast, toLogin } from "./dashboard.js";
import { say } from "./words.js";

const $ = (id) => document.getElementById(id);

async function ask(method, url, body) {
  let answer;
  try {
    answer = await fetch(url, {
      method, cache: "no-store",
      headers: body ? { "Content-Type": "application/json" } : {},
      body: body && JSON.stringify(body),
    });
  } catch {
    throw new Error(reason(0, ""));
  }
  if (answer.status === 401) {
    toLogin();
    return new Promise(() => {}); // the page goes away
  }
  const text = await answer.text();
  if (!answer.ok) throw new Error(reason(answer.status, text));
  return text ? JSON.parse(text) : null;
}

// sure asks for confirmation in the dialog that all pages have.
function sure(question, yes) {
  const dialog = $("confirm");
  $("confirm-words").textContent = question;
  $("confirm-yes").textContent = yes;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((done) => dialog.addEventListener("close", () => done(dialog.returnValue === "yes"), { once: true }));
}

function element(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null) e.setAttribute(name, value);
  }
  e.append(...children);
  return e;
}

function moment(ms, none) {
  if (!ms) return element("span", { class: "dim" }, none);
  const at = new Date(ms);
  return element("time", { datetime: at.toISOString() }, at.toLocaleString());
}

function button(label, name, className, act) {
  const b = element("button", { type: "button", class: className, "aria-label": `${label} ${name}` }, label);
  b.addEventListener("click", async () => {
    b.disabled = true;
    try {
      await act();
    } catch (err) {
      toast(err.message, true);
    }
    b.disabled = false;
    await list();
  });
  return b;
}

// secret shows a token this once.
function secret(text) {
  $("secret-text").textContent = text;
  $("secret").showModal();
}

async function rotate(token) {
  const own = token.name === "owner";
  const question = own
    ? say.replaceOwner
    : say.replaceToken(token.name);
  if (!(await sure(question, say.replace))) return;
  const fresh = await ask("POST", `/tokens/${encodeURIComponent(token.name)}/rotate`);
  if (own) toLogin();
  else secret(fresh.token);
}

async function revoke(token) {
  if (!(await sure(say.revokeToken(token.name), say.revoke))) return;
  await ask("DELETE", `/tokens/${encodeURIComponent(token.name)}`);
  toast(say.revoked);
}

function row(token) {
  const acts = element("div", { class: "row end" });
  if (!token.expired) acts.append(button(say.replace, token.name, "button", () => rotate(token)));
  if (token.name !== "owner") acts.append(button(say.revoke, token.name, "button danger", () => revoke(token)));
  return element("tr", {},
    element("th", { scope: "row", class: "lead" }, token.name, ...(token.name === "owner" ? [element("span", { class: "dim small" }, say.ownerFile)] : [])),
    element("td", { "data-label": say.scope }, token.legacy && token.scope === "operate" ? say.operateApprove : token.scope),
    element("td", { "data-label": say.created }, moment(token.created, say.atStart)),
    element("td", { "data-label": say.expires }, token.expired ? element("span", { class: "badge bad" }, say.expired) : moment(token.expires, say.never)),
    element("td", { "data-label": say.limits }, limits(token)),
    element("td", {}, acts));
}

// limits says what limits a token further than its scope.
function limits(token) {
  const all = [];
  if (token.agent) all.push(say.tokenAgent(token.agent));
  if (token.profile) all.push(say.tokenProfile(token.profile));
  if (token.rate) all.push(say.tokenRate(token.rate));
  if (token.budget) all.push(say.tokenBudget(token.budget));
  return all.length ? all.join(", ") : element("span", { class: "dim" }, say.none);
}

async function list() {
  try {
    const { tokens } = await ask("GET", "/tokens");
    $("tokens").replaceChildren(...tokens.map(row));
    times($("tokens"));
  } catch (err) {
    $("tokens").replaceChildren(element("tr", {}, element("td", { colspan: 6, class: "wrong" }, err.message)));
  }
}

async function make(e) {
  e.preventDefault();
  const form = e.target;
  const wrong = form.querySelector("[data-error]");
  wrong.hidden = true;
  const days = Number(form.elements.days.value);
  const wanted = { name: form.elements.name.value.trim(), scope: form.elements.scope.value };
  if (days) wanted.expires = Date.now() + days * 86_400_000;
  try {
    const { token } = await ask("POST", "/tokens", wanted);
    form.reset();
    secret(token);
    await list();
  } catch (err) {
    wrong.textContent = err.message;
    wrong.hidden = false;
  }
}

if ($("tokens")) {
  list();
  $("new-token").addEventListener("submit", make);
  $("secret").addEventListener("close", () => ($("secret-text").textContent = ""));
  $("secret-copy").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText($("secret-text").textContent);
      toast("Copied.");
    } catch {
      getSelection().selectAllChildren($("secret-text"));
      toast(say.copyByHand);
    }
  });
}

$("logout-all").addEventListener("click", async () => {
  if (!(await sure(say.logOutAll, say.logOut))) return;
  try {
    await ask("POST", "/logout?all=1");
    toLogin();
  } catch (err) {
    toast(err.message, true);
  }
});

// A form that let somebody in is empty again.
document.addEventListener("htmx:afterRequest", (e) => {
  const form = e.detail.elt.closest?.("form[data-reset]");
  if (form && e.detail.successful) form.reset();
});
