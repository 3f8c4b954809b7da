// One event: its fields, whom it names, who names it, who confirmed it, its entries, its bytes.

import { get } from "./api.js";
import { copyButton, h, show } from "./dom.js";
import { bytesOf, count, hexDump, plain, plural, short, size, stamp } from "./format.js";
import { chip, entryLink, fields, named } from "./words.js";

const ENTRIES_SHOWN = 8;

/** Whoever reads with the keyboard stays in the panel when it is filled anew. */
function renew(side, ...children) {
  const held = side.contains(document.activeElement);
  show(side, ...children);
  if (held) side.focus();
}

/** @param {{signal: AbortSignal, go: (id: string) => void}} how */
export async function knotPanel(side, id, { signal, go }) {
  side.dataset.event = id;
  renew(side, h("h2", {}, `Event ${short(id)}`), h("p", { class: "waiting" }, "Asking the node …"));
  try {
    const [event, told, children] = await Promise.all([
      get(`v1/events/${id}`, { signal }), get(`v1/events/${id}/explain`, { signal }), get(`v1/events/${id}/children`, { signal })]);
    if (side.dataset.event !== id || signal.aborted) return;
    renew(side, panelOf(event, told, children, go));
  } catch (error) {
    if (!signal.aborted && side.dataset.event === id) renew(side, h("h2", {}, `Event ${short(id)}`), h("p", { class: "bad" }, error.message));
  }
}

function panelOf(event, told, children, go) {
  const step = (id) => h("button", { type: "button", class: "id", title: id, onclick: () => go(id) }, short(id));
  const below = event.prev ? [event.prev, ...event.parents] : event.parents;
  const header = bytesOf(event.header_base64);
  return [
    h("h2", {}, `Event ${short(event.id)}`, " ", chip(event.state)),
    h("p", {}, plain(told.sentence, 600)),
    fields([
      ["Author", named(event.author.name)], ["Number", `${count(event.seq)} of its journal`], ["Time", stamp(event.time)],
      ["Entries", `${count(event.entry_count)} in ${size(event.size_bytes)}`], ["Depth", count(event.depth)], ["Epoch", event.epoch],
      ["Parents", below.length ? h("span", { class: "ids" }, below.map(step)) : "none: it begins a cord"],
      ["Children", children.items.length ? h("span", { class: "ids" }, children.items.map((one) => step(one.id)), children.truncated && " …") : "none yet"],
      ["Confirmed by", told.confirmed_by.length ? told.confirmed_by.map((one, place) => [place > 0 && ", ", named(one.name)]) : "nobody but its author yet"],
      ["Needed", plural(told.required, "receipt of others", "receipts of others")],
    ]),
    h("h3", {}, "Entries"),
    h("ul", { class: "plain" }, Array.from({ length: Math.min(ENTRIES_SHOWN, event.entry_count) }, (_, place) => h("li", {}, entryLink(`${event.id}:${place}`)))),
    event.entry_count > ENTRIES_SHOWN && h("p", { class: "hint" }, `and ${count(event.entry_count - ENTRIES_SHOWN)} more`),
    h("details", {}, h("summary", {}, "What was signed"),
      fields([["Id", h("code", { class: "long" }, event.id, " ", copyButton(event.id, "the id"))], ["Journal", event.journal], ["hlc", event.hlc], ["Signature", h("code", { class: "long" }, event.signature)]]),
      h("pre", { class: "bytes", tabindex: 0, "aria-label": "Header in hex" }, hexDump(header))),
  ];
}
