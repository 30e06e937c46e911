// What people do with their own messages in a chat: they edit and delete them.

import { say } from "./words.js";

const button = (words, label, act) => {
  const b = document.createElement("button");
  b.type = "button";
  b.className = "act";
  b.textContent = words;
  if (label) b.setAttribute("aria-label", label);
  b.addEventListener("click", act);
  return b;
};

// fate says what became of a message after it was sent.
export function fate({ edited, deleted, effect }) {
  const read = effect === "late";
  if (deleted) return read ? say.deletedLate : say.deleted;
  if (!edited) return "";
  return effect === "noted" ? say.editedNoted : read ? say.editedLate : say.edited;
}

// changeable reports whether a message is a text that its person can still change.
export const changeable = (m) => (!m.type || m.type === "user") && !m.deleted;

// actions are the buttons of a message: {edit, remove} are called without arguments.
export function actions(m, { edit, remove }) {
  const row = document.createElement("span");
  row.className = "acts";
  if (m.text) row.append(button(say.edit, say.editThis, edit));
  row.append(button(say.remove, say.removeThis, remove));
  return row;
}

// editor takes the place of a bubble. save is called with the new text and returns whether
// it was taken; done is called when the editor has to go. Enter saves, Escape cancels.
export function editor(words, save, done) {
  const form = document.createElement("form");
  form.className = "editing";
  form.method = "dialog";
  form.dataset.clean = "";
  const box = document.createElement("textarea");
  box.value = words;
  box.maxLength = 100_000;
  box.setAttribute("aria-label", say.editThis);
  const row = document.createElement("div");
  const ok = button(say.save, "", () => form.requestSubmit());
  row.append(button(say.cancel, "", done), ok);
  form.append(box, row);
  const fit = () => {
    box.style.height = "auto";
    box.style.height = `${Math.min(box.scrollHeight + 2, 300)}px`;
    ok.disabled = box.value.trim() === "";
  };
  box.addEventListener("input", fit);
  form.addEventListener("submit", async (e) => {
    e.preventDefault();
    const text = box.value.replace(/^\n+|\s+$/g, "");
    if (ok.disabled) return;
    if (text === words) return done();
    ok.disabled = true;
    if (await save(text)) done();
    else fit();
  });
  form.addEventListener("keydown", (e) => {
    if (e.isComposing) return;
    if (e.key === "Escape") {
      e.stopPropagation(); // it would stop the run
      done();
    } else if (e.key === "Enter" && !e.shiftKey && e.target === box) {
      e.preventDefault();
      form.requestSubmit();
    }
  });
  return { form, focus: () => { fit(); box.focus(); } };
}
