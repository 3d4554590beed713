// Tooltips: shows the data-tip of the element under the pointer, or of the focused one, beside it.
const GAP = 12;

export function showTip(text, x, y) {
  const tip = document.getElementById("tip");
  if (!tip) return;
  tip.textContent = text;
  tip.hidden = false;
  const left = Math.min(x + GAP, innerWidth - tip.offsetWidth - GAP);
  const top = y + GAP + tip.offsetHeight > innerHeight ? y - tip.offsetHeight - GAP : y + GAP;
  tip.style.left = `${Math.max(GAP, left)}px`;
  tip.style.top = `${Math.max(GAP, top)}px`;
}

export function hideTip() {
  const tip = document.getElementById("tip");
  if (tip) tip.hidden = true;
}

export function watchTips() {
  let pointer = null;
  const pointAt = (target) => {
    const found = target instanceof Element ? target.closest("[data-tip]") : null;
    if (found?.dataset.tip) showTip(found.dataset.tip, ...pointer);
    else if (!(target instanceof Element && target.closest("[data-grid]"))) hideTip();
  };
  document.addEventListener("pointermove", (event) => {
    pointer = [event.clientX, event.clientY];
    pointAt(event.target);
  });
  document.addEventListener("focusin", (event) => {
    const found = event.target instanceof Element ? event.target.closest("[data-tip]") : null;
    if (!found?.dataset.tip || !found.matches(":focus-visible")) return;
    const box = found.getBoundingClientRect();
    showTip(found.dataset.tip, box.left, box.bottom);
  });
  document.addEventListener("focusout", hideTip);
  // Another element may be under the pointer now, but the tooltip of the focused element stays.
  const isWalked = () => document.activeElement?.matches("[data-grid]:focus-visible, [data-tip]:focus-visible");
  const again = () => pointer && !isWalked() && pointAt(document.elementFromPoint(...pointer));
  document.addEventListener("scroll", again, { passive: true, capture: true });
  document.addEventListener("keydown", (event) => event.key === "Escape" && hideTip());
}
