// Shows the card of a compaction as it runs and when it is done; without this script it is there on reload.
(() => {
  "use strict";
  const card = document.querySelector("#card[data-events]");
  if (!card || !window.EventSource) return;
  const stream = new EventSource(card.dataset.events);
  stream.addEventListener("card", (event) => {
    const focused = card.contains(document.activeElement);
    card.innerHTML = event.data;
    if (focused) card.querySelector("a, summary")?.focus();
  });
  addEventListener("pagehide", () => stream.close());
})();
