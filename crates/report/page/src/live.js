// A page of a server that shows a folder of runs: asks again while a run goes on.

/** Replaces what `data-live` marks by what the page holds now, every few seconds. */
export function live() {
  const seconds = Number((document.querySelector("[data-live]") || { dataset: {} }).dataset.live);
  if (!seconds || !location.protocol.startsWith("http")) { return; }
  setInterval(async () => {
    try {
      const answer = await fetch(location.pathname + location.search, { cache: "no-store" });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of document.querySelectorAll("[data-live]")) {
        const now = page.getElementById(part.id);
        if (now) { part.innerHTML = now.innerHTML; }
      }
    } catch { /* The server has ended: what is shown stays. */ }
  }, seconds * 1000);
}
