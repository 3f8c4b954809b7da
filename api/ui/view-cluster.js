// Members, who sees whom, who has signed how far, versions.

import { askAll, get, pause } from "./api.js";
import { copyButton, h, hint, panel, say, show, table } from "./dom.js";
import { count, plain, plural, short, took } from "./format.js";
import { known, live, watch } from "./live.js";
import { chip, fields, named } from "./words.js";

const EVERY_MS = 4_000;

export async function draw(root, { signal }) {
  const lead = h("p", { class: "note" }), members = h("div", { class: "slot" }), seen = h("div", { class: "slot" }), signed = h("div", { class: "slot" }), versions = h("div", { class: "slot" });
  show(root, h("h1", {}, "Cluster"), lead, h("section", { class: "panel flush" }, h("h2", {}, "Members"), members),
    h("div", { class: "two" }, panel("Who sees whom", hint("A row is what that node says of the others: each answers for itself, signed."), seen),
      panel("Receipts", hint("How many events of a cord a member has not signed for yet, as this node heard it."), signed)),
    panel("Versions", versions));
  watch(() => {
    if (!live.cluster) return;
    const { policy, max_confirms, members: all, epoch, safe } = live.cluster;
    say(lead, `${plain(live.cluster.cluster_name, 60)}: ${plural(all, "member")}, epoch ${epoch}, policy ${policy}: ${plural(max_confirms, "receipt of others", "receipts of others")} ${max_confirms === 1 ? "makes" : "make"} an event final${safe ? "" : "; below a majority, so two halves could each go on alone"}.`);
    show(members, memberTable());
  }, signal);
  show(seen, h("p", { class: "waiting" }, "Asking the members …"));
  await known(signal);
  while (!signal.aborted) {
    await Promise.all([matrix(seen, versions, signal), receipts(signed, signal)]);
    await pause(EVERY_MS, signal);
  }
}

function memberTable() {
  return table("Members", ["Name", "State", "Heard", "Links", "Roles", "Endpoint", "Node id"], live.members.map((one) => [
    named(one.name), chip(one.state), one.is_self ? "this node" : one.heard_ms_ago === null ? "never" : `${took(one.heard_ms_ago)} ago`,
    one.is_self ? "–" : one.trouble ? h("span", { class: "bad" }, plain(one.trouble, 120)) : `${one.linked_in ? "in" : "–"} / ${one.linked_out ? "out" : "–"}`,
    one.roles.join(", "), one.endpoint ?? "not known", h("span", { class: "id" }, short(one.node_id), " ", copyButton(one.node_id, `the node id of ${one.name}`))]));
}

/** @param {string[]} names */
export function matrixTable(caption, names, heads, cell) {
  return table(caption, ["", ...heads], names.map((name, row) => [name, ...heads.map((_, column) => cell(row, column))]), { class: "matrix" });
}

async function matrix(place, versions, signal) {
  const roster = live.members.filter((one) => one.number !== null);
  if (!roster.length) return;
  try {
    const [views, said] = await Promise.all([askAll("members", signal), askAll("version", signal)]);
    if (signal.aborted) return;
    const told = roster.map((one) => parsed(views.by.get(one.node_id)));
    show(place, matrixTable("Who sees whom", roster.map((one) => plain(one.name, 12)), roster.map((one) => plain(one.name, 12)), (row, column) => {
      if (row === column) return h("span", { class: "cell self" }, "–");
      if (!told[row]) return h("span", { class: "cell bad", title: "it does not answer" }, "✕ silent");
      const [, state, hears, isHeard] = told[row].find(([number]) => number === roster[column].number) ?? [0, "unknown", false, false];
      const isGood = state === "alive" && hears && isHeard;
      return h("span", { class: `cell ${isGood ? "good" : state === "alive" ? "wait" : "bad"}`, title: `hears it: ${hears}; is linked to it: ${isHeard}` }, isGood ? "● sees" : `◐ ${state}`);
    }));
    show(versions, fields(roster.map((one) => [named(one.name), said.by.get(one.node_id) ?? "does not answer"])));
  } catch (error) {
    if (!signal.aborted) show(place, h("p", { class: "bad" }, error.message));
  }
}

function parsed(answer) {
  try {
    const rows = JSON.parse(answer);
    return Array.isArray(rows) ? rows : null;
  } catch {
    return null;
  }
}

async function receipts(place, signal) {
  try {
    const { items } = await get("v1/cluster/receipts", { signal });
    const roster = live.members.filter((one) => one.number !== null);
    if (!items.length || !roster.length) {
      show(place, h("p", { class: "quiet" }, "No cord has an event yet."));
      return;
    }
    const newest = roster.map((one) => items.filter((row) => row.author.number === one.number)).map((rows) => rows[0]);
    show(place, matrixTable("Receipts: who lags behind whom", roster.map((one) => `signed by ${plain(one.name, 12)}`), roster.map((one) => `cord of ${plain(one.name, 12)}`), (row, column) => {
      const cord = newest[column];
      if (!cord) return h("span", { class: "cell self" }, "–");
      const upto = Number(cord.signed.find((one) => one.number === roster[row].number)?.seq ?? 0), behind = Number(cord.held_seq) - upto;
      return h("span", { class: `cell ${behind <= 0 ? "good" : behind < 50 ? "wait" : "bad"}`, title: `signed up to ${upto} of ${cord.held_seq}` }, behind <= 0 ? "● all" : `◐ ${count(behind)}`);
    }));
  } catch (error) {
    if (!signal.aborted) show(place, h("p", { class: "bad" }, error.message));
  }
}
