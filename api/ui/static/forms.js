// The forms that send JSON: what-ifs, and the token of a caller who signs in.
import { copy } from "./copy.js";
import { watchGrids } from "./grid.js";

const send = (path, body) => fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

async function problem(answer) {
  const text = await answer.text();
  try {
    return JSON.parse(text).message;
  } catch {
    return text || `the service answered ${answer.status}`;
  }
}

function alert(text) {
  const said = document.createElement("p");
  said.className = "alert";
  said.textContent = text;
  return said;
}

// A what-if is told by the fragment of its address: the fields of the form that are not empty.
const MAX_LINK = 32_000;
const FIELDS = ["manifest", "configuration", "count", "like", "drain", "remove", "pending", "by"];

function linkOf(form) {
  const given = new FormData(form);
  const fields = FIELDS.map((name) => [name, String(given.get(name) ?? "")]).filter(([name, value]) => value && (name !== "count" || given.get("like")));
  return `${location.origin}${location.pathname}#${new URLSearchParams(fields)}`;
}

// Fills the form from the fragment; returns why it cannot, or nothing.
function fillFrom(form) {
  const fragment = location.hash.slice(1);
  if (!fragment) return "";
  if (fragment.length > MAX_LINK) return `This link is too long: ${MAX_LINK.toLocaleString()} characters are read.`;
  const fields = new URLSearchParams(fragment);
  const unknown = [...fields.keys()].find((name) => !FIELDS.includes(name));
  if (unknown !== undefined) return `This link is not one to a what-if: it has the field ${JSON.stringify(unknown.slice(0, 40))}.`;
  for (const name of FIELDS) {
    const field = form.elements.namedItem(name);
    if (field.type === "checkbox") field.checked = fields.has(name);
    else if (fields.has(name) || name === "manifest") field.value = fields.get(name) ?? "";
  }
  document.getElementById("configuration-tab").open = fields.has("configuration");
  return "";
}

// Offers names of nodes that contain the last word of a field; one that takes several keeps the words before.
function offerNodes(form) {
  const list = document.getElementById("node-names");
  let asked = new AbortController();
  form.addEventListener("input", async (event) => {
    const field = event.target;
    if (!(field instanceof HTMLInputElement) || field.getAttribute("list") !== list.id) return;
    asked.abort();
    asked = new AbortController();
    const [, before, word] = /^(.*?)([^\s,]*)$/.exec(field.value) ?? [];
    if (!word) return;
    try {
      const answer = await fetch(`/v1/find?q=${encodeURIComponent(word)}`, { signal: asked.signal });
      if (!answer.ok) return;
      const nodes = (await answer.json()).items.filter((each) => each.kind === "node" && each.name !== word);
      list.replaceChildren(...nodes.map((each) => new Option("", ("several" in field.dataset ? before : "") + each.name)));
    } catch (problem) {
      if (problem.name !== "AbortError") list.replaceChildren();
    }
  });
}

// A file takes the place of what was pasted.
function takeFiles(form, text) {
  const take = async (file) => file && (text.value = await file.slice(0, 2 ** 24).text());
  const field = document.getElementById("manifest-file");
  field.addEventListener("change", () => take(field.files[0]));
  form.addEventListener("dragover", (event) => event.dataTransfer.types.includes("Files") && event.preventDefault());
  form.addEventListener("drop", (event) => {
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    take(event.dataTransfer.files[0]);
  });
  document.getElementById("sample").addEventListener("click", () => (text.value = text.dataset.sample));
}

function watchWhatIf(form) {
  const result = document.getElementById("result");
  const fill = () => {
    const wrong = fillFrom(form);
    result.replaceChildren(...(wrong ? [alert(wrong)] : []));
    // A question of another page is answered at once.
    if (!wrong && location.hash) form.requestSubmit();
  };
  offerNodes(form);
  takeFiles(form, document.getElementById("manifest"));
  document.getElementById("what-if-link").addEventListener("click", (event) => {
    const link = linkOf(form);
    if (link.length > MAX_LINK) result.replaceChildren(alert("This is too long for a link; the command that asks the same is below the answer."));
    else {
      history.replaceState(null, "", link);
      event.target.dataset.copy = link;
      copy(event.target);
    }
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = event.submitter ?? form.querySelector("button.primary");
    const given = new FormData(form);
    const names = (field) => String(given.get(field)).split(/[\s,]+/).filter(Boolean);
    const link = linkOf(form);
    if (link.length <= MAX_LINK) history.replaceState(null, "", link);
    button.disabled = true;
    result.setAttribute("aria-busy", "true");
    try {
      const answer = await send("/ui/what-if", {
        manifest: given.get("manifest"), configuration: given.get("configuration"), like: String(given.get("like")).trim(), count: Number(given.get("count")) || 1,
        drainNodes: names("drain"), removeNodes: names("remove"), includePending: given.has("pending"), by: given.get("by"),
        ask: button.value, freeNodes: Number(given.get("free")) || 1, of: String(given.get("of")).trim(),
      });
      if (answer.ok) {
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
        result.replaceChildren(...fresh.body.childNodes);
        watchGrids();
      } else result.replaceChildren(alert(await problem(answer)));
    } catch {
      result.replaceChildren(alert("The service cannot be reached."));
    } finally {
      button.disabled = false;
      result.removeAttribute("aria-busy");
      result.focus({ preventScroll: true });
      result.scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
    }
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  fill();
  window.addEventListener("hashchange", fill);
}

function watchSignIn(form) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const answer = await send("/ui/sign-in", { token: new FormData(form).get("token") });
    if (answer.ok) location.reload();
    else document.getElementById("sign-in-problem").textContent = await problem(answer);
  });
}

export function watchForms() {
  const whatIf = document.getElementById("what-if");
  if (whatIf) watchWhatIf(whatIf);
  const signIn = document.getElementById("sign-in");
  if (signIn) watchSignIn(signIn);
}
