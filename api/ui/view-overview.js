// One sentence, six tiles, the cords of the last moments, members and warnings.

import { h, panel, say, show } from "./dom.js";
import { brief, clock, count, plain, plural, size, took } from "./format.js";
import { gauges, live, rates, watch } from "./live.js";
import { sparkline } from "./sparkline.js";
import { strip } from "./strip.js";
import { chip } from "./words.js";

/** What holds, in one sentence. @returns {{word: "good"|"wait"|"bad", text: string}} */
export function verdict({ cluster, figures, copies, evidence }) {
  const unread = figures.gauges.events_unread ?? 0, failing = figures.checks.filter((check) => !check.passes);
  const parts = [`${cluster.members_live} of ${plural(cluster.members, "node")} alive`];
  if (copies) parts.push(copies.equal ? copiesEqual(copies) : "copies catching up with each other");
  parts.push(`${count(unread)} unread`);
  if (figures.finality) parts.push(`finality p95 ${took(figures.finality.p95_ms)}`);
  const isBad = !cluster.finality || evidence.length > 0 || failing.length > 0;
  const isWaiting = cluster.members_live < cluster.members || (copies && !copies.equal);
  const lead = cluster.finality ? "" : "Nothing can become final now: ";
  return { word: isBad ? "bad" : isWaiting ? "wait" : "good", text: `${lead}${parts.join(", ")}.` };
}

function copiesEqual({ answered, asked }) {
  if (asked === 1) return "the one copy sound";
  return answered === asked ? "copies equal" : `the ${answered} copies that answer equal`;
}

export async function draw(root, { signal }) {
  const sentence = h("h1", { class: "verdict", "aria-live": "polite" }, h("span", { class: "waiting" }, "Asking the node …"));
  const tiles = h("div", { class: "tiles" }), members = h("div", { class: "slot" }), warnings = h("div", { class: "slot" });
  show(root, sentence, tiles,
    h("section", { class: "panel flush" }, h("h2", {}, "The last moments", h("a", { href: "#/quipu", class: "more" }, "Open the quipu")), strip(signal)),
    h("div", { class: "two" }, panel("Members", members), panel("Warnings", warnings)));
  for (const one of placeholders()) tiles.append(one);
  watch(() => {
    if (live.error && !live.figures) say(sentence, live.error.message);
    if (!live.figures) return;
    const { word, text } = verdict(live);
    sentence.className = `verdict ${word}`;
    say(sentence, text);
    show(tiles, shownTiles());
    show(members, memberList());
    show(warnings, warningList());
  }, signal);
}

const TILES = ["Final events", "Entries taken here", "Not final yet", "Finality p95", "Behind in the order", "Store"];

function placeholders() {
  return TILES.map((title) => h("div", { class: "tile" }, h("h2", {}, title), h("p", { class: "figure" }, "–"), sparkline([], `${title}: not known yet`)));
}

function shownTiles() {
  const { gauges: now, finality } = live.figures;
  const final = rates("feed_number", "gauges"), taken = rates("entries_stored_total");
  const delays = live.samples.map((sample) => sample.finality?.p95_ms ?? 0);
  const rows = [
    [brief(now.feed_number), `${brief(final.at(-1) ?? 0)} a second`, final],
    [`${brief(taken.at(-1) ?? 0)}/s`, `${brief(live.figures.counters.entries_stored_total ?? 0)} since its start`, taken],
    [count(now.events_unread ?? 0), now.events_unread ? "waiting for receipts" : "all that is held is final", gauges("events_unread")],
    [finality ? took(finality.p95_ms) : "–", finality ? `p50 ${took(finality.p50_ms)}, p99 ${took(finality.p99_ms)}` : "nothing became final yet", delays],
    [brief(now.events_not_ordered ?? 0), `${brief(now.events_ordered ?? 0)} ordered`, gauges("events_not_ordered")],
    [size(now.store_used_bytes ?? 0), plural(now.store_events ?? 0, "event"), gauges("store_used_bytes")],
  ];
  return rows.map(([figure, more, samples], place) => h("div", { class: "tile" },
    h("h2", {}, TILES[place]), h("p", { class: "figure" }, figure), h("p", { class: "sub" }, more),
    sparkline(samples, `${TILES[place]}, last ${took(samples.length * 2_000)}: now ${figure}`)));
}

function memberList() {
  return h("ul", { class: "rows" }, live.members.map((member) => h("li", {},
    h("span", { class: "name", dir: "auto" }, plain(member.name || "?", 40)),
    chip(member.state), member.is_self ? h("span", { class: "quiet" }, "this node")
      : h("span", { class: "quiet" }, member.heard_ms_ago === null ? "not heard" : `heard ${took(member.heard_ms_ago)} ago`),
    h("span", { class: "quiet end" }, member.version))));
}

function warningList() {
  const found = [
    ...live.figures.checks.filter((check) => !check.passes).map((check) => [`Check ${check.name}`, check.detail || "fails"]),
    ...live.evidence.map((one) => ["Proof of misbehaviour", `held against ${one.node_id.slice(0, 8)} as ${one.role}`]),
    ...live.members.filter((one) => one.state !== "alive").map((one) => [plain(one.name || one.node_id.slice(0, 8), 40), one.trouble || `is ${one.state}`]),
    ...live.moves.map((move) => [clock(move.time_ms), `${plain(nameOf(move.node_id), 40)}: ${move.before} → ${move.state}${move.reason ? ` (${plain(move.reason, 80)})` : ""}`]),
  ];
  if (!found.length) return h("p", { class: "quiet" }, "None. Every check of this node passes and every member answers.");
  return h("ul", { class: "rows" }, found.slice(0, 8).map(([what, why]) => h("li", {}, h("span", { class: "name" }, what), h("span", { class: "grow" }, why))));
}

function nameOf(id) {
  return live.members.find((one) => one.node_id === id)?.name || id.slice(0, 8);
}
