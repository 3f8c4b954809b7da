// Light, dark, or as the system says. Set before the first picture, so that nothing flashes.

const KEPT = "quipu-theme";
const CHOICES = ["system", "light", "dark"];
const SIGNS = { system: "Auto", light: "Light", dark: "Dark" };

export function theme() {
  const kept = localStorage.getItem(KEPT);
  return CHOICES.includes(kept) ? kept : "system";
}

export function isDark() {
  const chosen = theme();
  return chosen === "dark" || (chosen === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
}

function apply() {
  document.documentElement.dataset.theme = isDark() ? "dark" : "light";
  dispatchEvent(new Event("quipu-theme"));
}

/** The button that goes from one to the next. */
export function themeButton(button) {
  const word = () => {
    button.textContent = SIGNS[theme()];
    button.setAttribute("aria-label", `Theme: ${SIGNS[theme()]}. Change`);
  };
  button.addEventListener("click", () => {
    localStorage.setItem(KEPT, CHOICES[(CHOICES.indexOf(theme()) + 1) % CHOICES.length]);
    word();
    apply();
  });
  word();
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);
apply();
