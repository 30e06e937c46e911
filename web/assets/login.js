// Login: the code of a link, or a token, is exchanged for a cookie that scripts cannot read.

const form = document.getElementById("login");
const token = document.getElementById("token");
const error = document.getElementById("error");

// After a link on another site was followed, the new cookie comes along only
// with requests of our own page: look whether we are in already.
const session = await fetch("/login/session").then((answer) => answer.json()).catch(() => null);
const code = new URLSearchParams(location.search).get("token");
history.replaceState(null, "", "/login"); // the code is in no history from here on
if (session?.in) location.replace("/");
else if (code) await enter(code);

// enter logs in with a code or token. It reports whether that worked, and says
// why not.
async function enter(secret) {
  try {
    const answer = await fetch("/login", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token: secret }),
    });
    if (answer.ok) {
      token.value = "";
      location.replace("/");
      return true;
    }
    error.textContent = (await answer.json()).error.message;
  } catch {
    error.textContent = "claybot does not respond. Is it running?";
  }
  return false;
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  error.textContent = "";
  if (!(await enter(token.value))) token.select();
});
