// Login: a link or token is exchanged for a cookie that scripts cannot read.

const form = document.getElementById("login");
const token = document.getElementById("token");
const error = document.getElementById("error");

function say(text) {
  error.textContent = text;
  error.hidden = false;
}

// After a link on another site was followed, the new cookie comes along only
// with requests of our own page: look whether we are in already.
const session = await fetch("/session").catch(() => null);
if (session?.ok) location.replace("/");
else if (new URLSearchParams(location.search).has("used")) {
  say("That link was used already or is older than 15 minutes. Each link works once: start claybot again for a new one, or paste the token.");
  history.replaceState(null, "", "/login");
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  error.hidden = true;
  try {
    const answer = await fetch("/login", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token: token.value }),
    });
    if (answer.ok) return location.replace("/");
    say((await answer.json()).error.message);
  } catch {
    say("claybot does not answer. Is it running?");
  }
  token.select();
});
