// The forms that send JSON: what-ifs, and the token of a caller who signs in.
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

function watchWhatIf(form) {
  const result = document.getElementById("result");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button");
    const given = new FormData(form);
    const names = (field) => String(given.get(field)).split(/[\s,]+/).filter(Boolean);
    button.disabled = true;
    result.setAttribute("aria-busy", "true");
    try {
      const answer = await send("/ui/what-if", {
        manifest: given.get("manifest"), drainNodes: names("drain"), removeNodes: names("remove"), includePending: given.has("pending"), by: given.get("by"),
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
