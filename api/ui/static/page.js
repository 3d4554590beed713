// What the page does with scripts: it follows the cluster, shows tooltips, and sends what-ifs. Every view works without it.
import { watchGrids } from "./grid.js";
import { watchTips } from "./tip.js";
import { watchForms } from "./forms.js";
import { tellLocalTimes, watchBrushes, watchCopies } from "./copy.js";
import { watchKeys } from "./palette.js";

const PARTS = ["figures", "pending", "view"];
const LEAST_PAUSE = 1000;
const TIMES_GROW_OLD = 30_000;

function markCurrent() {
  for (const link of document.querySelectorAll("a.row")) {
    if (new URL(link.href).pathname === location.pathname) link.setAttribute("aria-current", "page");
  }
}

// The theme button: system, light, dark, then system again.
function watchTheme() {
  const button = document.getElementById("theme");
  if (!button) return;
  const show = () => {
    const chosen = document.documentElement.dataset.theme;
    button.textContent = { light: "☀", dark: "☾" }[chosen] ?? "◐";
    button.setAttribute("aria-label", `Colours: ${chosen ?? "system setting"}`);
  };
  button.addEventListener("click", () => {
    const next = { light: "dark", dark: undefined }[document.documentElement.dataset.theme ?? ""];
    const chosen = document.documentElement.dataset.theme === undefined ? "light" : next;
    if (chosen) document.documentElement.dataset.theme = chosen;
    else delete document.documentElement.dataset.theme;
    try {
      if (chosen) localStorage.setItem("reprieve-theme", chosen);
      else localStorage.removeItem("reprieve-theme");
    } catch {
      // The choice holds for this view only.
    }
    show();
  });
  show();
}

// Events: the server says that something has changed; the view is fetched again, and the parts that differ are replaced.
const shown = new Map();
let isFetching = false;
let isStale = false;

function isBusy() {
  const active = document.activeElement;
  return document.hidden || (active instanceof HTMLElement && active.matches("#view input, #view textarea, #view select"));
}

async function refresh() {
  if (isFetching || isBusy()) {
    isStale = true;
    return;
  }
  isFetching = true;
  isStale = false;
  const began = performance.now();
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    // Unless something is being typed, the page that says why takes the place of a view that grows old.
    if (answer.status === 503 && !document.querySelector("[data-keep]")) location.reload();
    else if (answer.ok) exchange(new DOMParser().parseFromString(await answer.text(), "text/html"));
    else isStale = true;
  } catch {
    isStale = true;
  }
  // A large cluster takes longer to draw, so it is drawn less often.
  setTimeout(() => {
    isFetching = false;
    if (isStale) refresh();
  }, Math.max(LEAST_PAUSE, 10 * (performance.now() - began)));
}

function exchange(answered) {
  for (const id of PARTS) {
    const old = document.getElementById(id);
    const part = answered.getElementById(id);
    if (!old || !part || document.querySelector(`#${id} [data-keep]`)) continue;
    const fresh = part.innerHTML;
    if (shown.get(id) === fresh) continue;
    const open = new Map([...old.querySelectorAll("details[id]")].map((each) => [each.id, each.open]));
    for (const each of part.querySelectorAll("details[id]")) if (open.has(each.id)) each.open = open.get(each.id);
    const focused = old.contains(document.activeElement) ? document.activeElement : null;
    if (focused instanceof HTMLInputElement) continue;
    const again = focused && focused !== old ? placeOf(focused, old) : null;
    shown.set(id, fresh);
    const scrolled = old.scrollTop;
    old.replaceChildren(...part.childNodes);
    old.scrollTop = scrolled;
    if (again) old.querySelectorAll(again.selector)[again.index]?.focus({ preventScroll: true });
  }
  markCurrent();
  watchGrids();
  tellLocalTimes();
}

// Returns how to find the focused element after its part is replaced: a selector, and its place among equal elements.
function placeOf(element, part) {
  const href = element.getAttribute("href");
  const selector = element.id
    ? `#${CSS.escape(element.id)}`
    : href
      ? `a[href="${CSS.escape(href)}"]`
      : element.dataset.first
        ? `[data-first="${element.dataset.first}"]`
        : element.localName;
  return { selector, index: [...part.querySelectorAll(selector)].indexOf(element) };
}

function watchNews() {
  const live = document.getElementById("live");
  if (!live) return;
  const say = (on, words) => {
    live.classList.toggle("on", on);
    live.lastElementChild.textContent = words;
  };
  const news = new EventSource("/v1/stream");
  let last = document.body.dataset.version;
  news.addEventListener("open", () => say(true, "live"));
  news.addEventListener("error", () => say(false, "not live"));
  news.addEventListener("version", (event) => {
    if (last !== event.data) refresh();
    last = event.data;
  });
  setInterval(refresh, TIMES_GROW_OLD);
  document.addEventListener("visibilitychange", () => isStale && !document.hidden && refresh());
  window.addEventListener("pagehide", () => news.close());
  window.addEventListener("pageshow", (event) => event.persisted && location.reload());
}

// A choice is shown at once; the button is for those without scripts.
function watchSelections() {
  document.addEventListener("change", (event) => {
    if (event.target instanceof HTMLSelectElement && event.target.closest(".selection")) event.target.form.requestSubmit();
  });
}

// A page that says that the service is not ready is asked for again, until it can be shown.
function watchReturn() {
  if (!document.querySelector("[data-again]")) return;
  setTimeout(async () => {
    try {
      const answer = await fetch(location.href);
      if (answer.status !== 503) location.reload();
      else document.getElementById("view").replaceWith(new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("view"));
    } catch {
      // The service itself is away; it is asked again.
    }
    watchReturn();
  }, 3 * LEAST_PAUSE);
}

function openLinked() {
  const linked = location.hash ? document.getElementById(location.hash.slice(1)) : null;
  if (linked instanceof HTMLDetailsElement) linked.open = true;
}

markCurrent();
watchTheme();
watchTips();
watchGrids();
watchForms();
watchCopies();
watchBrushes();
tellLocalTimes();
watchKeys();
watchSelections();
watchNews();
watchReturn();
openLinked();
window.addEventListener("hashchange", openLinked);
window.addEventListener("resize", watchGrids);
