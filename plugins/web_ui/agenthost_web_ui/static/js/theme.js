/** Light and dark: the system's choice unless the person made another. */

const STORED = "agenthost.theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

/**
 * Tell which theme is shown now.
 * @returns {"light" | "dark"} the effective theme
 */
export function currentTheme() {
  return stored() ?? (dark.matches ? "dark" : "light");
}

/**
 * Switch to the other theme; going back to the system's one follows it again.
 * @returns {"light" | "dark"} the theme now shown
 */
export function toggleTheme() {
  const wanted = currentTheme() === "dark" ? "light" : "dark";
  if (wanted === (dark.matches ? "dark" : "light")) localStorage.removeItem(STORED);
  else localStorage.setItem(STORED, wanted);
  apply();
  return wanted;
}

/**
 * Hear of changes of the system's theme.
 * @param {() => void} listener called after each change
 * @returns {() => void} ends the subscription
 */
export function onSystemTheme(listener) {
  dark.addEventListener("change", listener);
  return () => dark.removeEventListener("change", listener);
}

function stored() {
  const value = localStorage.getItem(STORED);
  return value === "light" || value === "dark" ? value : null;
}

function apply() {
  const choice = stored();
  if (choice) document.documentElement.dataset.theme = choice;
  else delete document.documentElement.dataset.theme;
}

apply();
