// Runs before anything is painted, so that nothing flashes. The choice is kept in this browser; without one the system's holds.
"use strict";
try {
  const chosen = localStorage.getItem("reprieve-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // A browser that keeps nothing shows the system's colours.
}
