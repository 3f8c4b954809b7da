// The one order of the cluster: who leads, who votes, how far each node is; and the sequences.

import { askAll, get, pause } from "./api.js";
import { h, hint, panel, say, show, table } from "./dom.js";
import { brief, count, plain, plural, short } from "./format.js";
import { known, live } from "./live.js";
import { eventLink, fields, named } from "./words.js";

const EVERY_MS = 2_500;
const ENTRIES = 30;

export async function draw(root, { signal }) {
  const executors = h("div", { class: "slot" }), clients = h("div");
  const lead = h("p", { class: "verdict", "aria-live": "polite" }, "Asking the node …"), facts = h("div", { class: "slot" }), nodes = h("div", { class: "slot" }), entries = h("div", { class: "slot" }), sequences = h("div");
  show(root, h("h1", {}, "Order"), lead,
    h("div", { class: "two" }, panel("This node", facts), panel("How far each node is", nodes)),
    h("section", { class: "panel flush" }, h("h2", {}, "Executors"), executors),
    h("section", { class: "panel flush" }, h("h2", {}, "Clients"), clients),
    h("section", { class: "panel flush" }, h("h2", {}, "Newest entries of the log"), entries),
    h("section", { class: "panel flush" }, h("h2", {}, "Sequences"), sequences));
  await known(signal);
  while (!signal.aborted) {
    const journal = await get("v1/journal", { signal });
    if (signal.aborted) return;
    const { word, text } = order(journal);
    lead.className = `verdict ${word}`;
    say(lead, text);
    show(facts, factsOf(journal));
    await Promise.all([newest(journal, entries, signal), listed(sequences, signal), others(nodes, executors, journal, signal), registered(clients, signal)].map((one) => one.catch(() => {})));
    await pause(EVERY_MS, signal);
  }
}

export function order(journal) {
  if (!journal.master) return { word: "bad", text: "Nobody leads: a majority of the serializers does not answer, so nothing is ordered." };
  const behind = journal.events_behind;
  return { word: behind > 1_000 ? "wait" : "good", text: `${plain(journal.master.name, 40)} leads regime ${journal.regime}; ${brief(journal.events)} events are in order, ${behind ? `${count(behind)} final ones wait for their place` : "none waits"}.` };
}

function factsOf(journal) {
  const names = (list) => list.map((one, place) => [place > 0 && ", ", named(one.name, 30)]);
  return fields([
    ["Role", journal.role], ["Regime", count(journal.regime)], ["Master", journal.master ? named(journal.master.name, 40) : "none"],
    ["Serializers", names(journal.serializers)], journal.next_serializers && ["Taking over", names(journal.next_serializers)],
    ["Chosen", count(journal.chosen)], ["Applied", count(journal.applied)], ["Last, chosen or not", count(journal.last)], ["Held above", count(journal.base)],
    ["Digest", h("code", { class: "long" }, journal.digest.slice(0, 32), "…")]]);
}

async function others(place, executors, journal, signal) {
  const told = await askAll("journal", signal), roster = live.members.filter((one) => one.number !== null);
  if (signal.aborted) return;
  const rows = roster.map((one) => [one, place_of(told.by.get(one.node_id))]);
  show(executors, table("Executors", ["Node", "State", "Executed up to", "Behind", "Digest"], executorRows(rows)));
  const most = Math.max(...rows.map(([, at]) => at?.chosen ?? 0));
  show(place, table("Nodes in the order", ["Node", "Role", "Regime", "Applied", "Behind"], rows.map(([one, at]) => at
    ? [named(one.name, 30), at.role, count(at.regime), count(at.applied), at.applied >= most ? h("span", { class: "good" }, "● none") : h("span", { class: "wait" }, `◐ ${count(most - at.applied)}`)]
    : [named(one.name, 30), h("span", { class: "bad" }, "✕ does not answer"), "–", "–", "–"])));
}

const STATE_WORDS = { running: ["good", "●"], waiting: ["wait", "◐"], off: ["quiet", "○"], failed: ["bad", "✕"] };

