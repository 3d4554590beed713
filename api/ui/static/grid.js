// A grid of thousands of nodes is a few paths; the node at the pointer or the cursor follows from its position.
import { hideTip, showTip } from "./tip.js";

const asked = new Map();

// First node of a grid -> the position that the arrow keys have reached. Grids are replaced whenever the cluster changes.
const reached = new Map();

// The names of the nodes are fetched when they are first needed, for each view once: [name, what is said of it].
function nodes(holder) {
  const view = holder.dataset.cells ?? "";
  if (!asked.has(view)) {
    const answered = fetch(`/ui/cells${view}`).then((answer) => (answer.ok ? answer.json() : []));
    asked.set(view, answered.catch(() => []));
  }
  return asked.get(view);
}

function watch(holder) {
  const [first, count, pitch, columns] = ["first", "count", "pitch", "columns"].map((name) => Number(holder.dataset[name]));
  const cursor = holder.querySelector(".cursor");
  const picture = holder.querySelector("svg");
  let place = Math.min(reached.get(first) ?? 0, count - 1);

  const scale = () => picture.getBoundingClientRect().width / picture.viewBox.baseVal.width;
  const at = (event) => {
    const box = picture.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / scale() / pitch);
    const row = Math.floor((event.clientY - box.top) / scale() / pitch);
    const found = row * columns + column;
    return column >= 0 && column < columns && found >= 0 && found < count ? found : null;
  };
  const put = () => {
    const side = pitch * scale();
    cursor.hidden = false;
    cursor.style.width = cursor.style.height = `${side}px`;
    cursor.style.left = `${(place % columns) * side - 1}px`;
    cursor.style.top = `${Math.floor(place / columns) * side - 1}px`;
  };
  const open = async () => {
    const node = (await nodes(holder))[first + place];
    if (node) location.href = `/ui/nodes/${encodeURIComponent(node[0])}`;
  };
  const say = async (x, y, aloud) => {
    const wanted = place;
    const node = (await nodes(holder))[first + wanted];
    if (!node || wanted !== place || cursor.hidden) return;
    showTip(node[1], x, y);
    const spoken = document.getElementById("spoken");
    if (aloud && spoken) spoken.textContent = node[1];
  };

  holder.addEventListener("pointermove", (event) => {
    const found = at(event);
    if (found === null) {
      cursor.hidden = true;
      hideTip();
      return;
    }
    place = found;
    put();
    say(event.clientX, event.clientY, false);
  });
  holder.addEventListener("pointerleave", () => {
    cursor.hidden = document.activeElement !== holder;
    hideTip();
  });
  holder.addEventListener("click", (event) => {
    const found = at(event);
    if (found === null) return;
    place = found;
    open();
  });
  holder.addEventListener("focus", () => holder.matches(":focus-visible") && put());
  holder.addEventListener("blur", () => {
    cursor.hidden = true;
    hideTip();
  });
  holder.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns, Home: -count, End: count }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      const jumps = event.key === "Home" || event.key === "End";
      const next = jumps ? Math.max(0, Math.min(count - 1, place + step)) : place + step;
      if (next >= 0 && next < count) place = next;
      reached.set(first, place);
      put();
      cursor.scrollIntoView({ block: "nearest", inline: "nearest" });
      const box = cursor.getBoundingClientRect();
      say(box.right, box.bottom, true);
    } else if (event.key === "Enter") open();
  });
  if (holder === document.activeElement && holder.matches(":focus-visible")) put();
}

// Returns the middle of a node's cell, relative to the corner of the section; null for a node that no grid shows.
function middle(section, place) {
  for (const holder of section.querySelectorAll("[data-grid]")) {
    const [first, count, pitch, columns] = ["first", "count", "pitch", "columns"].map((name) => Number(holder.dataset[name]));
    if (place < first || place >= first + count) continue;
    const picture = holder.querySelector("svg");
    const box = picture.getBoundingClientRect();
    const corner = section.getBoundingClientRect();
    const side = (pitch * box.width) / picture.viewBox.baseVal.width;
    const x = box.left - corner.left + (((place - first) % columns) + 0.5) * side;
    return [x, box.top - corner.top + (Math.floor((place - first) / columns) + 0.5) * side];
  }
  return null;
}

// Draws arrows from the nodes that evicted pods leave to the nodes where they land.
export function drawArrows(section) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "arrows");
  svg.setAttribute("aria-hidden", "true");
  for (const move of section.querySelectorAll("[data-from]")) {
    const start = middle(section, Number(move.dataset.from));
    const end = middle(section, Number(move.dataset.to));
    if (!start || !end) continue;
    const [x1, y1, x2, y2] = [...start, ...end];
    const bend = [(x1 + x2) / 2 - (y2 - y1) / 5, (y1 + y2) / 2 - Math.abs(x2 - x1) / 5 - 14];
    const angle = Math.atan2(y2 - bend[1], x2 - bend[0]);
    const corner = (turn) => `${x2 - 9 * Math.cos(angle + turn)} ${y2 - 9 * Math.sin(angle + turn)}`;
    for (const [d, name] of [[`M${x1} ${y1}Q${bend} ${x2} ${y2}`, "way"], [`M${x2} ${y2}L${corner(0.4)} ${corner(-0.4)}z`, "head"]]) {
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      path.setAttribute("d", d);
      path.setAttribute("class", name);
      svg.append(path);
    }
  }
  section.querySelector(".arrows")?.remove();
  if (svg.childElementCount) section.append(svg);
}

export function watchGrids() {
  asked.clear();
  for (const holder of document.querySelectorAll("[data-grid]:not([data-watched])")) {
    holder.dataset.watched = "";
    watch(holder);
  }
  for (const section of document.querySelectorAll(".where")) drawArrows(section);
}
