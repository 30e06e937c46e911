// Fresh HTML is merged into what is shown: elements are matched by id, then by
// their place. What the reader is at stays untouched.

// theirs reports whether an element belongs to the reader right now: a form
// that was edited, or one of whose fields has the focus. When it was sent and
// taken, it does not any more.
function theirs(el) {
  if (el.matches("form")) {
    if (el.dataset.settled) return false;
    return Boolean(el.dataset.dirty) || el.contains(document.activeElement?.closest("input, select, textarea"));
  }
  return el.matches("[data-keep]") && el.contains(document.activeElement);
}

// kept are attributes that the page sets itself.
const kept = new Set(["open", "data-dirty", "data-settled", "aria-expanded", "title"]);

function attributes(old, fresh) {
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !kept.has(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (name === "open" && old.tagName === "DETAILS") continue;
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
}

// morph makes old look like fresh.
export function morph(old, fresh) {
  if (theirs(old)) return;
  if (old.tagName === "TIME" && old.dateTime === fresh.dateTime) return; // shown in the reader's words
  attributes(old, fresh);
  if ((old.tagName === "INPUT" || old.tagName === "TEXTAREA") && old !== document.activeElement) {
    if (old.type !== "checkbox" && old.type !== "radio") old.value = fresh.getAttribute("value") ?? fresh.textContent;
    else old.checked = fresh.hasAttribute("checked");
  }
  children(old, fresh);
}

function same(a, b) {
  if (a.nodeType !== b.nodeType) return false;
  if (a.nodeType !== Node.ELEMENT_NODE) return true;
  return a.tagName === b.tagName && a.id === b.id;
}

// move puts an element elsewhere; where the browser can, it keeps its focus.
function move(parent, el, before) {
  if (parent.moveBefore) parent.moveBefore(el, before);
  else parent.insertBefore(el, before);
}

function children(old, fresh) {
  const wanted = new Set([...fresh.children].map((e) => e.id));
  const byID = new Map();
  for (const e of [...old.children]) {
    if (!e.id) continue;
    if (wanted.has(e.id) || theirs(e)) byID.set(e.id, e);
    else e.remove(); // first, so that those that stay need not move
  }
  let at = old.firstChild;
  for (const next of [...fresh.childNodes]) {
    let found = next.id ? byID.get(next.id) : null;
    if (found && found.tagName !== next.tagName) found = null;
    if (!found && !next.id && at && same(at, next)) found = at;
    if (!found) {
      old.insertBefore(document.importNode(next, true), at);
      continue;
    }
    if (found === at) at = at.nextSibling;
    else move(old, found, at);
    if (found.nodeType === Node.ELEMENT_NODE) morph(found, next);
    else if (found.data !== next.data) found.data = next.data;
  }
  while (at) {
    const next = at.nextSibling;
    if (at.nodeType !== Node.ELEMENT_NODE || !theirs(at)) at.remove();
    at = next;
  }
}

// merge brings the children of an element up to date.
export function merge(place, html) {
  const parsed = document.createElement("template");
  parsed.innerHTML = html; // made by our own templates
  children(place, parsed.content);
}
