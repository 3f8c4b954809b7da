// How far an entry has come: stored, read, ordered. It waits at the node for each next state.

import { get, pause } from "./api.js";
import { h, show } from "./dom.js";
import { clock, plural } from "./format.js";
import { chip, named } from "./words.js";

const REST_MS = 1_000;

export function way(id, signal) {
  const place = h("div", { "aria-live": "polite" }, h("ol", { class: "way" }, h("li", {}, "stored"), h("li", {}, "read"), h("li", {}, "ordered")));
  (async () => {
    let wait = "";
    while (!signal.aborted) {
      try {
        const status = await get(`v1/entries/${encodeURIComponent(id)}/status${wait}`, { signal });
        show(place, shown(status));
        if (["ordered", "executed", "void"].includes(status.state)) return;
        wait = `?wait=15s&state=${status.state === "read" ? "ordered" : "read"}`;
      } catch (error) {
        if (signal.aborted) return;
        if (error.status) { show(place, h("p", { class: "bad", role: "alert" }, error.message)); if (error.status < 500) return; }
        await pause(REST_MS, signal);
      }
    }
  })();
  return place;
}

function shown(status) {
  const at = ["stored", "read", "ordered", "executed"].indexOf(status.state);
  const step = (place, title, what) => h("li", { class: place <= at ? "done" : null }, place <= at ? "✓ " : "", title, h("time", {}, what));
  return [
    status.state === "void" && h("p", {}, chip("void"), " It never became final: its author left before."),
    h("ol", { class: "way" },
      step(0, "stored", status.stored_at ? clock(status.stored_at) : "durably"),
      step(1, "read", at >= 1 ? (status.read_at ? clock(status.read_at) : "final") : `${status.confirmations} of ${plural(status.required, "receipt")}`),
      step(2, "ordered", at >= 2 ? "in the one order" : "not yet")),
    h("p", { class: "hint" }, "Confirmed by ", status.confirmed_by.length ? status.confirmed_by.map((one, place) => [place > 0 && ", ", named(one.name)]) : "nobody but its author yet", "."),
  ];
}
