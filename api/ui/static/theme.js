// Runs before anything is painted, so that nothing flashes. The choice is kept in this browser; without one the theme is the system's.
"use strict";
try {
  const chosen = localStorage.getItem("reprieve-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // A browser without storage shows the system's colours.
}
