// How connectors are doing is not stored, so no note comes when it changes:
// parts with data-every are fetched again after so many seconds.

import { refresh } from "./dashboard.js";

for (const part of document.querySelectorAll("[data-every]")) {
  setInterval(() => document.visibilityState === "visible" && refresh(), part.dataset.every * 1000);
}
