// Reads the page, or acts on one element of it. It runs in a world of its own, so
// the scripts of the page do not see it. what: {want, kind, value, max}; without want it
// reads.
(what) => {
  const clip = (s, n) => String(s || "").slice(0, 4 * n).replace(/\s+/g, " ").trim().slice(0, n)
  const visible = (e) => {
    if (e.closest("[hidden],[inert],[aria-hidden=true]")) return false
    if (e.checkVisibility && !e.checkVisibility({ visibilityProperty: true, opacityProperty: true })) return false
    const r = e.getBoundingClientRect()
    return r.width > 0 && r.height > 0
  }
  // The text of a label without what its fields say.
  const own = (node) => {
    let s = ""
    for (const c of node.childNodes) {
      if (c.nodeType === 3) s += c.data
      else if (c.nodeType === 1 && !/^(INPUT|SELECT|TEXTAREA|BUTTON|SCRIPT|STYLE)$/.test(c.tagName)) s += " " + own(c)
    }
    return s
  }
  const nameOf = (e) => {
    const by = (e.getAttribute("aria-labelledby") || "").split(/\s+/).filter(Boolean).slice(0, 5)
    const named = by.map((id) => e.getRootNode().getElementById?.(id)?.textContent || "").join(" ")
    const label = e.labels && e.labels.length ? own(e.labels[0]) : ""
    const value = e.tagName === "INPUT" && /^(submit|button|reset|image)$/.test(e.type) ? e.value || e.alt || e.type : ""
    const field = /^(INPUT|SELECT|TEXTAREA)$/.test(e.tagName)
    const text = field ? "" : e.innerText || e.querySelector("img[alt],svg title")?.getAttribute?.("alt") || e.querySelector("svg title")?.textContent
    for (const s of [named, e.getAttribute("aria-label"), label, value, text, e.getAttribute("placeholder"), e.title, e.getAttribute("name")]) {
      if (clip(s, 80)) return clip(s, 80)
    }
    return ""
  }
  const chosen = "a[href],area[href],button,input,select,textarea,summary,[role=button],[role=link],[role=tab],[role=menuitem],[role=checkbox],[role=switch],[contenteditable=''],[contenteditable=true],[onclick]"
  const elements = []
  const walk = (root, depth) => {
    for (const e of root.querySelectorAll("*")) {
      if (elements.length >= 400) return
      if (e.matches(chosen)) elements.push(e)
      if (e.shadowRoot && depth < 5) walk(e.shadowRoot, depth + 1)
    }
  }
  walk(document, 0)
  // describe says what can be done with an element; null: nothing.
  const describe = (e) => {
    if (e.disabled || e.getAttribute("aria-disabled") === "true" || !visible(e)) return null
    const d = { kind: "click", label: nameOf(e), target: "", once: false, input: "", options: [], form: "", name: e.getAttribute("name") || "" }
    const form = e.form
    if (form) d.form = (form.getAttribute("id") || "") + " " + (form.getAttribute("action") || "")
    const role = e.getAttribute("role") || ""
    const opens = e.hasAttribute("aria-expanded") || e.hasAttribute("aria-haspopup") || e.hasAttribute("aria-controls")
    switch (e.tagName) {
      case "A": case "AREA":
        d.target = e.href || ""
        d.once = /^javascript:/i.test(d.target) || role === "button"
        return d
      case "SELECT": {
        d.kind = "select"
        if (e.multiple) return null
        d.options = [...e.options].filter((o) => !o.disabled && !o.selected && o.value !== "").slice(0, 20).map((o) => clip(o.label, 80))
        return d.options.length ? d : null
      }
      case "TEXTAREA":
        d.kind = "type"; d.input = "text"
        return e.readOnly ? null : d
      case "INPUT":
        switch (e.type) {
          case "hidden": case "file": case "reset": return null
          case "checkbox": case "radio": return d
          case "submit": case "image": case "button": break
          default:
            d.kind = "type"; d.input = e.type
            return e.readOnly ? null : d
        }
      // falls through
      case "BUTTON":
        if (e.type === "reset") return null
        if (form && e.type !== "button") d.once = !(form.hasAttribute("method") && form.method === "get")
        else d.once = !opens && role !== "tab"
        return d
      case "SUMMARY": return d
    }
    if (e.isContentEditable) { d.kind = "type"; d.input = "text"; return d }
    if (e.querySelector(chosen)) return null // its parts are offered
    d.once = !opens && !/^(tab|checkbox|switch)$/.test(role)
    return d
  }
  const still = (s) => s.replace(/\d+/g, "#")
  const path = (address) => {
    try { const u = new URL(address); return u.host + u.pathname } catch { return "" }
  }
  const found = []
  const times = new Map()
  for (const e of elements) {
    const d = describe(e)
    if (!d) continue
    const base = still([d.kind, d.input, d.label, path(d.target), d.form, d.name].join("|"))
    const n = (times.get(base) || 0) + 1
    times.set(base, n)
    found.push({ e, d, base, key: base + "|" + n })
    if (found.length >= 150) break
  }
  if (!what.want) {
    const heads = [...document.querySelectorAll("h1,h2,dialog[open],[role=dialog]")].filter(visible).slice(0, 20)
    return {
      url: location.href, title: clip(document.title, 120) || clip(heads[0]?.innerText, 120),
      text: String(document.body?.innerText || "").slice(0, what.max || 6000),
      structure: [...new Set(found.map((f) => f.base)), ...heads.map((h) => still(h.tagName + " " + clip(h.innerText, 80)))],
      actions: found.map((f) => ({ key: f.key, kind: f.d.kind, label: f.d.label, target: f.d.target, once: f.d.once, input: f.d.input, options: f.d.options })),
    }
  }
  const hit = found.find((f) => f.key === what.want)
  if (!hit) return { gone: true }
  const e = hit.e
  e.scrollIntoView({ block: "center", inline: "center" })
  const changed = () => {
    e.dispatchEvent(new Event("input", { bubbles: true }))
    e.dispatchEvent(new Event("change", { bubbles: true }))
  }
  switch (what.kind) {
    case "type": {
      e.focus()
      if (e.isContentEditable) e.textContent = what.value
      else {
        const proto = e.tagName === "TEXTAREA" ? HTMLTextAreaElement.prototype : HTMLInputElement.prototype
        Object.getOwnPropertyDescriptor(proto, "value").set.call(e, what.value)
      }
      changed()
      break
    }
    case "submit": {
      if (e.tagName === "TEXTAREA" && e.form) e.form.requestSubmit()
      else if (e.tagName === "INPUT") { e.focus(); return { enter: true } }
      else return { none: true }
      break
    }
    case "select": {
      const o = [...e.options].find((o) => clip(o.label, 80) === what.value || o.value === what.value)
      if (!o) return { gone: true }
      e.value = o.value
      changed()
      break
    }
    default:
      for (const x of [e, e.form]) if (x && x.target) x.target = "_self"
      e.click()
  }
  return {}
}
