// Before and after, one over the other, with a slider between them.
const pictures = (() => {
  function start() {
    const dialog = element("wipe");
    if (!dialog) return;
    const at = element("wipe-at"), over = element("wipe-over");
    const wipe = () => { over.style.clipPath = "inset(0 0 0 " + at.value + "%)"; };
    at.oninput = wipe;
    element("wipe-close").onclick = () => dialog.close();
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
    for (const pair of document.querySelectorAll("button.pair")) {
      pair.onclick = () => {
        const [before, after] = pair.querySelectorAll("img");
        element("wipe-before").src = before.src;
        element("wipe-before").alt = before.alt;
        element("wipe-after").src = after.src;
        element("wipe-after").alt = after.alt;
        element("wipe-caption").textContent = pair.parentElement.querySelector("figcaption").textContent;
        at.value = 50;
        wipe();
        dialog.showModal();
        at.focus();
      };
    }
  }
  return { start };
})();
