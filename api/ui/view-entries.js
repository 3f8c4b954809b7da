// Entries: what the address filters, a page at a time, or as they become final.

import { get, listen } from "./api.js";
import { h, say, show, table } from "./dom.js";
import { plain, stamp } from "./format.js";
import { preview } from "./payload.js";
import { chip, entryLink, named } from "./words.js";

const NAMES = ["stream", "author", "submitter", "since", "until", "state", "order"];
const LIVE_ROWS = 100;
const PAINT_EVERY_MS = 250;

export async function draw(root, { query, signal }) {
  const filters = new URLSearchParams([...query].filter(([name, value]) => NAMES.includes(name) && value));
  if (!filters.has("state") && !filters.has("order")) filters.set("order", "desc");
  if (filters.get("state") === "stored") filters.delete("order");
  const list = h("div"), word = h("p", { class: "note", role: "status" }), under = h("div", { class: "row" });
  show(root, h("div", { class: "bar" }, h("h1", {}, "Entries"), h("span", { class: "grow" }),
    h("a", { href: "#/submit" }, "Submit an entry")), await form(filters, signal), word,
  h("div", { class: "panel flush" }, list), under);
  if (query.get("live")) follow(filters, list, word, signal);
  else await page(filters, query.get("after"), list, word, under, signal);
}

async function form(filters, signal) {
  const field = (name, label, given = {}) => h("label", {}, label, h("input", { name, value: filters.get(name) ?? "", autocomplete: "off", ...given }));
  const choice = (name, label, values) => h("label", {}, label, h("select", { name }, values.map(([value, text]) =>
    h("option", { value, selected: (filters.get(name) ?? "") === value }, text))));
  const streams = h("datalist", { id: "streams" });
  get("v1/streams", { signal }).then((found) => show(streams, found.items.slice(0, 200).map((one) => h("option", { value: one.name })))).catch(() => {});
  const made = h("form", { class: "filters", role: "search", "aria-label": "Filter entries" },
    field("stream", "Stream", { list: "streams", placeholder: "any" }), field("author", "Node", { placeholder: "name or number" }),
    field("submitter", "Submitter", { placeholder: "name of a token" }), field("since", "Since", { placeholder: "the beginning", title: "a time, as 2026-01-31T00:00:00Z" }),
    field("until", "Until", { placeholder: "now", title: "a time, as 2026-01-31T00:00:00Z" }), choice("state", "State", [["", "final"], ["stored", "stored, not final"]]),
    choice("order", "Order", [["desc", "newest first"], ["asc", "oldest first"]]), streams,
    h("div", { class: "row" }, h("button", { type: "submit", class: "main" }, "Show"),
      h("button", { type: "submit", name: "live", value: "1" }, "Live")));
  made.addEventListener("submit", (event) => {
    event.preventDefault();
    const chosen = new URLSearchParams([...new FormData(made, event.submitter)].filter(([, value]) => value));
    location.hash = `#/entries?${chosen}`;
  });
  return made;
}

async function page(filters, after, list, word, under, signal) {
  const asked = new URLSearchParams(filters);
  asked.set("limit", "50");
  if (after) asked.set("after", after);
  show(list, h("p", { class: "waiting" }, "Asking the node …"));
  const found = await get(`v1/entries?${asked}`, { signal });
  say(word, found.items.length ? "" : after ? "That was the last page." : "No entry fits. Take a filter away, or submit the first one.");
  show(list, found.items.length ? rows(found.items, filters.get("state") ?? "read") : h("p", { class: "hint" }, ""));
  const onward = new URLSearchParams(filters);
  onward.set("after", found.next);
  show(under, after && h("button", { type: "button", onclick: () => history.back() }, "Back"),
    found.more && h("button", { type: "button", class: "main", onclick: () => { location.hash = `#/entries?${onward}`; } }, "Next page"));
}

/** As they become final, the newest on top; rows are shown four times a second at most. */
function follow(filters, list, word, signal) {
  const asked = new URLSearchParams({ events: "entries" });
  for (const name of ["stream", "author"]) if (filters.get(name)) asked.set(name, filters.get(name));
  let held = [], isDue = false, seen = 0;
  const paint = () => { isDue = false; if (!signal.aborted) show(list, rows(held, "read")); };
  listen(`v1/stream?${asked}`, {
    signal,
    state: (state, error) => say(word, { connecting: "Connecting …", live: "Live: entries appear as they become final.", broken: "The connection broke: it is tried again.", refused: error?.text }[state]),
    hear({ event, data }) {
      if (event === "gap") say(word, `${data.missed} were too many for this page; the newest follow.`);
      if (event !== "entry") return;
      seen += 1;
      held = [data, ...held].slice(0, LIVE_ROWS);
      if (!isDue) { isDue = true; setTimeout(paint, PAINT_EVERY_MS); }
      list.dataset.seen = seen;
    },
  });
  show(list, h("p", { class: "waiting" }, "Waiting for the next entry …"));
}

function rows(items, state) {
  return table("Entries", ["Entry", "Stream", "Node", "Time", "State", "Submitter", "Data"], items.map((entry) => [
    entryLink(entry.id), named(entry.stream, 40), named(entry.author.name, 24), stamp(entry.time), chip(state),
    named(entry.submitter ?? "–", 30), h("span", { class: "payload", dir: "auto" }, plain(preview(entry), 160)),
  ]));
}
