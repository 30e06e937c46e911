// The look that was chosen here: light, dark, or as the system has it. It is
// set before anything is drawn.
{
  const look = localStorage.getItem("claybot.look");
  if (look === "light" || look === "dark") document.documentElement.dataset.look = look;
}