/** Who has executed the same has the same digest: one that differs is marked. */
export function executorRows(rows) {
  const digests = new Map();
  for (const [, at] of rows) if (at?.executor === "running") digests.set(at.executed, new Set([...(digests.get(at.executed) ?? []), at.digest]));
  return rows.map(([one, at]) => {
    if (!at?.executor) return [named(one.name, 30), h("span", { class: "bad" }, "✕ does not answer"), "–", "–", "–"];
    const [word, sign] = STATE_WORDS[at.executor] ?? ["quiet", "○"], isOff = at.executor === "off";
    const behind = at.applied - at.executed, differs = (digests.get(at.executed)?.size ?? 0) > 1;
    return [named(one.name, 30), h("span", { class: word }, `${sign} ${plain(at.executor, 20)}`), isOff ? "–" : count(at.executed), isOff ? "–" : behind > 0 ? count(behind) : "none",
      isOff ? "–" : h("span", { class: differs ? "bad" : "" }, h("code", {}, plain(String(at.digest), 32)), differs && " ✕ differs")];
  });
}

const CLIENTS_SHOWN = 100;
const CLIENT_STATES = { active: ["good", "● active"], removed: ["quiet", "○ removed"], terminated: ["bad", "✕ terminated: it signed two requests with one number"] };

async function registered(place, signal) {
  const { items, more } = await get(`v1/clients?limit=${CLIENTS_SHOWN}`, { signal });
  if (signal.aborted) return;
  if (!items.length) { show(place, h("p", { class: "hint pad" }, "None yet. A client signs numbered requests, and every executor does each exactly once: ", h("code", {}, "quipu client new --state client.json"))); return; }
  show(place, table("Clients of the order", ["Client", "State", "Requests done", "Results held up to", "May", "Key"], items.map((one) => {
    const [word, text] = CLIENT_STATES[one.state] ?? ["quiet", one.state];
    return [count(one.client), h("span", { class: word }, text), one.next_message_id ? count(Number(one.next_message_id) - 1) : "–", one.have ? count(one.have) : "–", rightsOf(one.rights), h("code", {}, short(one.public_key))];
  })), more && h("p", { class: "hint pad" }, `The first ${plural(items.length, "client")}; quipu client list has the rest.`));
}

function rightsOf(rights) {
  if (!rights) return "–";
  return h("span", { class: "ids" }, rights.map((rule) => h("span", {}, `${plain(rule.tables, 60)}: ${rule.rights.join(", ")}`)));
}

function place_of(answer) {
  try {
    const found = JSON.parse(answer);
    return typeof found?.applied === "number" ? found : null;
  } catch {
    return null;
  }
}

async function newest(journal, place, signal) {
  const after = Math.max(Number(journal.base), Number(journal.applied) - ENTRIES);
  const { items } = await get(`v1/journal/entries?after=${after}&limit=${ENTRIES}`, { signal });
  if (signal.aborted) return;
  if (!items.length) { show(place, hint("The log has no entry that is held here.")); return; }
  show(place, table("Entries of the log, the newest first", ["Index", "Regime", "Master", "Items", "Digest"], items.reverse().map((one) => [
    count(one.index), one.regime, named(one.master.name, 30), itemsOf(one.items), h("code", {}, one.digest.slice(0, 16))])));
}

function itemsOf(items) {
  if (!items.length) return h("span", { class: "quiet" }, "empty: it begins a regime");
  const events = items.filter((item) => item.kind === "event"), rest = items.filter((item) => item.kind !== "event");
  return h("span", { class: "ids" }, events.slice(0, 6).map((item) => eventLink(item.event_id)), events.length > 6 && `and ${count(events.length - 6)} more`,
    rest.map((item) => h("span", {}, `${item.kind}${item.name ? ` ${plain(item.name, 40)}` : ""}${item.number ? ` number ${item.number}` : ""}${item.stage ? ` ${item.stage}` : ""}`)));
}

async function listed(place, signal) {
  const { items, more } = await get("v1/sequences?limit=100", { signal });
  if (signal.aborted) return;
  if (!items.length) { show(place, h("p", { class: "hint pad" }, "None yet. A sequence numbers things without a hole: ", h("code", {}, "quipu sequence publish invoices 'invoice 1'"))); return; }
  show(place, table("Sequences", ["Name", "Number", "Locked by", "Up to", "Running digest"], items.map((one) => [
    named(one.name, 130), count(one.number), one.holder ? named(one.holder.name, 30) : "nobody", one.locked_upto ? count(one.locked_upto) : "–", h("code", {}, short(one.running_digest))])),
  more && h("p", { class: "hint pad" }, `The first ${plural(items.length, "sequence")}; quipu sequence lists the rest.`));
}
