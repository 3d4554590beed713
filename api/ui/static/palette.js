// The palette: finds anything by name while one types. The keys: / and Ctrl-K open it, ? lists all keys, j and k go from name to name.
const PAUSE = 120;
const NAMES = ["main tbody th a, main a.row, main summary:not(td summary), main .node", "#pending a.row"];

function watchPalette() {
  const dialog = document.getElementById("palette");
  const link = document.getElementById("find");
  if (!dialog || !link) return () => {};
  const input = dialog.querySelector("input");
  const found = document.getElementById("found");
  let asked = null;
  let waiting = 0;

  const options = () => [...found.querySelectorAll("[role=option]")];
  const choose = (option) => {
    for (const each of options()) each.setAttribute("aria-selected", String(each === option));
    if (option) input.setAttribute("aria-activedescendant", option.id);
    else input.removeAttribute("aria-activedescendant");
    option?.scrollIntoView({ block: "nearest" });
  };
  const chosen = () => found.querySelector("[aria-selected=true]");
  const search = async () => {
    asked?.abort();
    asked = new AbortController();
    const words = input.value.trim();
    if (!words) return found.replaceChildren();
    try {
      const answer = await fetch(`/ui/found?q=${encodeURIComponent(words)}`, { signal: asked.signal });
      const part = new DOMParser().parseFromString(answer.ok ? await answer.text() : "", "text/html");
      found.replaceChildren(...part.body.childNodes);
      choose(options()[0]);
      dialog.dataset.shows = words;
    } catch (problem) {
      if (problem.name !== "AbortError") found.textContent = "The service cannot be reached.";
    }
  };
  const open = () => {
    dialog.showModal();
    input.select();
  };
  link.addEventListener("click", (event) => {
    event.preventDefault();
    open();
  });
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(search, PAUSE);
  });
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      const all = options();
      choose(all[(all.indexOf(chosen()) + step + all.length) % all.length]);
    }
  });
  // Enter opens what is chosen, once it is what was typed.
  dialog.querySelector("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    clearTimeout(waiting);
    if (dialog.dataset.shows !== input.value.trim()) await search();
    const to = chosen();
    if (to) location.href = to.href;
  });
  return open;
}

function step(by) {
  const all = NAMES.flatMap((names) => [...document.querySelectorAll(names)]).filter((each) => each.checkVisibility());
  const next = all[all.indexOf(document.activeElement) + by] ?? (by > 0 ? null : all[0]);
  next?.focus();
}

export function watchKeys() {
  const open = watchPalette();
  document.addEventListener("keydown", (event) => {
    const isWritten = event.target instanceof Element && event.target.matches("input, textarea, select");
    if (event.key === "k" && (event.ctrlKey || event.metaKey) && !event.altKey) {
      event.preventDefault();
      open();
    } else if (isWritten || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    else if (event.key === "/") {
      event.preventDefault();
      open();
    } else if (event.key === "?") document.getElementById("keys")?.showModal();
    else if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else arrows(event);
  });
}

// From node to node in the drawings, and from row to row in the list of pending pods.
function arrows(event) {
  const nodes = event.target instanceof Element ? event.target.closest(".nodes, ol.pending") : null;
  if (!nodes || !["ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp"].includes(event.key)) return;
  const links = [...nodes.querySelectorAll("a.node, a.row")];
  const next = links[links.indexOf(document.activeElement) + (event.key === "ArrowRight" || event.key === "ArrowDown" ? 1 : -1)];
  if (!next) return;
  event.preventDefault();
  next.focus();
}
