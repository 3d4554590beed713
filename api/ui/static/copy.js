// Copy buttons; times, told beside UTC as the clock of this browser has them; and the choice of a part of a time.
export async function copy(button) {
  const words = button.textContent;
  setTimeout(() => (button.textContent = words), 2000);
  const text = button.dataset.copy;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without TLS there is no clipboard: the text is selected, so that two keys copy it.
    if (button.previousElementSibling) getSelection().selectAllChildren(button.previousElementSibling);
    button.textContent = document.execCommand("copy") ? "Copied" : "Press Ctrl-C";
    return;
  }
  button.textContent = "Copied";
}

export function watchCopies() {
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("button[data-copy]") : null;
    if (button && button.id !== "what-if-link") copy(button);
  });
}

const LOCAL = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

const HOURS = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });

// Tells the local time of everything under an element that has a time.
export function tellLocalTimes(root = document) {
  const isWide = matchMedia("(min-width: 821px)").matches && new Date().getTimezoneOffset() !== 0;
  for (const each of root.querySelectorAll("[data-time]")) {
    each.dataset.utc ??= each.textContent;
    if (isWide) each.textContent = `${each.dataset.utc} UTC · ${HOURS.format(new Date(each.dataset.time))} here`;
  }
  for (const each of root.querySelectorAll("time[datetime]")) {
    const at = new Date(each.dateTime);
    if (!Number.isNaN(at.valueOf())) each.dataset.tip = `${LOCAL.format(at)}, local time\n${each.dateTime.replace("T", " ").replace(/\.\d+/, "").replace("Z", " UTC")}`;
  }
}

// Dragging over a chart of time opens the part of the time that was dragged over; the other fields of the filter stay.
export function watchBrushes() {
  let brush = null;
  // The chart may be drawn again meanwhile, so that its place and its time are those of the beginning.
  const place = (event) => Math.min(1, Math.max(0, (event.clientX - brush.box.left) / brush.box.width));
  document.addEventListener("pointerdown", (event) => {
    const holder = event.target instanceof Element ? event.target.closest("[data-brush]") : null;
    if (!holder || event.button) return;
    brush = { holder, box: holder.getBoundingClientRect(), begin: Number(holder.dataset.begin), end: Number(holder.dataset.end) };
    brush.from = brush.to = place(event);
    brush.mark = holder.appendChild(Object.assign(document.createElement("i"), { className: "brushed" }));
  });
  document.addEventListener("pointermove", (event) => {
    if (!brush) return;
    brush.to = place(event);
    const [left, right] = [Math.min(brush.from, brush.to), Math.max(brush.from, brush.to)];
    brush.mark.style.left = `${100 * left}%`;
    brush.mark.style.width = `${100 * (right - left)}%`;
  });
  // A link below the pointer would be dragged, and opened afterwards.
  document.addEventListener("dragstart", (event) => brush && event.preventDefault());
  document.addEventListener("click", (event) => event.target.closest?.("[data-brushed]") && event.preventDefault(), true);
  document.addEventListener("pointerup", () => {
    if (!brush) return;
    const { holder, mark, from, to, begin, end } = brush;
    brush = null;
    mark.remove();
    if (Math.abs(to - from) < 0.01) return;
    holder.dataset.brushed = "";
    const at = (share) => new Date(1000 * (begin + share * (end - begin))).toISOString();
    const asked = new URLSearchParams(location.search);
    for (const name of ["range", "before"]) asked.delete(name);
    asked.set("since", at(Math.min(from, to)));
    asked.set("until", at(Math.max(from, to)));
    location.assign(`/ui/history?${asked}`);
  });
}
