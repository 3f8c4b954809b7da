// Whatever somebody pastes: an id of an event or an entry, how one begins, a stream, member, sequence.

import { get } from "./api.js";
import { h, panel, show, table } from "./dom.js";
import { count, plain, short, stamp } from "./format.js";
import { live } from "./live.js";
import { chip, eventLink, named } from "./words.js";

export async function draw(root, { query, signal }) {
  const wanted = (query.get("q") ?? "").trim(), low = wanted.toLowerCase();
  if (/^[0-9a-f]{64}:[0-9]{1,5}$/.test(low)) { location.replace(`#/entry/${low}`); return; }
  show(root, h("h1", {}, "Search"), h("p", { class: "waiting" }, "Asking the node …"));
  const quiet = (asked) => asked.catch((error) => { if (error.status === 401) throw error; return { items: [] }; });
  const isHex = /^[0-9a-f]{4,64}$/.test(low);
  const [events, streams, sequences, members] = await Promise.all([
    isHex ? quiet(get(`v1/events?prefix=${low}`, { signal })) : { items: [] }, quiet(get("v1/streams", { signal })),
    quiet(get(`v1/sequences?limit=1000`, { signal })), live.members.length ? { items: live.members } : quiet(get("v1/cluster/members", { signal }))]);
  const people = members.items.filter((one) => one.name.toLowerCase().includes(low) || one.node_id.startsWith(low));
  const named_streams = streams.items.filter((one) => one.name.includes(low)).slice(0, 20), numbered = sequences.items.filter((one) => one.name.includes(low)).slice(0, 20);
  if (events.items.length === 1 && !people.length && !named_streams.length && !numbered.length) { location.replace(`#/quipu?at=${events.items[0].id}`); return; }
  const found = [
    events.items.length > 0 && panel("Events", table("Events", ["Event", "Node", "Time", "Entries", "State"], events.items.map((one) => [eventLink(one.id), named(one.author.name, 30), stamp(one.time), count(one.entry_count), chip(one.state)])),
      events.truncated && h("p", { class: "hint" }, "There are more: type more of the id.")),
    named_streams.length > 0 && panel("Streams", h("ul", { class: "rows" }, named_streams.map((one) => h("li", {}, h("a", { href: `#/entries?stream=${encodeURIComponent(one.name)}` }, plain(one.name, 130)), h("span", { class: "quiet" }, `${count(one.entries)} entries`))))),
    people.length > 0 && panel("Nodes", h("ul", { class: "rows" }, people.map((one) => h("li", {}, named(one.name), chip(one.state), h("span", { class: "id" }, short(one.node_id)), h("a", { href: "#/cluster" }, "in the cluster"))))),
    numbered.length > 0 && panel("Sequences", h("ul", { class: "rows" }, numbered.map((one) => h("li", {}, h("a", { href: "#/order" }, plain(one.name, 130)), h("span", { class: "quiet" }, `number ${count(one.number)}`))))),
  ].filter(Boolean);
  show(root, h("h1", {}, "Search"), h("p", { class: "note" }, found.length ? `What fits “${plain(wanted, 100)}”.` : `Nothing fits “${plain(wanted, 100)}”. An id is looked for from 4 hex digits on, a stream, node or sequence by a part of its name.`), found);
}
