// Shows the card of a compaction as it runs and when it is done; without this script it is there on reload.
(() => {
  "use strict";
  const card = document.querySelector("#card[data-events]");
  if (!card || !window.EventSource) return;
  const address = new URL(card.dataset.events, location.href);
  let stream = null;
  function show(event) {
    const focused = card.contains(document.activeElement);
    card.innerHTML = event.data;
    if (focused) card.querySelector("a, summary")?.focus();
    address.searchParams.set("known", event.lastEventId);
  }
  // A browser has six connections to a server for all its tabs: one that nobody sees gives its own up.
  function watch() {
    stream?.close();
    stream = document.hidden ? null : new EventSource(address);
    stream?.addEventListener("card", show);
  }
  document.addEventListener("visibilitychange", watch);
  addEventListener("pagehide", () => stream?.close());
  watch();
})();
