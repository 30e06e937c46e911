// The form of a setting: its switch writes the word for what it shows, and the
// confirmation names the value before and after.

import { say } from "./words.js";

function after(form) {
  const field = form.querySelector("#new-value");
  if (field.type === "checkbox") {
    const word = field.checked ? field.dataset.yes : field.dataset.no;
    form.querySelector("input[type=hidden][name=value]").value = word;
    return word;
  }
  return field.type === "password" && !/^(env|file):/.test(field.value) ? say.newSecret : field.value;
}

// Before htmx reads the question of the form.
document.addEventListener("submit", (e) => {
  const form = e.target.closest?.("#set-form");
  if (form) form.setAttribute("hx-confirm", say.changeSetting(form.dataset.key, form.dataset.before, after(form)));
}, true);
